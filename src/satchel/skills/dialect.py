"""How one harness reads a skill: a frozen row of rules. Rows live in ``dialects``; nothing else names a harness."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Rule = str
"""A rule id from ``diagnostics.RULES``."""

Key = str
"""A frontmatter key in its canonical kebab-case spelling."""

HIDDEN = ".*"
"""In ``Dialect.skips``: every name that starts with a dot."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Ceilings. Lengths are in characters, sizes in bytes; ``None`` means no ceiling.

    ``name``, ``description``, ``compatibility`` and ``argument_hint`` bound fields; ``manifest_bytes`` a SKILL.md;
    ``files``, ``file_bytes`` (each) and ``skill_bytes`` (together) the files of one skill; ``skills`` a registry;
    ``directories`` and ``entries`` what is looked at below one root.
    """

    name: int | None = 64
    description: int | None = 1024
    compatibility: int | None = 500
    argument_hint: int | None = None
    manifest_bytes: int = 4 * 1024 * 1024
    files: int = 4096
    file_bytes: int | None = None
    skill_bytes: int = 256 * 1024 * 1024
    skills: int | None = None
    directories: int = 20_000
    entries: int = 200_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """One row.

    Judging:
        ``refuses``: findings that are errors here; one about a skill keeps it from loading. ``ignores``: findings that
        are not reported at all. Every other finding is a warning, or a note where its rule says so.

    Reading:
        ``understands``: the keys that have a meaning; others are kept verbatim and never checked. ``spellings``: how
        keys of several words may be written besides kebab-case: in "snake" or "camel" case, or the very words that
        are listed. A key that restricts a skill counts in any spelling, and a finding says where the harness would
        ignore it.
        ``name_from``: "declared" (made legal), "declared-verbatim" (as written), "declared-or-directory" (made legal,
        the directory's when nothing legal is left), "legal-or-directory" (the directory's unless the declared one is
        legal as written), "verbatim-or-directory" (as written, the directory's when there is none), "directory".
        ``reserved``: words that a name may not hold. ``description_cut``: characters of the description that the
        harness keeps, cut without a mark. ``text_as_list``: text where a list is expected (tools, arguments, paths):
        "split" at commas and blanks, "blanks" only, "one" item as it stands, "refuse". Parentheses are never split.
        ``body_newlines``: "keep", or "lf" for every line end as a line feed. ``body_edges``: "keep", or "trim" for a
        body without blanks around it. ``limits``: ceilings.

    Finding:
        ``min_depth`` and ``max_depth``: how far below a root (0 is the root itself) a skill may lie; None: anywhere.
        ``nested``: whether directories below a skill are looked at too. ``skips``: names of directories that are
        never entered; ``HIDDEN`` stands for all that start with a dot. ``collision``: of several skills with one name
        the "first" or the "last" root's counts, "all" are kept, or in "namespace" every skill is called
        ``root:name``. ``lookup``: "folded" finds a name in any letter case, and by what its file or its directory
        calls it; "exact" only as listed.

    Placing arguments:
        ``positional``: what the first argument is called, ``$0`` or ``$1``; None: there is no ``$N``, and without any
        ``named`` form the harness places no arguments, so that ``$ARGUMENTS`` and escapes stay as written too.
        ``tokens``: how text is cut into arguments: at "blanks", at blanks outside double or single "quotes", or as a
        "posix" shell cuts words. ``whole``: what ``$ARGUMENTS`` is: the text as it was "given" (of a mapping
        ``name=value`` for each, by name), or the arguments that have a place, if any do, "joined" by one blank.
        ``named``: the forms of a declared argument, of ``$name`` and ``${name}``. ``names_have_places``: whether names
        that are declared in a list number the arguments, so that text fills names and a mapping fills places. ``bare``:
        whether ``$N`` and ``$name`` count "always", or only when the skill has "declared" arguments or a hint.
        ``missing``: a position without an argument is "keep" (stays as written) or "empty". ``unknown``: the same for
        ``${NAME}`` that nobody knows. ``escapes``: what stands for one literal dollar. ``append_unused``: arguments
        that no placeholder took are added at the end. ``variables``: the names that ``${NAME}`` has by itself, whether
        or not arguments are placed; an environment that the caller passes may hold more.

    Offering:
        ``model_flag`` and ``user_flag``: what ``disable-model-invocation`` and ``user-invocable: false`` do; "hide"
        takes a skill out of the user's menu only, "reject" also refuses it by name. ``listing_each`` and
        ``listing_total``: characters of one description, and of a whole listing. ``on_path_match``: what becomes of a
        skill whose ``paths`` match the files at hand: "propose" it to the model, or "activate" it.
    """

    id: str
    source: str
    read_on: str

    refuses: frozenset[Rule]
    ignores: frozenset[Rule]

    understands: frozenset[Key]
    spellings: frozenset[str]
    name_from: Literal[
        "declared",
        "declared-verbatim",
        "declared-or-directory",
        "legal-or-directory",
        "verbatim-or-directory",
        "directory",
    ]
    reserved: frozenset[str]
    description_cut: int | None
    text_as_list: Literal["split", "blanks", "one", "refuse"]
    body_newlines: Literal["keep", "lf"]
    body_edges: Literal["keep", "trim"]
    limits: Limits

    min_depth: int
    max_depth: int | None
    nested: Literal["stop", "descend"]
    skips: frozenset[str]
    collision: Literal["first", "last", "all", "namespace"]
    lookup: Literal["exact", "folded"]

    positional: Literal[0, 1] | None
    tokens: Literal["blanks", "quotes", "posix"]
    whole: Literal["given", "joined"]
    named: frozenset[str]
    names_have_places: bool
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
    on_path_match: Literal["propose", "activate"]
