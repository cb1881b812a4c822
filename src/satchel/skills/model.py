"""The records that describe skills: pure values, no file access."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, make_dataclass
from typing import Any, Literal

from satchel.skills.fields import Argument, License, Version, YamlValue, parse_license, parse_version

__all__ = [
    "MANIFEST",
    "Argument",
    "Diagnostic",
    "FileKind",
    "Flags",
    "License",
    "LoadedSkill",
    "Page",
    "Severity",
    "Skill",
    "SkillFile",
    "SkillRef",
    "Version",
    "YamlValue",
]

Severity = Literal["error", "warning", "note"]
FileKind = Literal["manifest", "script", "reference", "asset", "license", "other"]

MANIFEST = "SKILL.md"


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnostic:
    """One finding. ``line`` and ``column`` count from 1; 0 means that the finding has no place in the file."""

    rule: str
    severity: Severity
    path: str
    message: str
    hint: str = ""
    line: int = 0
    column: int = 0

    def to_dict(self) -> dict[str, object]:
        """JSON-safe, with the published keys in their published order."""
        return {
            "rule": self.rule,
            "severity": self.severity,
            "path": self.path,
            "line": self.line,
            "column": self.column,
            "message": self.message,
            "hint": self.hint,
        }


REQUEST_SOURCE = "request"
"""The ``SkillRef.source`` of skills that a client sent with its request: nobody installed them here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillRef:
    """The identity of a skill: where it comes from, its name there, and (once known) what its bytes hash to.

    ``source`` is a ``SkillSource.label``. ``digest`` is ``sha256:<hex>`` over SKILL.md and empty until loaded.
    """

    source: str
    name: str
    digest: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flags:
    """Who may invoke a skill.

    ``user_invocable`` False takes it out of the user's menu. With ``hidden_only`` that is all; else a user who names it
    is refused too.
    """

    model_invocable: bool = True
    user_invocable: bool = True
    hidden_only: bool = False

    @property
    def user_may_name(self) -> bool:
        """Whether a user who names the skill gets it."""
        return self.user_invocable or self.hidden_only


