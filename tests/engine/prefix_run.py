"""Runs a turn of three rounds over roots and skills in the given orders and prints what went upstream, as JSON."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from satchel.chat.codec import anthropic, ollama, openai_chat, openai_responses
from satchel.chat.messages import Json, message
from satchel.chat.request import ChatRequest, ToolSpec
from satchel.engine.request import SkillSelection, TurnRequest
from satchel.engine.runtime import Runtime
from satchel.library import discover
from satchel.sources.directory import DirectorySource
from satchel.testing.scripted_model import Reply, ScriptedModel, call
from satchel.wiring.sources import skill_hosts

FORMATS = {"openai-chat": openai_chat, "openai-responses": openai_responses, "ollama": ollama, "anthropic": anthropic}


async def run(roots: list[str], skills: list[str]) -> list[dict[str, dict[str, Json]]]:
    """The bodies of each round in each wire format."""
    read = '{"skill": "s1", "path": "SKILL.md"}'
    model = ScriptedModel(
        [Reply(calls=(call("skills_read", read, "a"),)), Reply(calls=(call("skills_list"),)), Reply(text=("x",))]
    )
    runtime = Runtime(models=model, source=DirectorySource(discover(roots)), hosts=skill_hosts)
    tools = (ToolSpec(name="weather", parameters={"type": "object", "properties": {"city": {"type": "string"}}}),)
    chat = ChatRequest(
        model="m", messages=(message("system", "Be kind."), message("user", "Hi, $s2.")), tools=tools, max_tokens=100
    )
    async with runtime.turn(TurnRequest(chat=chat, skills=SkillSelection(names=tuple(skills)))) as turn:
        async for _ in turn:
            pass
    return [
        {name: codec.encode_request(request, stream=True) for name, codec in FORMATS.items()}
        for request in model.requests
    ]


if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    sys.stdout.write(json.dumps(asyncio.run(run([str(Path(root)) for root in given["roots"]], given["skills"]))))
