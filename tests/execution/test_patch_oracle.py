"""Our patches against the reference implementation of the format, ``agents.apply_diff``, over made-up patches.

Both must give the same text, or both refuse, but for the differences below. Each is a decision, and each is shown.
"""

from __future__ import annotations

from itertools import pairwise

import pytest
from agents.apply_diff import apply_diff
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from satchel.errors import FileError
from satchel.execution.patch import apply_update, new_text, split_lines

# With the few, hunks fit in several places; with the many, each has its one.
LINE = st.sampled_from(["a", "b", "  a", "a ", "def f():", "    x = 1", "", "\ta", "@", "*", "é"]) | st.integers(
    0, 40
).map(lambda number: f"line {number}")
FILES = st.lists(LINE, max_size=8).map("\n".join) | st.lists(LINE, max_size=8).map(
    lambda lines: "\n".join([*lines, ""])
)
ODD = st.sampled_from(["*** End of File", "***", "*** Odd", "odd", "@@odd", "@@ ", "@@  a", "-a", " b", "+c", ""])
BLANKS = st.sampled_from(
    [lambda line: line, lambda line: line, lambda line: line + " ", lambda line: " " + line.strip()]
)


@st.composite
def files_and_patches(draw: st.DrawFn) -> tuple[str, str]:
    """A file, and hunks that were taken from its lines from top to bottom, more or less faithfully."""
    text = draw(FILES)
    lines = text.split("\n")
    diff: list[str] = []
    at = 0
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(min(at, len(lines)), len(lines)))
        at = draw(st.integers(start, min(len(lines), start + 4)))
        above = lines[max(0, start - 3) : start + 1]
        header = st.sampled_from(above) if above else LINE
        diff += draw(st.lists(st.just("@@") | (header | LINE).map(lambda line: f"@@ {line}"), max_size=2))
        for line in lines[start:at]:
            changed = draw(BLANKS)(line)
            diff.append((" " + changed if draw(st.booleans()) else "-" + changed) if changed else "")
            if draw(st.integers(0, 3)) == 0:
                diff.append("+" + draw(LINE))
        if not diff or draw(st.booleans()):
            diff.append("+" + draw(LINE))
        if draw(st.integers(0, 9)) == 9:
            diff.append("*** End of File")
    if draw(st.integers(0, 3)) == 3:
        diff.append("*** End of File")
    if draw(st.integers(0, 5)) == 5:
        diff.insert(draw(st.integers(0, len(diff))), draw(ODD))
    return text, "\n".join(diff) + "\n"


def ours(text: str, diff: str) -> str | None:
    try:
        return apply_update(text, split_lines(diff), path="f").text
    except FileError:
        return None


def reference(text: str, diff: str) -> str | None:
    try:
        return apply_diff(text, diff)
    except ValueError:
        return None


# Each difference: why, and a patch that shows it as (text, diff, what the reference gives, what we give). None: refused.
DIFFERENCES: dict[str, tuple[str, str, str | None, str | None]] = {
    # It names the line it changes as its anchor, and nothing else can be meant.
    "an anchor that is the hunk's first line is where the hunk stands": ("a\nb\n", "@@ a\n-a\n+A", None, "A\nb\n"),
    # The same: the place that the model named twice wins over a later one.
    "such an anchor wins over a later place": ("a\nb\na\n", "@@ a\n-a\n+A", "a\nb\nA\n", "A\nb\na\n"),
    # Advice all the same: the context still must match, and a note names the anchor. Refusing it teaches to leave anchors out.
    "a stacked anchor that is nowhere is advice too": ("a\nb\n", "@@ x\n@@ a\n-b\n+B", None, "a\nB\n"),
    # A success must be something done.
    "a patch without a change is refused": ("a\nb\n", " a\n b", "a\nb\n", None),
    "what follows the end is refused and not passed over": (
        "a\nb\n",
        "-b\n+B\n*** End of File\n*** End of File",
        "a\nB\n",
        None,
    ),
    "a hunk without lines is refused at the end too": ("a\n", "+b\n@@\n*** End of File", "b\na\n", None),
    # Untouched lines stay byte for byte.
    "line ends of a file that mixes them stay": ("a\nb\r\n", "-a\n+A", "A\r\nb\r\n", "A\nb\r\n"),
    # The patch travelled as JSON; its line ends say nothing of the file.
    "a file of one line is not given the patch's line ends": ("a", " a\r\n+b\r\n", "a\r\nb", "a\nb"),
    # It is no part of the first line.
    "a byte order mark is kept and not compared": ("\ufeffa\n", "-a\n+A", None, "\ufeffA\n"),
    # Nothing can be meant by it.
    "empty lines behind the end marker do not count": ("a\n", "-a\n+A\n*** End of File\n\n\n", None, "A\n"),
    # A blank is not seen.
    "an end marker with a blank behind it is one": ("a\nb\na\n", "-a\n+A\n*** End of File ", "A\nb\na\n", "a\nb\nA\n"),
}


