"""The portability table: a column a harness, a row a skill, and below it what differs there."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from satchel.cli.console import line
from satchel.library.checking import SkillCheck, Status

_GAP = 2
_MOST_LABEL = 32
_FEWEST_WIDTH = 48
_GLYPHS: dict[Status, str] = {"loads": "✓", "loads-with-warnings": "!", "refused": "✗"}
_PLAIN: dict[Status, str] = {"loads": "+", "loads-with-warnings": "!", "refused": "x"}
_WORDS: dict[Status, str] = {"loads": "loads", "loads-with-warnings": "loads with warnings", "refused": "refused"}
_COLOURS: dict[Status, str] = {"loads": "32", "loads-with-warnings": "33", "refused": "31"}


def print_portability(skills: Sequence[SkillCheck]) -> None:
    """The table and its notes on stdout. Columns that do not fit the screen stand in further tables below."""
    told = [skill for skill in skills if skill.targets]
    if told:
        glyphs = _GLYPHS if _can_write("".join(_GLYPHS.values())) else _PLAIN
        width = max(_FEWEST_WIDTH, shutil.get_terminal_size().columns)
        rows = portability_lines(told, width=width, glyphs=glyphs, colour=_wants_colour())
        sys.stdout.write("\n" + "\n".join(rows) + "\n\n")
        sys.stdout.flush()


def portability_lines(
    skills: Sequence[SkillCheck], *, width: int, glyphs: dict[Status, str] = _GLYPHS, colour: bool = False
) -> Iterator[str]:
    """The lines of tables, legend and notes, none wider than ``width`` but for a word that is."""

    def cell(status: Status, room: int) -> str:
        padding = " " * (room - 1)
        return (f"\x1b[{_COLOURS[status]}m{glyphs[status]}\x1b[0m" if colour else glyphs[status]) + padding

    labels = _labels(skills)
    side = max(len("skill"), *map(len, labels))
    for columns in _blocks(skills[0].targets, width - side):
        heads = "".join(f"{' ' * _GAP}{name}" for name in columns)
        yield f"{'skill':<{side}}{heads}"
        for label, skill in zip(labels, skills, strict=True):
            cells = "".join(f"{' ' * _GAP}{cell(skill.targets[name].status, len(name))}" for name in columns)
            yield f"{label:<{side}}{cells}".rstrip()
        yield ""
    yield "   ".join(f"{cell(status, 1)} {word}" for status, word in _WORDS.items())
    for label, skill in zip(labels, skills, strict=True):
        yield from _notes(label, skill, width)


def _blocks(names: Iterable[str], room: int) -> Iterator[list[str]]:
    """Names in their order, as many together as fit."""
    block: list[str] = []
    used = 0
    for name in names:
        if block and used + _GAP + len(name) > room:
            yield block
            block, used = [], 0
        block.append(name)
        used += _GAP + len(name)
    yield block


def _notes(label: str, skill: SkillCheck, width: int) -> Iterator[str]:
    """What differs there: each note once, behind the harnesses that it is true of."""
    where: dict[str, list[str]] = {}
    for name, target in skill.targets.items():
        for note in target.notes:
            where.setdefault(note, []).append(name)
    if where:
        yield from ("", f"What differs for {label}")
    for note, names in where.items():
        yield from textwrap.wrap(
            f"{'everywhere' if len(names) == len(skill.targets) > 1 else ', '.join(names)}: {line(note)}",
            width,
            initial_indent="  ",
            subsequent_indent="      ",
            break_on_hyphens=False,
        )


def _labels(skills: Sequence[SkillCheck]) -> list[str]:
    """What each row is called: the skill's name, or its directory where there is none or several have it."""
    names = [skill.name or os.path.basename(skill.path) for skill in skills]  # noqa: PTH119
    often = Counter(names)
    shown = [line(name if often[name] == 1 else skill.path) for name, skill in zip(names, skills, strict=True)]
    return [text if len(text) <= _MOST_LABEL else f"...{text[3 - _MOST_LABEL :]}" for text in shown]


def _can_write(text: str) -> bool:
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return False
    return True


def _wants_colour() -> bool:
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
