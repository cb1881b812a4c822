"""Nothing is held back: the model server says its next word only when the client has got all the earlier ones."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from satchel.testing.scripted_openai import ScriptedCall, ScriptedTurn, Stage
from tests.program.standing import KINDS, READ, Gateway
from tests.program.surfaces import (
    BESIDE_OURS,
    SURFACES,
    TOOL,
    Body,
    Heard,
    Piece,
    Surface,
    chat_said,
    messages_said,
    ollama_said,
    responses_said,
)

pytestmark = pytest.mark.asyncio(loop_scope="session")

_SAID: Mapping[str, Callable[[Body], Iterator[Piece]]] = {
    "/v1/chat/completions": chat_said,
    "/v1/responses": responses_said,
    "/api/chat": ollama_said,
    "/v1/messages": messages_said,
}
LIST = ScriptedCall(name="skills_list", call_id="call_list")
WEATHER = ScriptedCall(name=TOOL, fragments=('{"city": ', '"Köln"}'), call_id="call_weather")
BERN = ScriptedCall(name=TOOL, fragments=('{"city": "Bern"}',), call_id="call_bern")


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """``turns`` are what the model says, ``calls`` what a client hears of its own tool."""

    turns: tuple[ScriptedTurn, ...]
    calls: str = ""
    takes_skills: bool = True


SCRIPTS: Mapping[str, Script] = {
    "one round": Script(turns=(ScriptedTurn(reasoning=("Hm", "m."), text=("The share ", "is ", "6 %.")),)),
    "without skills": Script(turns=(ScriptedTurn(reasoning=("Hm",), text=("It ", "is", ".")),), takes_skills=False),
    "prose in three rounds": Script(
        turns=(
            ScriptedTurn(reasoning=("I need ", "the skill."), text=("Let me ", "look."), calls=(READ,)),
            ScriptedTurn(reasoning=("And ", "others?"), text=("One ", "more."), calls=(LIST, READ)),
            ScriptedTurn(reasoning=("Now I ", "know."), text=("The share ", "is ", "6 %.")),
        )
    ),
    "a silent round between": Script(
        turns=(
            ScriptedTurn(reasoning=("I need it.",), calls=(READ,)),
            ScriptedTurn(calls=(LIST,)),
            ScriptedTurn(text=("6", " %", ".")),
        )
    ),
    "text that no encoding may break": Script(
        turns=(
            ScriptedTurn(
                text=("e", "\u0301", "👩", "\u200d", "💻 ", "日", "本\u2028", "\u0085", "\ufeff"), calls=(READ,)
            ),
            ScriptedTurn(text=("\u2029x", '\\u0041 "', "\x00\x1b[0m", "\U0010ffff", "Ω")),
        )
    ),
    "line ends of every kind": Script(
        turns=(
            ScriptedTurn(text=("a\r", "\nb", "\r\n\r\n", "data: c\r\n"), calls=(READ,)),
            ScriptedTurn(text=("```\r\n", "\n\n", "event: x\n", "\r", "end\n")),
        )
    ),
    "prose that looks like calls": Script(
        turns=(
            ScriptedTurn(text=("<tool_", 'call>{"name": "f"}', "</tool_call>", " {", '"a": 1}'), calls=(READ,)),
            ScriptedTurn(text=("<|channel|>", "final", "<think>", "no", "</think>", "[DONE]")),
        )
    ),
    "own and the client's calls together": Script(
        turns=(ScriptedTurn(text=("Both ", "then."), calls=(READ, WEATHER, LIST, BERN)),),
        calls=f'{TOOL}{{"city": "Köln"}}{TOOL}{{"city": "Bern"}}',
    ),
    "a round, then the client's call": Script(
        turns=(
            ScriptedTurn(text=("First ", "this."), calls=(READ,)),
            ScriptedTurn(text=("Now ", "that."), calls=(WEATHER,)),
        ),
        calls=f'{TOOL}{{"city": "Köln"}}',
    ),
}


class Step:
    """What a client must have heard when a model server has said so much."""

    def __init__(self, heard: Heard, *, streams_calls: bool) -> None:
        self._heard = heard
        self._streams_calls = streams_calls
        self._rounds: list[str] = []
        self._reasoning = ""
        self._calls = ""
        self.waits = 0

    def turn(self, turn: ScriptedTurn) -> ScriptedTurn:
        """The same turn, at the client's pace."""

        async def play(stage: Stage) -> None:
            self._rounds.append("")
            # Where the model calls tools of ours too, what is told of calls is looked at when all is said.
            kinds = {"text", "reasoning"}
            if self._streams_calls and all(call.name == TOOL for call in turn.calls):
                kinds.add("call")
            for message in stage.form.pieces(turn):
                await _torn(stage, message)
                await self._confirmed(piece for piece in _SAID[stage.seen.path](dict(message)) if piece[0] in kinds)
            for message in stage.form.ending(turn):
                await _torn(stage, message)
            await stage.write(stage.form.end)

        return ScriptedTurn(play=play)

    @property
    def text(self) -> str:
        return "\n\n".join(filter(None, self._rounds))

    async def _confirmed(self, pieces: Iterator[Piece]) -> None:
        for kind, text in pieces:
            match kind:
                case "text":
                    self._rounds[-1] += text
                case "reasoning":
                    self._reasoning += text
                case _:
                    self._calls += text
            self.waits += kind != "call"
        said = (self.text, self._reasoning)
        await self._heard.until(
            lambda heard: (heard.text, heard.reasoning) == said and heard.calls.startswith(self._calls)
        )


