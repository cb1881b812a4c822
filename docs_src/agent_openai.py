"""A session in the OpenAI Agents SDK."""

import asyncio

from agents import Agent, Model, Runner, function_tool

from satchel import Decision, PermissionRequest, SkillSession, discover
from satchel.integrations.openai_agents import gated, instructions, skill_tools


def permission(request: PermissionRequest) -> Decision:
    """Asked before every activation."""
    return "allow" if request.skill.name == "canary-deploy" else "deny"


@function_tool
def traffic(service: str) -> str:
    """The share of a service's traffic that goes to the canary, in percent."""
    return f"{service}: 6 percent"


def make_agent(session: SkillSession, model: str | Model) -> Agent[None]:
    """The agent of one conversation."""
    return Agent(
        name="releases",
        instructions=instructions(session, "You help with releases."),
        tools=[*skill_tools(session), *gated(session, [traffic])],
        model=model,
    )


async def ask(session: SkillSession, model: str | Model, question: str) -> str:
    """One run."""
    result = await Runner.run(make_agent(session, model), question)
    return str(result.final_output)


if __name__ == "__main__":
    skills = SkillSession(discover(["skills"]), permission=permission)
    print(asyncio.run(ask(skills, "gpt-5", "How much traffic does the canary get first?")))
