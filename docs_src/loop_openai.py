"""A loop of one's own over the OpenAI SDK: skills by a session, other tools behind its gate."""

import asyncio
import json
from typing import Any

from openai import AsyncOpenAI

from satchel import Decision, PermissionRequest, SkillSession, discover

ROUNDS = 12
TOOLS: list[Any] = [
    {
        "type": "function",
        "function": {
            "name": "traffic",
            "description": "The share of a service's traffic that goes to the canary, in percent.",
            "parameters": {"type": "object", "properties": {"service": {"type": "string"}}, "required": ["service"]},
        },
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


async def run_tool(session: SkillSession, name: str, text: str) -> str:
    """One call to a tool of our own, as a text for the model."""
    try:
        arguments: dict[str, Any] = dict(json.loads(text))
    except (ValueError, TypeError, RecursionError):
        return "Error: the arguments are not a JSON object."
    decision = await session.check_call(name, arguments)
    if not decision.allowed:
        return decision.output
    return f"{arguments.get('service')}: 6 percent" if name == "traffic" else f"Error: there is no tool {name}."


async def converse(client: AsyncOpenAI, model: str, session: SkillSession, ask: str) -> str:
    """Asks until the model answers without calling a tool; raises ``OutOfRoundsError`` when it never does."""
    messages: list[Any] = [session.system_message(), {"role": "user", "content": ask}]
    tools: list[Any] = [*session.tools("openai"), *TOOLS]
    for _ in range(ROUNDS):
        completion = await client.chat.completions.create(model=model, messages=messages, tools=tools)
        reply = completion.choices[0].message
        messages.append(reply)
        calls = [call for call in reply.tool_calls or [] if call.type == "function"]
        if not calls:
            return reply.content or ""
        messages += await session.answer([call for call in calls if call.function.name == "skill"])
        for call in calls:
            if call.function.name != "skill":
                text = await run_tool(session, call.function.name, call.function.arguments)
                messages.append({"role": "tool", "tool_call_id": call.id, "content": text})
    raise OutOfRoundsError(messages)


if __name__ == "__main__":
    skills = SkillSession(discover(["skills"]), permission=permission)
    print(asyncio.run(converse(AsyncOpenAI(), "gpt-5", skills, "How much traffic does the canary get first?")))
