"""Safe repairs of a SKILL.md. Each is kept only when the file then reads exactly as it did before."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace

from satchel.skills.dialect import Dialect
from satchel.skills.frontmatter import parse_frontmatter, repair, split_fences
from satchel.skills.manifest import Manifest, parse_manifest
from satchel.skills.model import Skill
from satchel.skills.spelling import kebab_key

_BOM = b"\xef\xbb\xbf"
_FIRST_LINE = re.compile(r"[^\r\n]*(\r\n|\n|\r)")
_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*(?=[ \t]*:)")
_BLANK_NAME = re.compile(r"^name[ \t]*:[ \t]*(?=[\r\n])", re.MULTILINE)
_SPELLINGS = frozenset({"key-spelling", "restriction-spelling"})
_PLAIN = re.compile(r"[a-z][a-z0-9-]*")
_NOT_TEXT = frozenset({"null", "true", "false", "yes", "no", "on", "off", "y", "n"})
# Renaming would take the key from those who read it only as it is written here.
_KEPT = frozenset({"when_to_use"})
_BLOCK_STARTS_AT = 2  # the line of the file on which the block starts


def fix_manifest(data: bytes, *, directory: str, dialect: Dialect) -> bytes:
    """The file with its safe repairs made, byte for byte the same elsewhere; ``data`` when there is nothing to do.

    Quotes values that are not YAML as written, spells keys as the specification does, and adds the directory's name
    where there is none. ``directory`` is the last name of the skill's directory.
    """
    return _Fixing(data, directory, dialect).run()


class _Fixing:
    def __init__(self, data: bytes, directory: str, dialect: Dialect) -> None:
        self._data = data
        self._directory = directory
        self._dialect = dialect
        self._manifest = self._read(data)

    def run(self) -> bytes:
        steps: dict[str, Callable[[str], Iterator[str]]] = {
            "yaml-repaired": _quoted,
            "key-spelling": self._renamed,
            "restriction-spelling": self._renamed,
            "name-missing": self._named,
        }
        for rule, step in steps.items():
            if not self._has(rule):
                continue
            head, block, rest = _cut(self._data)
            for changed in step(block):
                self._keep_if_same(head + changed.encode() + rest, rule)
        return self._data

    def _has(self, rule: str) -> bool:
        return self._manifest.skill is not None and any(found.rule == rule for found in self._manifest.diagnostics)

    def _renamed(self, block: str) -> Iterator[str]:
        """The block as it stands now with one more key spelled as it should be, once for each such key."""
        lines = [found.line for found in self._manifest.diagnostics if found.rule in _SPELLINGS and found.line]
        for line in lines:
            _, block, _ = _cut(self._data)
            start = _offset_of_line(block, line - _BLOCK_STARTS_AT)
            key = _KEY.match(block, start)
            if key and key.group() not in _KEPT:
                yield block[:start] + kebab_key(key.group()) + block[key.end() :]

    def _named(self, block: str) -> Iterator[str]:
        skill = self._manifest.skill
        if skill is None:
            return
        name = skill.name
        written = name if _PLAIN.fullmatch(name) and name not in _NOT_TEXT else f'"{name}"'
        blank = _BLANK_NAME.search(block)
        if blank:
            yield f"{block[: blank.start()]}name: {written}{block[blank.end() :]}"
            return
        first = _FIRST_LINE.match(block)
        yield f"name: {written}{first.group(1) if first else chr(10)}{block}"

    def _keep_if_same(self, data: bytes, rule: str) -> None:
        """Takes over ``data`` when it reads the same and has fewer findings of ``rule`` and no others."""
        new = self._read(data)
        before, after = self._manifest, new
        if before.skill is None or after.skill is None or before.body != after.body:
            return
        if _meaning(before.skill, rule) != _meaning(after.skill, rule):
            return
        rules = sorted(found.rule for found in before.diagnostics)
        left = sorted(found.rule for found in after.diagnostics)
        if len(left) < len(rules) and all(left.count(item) <= rules.count(item) for item in left):
            self._data, self._manifest = data, new

    def _read(self, data: bytes) -> Manifest:
        return parse_manifest(data, directory=self._directory, dialect=self._dialect)


def _meaning(skill: Skill, rule: str) -> Skill:
    """Everything that counts of a skill; the declared name does not where it is what was added."""
    values = dict(skill.frontmatter)
    if rule == "name-missing":
        values.pop("name", None)
    return replace(skill, frontmatter=values, diagnostics=())


def _cut(data: bytes) -> tuple[bytes, str, bytes]:
    """``(everything up to the block, the block, everything after it)``."""
    mark = _BOM if data.startswith(_BOM) else b""
    text = data[len(mark) :].decode("utf-8")
    block = split_fences(text).yaml
    first = _FIRST_LINE.match(text)
    start = first.end() if first else 0
    return mark + text[:start].encode(), block, text[start + len(block) :].encode()


def _quoted(block: str) -> Iterator[str]:
    changed, repaired = repair(block)
    if repaired and parse_frontmatter(changed).values:
        yield changed


def _offset_of_line(text: str, index: int) -> int:
    breaks = [match.end() for match in re.finditer(r"\r\n|\n|\r", text)]
    return 0 if index <= 0 else breaks[index - 1] if index <= len(breaks) else len(text)