@dataclass(frozen=True, slots=True, kw_only=True)
class Skill:
    """Metadata of one skill, as a catalogue holds it.

    ``description`` is the author's text, ``summary`` the same on one line for listings. ``location`` is the skill's
    directory (for people and logs; it never reaches a model), "" for one that was made in a program. ``shadowed`` lists
    the directories that lost the name.

    ``frontmatter`` holds every value as written, a known key under its kebab-case name. The other fields and the
    properties are views of it: ``allowed_tools`` and ``disallowed_tools`` are patterns, ``paths`` globs, ``arguments``
    what the skill takes, in the author's order (positions, or names when ``arguments_by_name``).
    """

    ref: SkillRef
    description: str
    summary: str
    frontmatter: Mapping[str, YamlValue] = field(default_factory=dict[str, YamlValue])
    allowed_tools: tuple[str, ...] = ()
    disallowed_tools: tuple[str, ...] = ()
    arguments: tuple[Argument, ...] = ()
    paths: tuple[str, ...] = ()
    flags: Flags = Flags()
    location: str = ""
    trusted: bool = False
    shadowed: tuple[str, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()

    @property
    def name(self) -> str:
        """The name that a listing shows and that loads the skill."""
        return self.ref.name

    def text(self, key: str) -> str:
        """A scalar frontmatter value as text on one line; "" when absent or not a scalar."""
        value = self.frontmatter.get(key, "")
        return " ".join(value.split()) if isinstance(value, str) else ""

    @property
    def metadata(self) -> dict[str, str]:
        """The text entries of the ``metadata`` field; nested values stay in ``frontmatter``."""
        value = self.frontmatter.get("metadata")
        if not isinstance(value, Mapping):
            return {}
        return {key: item for key, item in value.items() if isinstance(item, str)}

    @property
    def version(self) -> Version | None:
        """The field ``version``, else ``metadata.version``; None when that is not a semantic version."""
        return parse_version(self.text("version") or self.metadata.get("version", ""))

    @property
    def license(self) -> License | None:
        """The field ``license`` as an SPDX expression, the name of a bundled file, or other text."""
        return parse_license(self.text("license"))

    @property
    def compatibility(self) -> str:
        """What the skill needs around it, on one line."""
        return self.text("compatibility")

    @property
    def when_to_use(self) -> str:
        """When the skill should be chosen, on one line."""
        return self.text("when-to-use")

    @property
    def argument_hint(self) -> str:
        """What a user may write after the skill's name, on one line."""
        return self.text("argument-hint")

    @property
    def arguments_by_name(self) -> bool:
        """Whether the arguments are declared as a mapping, which gives them names and no positions."""
        return isinstance(self.frontmatter.get("arguments"), Mapping)

    def to_dict(self) -> dict[str, object]:
        """JSON-safe: everything that is known without the body."""
        return {
            "name": self.name,
            "description": self.description,
            "source": self.ref.source,
            "location": self.location,
            "frontmatter": _plain(self.frontmatter),
            "metadata": self.metadata,
            "allowed_tools": list(self.allowed_tools),
            "disallowed_tools": list(self.disallowed_tools),
            "arguments": [argument.to_dict() for argument in self.arguments],
            "paths": list(self.paths),
            "model_invocable": self.flags.model_invocable,
            "user_invocable": self.flags.user_invocable,
            "trusted": self.trusted,
            "shadowed": list(self.shadowed),
            "diagnostics": [diagnostic.to_dict() for diagnostic in self.diagnostics],
        }


_SkillDraft: Any = make_dataclass("_SkillDraft", [(part.name, object) for part in fields(Skill)], slots=True)
_RefDraft: Any = make_dataclass("_RefDraft", [(part.name, object) for part in fields(SkillRef)], slots=True)


def new_skill(
    source: str,
    name: str,
    *,
    description: str,
    summary: str,
    frontmatter: Mapping[str, YamlValue],
    allowed_tools: tuple[str, ...] = (),
    disallowed_tools: tuple[str, ...] = (),
    arguments: tuple[Argument, ...] = (),
    paths: tuple[str, ...] = (),
    flags: Flags,
    location: str,
    diagnostics: tuple[Diagnostic, ...],
) -> Skill:
    """The same as ``Skill(...)`` in a third of the time, for those who read thousands.

    A frozen record is slow to make, field by field past its own guard. A draft of the same layout is not, and becomes
    the record by changing its class.
    """
    ref = _RefDraft(source, name, "")
    ref.__class__ = SkillRef
    skill = _SkillDraft(
        ref,
        description,
        summary,
        frontmatter,
        allowed_tools,
        disallowed_tools,
        arguments,
        paths,
        flags,
        location,
        False,  # noqa: FBT003 - trusted
        (),
        diagnostics,
    )
    skill.__class__ = Skill
    return skill


def _plain(value: YamlValue) -> object:
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value]


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillFile:
    """One bundled file: ``path`` is relative to the skill, with forward slashes; ``bytes`` is its size."""

    path: str
    kind: FileKind
    bytes: int
    is_text: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedSkill:
    """A skill with its body and its files.

    ``body`` is everything after the frontmatter, unchanged. ``manifest_bytes`` is the size of the whole SKILL.md,
    ``modified`` when it last changed, in Unix seconds, 0 when unknown. Everything else is asked of ``skill``.
    """

    skill: Skill
    body: str
    manifest_bytes: int
    files: tuple[SkillFile, ...] = ()
    modified: float = 0.0

    @property
    def name(self) -> str:
        """The skill's name."""
        return self.skill.name

    @property
    def ref(self) -> SkillRef:
        """``Skill.ref``, with the digest."""
        return self.skill.ref

    @property
    def description(self) -> str:
        """``Skill.description``."""
        return self.skill.description

    @property
    def summary(self) -> str:
        """``Skill.summary``."""
        return self.skill.summary

    @property
    def frontmatter(self) -> Mapping[str, YamlValue]:
        """``Skill.frontmatter``."""
        return self.skill.frontmatter

    @property
    def metadata(self) -> dict[str, str]:
        """``Skill.metadata``."""
        return self.skill.metadata

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """``Skill.diagnostics``, those of its files among them."""
        return self.skill.diagnostics

    @property
    def allowed_tools(self) -> tuple[str, ...]:
        """``Skill.allowed_tools``."""
        return self.skill.allowed_tools

    @property
    def disallowed_tools(self) -> tuple[str, ...]:
        """``Skill.disallowed_tools``."""
        return self.skill.disallowed_tools

    @property
    def arguments(self) -> tuple[Argument, ...]:
        """``Skill.arguments``."""
        return self.skill.arguments

    @property
    def paths(self) -> tuple[str, ...]:
        """``Skill.paths``."""
        return self.skill.paths

    @property
    def flags(self) -> Flags:
        """``Skill.flags``."""
        return self.skill.flags

    @property
    def arguments_by_name(self) -> bool:
        """``Skill.arguments_by_name``."""
        return self.skill.arguments_by_name

    @property
    def location(self) -> str:
        """``Skill.location``."""
        return self.skill.location

    @property
    def shadowed(self) -> tuple[str, ...]:
        """``Skill.shadowed``."""
        return self.skill.shadowed

    @property
    def trusted(self) -> bool:
        """``Skill.trusted``."""
        return self.skill.trusted

    @property
    def version(self) -> Version | None:
        """``Skill.version``."""
        return self.skill.version

    @property
    def license(self) -> License | None:
        """``Skill.license``."""
        return self.skill.license

    @property
    def compatibility(self) -> str:
        """``Skill.compatibility``."""
        return self.skill.compatibility

    @property
    def when_to_use(self) -> str:
        """``Skill.when_to_use``."""
        return self.skill.when_to_use

    @property
    def argument_hint(self) -> str:
        """``Skill.argument_hint``."""
        return self.skill.argument_hint


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A piece of one text file: bytes ``start`` to ``end`` (exclusive) of ``total``, never splitting a character."""

    text: str
    start: int
    end: int
    total: int

    @property
    def is_last(self) -> bool:
        """Whether nothing follows."""
        return self.end >= self.total

    @property
    def next_offset(self) -> int | None:
        """Where the next page begins, None when nothing follows."""
        return None if self.is_last else self.end
