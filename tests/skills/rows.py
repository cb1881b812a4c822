"""A corpus of skills on which every field of every row shows, and what a row makes of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from satchel.context.listings import available_skills, format_skill_listing, slash_menu
from satchel.errors import SkillError
from satchel.library import discover
from satchel.skills.arguments import Declared
from satchel.skills.dialect import Dialect
from satchel.skills.manifest import parse_manifest
from satchel.skills.model import Diagnostic, Skill, SkillRef
from satchel.skills.paths import match_paths
from satchel.skills.substitute import substitute

D = "description: Sample skill for tests."


def manifest(*lines: str, body: str = "Body.\n") -> str:
    """A SKILL.md of these frontmatter lines."""
    return "\n".join(["---", *lines, "---", body])


TEXTS: Sequence[tuple[str, str]] = (
    ("plain", manifest("name: plain", D)),
    ("My_Tool", manifest("name: My_Tool", D)),
    ("other", manifest("name: differs", D)),
    ("Folder", manifest("name: folder", D)),
    ("box", manifest("name: My Box", D)),
    ("unnamed", manifest(D)),
    ("", manifest(D)),
    ("文档", manifest(D)),
    ("shouting", manifest("name: '!!!'", D)),
    ("x" * 70, manifest("name: " + "x" * 70, D)),
    ("my-tool", manifest("name: my-tool", D)),
    ("claude-helper", manifest("name: claude-helper", D)),
    ("markup", manifest("name: markup", "description: Reads <b>bold</b> text.")),
    ("long", manifest("name: long", "description: " + "word " * 500)),
    ("needs", manifest("name: needs", D, "compatibility: " + "x" * 501)),
    ("little", manifest("name: little", D, "compatibility: python3")),
    ("hint", manifest("name: hint", D, "argument-hint: " + "x" * 201)),
    ("short", manifest("name: short", D, "argument-hint: '[file]'")),
    ("empty", manifest("name: empty", D, body="\n")),
    ("edges", "---\r\nname: edges\r\ndescription: D.\r\n---\r\n\r\n  Body\rtwo \r\n"),
    ("colon", manifest("name: colon", "description: Use when: asked")),
    ("tools", manifest("name: tools", D, "allowed-tools: Read, Bash(git log:*) X")),
    ("listed", manifest("name: listed", D, "allowed-tools: [Read, 'Bash(git log:*)']", "disallowed-tools: [Web]")),
    ("mapped", manifest("name: mapped", D, "allowed-tools: {Read: yes}")),
    ("globs", manifest("name: globs", D, "paths: 'a/*.{x,y}, b c'", "arguments: one two, three")),
    ("args", manifest("name: args", D, "arguments: {env: {type: enum, enum: [a, b], required: true}}")),
    ("model", manifest("name: model", D, "disable-model-invocation: true")),
    ("user", manifest("name: user", D, "user-invocable: false")),
    ("snake", manifest("name: snake", D, "when_to_use: Now", "argument_hint: '[x]'")),
    ("camel", manifest("name: camel", D, "whenToUse: Now", "argumentHint: '[x]'")),
    ("tools2", manifest("name: tools2", D, "allowed_tools: Read")),
    ("tools3", manifest("name: tools3", D, "allowedTools: Read")),
    ("own", manifest("name: own", D, "disable_model_invocation: true", "userInvocable: false")),
    ("vendor", manifest("name: vendor", D, "metadata: {tags: [a]}", "x-own: 1")),
    ("shape", manifest("name: shape", D, "license: [MIT]", "metadata: text")),
    ("shape2", manifest("name: shape2", "description: D.", "when-to-use: [x]")),
    ("named", manifest("name: [x]", D)),
    ("version", manifest("name: version", D, "version: one")),
    ("hidden", manifest("name: hidden", "description: Harm\u200bless.")),
)


def seen(found: Sequence[Diagnostic], top: str = "") -> list[tuple[str, str, str]]:
    """Findings without their wording."""
    return [(item.rule, item.severity, item.path.removeprefix(top)) for item in found]


def told(skill: Skill | None, top: str = "") -> object:
    """All that a skill's record says."""
    if skill is None:
        return None
    return (
        skill.to_dict() | {"location": skill.location.removeprefix(top), "diagnostics": [], "shadowed": []},
        [place.removeprefix(top) for place in skill.shadowed],
        skill.summary,
        skill.flags,
        seen(skill.diagnostics, top),
    )


def reading(row: Dialect) -> object:
    """What the row reads."""
    results: list[object] = []
    for directory, text in TEXTS:
        read = parse_manifest(text.encode(), directory=directory, dialect=row, path="SKILL.md")
        results.append((directory, told(read.skill), read.body, seen(read.diagnostics)))
    return results


