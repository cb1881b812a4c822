"""The records that describe skills: pure values, no file access."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

YamlValue = str | Sequence["YamlValue"] | Mapping[str, "YamlValue"]
"""A frontmatter value. Scalars are always text, exactly as the author wrote them."""

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
    """Who may invoke a skill."""

    model_invocable: bool = True
    user_invocable: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Skill:
    """Metadata of one skill, as a catalogue holds it.

    ``description`` is the author's text, ``summary`` the same on one line for listings. ``location`` is the skill's
    directory (for people and logs; it never reaches a model). ``shadowed`` lists the directories that lost the name.
    """

    ref: SkillRef
    description: str
    summary: str
    frontmatter: Mapping[str, YamlValue] = field(default_factory=dict[str, YamlValue])
    allowed_tools: tuple[str, ...] = ()
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
            "model_invocable": self.flags.model_invocable,
            "user_invocable": self.flags.user_invocable,
            "trusted": self.trusted,
            "shadowed": list(self.shadowed),
            "diagnostics": [diagnostic.to_dict() for diagnostic in self.diagnostics],
        }


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
    ``modified`` when it last changed, in Unix seconds, 0 when unknown.
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
