from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from satchel.errors import FileError
from satchel.execution.patch import Patched, apply_update, new_text, split_lines

FILE = "import os\n\n\ndef one():\n    return 1\n\n\ndef two():\n    return 2\n"


def update(text: str, diff: str, path: str = "app.py") -> Patched:
    return apply_update(text, split_lines(diff), path=path)


def refused(text: str, diff: str) -> FileError:
    with pytest.raises(FileError) as caught:
        update(text, diff)
    return caught.value


# The ladder


@pytest.mark.parametrize(
    ("text", "diff", "after", "fuzz"),
    [
        ("a\nb\nc\n", " a\n-b\n+B\n c", "a\nB\nc\n", 0),
        ("a  \nb\nc\n", " a\n-b\n+B\n c", "a  \nB\nc\n", 1),
        ("a\nb\nc\n", " a\t\n-b\n+B\n c", "a\nB\nc\n", 1),
        ("if x:\n    a\n    b\n", "-a\n+A\n b", "if x:\nA\n    b\n", 100),
        ("a\n\nc\n", " a\n\n-c\n+C", "a\n\nC\n", 0),
        ("a\n", "+top", "top\na\n", 0),
        ("", "+first", "first\n", 0),
        ("a\nb", " b\n+c", "a\nb\nc", 0),
        ("a\nb", "-b", "a", 0),
        ("a\nb\n", "-a\n-b", "", 0),
        ("a\n", "-a\n+b\n@@\n+c", "b\nc\n", 0),
    ],
)
def test_hunks_match_on_the_first_rung_that_has_a_place(text: str, diff: str, after: str, fuzz: int) -> None:
    patched = update(text, diff)
    assert (patched.text, patched.fuzz) == (after, fuzz)


def test_an_exact_place_further_down_wins_over_a_loose_one_above() -> None:
    assert update("  a\nx\na\n", "-a\n+b").text == "  a\nx\nb\n"


def test_context_comes_from_the_file_and_added_lines_from_the_patch() -> None:
    patched = update("class A:\n\tdef f(self):\n\t\tpass  \n", " def f(self):\n-pass\n+return 1")
    assert patched.text == "class A:\n\tdef f(self):\nreturn 1\n"
    assert [note for note in patched.notes if "only when indentation is ignored" in note]
    assert update(FILE, " def one():\n-    return 1\n+    return 3").notes == ()


@pytest.mark.parametrize(
    ("text", "diff", "after"),
    [
        ("a\r\nb\r\n", " a\n-b\n+B\n+C", "a\r\nB\r\nC\r\n"),
        ("a\r\nb\r\n", " a\r\n-b\r\n+B\r\n", "a\r\nB\r\n"),
        ("a\nb\r\nc\n", "-c\n+C", "a\nb\r\nC\n"),
        ("a\r\nb", "-b", "a"),
        ("a\r\nb", " b\n+c\n+d", "a\r\nb\r\nc\r\nd"),
        ("a\r\nb", "-b\n+B\n@@\n+c", "a\r\nB\r\nc"),
        ("\ufeffa\r\nb\r\n", "-a\n+A", "\ufeffA\r\nb\r\n"),
        ("a\rb\nc\n", "-c\n+C", "a\rb\nC\n"),
    ],
)
def test_line_ends_are_those_of_the_file(text: str, diff: str, after: str) -> None:
    assert update(text, diff).text == after


# Anchors


def test_an_anchor_moves_the_search_behind_it() -> None:
    text = "def a():\n    x = 1\ndef b():\n    x = 1\n"
    assert update(text, "@@ def b():\n-    x = 1\n+    x = 2").text == "def a():\n    x = 1\ndef b():\n    x = 2\n"
    assert update(text, "@@   def b():  \n-    x = 1\n+    x = 2").fuzz == 1


def test_stacked_anchors_narrow_one_after_the_other() -> None:
    text = "class A:\n  def f():\n    1\nclass B:\n  def f():\n    1\n"
    after = update(text, "@@ class B:\n@@   def f():\n-    1\n+    2")
    assert after.text == "class A:\n  def f():\n    1\nclass B:\n  def f():\n    2\n"
    assert after.notes == ()


