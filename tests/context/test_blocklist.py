from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from satchel.context import Blocklist, ToolCheck
from satchel.errors import SetupError, StoreError

BLOCKED = ToolCheck(allowed=False, reason='Tool "write_file" is blocked.')
NAMELESS = ToolCheck(allowed=False, reason="Tool call rejected: missing or empty tool name.")


def call(name: object) -> dict[str, object]:
    return {"name": name}


@pytest.mark.parametrize(
    "made",
    [
        call("write_file"),
        {"id": "1", "type": "function", "function": {"name": "write_file", "arguments": "{}"}},
        {"id": "1", "type": "custom", "custom": {"name": "write_file", "input": ""}},
        {"type": "tool_use", "id": "1", "name": "write_file", "input": {}},
        SimpleNamespace(name="write_file"),
        SimpleNamespace(id="1", function=SimpleNamespace(name="write_file", arguments="{}")),
    ],
)
def test_calls_of_every_make_are_checked(made: object) -> None:
    assert Blocklist(["write_file"]).check_tool_call(made) == BLOCKED
    assert Blocklist(["read_file"]).check_tool_call(made) == ToolCheck(allowed=True)


@pytest.mark.parametrize("made", [{}, call(""), call("  "), call(None), call(7), None, "write_file", {"function": {}}])
def test_a_call_without_a_name_is_refused(made: object) -> None:
    assert Blocklist().check_tool_call(made) == NAMELESS


def test_a_call_with_two_names_is_refused_since_nobody_knows_which_would_run() -> None:
    made = {"name": "read_file", "function": {"name": "write_file"}}
    assert not Blocklist().check_tool_call(made).allowed
    assert Blocklist().check_tool_call({"name": "a", "function": {"name": "a"}}).allowed


@pytest.mark.parametrize("name", ["Write_File", "write_file ", "write", "write_file_2"])
def test_a_name_is_blocked_exactly_as_written(name: str) -> None:
    assert Blocklist(["write_file"]).check_tool_call(call(name)).allowed


def test_one_text_is_one_name_and_not_its_letters() -> None:
    blocklist = Blocklist().set_blocked_tools("write_file")
    assert blocklist.get_blocked_tools() == ["write_file"]


@pytest.mark.parametrize("names", [[1], [None], [""], [["a"]]])
def test_a_name_that_is_no_text_changes_nothing(names: list[str]) -> None:
    blocklist = Blocklist(["a"])
    with pytest.raises(SetupError) as caught:
        blocklist.set_blocked_tools(names)
    assert (caught.value.code, blocklist.get_blocked_tools()) == ("setting-invalid", ["a"])


@pytest.mark.parametrize("state", [{"blocked_tools": "write_file"}, {"blocked_tools": [1]}, {"blocked_tools": {}}])
def test_a_state_that_is_none_blocks_what_was_blocked(state: dict[str, object]) -> None:
    blocklist = Blocklist(["a"])
    with pytest.raises(StoreError) as caught:
        blocklist.restore(state)  # pyright: ignore[reportArgumentType]
    assert (caught.value.code, blocklist.get_blocked_tools()) == ("state-invalid", ["a"])


@given(st.lists(st.text(min_size=1)))
def test_a_list_comes_back_from_its_snapshot_and_each_name_once(names: list[str]) -> None:
    blocklist = Blocklist(names)
    again = Blocklist(["other"]).restore(blocklist.snapshot())
    assert again.get_blocked_tools() == blocklist.get_blocked_tools() == list(dict.fromkeys(names))


@pytest.mark.parametrize("state", [None, [], "text", 7])
def test_what_is_no_mapping_is_no_state(state: Any) -> None:
    with pytest.raises(StoreError) as caught:
        Blocklist().restore(state)
    assert caught.value.code == "state-invalid"
