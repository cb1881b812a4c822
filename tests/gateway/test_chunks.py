from __future__ import annotations

import json
from typing import Any

import pytest

from satchel.engine.events import ROOT, TextDelta, TurnStarted
from satchel.gateway.native.translate import FrameEncoder
from satchel.gateway.openai_chat.translate import ChunkEncoder

ODD = ("two\nlines", 'a "quote" and "content":""', "\ud800 half", "é – 漢", "\x00")


@pytest.mark.parametrize("model", ["m", 'm","content":"","x":"', "content"])
@pytest.mark.parametrize("include_usage", [True, False])
def test_every_chunk_of_text_is_the_same_but_for_its_text(model: str, *, include_usage: bool) -> None:
    encoder = ChunkEncoder(agent=ROOT, include_usage=include_usage, include_steps=False)
    encoder.feed(TurnStarted(turn_id="t", model=model))
    chunks = [_read(encoder.feed(TextDelta(round=1, text=text))) for text in ODD]
    assert [chunk["choices"][0].pop("delta") for chunk in chunks] == [{"content": text} for text in ODD]
    assert chunks == [chunks[0]] * len(ODD)
    assert chunks[0]["model"] == model
    assert ("usage" in chunks[0]) is include_usage


def _read(event: bytes) -> Any:
    assert event.startswith(b"data: ")
    assert event.endswith(b"}\n\n")
    return json.loads(event.removeprefix(b"data: "))


def test_an_answer_has_a_model_also_when_none_was_asked_for() -> None:
    encoder = ChunkEncoder(agent=ROOT, include_usage=False, include_steps=False)
    assert _read(encoder.feed(TurnStarted(turn_id="t", model="")))["model"] == "default"
    frame = _read(FrameEncoder(ROOT, None).feed(TurnStarted(turn_id="t", model="")))
    assert frame == {"session": None, "turn": "t", "model": "default"}