def names_its_own_first_line(lines: list[str]) -> bool:
    """Whether the last anchor above a hunk is the first line that the hunk keeps or deletes."""
    anchor = ""
    for line in lines:
        if line.startswith("@@"):
            anchor = line[3:].strip() or anchor
        elif line[:1] != "+":
            if anchor and line[1:].strip() == anchor:
                return True
            anchor = ""
    return False


def is_explained(text: str, diff: str, theirs: str | None, mine: str | None) -> bool:
    """Whether one of the differences can be the reason."""
    lines = split_lines(diff)
    anchors = [line for line in lines if line.startswith("@@ ") and line[3:].strip()]
    stacked = any(one.startswith("@@") and two.startswith("@@") for one, two in pairwise(lines))
    if names_its_own_first_line(lines):
        return True
    if stacked and anchors and theirs is None:
        return True
    ends = [index for index, line in enumerate(lines) if line.startswith("*** End of File")]
    behind = [lines[index + 1] for index in ends if index + 1 < len(lines)]
    if behind and (mine is None or not all(line.strip() for line in behind)):
        return True
    if any(one.startswith("@@") and two.startswith("*** End of File") for one, two in pairwise(lines)):
        return mine is None
    return mine is None and theirs == text and not any(line[:1] in {"+", "-"} for line in lines)


@settings(max_examples=600, deadline=None)
@given(files_and_patches())
@example(("", "+a\n*** End of File\n\n+a\n"))
def test_both_agree_but_for_the_differences(made: tuple[str, str]) -> None:
    text, diff = made
    theirs, mine = reference(text, diff), ours(text, diff)
    assert mine == theirs or is_explained(text, diff, theirs, mine)


@settings(max_examples=300, deadline=None)
@given(text=st.lists(LINE, min_size=2, max_size=10), data=st.data(), ends=st.booleans(), windows=st.booleans())
def test_both_make_the_same_of_patches_that_fit(
    text: list[str], data: st.DataObject, ends: bool, windows: bool
) -> None:
    start = data.draw(st.integers(0, len(text) - 1))
    stop = data.draw(st.integers(start + 1, len(text)))
    drop = data.draw(st.integers(start, stop - 1))
    diff = [" " + line for line in text[start:drop]] + ["-" + text[drop]]
    diff += ["+" + line for line in data.draw(st.lists(LINE, max_size=3))]
    diff += [" " + line for line in text[drop + 1 : stop]]
    end = "\r\n" if windows else "\n"
    file = end.join(text) + (end if ends else "")
    after = reference(file, "\n".join(diff))
    assume(after is not None)
    assert ours(file, "\n".join(diff)) == after


BLANKED = st.sampled_from(["a", " a", "a ", "  a", "a  ", "\ta\t", "b", " b "])


@settings(max_examples=300, deadline=None)
@given(text=st.lists(BLANKED, min_size=1, max_size=6), hunk=st.lists(BLANKED, min_size=1, max_size=2))
def test_both_climb_the_same_ladder(text: list[str], hunk: list[str]) -> None:
    diff = "\n".join(["-" + hunk[0], "+X", *(" " + line for line in hunk[1:])])
    assert ours("\n".join(text), diff) == reference("\n".join(text), diff)


@pytest.mark.parametrize("name", DIFFERENCES)
def test_each_difference_is_one(name: str) -> None:
    text, diff, theirs, mine = DIFFERENCES[name]
    assert (reference(text, diff), ours(text, diff)) == (theirs, mine)
    assert theirs != mine


@given(st.lists(LINE.map(lambda line: "+" + line), min_size=1, max_size=5))
def test_new_files_are_the_reference_s_with_a_newline_at_their_end(lines: list[str]) -> None:
    assert new_text(lines, path="f") == apply_diff("", "\n".join(lines), mode="create") + "\n"
