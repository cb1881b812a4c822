"""A session in an agent of LangChain."""

import asyncio
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.tools import tool

from satchel import Decision, PermissionRequest, SkillSession, discover
from satchel.integrations.langchain import SkillMiddleware


def permission(request: PermissionRequest) -> Decision:
    """Asked before every activation."""
    return "allow" if request.skill.name == "canary-deploy" else "deny"


@tool
def traffic(service: str) -> str:
    """The share of a service's traffic that goes to the canary, in percent."""
    return f"{service}: 6 percent"


async def ask(session: SkillSession, model: str | BaseChatModel, question: str) -> str:
    """One run."""
    agent: Any = create_agent(
        model=model,
        tools=[traffic],
        system_prompt="You help with releases.",
        middleware=[SkillMiddleware(session)],
    )
    result = await agent.ainvoke({"messages": [{"role": "user", "content": question}]})
    return str(result["messages"][-1].content)


if __name__ == "__main__":
    skills = SkillSession(discover(["skills"]), permission=permission)
    print(asyncio.run(ask(skills, "openai:gpt-5", "How much traffic does the canary get first?")))
