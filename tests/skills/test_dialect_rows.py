"""Rows of dialects: every value occurs, every field of every row shows, and no harness is named anywhere else."""

from __future__ import annotations

import ast
import typing
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Literal

import pytest

from satchel.skills.diagnostics import RULES
from satchel.skills.dialect import HIDDEN, Dialect, Limits
from satchel.skills.dialects import DIALECTS, PORTABLE
from tests.project.tree import SRC
from tests.skills.rows import build, finding, offering, placing, reading

ROWS = list(DIALECTS.values())
SHIPPED = "portable agentskills agent-sh tensorsharp flowcraft tnsai contextchef claude-code codex gemini-cli opencode openai-api anthropic-api mcp"

# What a field changes: reading, finding, placing arguments, offering. The identity of a row stands on its page.
READING = ("refuses", "ignores", "understands", "spellings", "name_from", "reserved", "description_cut", "text_as_list")
EDGES = ("body_newlines", "body_edges")
FINDING = ("min_depth", "max_depth", "nested", "skips", "collision", "lookup")
PLACING = ("positional", "tokens", "whole", "named", "names_have_places", "bare", "missing", "unknown", "escapes")
PLACING_TOO = ("append_unused", "variables")
OFFERING = ("listing_each", "listing_total", "model_flag", "user_flag", "on_path_match")
IDENTITY = ("id", "source", "read_on")
FIELD_LIMITS = {"name": 4, "description": 4, "compatibility": 4, "argument_hint": 4}
DISK_LIMITS = {
    "manifest_bytes": 62,
    "files": 1,
    "file_bytes": 5,
    "skill_bytes": 100,
    "skills": 2,
    "directories": 3,
    "entries": 3,
}
_OTHER_SETS: dict[str, tuple[frozenset[str], ...]] = {
    "understands": (frozenset({"allowed-tools"}),),
    "reserved": (frozenset({"tool"}),),
    "skips": (frozenset({HIDDEN}), frozenset({"dist"})),
    "named": (frozenset({"$name"}), frozenset({"${name}"})),
    "escapes": (frozenset({"$$"}), frozenset({"\\$"})),
    "variables": (frozenset({"SKILL_DIR"}), frozenset({"OTHER"})),
}
_OTHER_NUMBERS: dict[str, tuple[int, ...]] = {
    "description_cut": (5,),
    "min_depth": (0, 1),
    "max_depth": (0, 1, 2, 3, 4, 5, 6, 7),
    "listing_each": (30,),
    "listing_total": (120,),
}


def literals(name: str) -> list[Any]:
    """Every value that a Literal field may have."""
    hint = typing.get_type_hints(Dialect)[name]
    parts = [hint] if typing.get_origin(hint) is Literal else typing.get_args(hint)
    values = [value for part in parts if typing.get_origin(part) is Literal for value in typing.get_args(part)]
    return [] if typing.get_origin(hint) is frozenset else [*values, *([None] if type(None) in parts else [])]


def others(row: Dialect, name: str) -> Iterator[Any]:
    """Other values of a field, each of which must show."""
    now = getattr(row, name)
    if name in {"refuses", "ignores"}:
        yield now ^ {"hidden-characters"}
        return
    if name in _OTHER_SETS:
        yield from (now ^ other for other in _OTHER_SETS[name])
        return
    if name == "spellings":
        yield from (now - {word} for word in now)
        yield from (now | {word} for word in ("snake", "camel") if word not in now)
        return
    if isinstance(now, bool):
        yield not now
        return
    values = _OTHER_NUMBERS[name] if name in _OTHER_NUMBERS else literals(name)
    if name == "max_depth" and now is not None:
        values = tuple(value for value in values if abs(value - now) == 1)
    yield from (value for value in values if value != now)


def silent(row: Dialect) -> set[str]:
    """Fields whose value cannot show in this row, since another field of the row leaves them nothing to decide."""
    idle: set[str] = set()
    if row.positional is None and not row.named:  # no arguments are placed
        idle |= {"whole", "names_have_places", "bare", "missing", "escapes"}
    if not any("-" in key for key in row.understands):  # no key of several words is read
        idle |= {"spellings"}
    if not row.understands & {"allowed-tools", "paths", "arguments"}:
        idle |= {"text_as_list"}
    if "paths" not in row.understands:
        idle |= {"on_path_match"}
    return idle


NEUTRAL = {
    "whole": "given",
    "names_have_places": False,
    "bare": "always",
    "missing": "keep",
    "escapes": frozenset[str](),
    "spellings": frozenset[str](),
    "text_as_list": "split",
    "on_path_match": "propose",
}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    top = tmp_path_factory.mktemp("corpus").resolve()
    build(top)
    return top


def test_the_rows_that_are_shipped() -> None:
    assert list(DIALECTS) == SHIPPED.split()
    assert all(row.id == name and row.source and row.read_on for name, row in DIALECTS.items())


def test_every_field_is_looked_at_below() -> None:
    assert {*READING, *EDGES, *FINDING, *PLACING, *PLACING_TOO, *OFFERING, *IDENTITY, "limits"} == {
        f.name for f in fields(Dialect)
    }
    assert FIELD_LIMITS.keys() | DISK_LIMITS.keys() == {f.name for f in fields(Limits)}