async def _torn(stage: Stage, message: Mapping[str, Any]) -> None:
    """Sends a message in two writes, cut inside its first character that has several bytes."""
    data = stage.form.frame(message)
    place = next((index + 1 for index, byte in enumerate(data) if byte >= 0xC0), 0)
    if place:
        await stage.write(data[:place])
        await asyncio.sleep(0.001)
    await stage.write(data[place:])


def _beside_extensions(surface: Surface, heard: Heard) -> str:
    messages = [{key: message[key] for key in message.keys() - surface.extensions} for message in heard.messages]
    return json.dumps(messages)


@pytest.mark.parametrize("surface", [*SURFACES, BESIDE_OURS], ids=str)
@pytest.mark.parametrize("kind", KINDS)
async def test_every_piece_reaches_the_client_before_the_next_is_said(
    gateway: Gateway, surface: Surface, kind: str
) -> None:
    for name, script in SCRIPTS.items():
        tools = bool(script.calls)
        if tools and not surface.takes_tools:
            continue
        fields: Body = {} if script.takes_skills else {"skills": [], "skills_discovery": False}
        heard = Heard()
        step = Step(heard, streams_calls=surface.streams_calls)
        gateway.next(*(step.turn(turn) for turn in script.turns))
        await gateway.hear(surface, kind=kind, heard=heard, tools=tools, **fields)
        gateway.next(*script.turns)
        whole = await gateway.hear(surface, kind=kind, stream=False, tools=tools, **fields)

        assert heard.is_ended, (name, heard.raw)
        assert step.waits == sum(len(turn.text) + len(turn.reasoning) for turn in script.turns), name
        assert heard.said == whole.said, name
        assert heard.text == "\n\n".join(filter(None, ("".join(turn.text) for turn in script.turns))), name
        assert heard.calls == script.calls, name
        assert heard.finish == whole.finish, name
        asked = [json.dumps(request.body) for request in gateway.model.requests]
        assert ["skills_read" in body for body in asked] == [script.takes_skills] * len(script.turns), name
        assert not {"skills", "skills_discovery"} & {key for request in gateway.model.requests for key in request.body}
        for answer in (heard, whole):
            told = _beside_extensions(surface, answer)
            assert "skills_" not in told, (name, told)
            assert "call_read" not in told, (name, told)
