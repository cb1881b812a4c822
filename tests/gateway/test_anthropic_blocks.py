"""The blocks of an answer, whatever order its pieces come in."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from satchel.chat.events import Usage
from satchel.chat.messages import Message, Opaque, Text, ToolUse
from satchel.chat.request import ChatRequest
from satchel.engine.events import CallDelta, ReasoningDelta, TextDelta, TurnDone, TurnEvent, TurnStarted
from satchel.engine.request import TurnRequest
from satchel.gateway.anthropic.translate import EventEncoder, MessageEncoder, MessagesCall
from tests.gateway.anthropic_client import check_blocks, event_of

SIGNED: dict[str, Any] = {"type": "thinking", "thinking": "Hm. So.", "signature": "c2ln"}
REDACTED: dict[str, Any] = {"type": "redacted_thinking", "data": "eA=="}
STARTED = TurnStarted(turn_id="t", model="m")


def asked(*, shows_thinking: bool = True) -> MessagesCall:
    turn = TurnRequest(chat=ChatRequest(messages=()))
    return MessagesCall(turn=turn, is_streamed=True, shows_thinking=shows_thinking, container=())


def done(*uses: ToolUse, **more: Any) -> TurnDone:
    more.setdefault("finish", "tool_calls" if uses else "stop")
    return TurnDone(usage=Usage(), usage_by_round=(), rounds=1, client_calls=uses, **more)


def streamed(*events: TurnEvent, shows_thinking: bool = True) -> list[dict[str, Any]]:
    encoder = EventEncoder(asked(shows_thinking=shows_thinking))
    text = b"".join(encoder.feed(event) for event in events) + encoder.finish()
    return [event_of(frame) for frame in text.decode()[:-2].split("\n\n")]


def whole(*events: TurnEvent, shows_thinking: bool = True) -> dict[str, Any]:
    encoder = MessageEncoder(asked(shows_thinking=shows_thinking))
    return json.loads(b"".join(encoder.feed(event) for event in events) + encoder.finish())


def put_together(said: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The content as a client of the stream has it."""
    content: list[dict[str, Any]] = []
    pieces: dict[int, str] = {}
    for event in said:
        match event["type"]:
            case "content_block_start":
                content.append(dict(event["content_block"]))
            case "content_block_delta":
                block, delta = content[event["index"]], event["delta"]
                match delta["type"]:
                    case "input_json_delta":
                        pieces[event["index"]] = pieces.get(event["index"], "") + delta["partial_json"]
                    case "signature_delta":
                        block["signature"] = delta["signature"]
                    case kind:
                        field = kind.removesuffix("_delta")
                        block[field] += delta[field]
            case _:
                pass
    for index, arguments in pieces.items():
        content[index]["input"] = json.loads(arguments)
    return content


PIECES = st.lists(
    st.one_of(
        st.tuples(st.just("text"), st.integers(1, 3), st.text(max_size=3)),
        st.tuples(st.just("think"), st.integers(1, 3), st.text(max_size=3)),
        st.tuples(st.sampled_from(["signed", "redacted", "other"]), st.integers(1, 3), st.just("")),
        st.tuples(st.just("call"), st.integers(0, 2), st.just("")),
    ),
    max_size=14,
)


@given(PIECES, st.booleans())
def test_both_forms_agree_and_the_block_rule_holds(pieces: list[tuple[str, int, str]], shows_thinking: bool) -> None:
    fragments = {index: ['{"n"', f": {index}", "}"] for index in range(3)}
    events: list[TurnEvent] = [STARTED]
    number = 1
    for kind, value, text in pieces:
        number = max(number, value) if kind != "call" else number
        match kind:
            case "text":
                events.append(TextDelta(round=number, text=text))
            case "think":
                events.append(ReasoningDelta(round=number, text=text))
            case "call":
                fragment = fragments[value].pop(0) if fragments[value] else ""
                events.append(CallDelta(index=value, call_id=f"call_{value}", name="weather", arguments=fragment))
            case _:
                opaque = {"signed": SIGNED, "redacted": REDACTED}.get(kind, {"type": "reasoning"})
                events.append(ReasoningDelta(round=number, text="", opaque=opaque))
    begun = [index for index in range(3) if any(isinstance(e, CallDelta) and e.index == index for e in events)]
    for index in begun:
        events += [
            CallDelta(index=index, call_id=f"call_{index}", name="weather", arguments=rest) for rest in fragments[index]
        ]
    uses = [ToolUse(call_id=f"call_{index}", name="weather", arguments=f'{{"n": {index}}}') for index in begun]
    events.append(done(*uses))
    said = streamed(*events, shows_thinking=shows_thinking)
    check_blocks(said)
    assert put_together(said) == whole(*events, shows_thinking=shows_thinking)["content"]


