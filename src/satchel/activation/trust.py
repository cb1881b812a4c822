"""Where a skill lies and what that means: the fence around roots, sensitive places, and whom the host trusts."""

# ruff: noqa: PTH100, PTH119 - paths are strings here, as in the walk

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Literal, get_args

from satchel.errors import SetupError
from satchel.library.approvals import Approvals
from satchel.pathguard import is_inside
from satchel.ports.skills import SkillEntry
from satchel.skills.globs import matches_any, matches_glob

SENSITIVE = (
    "**/.env",
    "**/.env/**",
    "**/.env.*",
    "**/.env.*/**",
    "**/secrets/**",
    "**/.ssh",
    "**/.ssh/**",
    "**/.aws",
    "**/.aws/**",
    "**/.gnupg",
    "**/.gnupg/**",
    "**/id_rsa*",
    "**/id_ed25519*",
    "**/*.pem",
    "**/*.key",
    "**/*.pfx",
    "**/*.p12",
    "**/credentials.json",
    "**/service-account*.json",
)
"""Places where no skill belongs: one there is almost certainly a mistake."""

StrPath = str | os.PathLike[str]
Untrusted = Literal["hook_required", "warn", "allow"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trust:
    """Which skills activate without being asked about (seed 000, section 5.5).

    ``trusted_roots`` are directories; what lies below one is trusted, and so are skills that the host made itself.
    ``untrusted_project_skills`` says what becomes of the others: "hook_required", "warn" (allowed, with a warning) or
    "allow". ``approvals`` are a person's own, each void as soon as a byte of the folder changes; with ``remember`` a
    hook's "allow" of an untrusted skill becomes one of them.

    Raises:
        SetupError: "setting-invalid" for another word in ``untrusted_project_skills``.
    """

    trusted_roots: StrPath | Collection[StrPath] = ()
    untrusted_project_skills: Untrusted = "hook_required"
    approvals: Approvals | None = None
    remember: bool = False

    def __post_init__(self) -> None:
        if self.untrusted_project_skills not in get_args(Untrusted):
            raise SetupError(
                "setting-invalid",
                f'"{self.untrusted_project_skills}" does not say what becomes of skills that are not trusted.',
                hint=f"Known are {', '.join(get_args(Untrusted))}.",
            )

    @property
    def given(self) -> tuple[str, ...]:
        """The trusted roots as paths, as they were given."""
        given = (self.trusted_roots,) if isinstance(self.trusted_roots, (str, os.PathLike)) else self.trusted_roots
        return tuple(path for root in given if (path := os.fspath(root)))

    @property
    def roots(self) -> tuple[str, ...]:
        """The trusted roots, canonical. Looks at the disk."""
        return tuple(os.path.realpath(root) for root in self.given)


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What the place of a skill says of it. ``sensitive`` is the pattern that it matches, "" when none."""

    directory: str
    is_fenced: bool
    sensitive: str
    trusted_by: Literal["", "trusted-root", "approval"]


def standing(
    entry: SkillEntry, digest: str, trust: Trust, *, workspace: Collection[str], sensitive: Collection[str]
) -> Standing:
    """Looks at the disk. ``digest`` is that of the SKILL.md as it was read."""
    if not entry.dir:
        is_own = entry.skill is not None and entry.skill.trusted
        return Standing(directory="", is_fenced=True, sensitive="", trusted_by="trusted-root" if is_own else "")
    directory = os.path.realpath(entry.dir)
    # A root is often the fence and what is trusted: within one look, each path is resolved once.
    real = _resolver()
    return Standing(
        directory=directory,
        is_fenced=any(is_inside(directory, real(root)) for root in (entry.root, *workspace) if root),
        sensitive=sensitive_pattern(directory, sensitive),
        trusted_by=_trusted_by(entry, directory, digest, trust, real),
    )


def _resolver() -> Callable[[str], str]:
    known: dict[str, str] = {}

    def real(path: str) -> str:
        if path not in known:
            known[path] = os.path.realpath(path)
        return known[path]

    return real


def sensitive_pattern(directory: str, patterns: Collection[str]) -> str:
    """The first pattern that the directory's path or its last name matches, "" when none does."""
    name = os.path.basename(directory)
    # Asked about every activation, and nearly always of a place that matches none: one look tells that.
    if not matches_any(directory, tuple(patterns)) and not matches_any(name, tuple(patterns)):
        return ""
    return next(glob for glob in patterns if matches_glob(directory, glob) or matches_glob(name, glob))


def _trusted_by(
    entry: SkillEntry, directory: str, digest: str, trust: Trust, real: Callable[[str], str]
) -> Literal["", "trusted-root", "approval"]:
    if entry.skill is not None and entry.skill.trusted:
        return "trusted-root"
    # Where it was read counts, too: a link put there since then may lead into a trusted root.
    read_at = os.path.abspath(entry.dir)
    if any(
        is_inside(directory, real(root))
        and (is_inside(read_at, real(root)) or is_inside(read_at, os.path.abspath(root)))
        for root in trust.given
    ):
        return "trusted-root"
    if trust.approvals is not None and trust.approvals.covers(directory, digest):
        return "approval"
    return ""


def may_be_listed(entries: Collection[SkillEntry], trust: Trust) -> frozenset[str]:
    """Names of skills that no hook need be asked about, as far as their places tell: for a session without a hook.

    An approval counts by its path here; whether its bytes are still the same is asked when the skill is activated.
    """
    roots = trust.roots
    approved = {item.path for item in trust.approvals.entries()} if trust.approvals is not None else set[str]()
    return frozenset(
        entry.name
        for entry in entries
        if entry.skill is not None
        and (
            entry.skill.trusted
            or (entry.dir and (entry.dir in approved or any(is_inside(entry.dir, root) for root in roots)))
        )
    )