def test_a_second_anchor_is_looked_for_behind_the_first_alone() -> None:
    text = "def run():\n  go\nclass B:\n  def other():\n    go\n  def run():\n    go\n"
    patched = update(text, "@@ class B:\n@@ def run():\n-    go\n+    stop")
    assert patched.text.splitlines()[4:] == ["    go", "  def run():", "    stop"]


def test_an_anchor_that_is_nowhere_is_advice_and_is_named() -> None:
    patched = update(FILE, "@@ def Two() -> int:\n-    return 2\n+    return 3")
    assert patched.text == FILE.replace("return 2", "return 3")
    assert 'The line "@@ def Two() -> int:" of the patch names no line of app.py' in patched.notes[0]


def test_an_anchor_that_is_the_first_line_of_its_hunk_is_where_the_hunk_stands() -> None:
    assert update(FILE, "@@ import os\n import os\n+import sys").text == FILE.replace("os\n", "os\nimport sys\n", 1)


def test_of_two_equal_blocks_the_anchored_one_is_meant_even_when_the_anchor_is_its_first_line() -> None:
    text = "x = 1\ny\nx = 1\ny\n"
    patched = update(text, "@@ x = 1\n-x = 1\n+x = 2\n y")
    assert patched.text == "x = 2\ny\nx = 1\ny\n"
    assert "also fits at line 3" in patched.notes[0]


# Several places


def test_of_several_places_the_first_is_taken_and_the_others_are_named() -> None:
    patched = update("p\nq\n" * 6, "-q\n+Q")
    assert patched.text == "p\nQ\n" + "p\nq\n" * 5
    assert "applied to the first, line 2; it also fits at line 4, line 6 and line 8." in patched.notes[0]
    twice = update("p\nq\np\nq\n", "-q\n+Q")
    assert "also fits at line 4. If" in twice.notes[0]


@pytest.mark.parametrize(
    ("text", "diff"),
    [
        ("p\nq\nr\n", "-q\n+Q"),
        ("a\nq\nb\nq\n", "@@ b\n-q\n+Q"),
        ("a\nq\nb\nq\n", "-q\n+Q\n*** End of File"),
        ("def f\nq\ndef f\nr\n", "@@ def f\n-q\n+Q"),
        ("q\n  q\n", "-q\n+Q"),
    ],
)
def test_one_place_that_is_meant_is_no_case_of_several(text: str, diff: str) -> None:
    assert update(text, diff).notes == ()


def test_an_anchor_that_stands_twice_settles_nothing() -> None:
    text = "def run():\n  go\ndef run():\n  go\n"
    assert "also fits at line 4" in update(text, "@@ def run():\n-  go\n+  stop").notes[0]


# The end of the file


def test_a_hunk_for_the_end_of_the_file_stands_there() -> None:
    text = "a\nend\nb\nend\n"
    assert update(text, "-end\n+END\n*** End of File").text == "a\nend\nb\nEND\n"
    assert update("a\nend\nb\nend", "-end\n+END\n*** End of File").text == "a\nend\nb\nEND"
    assert update(text, "+last\n*** End of File").text == text + "last\n"
    assert update(text, "+last\n*** End of File\n\n").text == text + "last\n"


def test_a_hunk_that_is_not_at_the_end_is_applied_and_said() -> None:
    patched = update("a\nb\nc\n", "-a\n+A\n*** End of File")
    assert (patched.text, patched.fuzz) == ("A\nb\nc\n", 10000)
    assert "is not at the end of app.py; it was applied where its lines are, at line 1" in patched.notes[0]


# What is no patch


@pytest.mark.parametrize(
    ("diff", "said"),
    [
        ("-a\n+A\n*** End of File\n-b\n+B", '"-b" is not part of a hunk'),
        ("@@ a\n@@ b", "A hunk has no lines"),
        ("@@b\n-b\n+B", "a blank must stand between @@"),
        ("-a\nb\n+B", 'begins with a blank, + or -, and this one does not: "b"'),
        ("*** Move to: x", '"*** Move to:" must stand right below'),
        ("-a\n*** Rename: x", "is no marker of this format"),
        (" a\n b", "changes nothing"),
        ("*** End of File", "no lines"),
        ("***", "no lines"),
        ("", "changes nothing"),
    ],
)
def test_what_is_no_patch_is_named_with_an_example(diff: str, said: str) -> None:
    error = refused("a\nb\n", diff)
    assert error.code == "patch-invalid"
    assert said in error.message
    assert "*** Begin Patch" in error.hint