def test_signed_thinking_is_signed_when_it_ends() -> None:
    events = [
        STARTED,
        ReasoningDelta(round=1, text="Hm. "),
        ReasoningDelta(round=1, text="So."),
        ReasoningDelta(round=1, text="", opaque=SIGNED),
        ReasoningDelta(round=1, text="", opaque=REDACTED),
        TextDelta(round=1, text="Yes."),
        done(),
    ]
    content = [SIGNED, REDACTED, {"type": "text", "text": "Yes."}]
    said = streamed(*events)
    assert put_together(said) == whole(*events)["content"] == content
    deltas = [event["delta"]["type"] for event in said if event["type"] == "content_block_delta"]
    assert deltas == ["thinking_delta", "thinking_delta", "signature_delta", "text_delta"]


def test_signed_thinking_that_nobody_asked_for_comes_in_one_piece_since_the_server_wants_it_back() -> None:
    events = [
        STARTED,
        ReasoningDelta(round=1, text="Hm. So."),
        ReasoningDelta(round=1, text="", opaque=SIGNED),
        ReasoningDelta(round=1, text="Never signed."),
        TextDelta(round=1, text="Yes."),
        done(),
    ]
    said = streamed(*events, shows_thinking=False)
    expected = [SIGNED, {"type": "text", "text": "Yes."}]
    assert put_together(said) == whole(*events, shows_thinking=False)["content"] == expected


def test_calls_whose_fragments_are_mixed_are_open_side_by_side_and_others_one_after_another() -> None:
    def fragment(index: int, arguments: str) -> CallDelta:
        return CallDelta(index=index, call_id=f"call_{index}", name="weather", arguments=arguments)

    uses = tuple(ToolUse(call_id=f"call_{index}", name="weather", arguments='{"n": 1}') for index in range(2))
    halves = ('{"n":', " 1}")
    orderly = [fragment(0, halves[0]), fragment(0, halves[1]), fragment(1, halves[0]), fragment(1, halves[1])]
    mixed = [fragment(0, halves[0]), fragment(1, halves[0]), fragment(0, halves[1]), fragment(1, halves[1])]
    for fragments, order in ((orderly, "start stop start stop"), (mixed, "start start stop stop")):
        said = streamed(STARTED, *fragments, done(*uses))
        check_blocks(said)
        marks = [event["type"].removeprefix("content_block_") for event in said if "index" in event]
        assert " ".join(mark for mark in marks if mark != "delta") == order
        assert [block["input"] for block in put_together(said)] == [{"n": 1}, {"n": 1}]


def test_a_call_that_the_limit_cut_off_is_no_call_of_the_whole_answer() -> None:
    cut = CallDelta(index=0, call_id="call_a", name="weather", arguments='{"ci')
    events = [STARTED, TextDelta(round=1, text="So"), cut, done(finish="length")]
    assert whole(*events)["content"] == [{"type": "text", "text": "So"}]
    assert streamed(*events)[-2]["delta"]["stop_reason"] == "max_tokens"


def test_what_an_anthropic_server_says_at_the_end_is_passed_on() -> None:
    search: Any = {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "x"}}
    raw = {"input_tokens": 0, "output_tokens": 0, "service_tier": "standard"}
    end = done(
        extra={"anthropic": {"stop_reason": "stop_sequence", "stop_sequence": "END", "usage": raw}},
        transcript=(
            Message(role="assistant", parts=(Opaque(format="anthropic", raw=search), Text(text="a"))),
            Message(role="assistant", parts=(Opaque(format="openai-responses", raw={"type": "x"}),)),
        ),
    )
    events = [STARTED, TextDelta(round=1, text="a"), end]
    said, message = streamed(*events), whole(*events)
    assert message["content"] == put_together(said) == [{"type": "text", "text": "a"}, search]
    assert said[-2]["delta"] == {"stop_reason": "stop_sequence", "stop_sequence": "END"}
    assert (message["stop_reason"], message["stop_sequence"]) == ("stop_sequence", "END")
    assert message["usage"] == said[-2]["usage"] == raw
