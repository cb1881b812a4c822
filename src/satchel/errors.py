"""Every failure that Satchel raises, as one tree.

A code belongs to exactly one class, so a caller may catch the class or compare the code. Messages are one
sentence that names the cause; ``hint`` says what to do next. Tool results never raise: they carry text that a
model can act on (see ``satchel.tools.base``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar


class SatchelError(Exception):
    """A failure with a stable ``code``, a ``message`` for people, a ``hint`` and JSON-safe ``data``.

    ``retryable`` is True when the same call may succeed later without any change by the caller.
    """

    codes: ClassVar[frozenset[str]] = frozenset()

    def __init__(
        self,
        code: str,
        message: str,
        *,
        hint: str = "",
        data: Mapping[str, object] | None = None,
        retryable: bool = False,
    ) -> None:
        if code not in self.codes:
            raise ValueError(f"{type(self).__name__} has no code {code!r}")
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint
        self.data: Mapping[str, object] = dict(data or {})
        self.retryable = retryable

    def to_dict(self) -> dict[str, object]:
        """``{"code", "message", "hint", "retryable", "data"}``, JSON-safe."""
        return {
            "code": self.code,
            "message": self.message,
            "hint": self.hint,
            "retryable": self.retryable,
            "data": dict(self.data),
        }


class SkillError(SatchelError):
    """A skill cannot be found, or cannot be read as one."""

    codes = frozenset({"skill-not-found", "skill-ambiguous", "skill-invalid"})


class PathError(SatchelError):
    """A path inside a skill is refused or does not lead to a readable file."""

    codes = frozenset({"path-refused", "path-not-found", "not-a-file", "binary-file", "offset-past-end"})


class FileError(SatchelError):
    """A file of a workspace cannot be written or changed as it was asked. Nothing was changed."""

    codes = frozenset(
        {
            "patch-invalid",
            "patch-mismatch",
            "edit-mismatch",
            "file-exists",
            "file-changed",
            "file-too-large",
            "write-failed",
            "NOT_READ_THIS_SESSION",
            "STALE_READ",
        }
    )


class BundleError(SatchelError):
    """An archive is refused: what it holds is unsafe, too much, or not exactly one skill."""

    codes = frozenset({"bundle-unsafe", "bundle-too-large", "bundle-no-skill", "bundle-many-skills"})


class UpstreamError(SatchelError):
    """A model server did not give a usable answer.

    ``data`` may hold ``status`` (the HTTP status it sent) and ``retry_after`` (its header, as sent).
    """

    codes = frozenset(
        {
            "upstream-unreachable",
            "upstream-timeout",
            "upstream-auth",
            "upstream-rate-limited",
            "upstream-rejected",
            "upstream-failed",
            "upstream-garbled",
            "upstream-cut-off",
            "model-not-found",
            "context-overflow",
        }
    )


class SandboxError(SatchelError):
    """A program could not be started, or not under the confinement that was asked for."""

    codes = frozenset({"sandbox-unavailable", "launch-failed", "no-room"})


class StoreError(SatchelError):
    """What is kept between requests or beside a conversation cannot be used now."""

    codes = frozenset({"session-conflict", "store-unavailable", "state-invalid"})


class RequestError(SatchelError):
    """A caller's request cannot be served as it stands."""

    codes = frozenset({"invalid-request", "unauthorized", "forbidden", "not-found", "too-large", "too-many"})


class WeightsError(SatchelError):
    """The embedded model's file is missing, damaged or cannot be fetched."""

    codes = frozenset({"weights-missing", "weights-corrupt", "download-failed"})


class SetupError(SatchelError):
    """The program was started with settings that cannot work."""

    codes = frozenset({"setting-invalid", "setting-unknown", "root-missing", "port-in-use", "extra-missing"})
