"""The same loop over the Anthropic SDK, where all results of a round stand in one message."""

import asyncio
from typing import Any

from anthropic import AsyncAnthropic

from satchel import Decision, PermissionRequest, SkillSession, discover

ROUNDS = 12
TOOLS: list[Any] = [
    {
        "name": "traffic",
        "description": "The share of a service's traffic that goes to the canary, in percent.",
        "input_schema": {"type": "object", "properties": {"service": {"type": "string"}}, "required": ["service"]},
    }
]


class OutOfRoundsError(Exception):
    """The model went on calling tools; ``messages`` is the conversation as far as it came."""

    def __init__(self, messages: list[Any]) -> None:
        super().__init__(f"no answer after {ROUNDS} rounds of calls")
        self.messages = messages


def permission(request: PermissionRequest) -> Decision:
    """Asked before every activation; here a person could be asked instead."""
    return "allow" if request.skill.name == "canary-deploy" else "deny"


async def run_tool(session: SkillSession, name: str, arguments: dict[str, Any]) -> str:
    """One call to a tool of our own, as a text for the model."""
    decision = await session.check_call(name, arguments)
    if not decision.allowed:
        return decision.output
    return f"{arguments.get('service')}: 6 percent" if name == "traffic" else f"Error: there is no tool {name}."


async def converse(client: AsyncAnthropic, model: str, session: SkillSession, ask: str) -> str:
    """Asks until the model answers without calling a tool; raises ``OutOfRoundsError`` when it never does."""
    system = str(session.system_message()["content"])
    messages: list[Any] = [{"role": "user", "content": ask}]
    tools: list[Any] = [*session.tools("anthropic"), *TOOLS]
    for _ in range(ROUNDS):
        reply = await client.messages.create(
            model=model, max_tokens=4096, system=system, messages=messages, tools=tools
        )
        messages.append({"role": "assistant", "content": reply.content})
        calls = [block for block in reply.content if block.type == "tool_use"]
        if not calls:
            return "".join(block.text for block in reply.content if block.type == "text")
        told: list[Any] = await session.answer([call for call in calls if call.name == "skill"])
        results: list[Any] = [result for message in told for result in message["content"]]
        for call in calls:
            if call.name != "skill":
                text = await run_tool(session, call.name, dict(call.input))
                results.append({"type": "tool_result", "tool_use_id": call.id, "content": text})
        messages.append({"role": "user", "content": results})
    raise OutOfRoundsError(messages)


if __name__ == "__main__":
    skills = SkillSession(discover(["skills"]), permission=permission)
    print(asyncio.run(converse(AsyncAnthropic(), "claude-sonnet-5", skills, "How much traffic does the canary get?")))
