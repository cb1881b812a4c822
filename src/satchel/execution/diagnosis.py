"""Why a hunk does not match, shown on the file's own lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import islice

from satchel.errors import FileError
from satchel.execution.likeness import Likeness
from satchel.execution.matching import Haystack
from satchel.execution.numbered import excerpt, line_count, without_number

_LINES_COMPARED = 100
_PLACES_COMPARED = 50
_QUOTED = 120
_LINES_ABOVE = 2
_FEWEST_SHOWN = 3
_ANCHORS_NAMED = 2
_WEIGHED = 40  # characters of a line: a longer one says no more of where it belongs


def quoted(text: str) -> str:
    """Text of a model or a file within a sentence: quoted, on one line, not too long."""
    shown = "".join(char if char.isprintable() else "?" for char in text[:_QUOTED])
    return f'"{shown}{"..." if len(text) > _QUOTED else ""}"'


def unknown_anchor(file: Haystack, anchor: str, cursor: int, *, path: str, likeness: Likeness) -> str:
    """What is said of a line behind ``@@`` that the file does not have, with the line there that is nearest to it."""
    said = f"The line {quoted('@@ ' + anchor)} of the patch names no line of {path}"
    at = _nearest(file, (anchor,), cursor, likeness)
    return f"{said}; nearest to it is line {at + 1}, {quoted(file.lines[at])}." if at >= 0 else f"{said}."


def where_it_could_be(
    file: Haystack,
    context: Sequence[str],
    cursor: int,
    *,
    path: str,
    likeness: Likeness,
    is_at_end: bool = False,
    is_edit: bool = False,
    unknown: Sequence[str] = (),
) -> FileError:
    """The failure of a hunk that is not in the file from line ``cursor`` on (counted from zero).

    With ``is_edit`` it is a text that was to be replaced and must be there exactly. ``unknown`` are the lines behind
    ``@@`` above the hunk that the file does not have.
    """
    sought = " at its end" if is_at_end else f" from line {cursor + 1} on" if cursor else ""
    subject = "The text to replace" if is_edit else "A hunk"
    said = [f"{subject} does not match {path}{sought}, so nothing was changed."]
    plain = _without_numbers(file, context, cursor)
    at = _nearest(file, plain or context, cursor, likeness)
    if plain:
        said.append(
            "Its lines carry the line numbers of a listing. The numbers are not in the file: write each line without "
            "its number and the sign behind that."
        )
    elif is_edit and file.find(context, 0).at >= 0:
        said.append("It is there but for blanks at the ends of lines or the indentation: copy those too.")
    elif at >= 0 and 0 <= (before := file.find(context, 0).at) < cursor:
        said.append(
            f"These lines are at line {before + 1}, above the place that the hunks or the @@ lines before had reached: "
            "hunks stand in the order of the file."
        )
    elif at >= 0:
        said.append(_first_difference(file, context, at, "text" if is_edit else "hunk"))
    said += [unknown_anchor(file, anchor, cursor, path=path, likeness=likeness) for anchor in unknown[-_ANCHORS_NAMED:]]
    if at < 0 and unknown:
        at = _nearest(file, unknown[-1:], cursor, likeness)
    code = "edit-mismatch" if is_edit else "patch-mismatch"
    hint = _shown(file, context, cursor, at, path)
    if is_edit and not line_count(file.lines):
        hint = f"{path} is empty."
    return FileError(code, " ".join(said), hint=hint)


def _nearest(file: Haystack, context: Sequence[str], cursor: int, likeness: Likeness) -> int:
    """The line where most of the context would meet its like, -1 when nothing in the file is like any of it."""
    compared = {offset: line for offset, line in enumerate(context[:_LINES_COMPARED]) if line.strip()}
    votes: Counter[int] = Counter()
    others: dict[int, str] = {}
    for offset, line in compared.items():
        same = list(islice(file.same_lines(line), _PLACES_COMPARED))
        if not same:
            others[offset] = line
        for index in same:
            votes[max(0, index - offset)] += _weight(line)
    for alike in likeness.find(file.lines, others, cursor):
        votes[max(0, alike.at - alike.sought)] += int(alike.ratio * _weight(others[alike.sought]))
    possible = [(-weight, at) for at, weight in votes.items()]
    return min(possible)[1] if possible else -1


def _weight(line: str) -> int:
    """What a line says of its place: a bracket stands everywhere."""
    return 100 * min(len(line.strip()), _WEIGHED)


def _without_numbers(file: Haystack, context: Sequence[str], cursor: int) -> list[str]:
    """The hunk without the numbers in front of its lines, when it matches as soon as these are away; else []."""
    bare = [without_number(line) for line in context]
    if not any(line is not None for line in bare):
        return []
    plain = [given if line is None else line for given, line in zip(context, bare, strict=True)]
    return plain if file.find(plain, cursor).at >= 0 else []


def _first_difference(file: Haystack, context: Sequence[str], at: int, what: str) -> str:
    for offset, line in enumerate(context):
        index = at + offset
        if index >= line_count(file.lines):
            return f"The file ends before the {what} does, at line {line_count(file.lines)}."
        if file.lines[index].strip() != line.strip():
            return f"At line {index + 1} the file has {quoted(file.lines[index])} where the {what} has {quoted(line)}."
    return ""


def _shown(file: Haystack, context: Sequence[str], cursor: int, at: int, path: str) -> str:
    count = line_count(file.lines)
    if not count:
        return f"{path} is empty: a hunk with lines that begin with + alone fills it."
    if at >= 0:
        lead = f"The nearest place in {path} is line {at + 1}:"
    elif 0 < cursor < count:
        at, lead = cursor, f"The hunk was looked for from line {cursor + 1} of {path} on:"
    else:
        return f"None of its lines is in {path}. Is it the right file? Read it before you change it."
    shown = excerpt(file.lines, at - _LINES_ABOVE, at + max(len(context), _FEWEST_SHOWN) + 1)
    return f"{lead}\n{shown}\nCopy the lines as they are, without the numbers."
