"""Arguments and variables written into a skill's instructions: one pass, left to right, by the rules of a row.

What is inserted is never read again, whatever it looks like. Placeholders:

- ``$ARGUMENTS`` is all arguments, ``$ARGUMENTS[N]`` one of them, always counted from 0.
- ``$N`` is one argument, counted from ``Dialect.positional``, however many digits there are; ``$name`` and ``${name}``
  are named ones: those that the skill declares, or in a row that reads no ``arguments`` those that the caller gives.
- ``${NAME}`` is else one of the row's variables, or of an environment that the caller passes.

A bare placeholder ends only where neither an ASCII letter, a digit nor ``_`` follows: ``$1x`` and ``$ARGUMENTSx`` are
text, and so is ``$name[``. In a row with ``bare="declared"`` a dollar is the author's own unless the skill says that it
takes arguments: ``$N``, ``$name`` and ``${name}`` count only there, and ``$$`` only in front of a placeholder. A row
that knows neither positions nor names places no arguments at all.

An argument beyond those given follows ``missing``. When none were given at all (None, not ""), and for a ``${NAME}``
that nobody knows, ``unknown`` decides: a row that keeps those leaves the text as it is, escapes included.
"""

from __future__ import annotations

import heapq
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal, NamedTuple

from satchel.errors import SkillError
from satchel.skills.arguments import Declared, declared_arguments, split_arguments
from satchel.skills.diagnostics import finding, judge
from satchel.skills.dialect import Dialect
from satchel.skills.dialects import PORTABLE, find_dialect
from satchel.skills.markdown import Lines
from satchel.skills.model import MANIFEST, Diagnostic, LoadedSkill
from satchel.skills.oneline import one_line

MAX_INSERTED = 16 * 1024 * 1024
"""Characters that placeholders may insert into one text; more is refused."""

Arguments = str | Sequence[str] | Mapping[str, str]

