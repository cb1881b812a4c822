from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from satchel.activation.params import command_arguments, parse_command
from satchel.activation.reply import Activation
from satchel.activation.session import SkillSession
from satchel.library import discover
from satchel.skills.dialects import AGENT_SH, PORTABLE
from satchel.skills.model import Skill
from tests.activation.shelves import allow, brief, put, session_over

TYPED = (
    "arguments:",
    "  text: {type: string}",
    "  count: {type: integer, required: true}",
    "  ratio: {type: number, default: '0.5'}",
    "  force: {type: boolean}",
    "  level: {enum: [low, high]}",
)
BODY = "${text}|${count}|${ratio}|${force}|${level}"


async def given(tmp_path: Path, arguments: Any) -> Activation:
    put(tmp_path, "a", *TYPED, body=BODY)
    return await session_over(tmp_path).activate("a", arguments)


@pytest.mark.parametrize(
    ("arguments", "body"),
    [
        ({"count": "3"}, "${text}|3|0.5|${force}|${level}"),
        ({"count": 3, "force": True, "ratio": 2}, "${text}|3|2|true|${level}"),
        ({"count": " +07 ", "force": "No", "ratio": "1e-3"}, "${text}|7|1e-3|false|${level}"),
        ({"count": 3.0, "text": "", "level": "high", "ratio": 0.25}, "|3|0.25|${force}|high"),
    ],
)
async def test_values_are_read_as_their_type(tmp_path: Path, arguments: Any, body: str) -> None:
    assert (await given(tmp_path, arguments)).body == body


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (None, ("requires 'count'", "count (integer, required)")),
        ({}, ("requires 'count'",)),
        ({"text": "x"}, ("requires 'count'",)),
        ({"count": "3", "colour": "red"}, ("no argument 'colour'", "'text', 'count', 'ratio', 'force', 'level'")),
        ({"count": "three"}, ("'count'", "type integer")),
        ({"count": 3.5}, ("'count'", "type integer")),
        ({"count": True}, ("'count'", "type integer")),
        ({"count": "3", "ratio": "nan"}, ("'ratio'", "type number")),
        ({"count": "3", "ratio": float("inf")}, ("'ratio'", "type number")),
        ({"count": "3", "force": "maybe"}, ("'force'", "type boolean")),
        ({"count": "3", "level": "HIGH"}, ("'level'", "one of low, high")),
        ({"count": "3", "text": 7}, ("'text'", "type string")),
        ({"count": ["3"]}, ("'count'", "string, number or boolean")),
        ({"count": None}, ("'count'", "string, number or boolean")),
        ("3", ("expects named arguments",)),
        (3, ("string or an object",)),
        (["3"], ("string or an object",)),
    ],
)
async def test_what_does_not_fit_the_declaration_is_refused(
    tmp_path: Path, arguments: Any, words: tuple[str, ...]
) -> None:
    reply = await given(tmp_path, arguments)
    assert brief(reply) == ("error", "INVALID_PARAM")
    assert [word for word in words if word not in reply.output] == []


async def test_arguments_are_judged_before_anybody_is_asked(tmp_path: Path) -> None:
    put(tmp_path, "a")
    asked: list[object] = []
    session = session_over(tmp_path, permission=asked.append)
    assert brief(await session.activate("a", {"x": "y"})) == ("error", "INVALID_PARAM")
    assert asked == []


async def test_declared_places_take_text_or_names(tmp_path: Path) -> None:
    put(
        tmp_path,
        "a",
        "arguments:",
        "  - {name: app, required: true}",
        "  - {name: count, type: integer}",
        body="$app-$count",
    )
    session = SkillSession(discover([tmp_path]), permission=allow)
    wrongs: list[Any] = [None, "", "api many", {"count": 2}]
    for wrong in wrongs:
        assert brief(await session.activate("a", wrong)) == ("error", "INVALID_PARAM")
    assert (await session.activate("a", "api 2")).body == "api-2"
    session.unload("a")
    assert (await session.activate("a", {"app": "web", "count": 2})).body == "web-2"


def test_a_user_s_command_is_a_slash_and_a_name() -> None:
    assert parse_command("/deploy") == ("deploy", "")
    assert parse_command("  /deploy  api now\nplease ") == ("deploy", "api now\nplease")
    assert parse_command("/usr/bin/x") is None
    assert parse_command("deploy /x") is None
    assert parse_command("/ x") is None
    assert parse_command("") is None


@pytest.mark.parametrize(
    ("rest", "arguments"),
    [
        ("", None),
        ('text="a b" count=3', {"text": "a b", "count": "3"}),
        ("count=3 bare", "count=3 bare"),
        ("count=3 other=1", "count=3 other=1"),
    ],
)
def test_words_with_an_equals_sign_are_named_arguments(tmp_path: Path, rest: str, arguments: object) -> None:
    put(tmp_path, "a", *TYPED)
    (skill,) = discover([tmp_path], dialect="agent-sh").skills
    assert command_arguments(rest, skill, AGENT_SH) == arguments


def test_one_named_argument_takes_all_that_was_typed(tmp_path: Path) -> None:
    put(tmp_path, "a", "arguments:", "  path: {type: string}")
    (skill,) = discover([tmp_path]).skills
    assert command_arguments("my own file", skill, PORTABLE) == {"path": "my own file"}
    assert command_arguments("my own file", Skill(ref=skill.ref, description="", summary=""), PORTABLE) == "my own file"


async def test_a_user_types_and_the_skill_is_active(tmp_path: Path) -> None:
    put(tmp_path, "deploy", body="Ship $ARGUMENTS.")
    put(tmp_path, "hidden", "user-invocable: false")
    session = SkillSession(discover([tmp_path]), permission=allow)
    assert await session.invoke("please /deploy") is None
    assert await session.invoke("/nothing") is None
    reply = await session.invoke("/Deploy api now")
    assert reply is not None
    assert (reply.kind, reply.name, reply.body) == ("ok", "deploy", "Ship api now.")
    refused = await session.invoke("/hidden")
    assert refused is not None
    assert brief(refused) == ("error", "DISABLED")
    assert (await session.activate("hidden", by="program")).kind == "ok"


async def test_in_a_row_that_only_hides_it_a_user_may_name_it(tmp_path: Path) -> None:
    put(tmp_path, "hidden", "user-invocable: false")
    assert (await session_over(tmp_path).activate("hidden", by="user")).kind == "ok"
