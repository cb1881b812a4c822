"""Which tools a skill counts on that a model does not have."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from satchel.skills.named_tools import missing_tools

THERE = ("bash", "read_file", "Grep", "mcp__github__list_issues")


@pytest.mark.parametrize(
    ("pattern", "missing"),
    [
        ("Read", "Read"),
        ("grep", ""),
        ("Bash(git log:*)", ""),
        ("Shell", ""),
        ("WebFetch(domain:example.com)", "WebFetch"),
        ("mcp__github", ""),
        ("mcp__github__*", ""),
        ("mcp__github__close_issue", "mcp__github__close_issue"),
        ("mcp__git", "mcp__git"),
        ("read_*", ""),
        ("*", ""),
        ("(unreadable", ""),
    ],
)
def test_patterns(pattern: str, missing: str) -> None:
    assert missing_tools([pattern], "", THERE) == ((missing,) if missing else ())


@pytest.mark.parametrize(
    ("body", "missing"),
    [
        ("Call the tool confirm_payment, which is not available.", "confirm_payment"),
        ("Call the `confirm_payment` tool.", "confirm_payment"),
        ('Use a tool called "send_mail".', "send_mail"),
        ("Use the tool named mcp__bank__pay first.", "mcp__bank__pay"),
        ("Use the read_file tool.", ""),
        ("Use the READ_FILE tool.", ""),
        ("Use the `jq` tool and the right tool for the job.", ""),
        ("Run the tool scripts/make_report.py now.", ""),
        ("Run the tool make_report.py now.", ""),
        ("In lib.my_helper tool marks are kept.", ""),
        ("snake_case is a style", ""),
        ("", ""),
    ],
)
def test_bodies(body: str, missing: str) -> None:
    assert missing_tools([], body, THERE) == ((missing,) if missing else ())


def test_each_once_declared_ones_first_and_not_too_many() -> None:
    body = "".join(f"Use the tool t_{number}. Use the t_{number} tool. " for number in range(20))
    found = missing_tools(["Read", "Read", "x" * 500], body, THERE)
    assert (found[:3], len(found)) == (("Read", "x" * 80, "t_0"), 10)


@given(st.text(alphabet="a_ `t'ol\n", max_size=400), st.text(max_size=20))
def test_no_text_breaks_it(body: str, pattern: str) -> None:
    for name in missing_tools([pattern], body, THERE):
        assert len(name) <= 600
        assert "\n" not in name