@pytest.mark.parametrize("name", [f.name for f in fields(Dialect)])
def test_every_value_that_a_field_may_have_occurs(name: str) -> None:
    used = [getattr(row, name) for row in ROWS]
    assert [value for value in literals(name) if value not in used] == []
    if name not in {"min_depth", *IDENTITY}:
        assert len({str(value) for value in used}) > 1


def test_what_every_row_has_in_common() -> None:
    for row in ROWS:
        assert row.refuses | row.ignores <= RULES.keys()
        assert not row.refuses & row.ignores
        assert {"name", "description"} <= row.understands
        for rule in ("frontmatter-missing", "frontmatter-unterminated", "yaml-duplicate-key", "description-missing"):
            assert rule in row.refuses
    # No row is looser than the guards of ours.
    assert all(row.limits.manifest_bytes <= PORTABLE.limits.manifest_bytes for row in ROWS)
    assert all(row.limits.files <= PORTABLE.limits.files for row in ROWS)
    assert all(row.limits.skill_bytes <= PORTABLE.limits.skill_bytes for row in ROWS)


def unseen(row: Dialect, names: tuple[str, ...], look: Callable[[Dialect], object]) -> set[str]:
    """Fields of which some other value makes no difference."""
    now = look(row)
    return {name for name in names if any(look(replace(row, **{name: value})) == now for value in others(row, name))}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_another_value_in_any_field_of_a_row_shows(row: Dialect, corpus: Path) -> None:
    missed = unseen(row, (*READING, *EDGES), reading)
    missed |= unseen(row, FINDING, lambda other: finding(other, corpus))
    missed |= unseen(row, (*PLACING, *PLACING_TOO), placing)
    missed |= unseen(row, OFFERING, offering)
    assert missed == silent(row)
    assert {name: getattr(row, name) for name in silent(row)} == {name: NEUTRAL[name] for name in silent(row)}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_another_limit_in_any_row_shows(row: Dialect, corpus: Path) -> None:
    read, found = reading(row), finding(row, corpus)
    missed: set[str] = set()
    for name, value in (FIELD_LIMITS | DISK_LIMITS).items():
        other = replace(row, limits=replace(row.limits, **{name: value}))
        same = reading(other) == read if name in FIELD_LIMITS else finding(other, corpus) == found
        missed |= {name} if same else set()
    assert missed == {
        limit
        for limit, key in (("compatibility", "compatibility"), ("argument_hint", "argument-hint"))
        if key not in row.understands
    }


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_another_verdict_on_any_rule_that_a_row_names_shows(row: Dialect, corpus: Path) -> None:
    """Rules without which there is no frontmatter to read refuse in every row, whatever it says."""
    now = reading(row), finding(row, corpus)
    always = {rule for rule in RULES if rule.startswith(("frontmatter-", "yaml-")) and rule != "yaml-repaired"}
    always |= {"encoding-invalid", "manifest-too-large", "manifest-unreadable"}
    always |= {"too-many-files", "skill-too-large", "file-too-large", "too-many-skills"}  # above, with the limits
    if not row.understands & {"allowed-tools", "disallowed-tools"}:
        always |= {"field-shape-unsafe"}
    missed: set[str] = set()
    for rule in (row.refuses | row.ignores) - always:
        other = replace(row, refuses=row.refuses - {rule}, ignores=row.ignores - {rule})
        if (reading(other), finding(other, corpus)) == now:
            missed.add(rule)
    assert missed == set()


def conditions(tree: ast.AST) -> Iterator[ast.AST]:
    """Everything in a module that decides something."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.If, ast.IfExp, ast.While, ast.Assert)):
            yield node.test
        elif isinstance(node, (ast.Compare, ast.BoolOp)):
            yield node
        elif isinstance(node, ast.comprehension):
            yield from node.ifs
        elif isinstance(node, ast.match_case):
            yield node.pattern
            if node.guard is not None:
                yield node.guard


def harnesses_named(code: str) -> list[str]:
    """``line: name`` of every row that decides something by its name."""
    others = set(DIALECTS) - {"portable"}
    constants = {name.upper().replace("-", "_") for name in others}
    found: set[str] = set()
    for condition in conditions(ast.parse(code)):
        names = {name: node for node in ast.walk(condition) if (name := _name(node))}
        decisive = others | constants | (set() if "PORTABLE" in names else {"dialect.id", "row.id"})
        found |= {f"{getattr(node, 'lineno', 0)}: {name}" for name, node in names.items() if name in decisive}
    return sorted(found)


def _name(node: ast.AST) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and isinstance(node.value, (ast.Name, ast.Attribute)):
        owner = node.value.id if isinstance(node.value, ast.Name) else node.value.attr
        return f"{owner.strip('_')}.{node.attr}"
    return ""


@pytest.mark.parametrize(
    "code",
    [
        "if row.id in names: pass",
        "x = 1 if self._dialect.id == y else 2",
        "y = [a for a in b if a == 'codex']",
        "match x:\n    case 'agent-sh': pass",
        "if dialect is AGENT_SH: pass",
        "x = a and dialect == MCP",
    ],
)
def test_a_condition_on_a_harness_is_seen(code: str) -> None:
    assert harnesses_named(code)


def test_no_condition_outside_the_rows_names_a_harness() -> None:
    found = [
        f"{path.relative_to(SRC)}:{hit}"
        for path in sorted(SRC.rglob("*.py"))
        if SRC / "skills" / "dialects" not in path.parents
        for hit in harnesses_named(path.read_text(encoding="utf-8"))
    ]
    assert found == []