def write(path: Path, text: str) -> None:
    """A file with all its folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def build(top: Path) -> None:
    """The corpus for finding: two roots called ``skills``, one that is itself a skill, and what lies around them."""
    one, two, three = top / "one" / "skills", top / "two" / "skills", top / "three"
    for folder in (
        "good",
        "shared",
        ".hidden",
        "node_modules/dep",
        "vendor",
        "dist/d",
        "__pycache__",
        ".git/g",
        "build",
    ):
        name = folder.rpartition("/")[2].strip("._")
        write(one / folder / "SKILL.md", manifest(f"name: {name}", f"description: The first {name}."))
    write(one / "vendor" / "lib" / "SKILL.md", manifest("name: lib", D))
    write(one / "outer" / "SKILL.md", manifest("name: outer", D))
    write(one / "outer" / "inner" / "SKILL.md", manifest("name: inner", D))
    write(one / "outer" / "data.txt", "x" * 200)
    write(one / "good" / "notes.txt", "x" * 200)
    write(one / "broken" / "SKILL.md", manifest("name: broken"))
    write(one / "lower" / "skill.md", manifest("name: lower", D))
    write(one / "twice" / "SKILL.md", manifest("name: twice", D))
    write(one / "twice" / "Skill.md", manifest("name: twice", D))
    deep = one / "deep"
    for depth in range(2, 9):
        write(deep / f"l{depth}" / "SKILL.md", manifest(f"name: l{depth}", D))
        deep = deep / "x"
    write(top / "outside" / "far" / "SKILL.md", manifest("name: far", D))
    (one / "link").symlink_to(top / "outside" / "far")
    (one / "gone").symlink_to(one / "nothing")
    write(two / "shared" / "SKILL.md", manifest("name: shared", "description: The second shared."))
    write(two / "Upper" / "SKILL.md", manifest("name: upper", D))
    write(three / "SKILL.md", manifest("name: three", D))
    write(three / "child" / "SKILL.md", manifest("name: child", D))


def finding(row: Dialect, top: Path) -> object:
    """What the row finds below the corpus."""
    base = str(top)
    roots = [top / "one" / "skills", top / "two" / "skills", top / "three", top / "none"]
    library = discover(roots, dialect=row)
    results: list[object] = [seen(library.diagnostics, base)]
    for skill in library.skills:
        results.append(told(skill, base))
        try:
            loaded = library.load(skill)
            results.append((loaded.body, [file.path for file in loaded.files], seen(loaded.skill.diagnostics, base)))
        except SkillError as error:
            results.append(error.code)
    for name in ("good", "GOOD", " good ", "Upper", "shared", "skills:shared"):
        found = library.get(name)
        results.append(found and found.location.removeprefix(base))
    return results


_BODIES = (
    "$0 $1 $2 $9 $ARGUMENTS[1] $ARGUMENTS",
    "a $who ${who} $what",
    "$$0 \\$0 $$1 \\$1 $$ ${SKILL_DIR} ${CLAUDE_SKILL_DIR} ${OWN} ${NOBODY}",
    "nothing to place",
    "$1 and $who",
)
_ARGUMENTS: Sequence[str | Mapping[str, str] | None] = ("x  'y z' \"q\"r", "", None, {"who": "me"})
_DECLARED = (Declared(), Declared(names=("who", "what")), Declared(names=("who",), by_name=True))


def placing(row: Dialect) -> object:
    """What the row makes of placeholders."""
    return [
        substitute(
            body,
            arguments,
            dialect=row,
            declared=declared,
            variables={"SKILL_DIR": "/s", "CLAUDE_SKILL_DIR": "/c", "OTHER": "/o"},
            environ={"OWN": "own"},
        )
        for body in (*_BODIES, "${OTHER}")
        for arguments in _ARGUMENTS
        for declared in _DECLARED
    ]


def offering(row: Dialect) -> object:
    """What the row offers: listings of some skills with long descriptions."""
    skills: list[Skill] = []
    for name, extra in (
        ("one", "paths: [a/*]"),
        ("two", "disable-model-invocation: true"),
        ("three", "user-invocable: false"),
    ):
        text = manifest(f"name: {name}", "description: " + f"{name} does it. " * 700, extra)
        read = parse_manifest(text.encode(), directory=name, dialect=replace(row, refuses=frozenset()))
        if read.skill is not None:
            skills.append(replace(read.skill, ref=SkillRef(source="t", name=name)))
    flags = [(skill.name, skill.flags, skill.flags.user_may_name) for skill in skills]
    return [
        flags,
        format_skill_listing(skills, dialect=row),
        available_skills(skills, dialect=row),
        slash_menu(skills, dialect=row),
        match_paths(skills, ["a/b"], row),
    ]
