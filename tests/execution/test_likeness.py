from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher

import pytest

from satchel.errors import FileError
from satchel.execution import likeness
from satchel.execution.changes import plan_edit
from satchel.execution.likeness import LEAST, MOST_CHARS, MOST_COMPARED, MOST_LETTERS, Likeness
from satchel.execution.patch import Patched, apply_update, split_lines
from satchel.execution.publish import FileContent

FILE = (
    "import os\n\n\ndef budget(month, reserve=0):\n    return load(month) - reserve\n\n\ndef report(month):\n    pass\n"
)


def update(text: str, diff: str) -> Patched:
    return apply_update(text, split_lines(diff), path="app.py")


def refused(text: str, diff: str) -> FileError:
    with pytest.raises(FileError) as caught:
        update(text, diff)
    return caught.value


def test_where_no_line_is_equal_the_place_that_is_most_alike_is_shown() -> None:
    error = refused(FILE, " def budget(month):\n-    return load(month)\n+    return 0")
    assert "The nearest place in app.py is line 4:\n" in error.hint
    assert "\n    4 | def budget(month, reserve=0):\n    5 |     return load(month) - reserve\n" in error.hint
    assert 'At line 4 the file has "def budget(month, reserve=0):" where the hunk has "def budget(month):".' in (
        error.message
    )


def test_a_bracket_says_less_of_a_place_than_a_line_that_is_nearly_there() -> None:
    text = "{\n}\n" * 4 + "void paint(Canvas canvas, int depth) {\n  x();\n}\n"
    assert "is line 9:" in refused(text, " void paint(Canvas canvas) {\n-  y();\n+  z();\n }").hint


def test_a_place_above_the_first_line_is_the_first_line() -> None:
    assert "is line 1:" in refused("value = compute(1)\n", " # the head\n-value = compute(2)\n+x").hint


def test_nothing_alike_is_shown_where_nothing_is_alike() -> None:
    error = refused(FILE, " SELECT name FROM users\n-WHERE id IN (1, 2)\n+x")
    assert error.hint == "None of its lines is in app.py. Is it the right file? Read it before you change it."
    assert refused("a\nb\nc\n", "-ab\n+x").hint.startswith("None of its lines")  # too short to be like anything


def test_what_is_alike_is_shown_and_never_changed() -> None:
    """However alike: one letter is enough to refuse."""
    error = refused("total = price * amount\n", "-total = price * amounts\n+total = 0")
    assert error.code == "patch-mismatch"
    assert "nothing was changed" in error.message


def test_an_anchor_that_is_nowhere_is_told_with_the_line_nearest_to_it() -> None:
    note = update(FILE, "@@ def report(month, year):\n-    pass\n+    return 1").notes[0]
    assert 'names no line of app.py; nearest to it is line 8, "def report(month):".' in note
    assert note.endswith("The hunk below it was placed by its own lines, at line 9.")
    note = update(FILE, "@@ class Ledger:\n-    pass\n+    return 1").notes[0]
    assert '"@@ class Ledger:" of the patch names no line of app.py. The hunk below' in note


def test_of_a_hunk_that_is_nowhere_the_place_of_its_anchor_is_shown() -> None:
    error = refused(FILE, "@@ def report(month, year):\n-    raise NotImplementedError\n+    return 1")
    assert 'nearest to it is line 8, "def report(month):".' in error.message
    assert "The nearest place in app.py is line 8:\n" in error.hint
    assert "\n    8 | def report(month):\n" in error.hint
    error = refused(FILE, "@@ class Ledger:\n-    raise NotImplementedError\n+    return 1")
    assert '"@@ class Ledger:" of the patch names no line of app.py.' in error.message
    assert error.hint.startswith("None of its lines is in app.py.")
    many = refused(FILE, "".join(f"@@ class Ledger{n}:\n" for n in range(500)) + "-raise NotImplementedError\n+x")
    assert many.message.count("names no line") == 2


def test_a_text_to_replace_is_shown_where_it_nearly_stands() -> None:
    before = FileContent(data=FILE.encode(), stamp=(0, 0, 0, 0), mode=0o644)
    with pytest.raises(FileError) as caught:
        plan_edit("app.py", before, "def report(months):", "x", everywhere=False)
    assert "The nearest place in app.py is line 8:\n" in caught.value.hint


def test_in_a_long_file_the_lines_around_the_place_are_looked_at() -> None:
    lines = ["x"] * 200_000
    lines[150_000] = "def report(month):"
    found = Likeness().find(lines, {3: "def report(months):"}, 149_000)
    assert [(alike.sought, alike.at) for alike in found] == [(3, 150_000)]
    assert LEAST < found[0].ratio < 1
    assert Likeness().find(lines, {3: "def report(months):"}, 10) == []


class Counted(SequenceMatcher[str]):
    """Counts what it is asked to compare."""

    letters = 0
    pairs = 0
    longest = 0
    one: Sequence[str] = ""

    def set_seq1(self, a: Sequence[str]) -> None:
        self.one = a
        Counted.longest = max(Counted.longest, len(a))
        super().set_seq1(a)

    def set_seq2(self, b: Sequence[str]) -> None:
        Counted.longest = max(Counted.longest, len(b))
        super().set_seq2(b)

    def quick_ratio(self) -> float:
        Counted.letters += len(self.one)
        return super().quick_ratio()

    def ratio(self) -> float:
        Counted.pairs += 1
        return super().ratio()


SOUGHT = "abcdefgh" * 12
HOSTILE = {
    "as many lines as a file may have bytes for": (SOUGHT[:-1] + "\n") * 40_000,
    "one endless line": SOUGHT * 50_000,
    "long lines": (SOUGHT * 100 + "\n") * 400,
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize(
    "diff",
    [
        [f" {SOUGHT}{number}" for number in range(5_000)] + ["-x"],
        [f" {SOUGHT * 40_000}", "-x"],
        [*(f"@@ {SOUGHT}{number}" for number in range(2_000)), f" {SOUGHT}1", "-x"],
    ],
    ids=["many lines", "an endless line", "many anchors"],
)
def test_what_is_compared_is_bounded_whatever_the_texts_are(
    text: str, diff: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(likeness, "SequenceMatcher", Counted)
    Counted.letters = Counted.pairs = Counted.longest = 0
    with pytest.raises(FileError):
        apply_update(text, diff, path="app.py")
    assert 0 < Counted.letters <= MOST_LETTERS + MOST_CHARS
    assert Counted.pairs <= MOST_COMPARED
    assert Counted.longest <= MOST_CHARS


def test_the_files_of_one_patch_share_what_is_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(likeness, "SequenceMatcher", Counted)
    Counted.letters = Counted.pairs = Counted.longest = 0
    spent = Likeness()
    for _ in range(40):
        apply_update(
            "def reported(month):\n" * 2_000,
            ["@@ def report(month):", "-def reported(month):"],
            path="a",
            likeness=spent,
        )
    assert Counted.letters <= MOST_LETTERS + MOST_CHARS
    assert 0 < Counted.pairs <= MOST_COMPARED
