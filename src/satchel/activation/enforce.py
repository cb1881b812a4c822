"""Calls to other tools while skills are active: what is allowed, by whose word.

By default a skill's ``allowed-tools`` is advice: the host's hook decides, and it is told what is declared. ``deny``,
the session's own list, wins over everything, so that no skill can widen what the session forbids.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from satchel.activation.permission import ToolHook, ToolRequest, ask
from satchel.activation.reply import shown
from satchel.activation.state import Active
from satchel.chat.messages import Json
from satchel.skills.tool_patterns import allows_call, forbids_call


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolPolicy:
    """How a session judges calls to other tools.

    ``hook`` is asked about each. ``enforce``: a call must match the patterns of some active skill that declares any,
    and none of ``disallowed-tools``; an active skill that declares none lifts nothing, and without any declaration
    nothing is enforced. ``preapprove``: a call that an active skill declares is allowed without asking, if the
    permission hook answered "allow_tools" when the skill was activated. ``deny``: patterns that are never allowed; a
    command that cannot be told apart from one of them is denied too.
    """

    hook: ToolHook | None = None
    enforce: bool = False
    preapprove: bool = False
    deny: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolDecision:
    """``who`` decided is the "hook", a "pre-approval" (of ``skill``) or the "policy".

    ``output`` is what a model is told of a call that may not run.
    """

    allowed: bool
    who: str
    skill: str = ""
    digest: str = ""
    reason: str = ""
    output: str = ""


async def judge_call(
    policy: ToolPolicy, tool: object, given: object, active: Sequence[Active], *, timeout_s: float
) -> ToolDecision:
    """Whether the call may run. Never raises for what a model or a hook does."""
    if not isinstance(tool, str) or not isinstance(given, Mapping):
        return _denied(tool, "policy", "a call has the name of a tool, and its arguments are one object")
    arguments = cast("Mapping[str, Json]", given)
    deny = (policy.deny,) if isinstance(policy.deny, str) else policy.deny
    if forbids_call(deny, tool, arguments):
        return _denied(tool, "policy", "this session does not allow it")
    if policy.enforce:
        reason = _limit(tool, arguments, active)
        if reason:
            return _denied(tool, "policy", reason)
    declaring = [item for item in active if allows_call(item.granted, tool, arguments)]
    consented = next((item for item in reversed(declaring) if item.consent), None)
    if policy.preapprove and consented is not None:
        return ToolDecision(allowed=True, who="pre-approval", skill=consented.name, digest=consented.skill.ref.digest)
    if policy.hook is None:
        return ToolDecision(allowed=True, who="policy")
    request = ToolRequest(
        tool=tool,
        arguments=arguments,
        skills=tuple(item.skill for item in active),
        declared=bool(declaring),
        allowed_tools={item.name: item.skill.allowed_tools for item in active},
    )
    answer = await ask(policy.hook, request, timeout_s=timeout_s)
    if answer.allows:
        return ToolDecision(allowed=True, who="hook")
    return _denied(tool, "hook", answer.reason or f'the hook answered "{answer.verdict}"')


def _limit(tool: str, arguments: Mapping[str, Json], active: Sequence[Active]) -> str:
    """Why the active skills do not let the call through, "" when they do."""
    for item in active:
        if forbids_call(item.skill.disallowed_tools, tool, arguments):
            return f'the active skill "{item.name}" disallows it'
    limits = [item for item in active if item.skill.allowed_tools]
    if not limits or any(allows_call(item.skill.allowed_tools, tool, arguments) for item in limits):
        return ""
    listed = "; ".join(f"{item.name}: {', '.join(item.skill.allowed_tools)}" for item in limits)
    return f"it matches none of the tools that the active skills declare ({listed})"


def _denied(tool: object, who: str, reason: str) -> ToolDecision:
    called = shown(tool) if isinstance(tool, str) else "a tool without a name"
    output = f"Error [PERMISSION_DENIED]: the call to {called} is not allowed.\nReason: {reason}"
    return ToolDecision(allowed=False, who=who, reason=reason, output=output)
