from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from satchel.errors import FileError
from satchel.execution.envelope import MAX_CHARS, MAX_FILES, FilePatch, heredoc_patch, read_patch
from satchel.execution.patch import FORMAT_HINT

UPDATE = "*** Update File: a.py\n@@ def f():\n-x\n+y"
READ = (FilePatch(kind="update", path="a.py", lines=("@@ def f():", "-x", "+y")),)


@pytest.mark.parametrize(
    "text",
    [
        f"*** Begin Patch\n{UPDATE}\n*** End Patch",
        f"*** Begin Patch\r\n{UPDATE}\r\n*** End Patch\r\n".replace("\n", "\r\n").replace("\r\r", "\r"),
        f"*** Begin Patch \n{UPDATE}\n*** End Patch  \n",
        f"Here it is:\n```diff\n*** Begin Patch\n{UPDATE}\n*** End Patch\n```\nDone.",
        f"apply_patch <<'EOF'\n*** Begin Patch\n{UPDATE}\n*** End Patch\nEOF\n",
        f"*** Begin Patch\n{UPDATE}",
        f"{UPDATE}\n*** End Patch",
        UPDATE,
    ],
)
def test_one_patch_is_read_whatever_stands_around_it(text: str) -> None:
    assert read_patch(text) == READ


def test_every_kind_of_part_in_its_order() -> None:
    text = (
        "*** Begin Patch\n*** Add File: new.py\n+a\n+\n*** Update File: old.py\n*** Move to: sub/new.py\n@@\n-a\n+b\n"
        "*** Delete File: gone.py\n*** Update File: just.py\n*** Move to: moved.py\n*** End Patch\n"
        f"*** Begin Patch\n{UPDATE}\n*** End Patch"
    )
    assert read_patch(text) == (
        FilePatch(kind="add", path="new.py", lines=("+a", "+")),
        FilePatch(kind="update", path="old.py", move_to="sub/new.py", lines=("@@", "-a", "+b")),
        FilePatch(kind="delete", path="gone.py"),
        FilePatch(kind="update", path="just.py", move_to="moved.py"),
        *READ,
    )


def test_markers_inside_a_file_are_its_text() -> None:
    patch = read_patch("*** Update File: a\n *** End Patch\n-*** Begin Patch\n+*** Delete File: b")[0]
    assert patch.lines == (" *** End Patch", "-*** Begin Patch", "+*** Delete File: b")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no line"),
        ("*** Begin Patch\n*** End Patch", "no line"),
        ("just words", "no line"),
        ("@@\n-a\n+b", 'stands before any "*** Update File:"'),
        ("*** Begin Patch\n*** Rename File: a\n*** End Patch", "is no marker of this format"),
        ("*** Update File: a\n*** End Patch", "has no hunk"),
        ("*** Update File:\n-a", "names no file"),
        ("*** Delete File: a\n-line", "a deleted file needs none"),
        (f"{UPDATE}\n*** End Patch\n*** Move to: b", "outside a file's part"),
    ],
)
def test_what_is_no_patch_is_named(text: str, said: str) -> None:
    with pytest.raises(FileError) as caught:
        read_patch(text)
    assert caught.value.code == "patch-invalid"
    assert said in caught.value.message
    assert "*** Begin Patch" in caught.value.hint


def test_a_patch_is_bounded() -> None:
    for text in ("+" * (MAX_CHARS + 1), "*** Delete File: a\n" * (MAX_FILES + 1)):
        with pytest.raises(FileError) as caught:
            read_patch(text)
        assert caught.value.code == "file-too-large"


@given(st.text(alphabet="*+- @\naF:", max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        read = read_patch(text)
    except FileError as error:
        hint = error.hint
    else:
        hint = ""
        assert read
    assert hint in {"", FORMAT_HINT}


PATCH = f"*** Begin Patch\n{UPDATE}\n*** End Patch"


@pytest.mark.parametrize(
    ("command", "folder"),
    [
        (f"apply_patch <<'EOF'\n{PATCH}\nEOF", ""),
        (f"  apply_patch <<EOF\n{PATCH}\nEOF\n\n", ""),
        (f'apply_patch - <<-"PATCH"\n{PATCH}\n  PATCH', ""),
        (f"cd src && apply_patch <<'EOF'\n{PATCH}\nEOF", "src"),
        (f"cd 'my src'; applypatch <<'EOF'\n{PATCH}\nEOF", "my src"),
        (f"apply_patch '{PATCH}'", ""),
        (f'cd src && apply-patch "{PATCH}"', "src"),
    ],
)
def test_a_patch_that_is_given_to_a_shell_is_found(command: str, folder: str) -> None:
    found = heredoc_patch(command)
    assert found is not None
    assert (read_patch(found.text), found.folder) == (READ, folder)


@pytest.mark.parametrize(
    "command",
    [
        "ls",
        "which apply_patch",
        "apply_patch --help",
        f"cat <<'EOF' > p\n{PATCH}\nEOF",
        f"apply_patch <<'EOF'\n{PATCH}\nEOF\nrm -rf x",
        f"apply_patch <<'EOF'\n{PATCH}\nEOF\nls\nEOF",
        f"apply_patch <<'EOF'\n{PATCH}",
        f"echo a && apply_patch '{PATCH}'",
        f"cd src || apply_patch '{PATCH}'",
        f"cd src | apply_patch '{PATCH}'",
        f"apply_patch '{PATCH}",
        "apply_patch words",
    ],
)
def test_any_other_command_is_left_to_the_shell(command: str) -> None:
    assert heredoc_patch(command) is None
