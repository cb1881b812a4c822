"""Citations of an upstream of the same format, whole and streamed."""

from __future__ import annotations

from typing import Any

from satchel.ports.models import UpstreamOptions
from satchel.testing.scripted_openai import ScriptedOpenAI, ScriptedTurn
from satchel.upstream.anthropic import AnthropicClient
from tests.gateway.anthropic_client import ASK, client_of
from tests.gateway.serving import runtime_over, serving

CITATION = {
    "type": "char_location",
    "cited_text": "q",
    "document_index": 0,
    "document_title": "d",
    "start_char_index": 0,
    "end_char_index": 1,
}
EVENTS: tuple[dict[str, Any], ...] = (
    {"type": "message_start", "message": {"usage": {"input_tokens": 1, "output_tokens": 1}}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "", "citations": []}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "cited"}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "citations_delta", "citation": CITATION}},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}},
    {"type": "message_stop"},
)


async def test_citations_reach_the_client() -> None:
    async with ScriptedOpenAI([ScriptedTurn(chunks=EVENTS)] * 2) as upstream:
        models = AnthropicClient(UpstreamOptions(name="up", url=upstream.root, kind="anthropic"))
        async with serving(runtime_over(models)) as base, client_of(base) as client:
            whole = await client.messages.create(model="m", max_tokens=9, messages=ASK)
            async with client.messages.stream(model="m", max_tokens=9, messages=ASK) as stream:
                streamed = await stream.get_final_message()
    for answer in (whole, streamed):
        said = answer.content[0].model_dump(exclude_unset=True, exclude={"parsed_output"})
        assert said == {"type": "text", "text": "cited", "citations": [CITATION]}
