"""How one harness reads a skill: a frozen row of rules. Rows live in ``dialects``; nothing else names a harness."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Rule = str
"""A rule id from ``diagnostics.RULES``."""

Key = str
"""A frontmatter key in its canonical kebab-case spelling."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Ceilings. Lengths are in characters, sizes in bytes; ``None`` means no ceiling."""

    name: int = 64
    description: int | None = 1024
    compatibility: int | None = 500
    manifest_bytes: int = 4 * 1024 * 1024
    files: int = 4096
    skill_bytes: int = 256 * 1024 * 1024
    skills: int | None = None
    directories: int = 20_000
    entries: int = 200_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """One row.

    ``refuses``: findings that keep a skill from loading. ``ignores``: findings that are not reported at all. Every
    other finding is a warning, or a note where its rule says so.
    """

    id: str
    source: str
    read_on: str

    refuses: frozenset[Rule]
    ignores: frozenset[Rule]
    understands: frozenset[Key]

    name_from: Literal["declared", "declared-verbatim", "declared-or-directory", "directory"]
    description_cut: int | None
    limits: Limits

    max_depth: int | None
    nested: Literal["stop", "descend"]
    collision: Literal["first", "last", "all", "namespace"]

    positional: Literal[0, 1] | None
    tokens: Literal["blanks", "quotes", "posix"]
    named: frozenset[str]
    bare: Literal["always", "declared"]
    missing: Literal["keep", "empty"]
    unknown: Literal["keep", "empty"]
    escapes: frozenset[str]
    append_unused: bool
    variables: frozenset[str]

    model_flag: Literal["enforce", "ignore"]
    user_flag: Literal["reject", "hide", "ignore"]
    listing_each: int | None
    listing_total: int | None

    def refuses_rule(self, rule: Rule) -> bool:
        """Whether a finding of ``rule`` keeps the skill from loading here."""
        return rule in self.refuses
