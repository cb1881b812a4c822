"""A session in Pydantic AI: one agent, a session for each conversation."""

import asyncio
from dataclasses import dataclass

from pydantic_ai import Agent
from pydantic_ai.models import Model

from satchel import Decision, PermissionRequest, SkillSession, discover
from satchel.integrations.pydantic_ai import SkillCapability


@dataclass
class Deps:
    """What a run brings."""

    skills: SkillSession


def permission(request: PermissionRequest) -> Decision:
    """Asked before every activation."""
    return "allow" if request.skill.name == "canary-deploy" else "deny"


def skills_of(deps: Deps) -> SkillSession:
    """The session of the conversation that a run belongs to."""
    return deps.skills


agent = Agent(
    instructions="You help with releases.",
    deps_type=Deps,
    capabilities=[SkillCapability[Deps](skills_of)],
)


@agent.tool_plain
def traffic(service: str) -> str:
    """The share of a service's traffic that goes to the canary, in percent."""
    return f"{service}: 6 percent"


async def ask(session: SkillSession, model: str | Model, question: str) -> str:
    """One run."""
    result = await agent.run(question, model=model, deps=Deps(skills=session))
    return result.output


if __name__ == "__main__":
    skills = SkillSession(discover(["skills"]), permission=permission)
    print(asyncio.run(ask(skills, "openai:gpt-5", "How much traffic does the canary get first?")))