def test_hunks_that_overlap_are_refused() -> None:
    error = refused("a\nb\n", "-a\n-b\n+c\n@@\n-b\n+d\n*** End of File")
    assert (error.code, "overlap at line 2" in error.message) == ("patch-mismatch", True)


def test_a_new_file_is_made_of_added_lines() -> None:
    assert new_text(["+a", "+", "+b", ""], path="x") == "a\n\nb\n"
    assert new_text([], path="x") == ""
    with pytest.raises(FileError, match=r'must begin with .*"b"'):
        new_text(["+a", "b"], path="x")


# Why a hunk does not match


def test_a_miss_shows_the_nearest_place_and_what_differs_there() -> None:
    error = refused(FILE, " def two():\n-    return 3\n+    return 4")
    assert error.code == "patch-mismatch"
    assert 'At line 9 the file has "    return 2" where the hunk has "    return 3".' in error.message
    assert "The nearest place in app.py is line 8:\n" in error.hint
    assert "\n    8 | def two():\n    9 |     return 2\n" in error.hint
    assert "   10 |" not in error.hint


def test_the_nearest_place_is_where_most_lines_agree() -> None:
    text = "x\n\n" * 5 + "x\ny\nz\nw\n"
    assert "is line 11:" in refused(text, " x\n y\n z\n-v\n+u").hint


@pytest.mark.parametrize("mark", ["\t", ":", " | ", "|"])
def test_line_numbers_of_a_listing_are_named_and_never_taken_away(mark: str) -> None:
    error = refused(FILE, f"     8{mark}def two():\n-    9{mark}    return 2\n+    return 3")
    assert "carry the line numbers of a listing" in error.message
    assert "The nearest place in app.py is line 8:\n" in error.hint
    assert "    9 |     return 2" in error.hint


def test_numbers_that_belong_to_the_file_are_not_blamed() -> None:
    error = refused("1: a\n2: b\n", " 1: a\n-2: c\n+2: d")
    assert "line numbers" not in error.message
    assert 'the file has "2: b" where the hunk has "2: c"' in error.message


def test_hunks_out_of_order_are_named() -> None:
    error = refused(FILE, "@@ def two():\n-    return 1\n+    return 5")
    assert "These lines are at line 5, above the place" in error.message


def test_nothing_is_made_up_when_nothing_is_alike() -> None:
    assert "None of its lines is in app.py" in refused(FILE, "-foo\n+bar").hint
    assert "The hunk was looked for from line 9 of app.py on:\n" in refused(FILE, "@@ def two():\n-foo\n+bar").hint
    assert "app.py is empty" in refused("", "-foo\n+bar").hint
    assert "The file ends before the hunk does, at line 9." in refused(FILE, "     return 2\n-    return 5").message


def test_a_long_line_is_cut_in_what_is_shown() -> None:
    error = refused("a\n" + "b" * 5000 + "\n", " a\n-c\n+d")
    assert len(error.message) + len(error.hint) < 1500
    assert "more characters]" in error.hint


# Properties

LINES = st.lists(st.text(alphabet="ab \t", max_size=3), min_size=1, max_size=8)


@given(before=LINES, after=LINES, cut=st.integers(0, 8))
def test_any_text_can_become_any_other(before: list[str], after: list[str], cut: int) -> None:
    kept = before[:cut]
    diff = [" " + line for line in kept] + ["-" + line for line in before[cut:]] + ["+" + line for line in after]
    assert apply_update("\n".join(before), diff, path="f").text == "\n".join(kept + after)


@given(st.text(alphabet="ab\n\r \ufeff", max_size=20), st.text(alphabet="ab +-@*\n", max_size=30))
def test_any_patch_is_applied_or_refused_with_a_reason(text: str, diff: str) -> None:
    try:
        patched = update(text, diff)
    except FileError as error:
        code = error.code
    else:
        code = "" if patched.added + patched.removed else "nothing"
    assert code in {"", "patch-invalid", "patch-mismatch"}


def test_a_search_costs_as_little_for_hostile_texts() -> None:
    text = "a\n" * 200_000
    diff = [" a"] * 100_000 + ["-b"]
    with pytest.raises(FileError):
        apply_update(text, diff, path="f")
