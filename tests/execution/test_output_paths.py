from __future__ import annotations

import os
import random
import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from satchel.execution.output_paths import relative, relative_capture, relative_paths, skill_paths
from satchel.execution.workspace import Workspace
from satchel.ports.execution import Captured

ROOT = "/tmp/satchel-" + "".join(random.Random(7).choices(string.ascii_lowercase, k=8))
PLACE = Workspace(root=ROOT, id="x")
WORK = PLACE.work


@pytest.mark.parametrize(
    ("printed", "cwd", "told"),
    [
        (f'File "{WORK}/a/b.py", line 3', WORK, 'File "a/b.py", line 3'),
        (f"{WORK}/a/b.py:3:5: error", f"{WORK}/a", "b.py:3:5: error"),
        (f"{WORK}/b.py", f"{WORK}/a/c", "../../b.py"),
        (WORK, WORK, "."),
        (f"{WORK}/", WORK, "./"),
        (f"in {WORK}.", WORK, f"in {WORK}."),
        (f"see {WORK}/notes.", WORK, "see notes."),
        (f"{WORK}/my file.txt", WORK, "my file.txt"),
        (f"{ROOT}/packages/python/lib/x.py", WORK, "../packages/python/lib/x.py"),
        (f"{WORK}/a/../b.py", f"{WORK}/a", "./../b.py"),
        (f"{WORK}/.hidden/..x", WORK, ".hidden/..x"),
        (f"({WORK}/a,{WORK}/b)", WORK, "(a,b)"),
        (f"--out={WORK}/a", WORK, "--out=a"),
        (f"cd '{WORK}/a'; ls", WORK, "cd 'a'; ls"),
    ],
)
def test_a_path_below_the_workspace_is_told_from_where_the_command_ran(printed: str, cwd: str, told: str) -> None:
    assert relative_paths(printed, PLACE, cwd) == told


@pytest.mark.parametrize(
    "printed",
    [
        f"{ROOT}x/work/a.py",
        f"{ROOT}.bak/a.py",
        f"{ROOT}-2/a.py",
        f"/home{WORK}/a.py",
        f"file://{WORK}/a.py",
        f"http://host{WORK}/a.py",
        f"{WORK}/../../etc/passwd",
        f"{WORK}/a/../../../x",
        f"{ROOT}/../{ROOT.rpartition('/')[2]}x/a.py",
        f"~{WORK}/a",
        ROOT[:-1] + "/work/a",
        ROOT.upper() + "/work/a",
        "nothing at all: /usr/lib/python3/x.py",
    ],
)
def test_what_is_no_path_below_the_workspace_is_left_alone(printed: str) -> None:
    assert relative_paths(printed, PLACE, WORK) == printed


@settings(deadline=None)
@given(
    st.lists(st.sampled_from(["work", "a", "b.py", "tmp", "x"]), max_size=4),
    st.lists(st.sampled_from(["work", "a", "b", "tmp"]), max_size=4),
)
def test_it_leads_to_the_same_file(parts: list[str], base: list[str]) -> None:
    path, cwd = "/".join((ROOT, *parts)), "/".join((ROOT, *base))
    assert os.path.normpath(f"{cwd}/{relative(path, cwd)}") == path
    told = relative_paths(f"at {path}: oops", PLACE, cwd)
    assert told == f"at {relative(path, cwd)}: oops"
    assert os.path.relpath(path, cwd) == relative(path, cwd)


def test_bytes_that_are_no_text_stay_as_they_are() -> None:
    captured = Captured(head=b"\xff\xfe " + f"{WORK}/a".encode() + b" \x80", tail=b"\xc3", dropped_bytes=7)
    assert relative_capture(captured, PLACE, WORK) == Captured(head=b"\xff\xfe a \x80", tail=b"\xc3", dropped_bytes=7)
    other = Captured(head=b"\xff /else", tail=b"")
    assert relative_capture(other, PLACE, WORK) is other


@pytest.mark.parametrize(
    ("printed", "told"),
    [
        ('File "/srv/my skills/pdf/scripts/a.py", line 3', 'File "scripts/a.py", line 3'),
        ("in /srv/my skills/pdf", "in $SKILL_DIR"),
        ("/srv/my skills/pdf/ and /srv/my skills/pdf2/a", "$SKILL_DIR/ and /srv/my skills/pdf2/a"),
        ("/srv/my skills/pdf/../other/SKILL.md", "/srv/my skills/pdf/../other/SKILL.md"),
    ],
)
def test_a_path_below_a_skill_is_told_as_the_skill_spells_it(printed: str, told: str) -> None:
    assert skill_paths(printed, "/srv/my skills/pdf", "$SKILL_DIR") == told