_RUN = re.compile(r"\$+")
_ALL = re.compile(r"\$ARGUMENTS(?:\[([0-9]++)\]|(?![A-Za-z0-9_]))")
_POSITION = re.compile(r"\$([0-9]++)(?![A-Za-z0-9_])")
_WORD = re.compile(r"\$([A-Za-z_][A-Za-z0-9_-]{0,63})")
_ENDS_NAME = re.compile(r"[^A-Za-z0-9_\[]|\Z")
_BRACED = re.compile(r"\$\{([^{}$\s]{1,64})\}")
# Everything around a dollar that any row looks at.
_DOLLAR = re.compile(
    r"(?:\\|(?<!\$))\$++(?:\{[^{}$\s]{1,64}\}|[0-9]++[A-Za-z_]?"
    r"|[A-Za-z_][A-Za-z0-9_-]{0,63}+(?:\[[0-9]++\]|[A-Za-z0-9_\[])?)"
)
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# What stands before the mark is looked at behind it: a pattern that begins with plain text is found far quicker.
_COMMAND = re.compile(r"!`(?<!\S!`)([^`\r\n]+)`")
_COMMAND_FENCE = re.compile(r"^[ \t]*(?:`{3,}|~{3,})!", re.MULTILINE)
_FINDINGS_SHOWN = 8
_PLACEHOLDER_SHOWN = 80
_MOST_DIGITS = 9  # more of them are beyond any arguments, and slow to read
_READ = 400  # characters of a command that are made fit to be shown


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendered:
    """The ``text``, and what became of placeholders and arguments, each once and in the order of the text.

    ``placed``: placeholders that were replaced, as written. ``unfilled``: those without a value, kept or emptied as the
    row says. ``unused_arguments``: what no placeholder took (``name=value`` when named), whether appended or not.
    """

    text: str
    placed: tuple[str, ...] = ()
    unfilled: tuple[str, ...] = ()
    unused_arguments: tuple[str, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()


def substitute(
    body: str,
    arguments: Arguments | None = None,
    *,
    dialect: str | Dialect = PORTABLE,
    declared: Declared | Sequence[str] = (),
    variables: Mapping[str, str] | None = None,
    environ: Mapping[str, str] | None = None,
    path: str = MANIFEST,
) -> Rendered:
    """``body`` with its placeholders replaced.

    ``arguments``: one text, which the row splits; a sequence of arguments; or a mapping of named ones. ``declared``:
    what the skill says that it takes; plain names stand for a list in its frontmatter. ``variables`` are values for the
    row's ``variables`` (others are ignored), ``environ`` those of any further ``${NAME}``. Commands that some harness
    would run are looked for in ``body`` alone, never run, and reported. ``path`` stands in the findings.

    Raises:
        SkillError: "skill-invalid" when more than ``MAX_INSERTED`` characters would be inserted.
    """
    row = find_dialect(dialect)
    if not isinstance(declared, Declared):
        declared = Declared(names=tuple(declared.split() if isinstance(declared, str) else declared))
    given = None if arguments is None else _Given(arguments, row, declared)
    fixed = {**(environ or {}), **{name: text for name, text in (variables or {}).items() if name in row.variables}}
    work = _Pass(body, given, row, declared, fixed)
    text = work.run()
    unused: tuple[str, ...] = ()
    if given is not None:
        unused = tuple(label for index, label in enumerate(given.labels) if index not in work.used)
        if row.append_unused and given.whole.strip() and not work.took_arguments:
            text += ("\n" if text.endswith("\n") else "\n\n") + f"ARGUMENTS: {given.whole}"
    found = (judge(item, row) for item in (*_command_findings(body, path), *_unfilled_finding(work.unfilled, path)))
    return Rendered(
        text=text,
        placed=tuple(work.placed),
        unfilled=tuple(work.unfilled),
        unused_arguments=unused,
        diagnostics=tuple(item for item in found if item is not None),
    )


def substitute_skill(
    loaded: LoadedSkill,
    arguments: Arguments | None = None,
    *,
    dialect: str | Dialect = PORTABLE,
    variables: Mapping[str, str] | None = None,
    environ: Mapping[str, str] | None = None,
    path: str = MANIFEST,
) -> Rendered:
    """``substitute`` over a skill's own body and declaration."""
    declared = declared_arguments(loaded.skill)
    return substitute(
        loaded.body,
        arguments,
        dialect=dialect,
        declared=declared,
        variables=variables,
        environ=environ,
        path=path,
    )


def place_variables(dialect: Dialect, *, directory: str = "", session: str = "") -> dict[str, str]:
    """Values for those variables of the row that mean the skill's directory and the session; "" leaves one out."""
    ends = {"SKILL_DIR": directory, "SESSION_ID": session}
    return {name: text for name in dialect.variables for end, text in ends.items() if text and name.endswith(end)}


def dollar_sample(body: str, most: int) -> tuple[str, bool]:
    """The first ``most`` different texts of ``body`` that may be placeholders, a line each; whether there are more.

    Every row finds the same placeholders in it as in ``body``, in the same order.
    """
    if "$" not in body:
        return "", False
    different: dict[str, None] = {}
    for match in _DOLLAR.finditer(body):
        different[match[0]] = None
        if len(different) > most:
            different.popitem()
            return "\n".join(different), True
    return "\n".join(different), False


def find_commands(body: str) -> Iterator[tuple[int, str]]:
    """Offset and text of every ``!`command` `` and every fence that opens with ``!``, in the author's text.

    These are the places where some harness would run a command while it loads the skill, also inside other fences.
    """
    fences = _COMMAND_FENCE.finditer(body) if "```!" in body or "~~~!" in body else ()
    spans = ((match.start(), match[1]) for match in _COMMAND.finditer(body))
    return heapq.merge(spans, ((match.start(), match[0].strip()) for match in fences))


def _command_findings(body: str, path: str) -> list[Diagnostic]:
    marks = find_commands(body)
    lines = Lines(body)
    findings = [
        finding(
            "command-injection",
            path,
            f'Line {lines.place(offset)[0]} of the instructions: "{one_line(text[:_READ])[:80]}".',
        )
        for offset, text in islice(marks, _FINDINGS_SHOWN)
    ]
    more = sum(1 for _ in marks)
    if more:
        findings.append(finding("command-injection", path, f"{more} more such commands."))
    return findings


def _unfilled_finding(unfilled: Iterable[str], path: str) -> list[Diagnostic]:
    names = [name[:_PLACEHOLDER_SHOWN] for name in unfilled]
    if not names:
        return []
    more = f" and {len(names) - _FINDINGS_SHOWN} more" if len(names) > _FINDINGS_SHOWN else ""
    return [finding("placeholder-unfilled", path, f"No value for {', '.join(names[:_FINDINGS_SHOWN])}{more}.")]


def _number(digits: str) -> int:
    plain = digits.lstrip("0")
    return int(plain or "0") if len(plain) <= _MOST_DIGITS else sys.maxsize


class _Given:
    """The arguments: all in one text, one by one, and which names and positions lead to which."""

    def __init__(self, arguments: Arguments, row: Dialect, declared: Declared) -> None:
        positional_names = declared.names if row.names_have_places and not declared.by_name else ()
        self.names: dict[str, int]
        self.positions: tuple[int | None, ...]
        if isinstance(arguments, Mapping):
            ordered = sorted(arguments)
            self.values = tuple(arguments[name] for name in ordered)
            self.labels = tuple(f"{name}={arguments[name]}" for name in ordered)
            self.names = {name: index for index, name in enumerate(ordered)}
            self.positions = tuple(self.names.get(name) for name in positional_names)
        else:
            is_text = isinstance(arguments, str)
            self.values = self.labels = split_arguments(arguments, row.tokens) if is_text else tuple(arguments)
            self.names = dict(zip(positional_names, range(len(self.values)), strict=False))
            self.positions = tuple(range(len(self.values)))
        every: Sequence[int] = range(len(self.values))
        placed = [index for index in self.positions if index is not None]
        if row.whole == "joined" and (placed or not isinstance(arguments, Mapping)):
            every = placed
            self.whole = " ".join(self.values[index] for index in placed)
        else:
            self.whole = arguments if isinstance(arguments, str) else " ".join(self.labels)
        self.every = frozenset(every)


class _Hit(NamedTuple):
    """A placeholder that ends at ``end``. ``value`` is None when there is none; then ``otherwise`` decides.

    ``entries``: the arguments that it takes; None when it stands for no argument.
    """

    end: int
    value: str | None
    otherwise: Literal["keep", "empty"]
    entries: frozenset[int] | None


_NO_ENTRIES: frozenset[int] = frozenset()


class _Pass:
    def __init__(
        self, body: str, given: _Given | None, row: Dialect, declared: Declared, fixed: Mapping[str, str]
    ) -> None:
        self._body = body
        self._given = given
        self._row = row
        self._fixed = fixed
        knows_arguments = row.positional is not None or bool(row.named)
        self._takes = knows_arguments and (given is not None or row.unknown == "empty")
        self._bare = self._takes and (row.bare == "always" or declared.takes_any)
        # Where skills declare their arguments, nothing else is a name; elsewhere the caller's own names are.
        undeclared = given.names if given and "arguments" not in row.understands else ()
        self._names = frozenset(declared.names or undeclared)
        self._halves_always = self._takes and "$$" in row.escapes and row.bare == "always"
        self._inserted = 0
        self.placed: dict[str, None] = {}
        self.unfilled: dict[str, None] = {}
        self.used: set[int] = set()
        self.took_arguments = False

    def run(self) -> str:
        body, escapes = self._body, self._row.escapes
        out: list[str] = []
        done = 0
        run = _RUN.search(body)
        while run is not None:
            first, end = run.span()
            # Only the last dollar of a run can begin a placeholder.
            hit = self._find(end - 1)
            if end - first > 1 and (self._halves_always or (hit and "$$" in escapes)):
                pairs = (end - first) // 2
                out += body[done:first], "$" * pairs
                done = first + 2 * pairs
                hit = None if done == end else hit
            elif hit and end - first == 1 and "\\$" in escapes and first > done and body[first - 1] == "\\":
                out.append(body[done : first - 1])
                done, hit = first, None
            if hit:
                text = self._settle(hit, body[end - 1 : hit.end])
                if text is not None:
                    out += body[done : end - 1], text
                    done = hit.end
                end = hit.end
            run = _RUN.search(body, end)
        out.append(body[done:])
        return "".join(out)

    def _settle(self, hit: _Hit, written: str) -> str | None:
        """What replaces the placeholder, None when it stays; keeps the books."""
        if hit.value is None:
            self.unfilled[written] = None
            if hit.otherwise == "keep":
                return None
        else:
            self.placed[written] = None
        if hit.entries is not None:
            self.took_arguments = True
            self.used |= hit.entries
        self._inserted += len(hit.value or "")
        if self._inserted > MAX_INSERTED:
            raise SkillError(
                "skill-invalid",
                f"With these arguments the instructions would grow by more than {MAX_INSERTED} characters.",
                hint="Give shorter arguments.",
            )
        return hit.value or ""

    def _find(self, at: int) -> _Hit | None:
        """The placeholder whose dollar stands at ``at``, if there is one in this row, skill and call."""
        if self._body.startswith("{", at + 1):
            return self._braced(at)
        if not self._takes:
            return None
        if match := _ALL.match(self._body, at):
            if match[1] is not None:
                return self._position(match.end(), _number(match[1]))
            if self._given is None:
                return _Hit(match.end(), None, self._row.unknown, _NO_ENTRIES)
            return _Hit(match.end(), self._given.whole, "empty", self._given.every)
        if not self._bare:
            return None
        if match := _POSITION.match(self._body, at):
            index = -1 if self._row.positional is None else _number(match[1]) - self._row.positional
            return None if index < 0 else self._position(match.end(), index)
        return self._bare_name(at) if "$name" in self._row.named else None

    def _bare_name(self, at: int) -> _Hit | None:
        """The longest known name here; hyphens belong to a name or end it."""
        match = _WORD.match(self._body, at)
        name = match[1] if match else ""
        while name:
            end = at + 1 + len(name)
            if name in self._names and _ENDS_NAME.match(self._body, end):
                return self._named(end, name)
            name = name.rpartition("-")[0]
        return None

    def _braced(self, at: int) -> _Hit | None:
        match = _BRACED.match(self._body, at)
        if match is None:
            return None
        name = match[1]
        if self._bare and "${name}" in self._row.named and name in self._names:
            return self._named(match.end(), name)
        if name in self._fixed:
            return _Hit(match.end(), self._fixed[name], "keep", None)
        if self._row.unknown == "empty" and _IDENTIFIER.fullmatch(name):
            return _Hit(match.end(), None, "empty", None)
        return None

    def _position(self, end: int, index: int) -> _Hit:
        positions = self._given.positions if self._given else ()
        return self._entry(end, positions[index] if index < len(positions) else None)

    def _named(self, end: int, name: str) -> _Hit:
        return self._entry(end, self._given.names.get(name) if self._given else None)

    def _entry(self, end: int, index: int | None) -> _Hit:
        if self._given is None:
            return _Hit(end, None, self._row.unknown, _NO_ENTRIES)
        if index is None:
            return _Hit(end, None, self._row.missing, _NO_ENTRIES)
        return _Hit(end, self._given.values[index], "keep", frozenset({index}))
