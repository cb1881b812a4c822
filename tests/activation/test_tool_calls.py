from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from satchel.activation.enforce import ToolPolicy
from satchel.activation.permission import ToolRequest
from satchel.activation.session import SkillSession
from satchel.activation.trust import Trust
from satchel.library import discover
from tests.activation.shelves import ListAudit, put

GIT = {"command": "git log -1"}
RM = {"command": "git log; rm -rf x"}


def session_of(
    root: Path, policy: ToolPolicy, *, answer: str = "allow", dialect: str = "portable", **options: Any
) -> SkillSession:
    library = discover([root], dialect=dialect)
    hook: Any = lambda _: answer  # noqa: E731
    return SkillSession(library, permission=hook, tool_policy=policy, **options)


def hooked(hook: Any, **options: Any) -> ToolPolicy:
    return ToolPolicy(hook=hook, **options)


async def allowed(session: SkillSession, tool: str, arguments: dict[str, Any] | None = None) -> bool:
    return (await session.check_call(tool, arguments or {})).allowed


async def test_a_declaration_is_advice_and_the_hook_decides(tmp_path: Path) -> None:
    put(tmp_path, "git-helper", "allowed-tools: Bash(git:*)")
    asked: list[ToolRequest] = []

    def hook(request: ToolRequest) -> str:
        asked.append(request)
        return "allow" if request.declared else "deny"

    session = session_of(tmp_path, hooked(hook))
    assert not await allowed(session, "bash", GIT)
    await session.activate("git-helper")
    assert await allowed(session, "bash", GIT)
    refused = await session.check_call("bash", RM)
    assert (refused.allowed, refused.who) == (False, "hook")
    assert refused.output.startswith("Error [PERMISSION_DENIED]: the call to bash is not allowed.\nReason: ")
    last = asked[-1]
    assert (last.tool, last.arguments, last.declared) == ("bash", RM, False)
    assert [skill.name for skill in last.skills] == ["git-helper"]
    assert last.allowed_tools == {"git-helper": ("Bash(git:*)",)}


async def test_a_declaration_grants_nothing_against_a_hook_that_denies(tmp_path: Path) -> None:
    put(tmp_path, "greedy", "allowed-tools: Bash(*)")
    policy = ToolPolicy(hook=lambda _: "deny", deny=("Bash",))
    session = session_of(tmp_path, policy, answer="allow_tools")
    await session.activate("greedy")
    assert not await allowed(session, "bash", GIT)


@pytest.mark.parametrize("answer", [None, "ask", "yes"])
async def test_a_hook_that_does_not_allow_a_call_denies_it(tmp_path: Path, answer: object) -> None:
    session = session_of(tmp_path, hooked(lambda _: answer))
    assert not await allowed(session, "Read")


async def test_a_hook_that_hangs_or_raises_denies_a_call(tmp_path: Path) -> None:
    async def never(request: object) -> str:
        await asyncio.Event().wait()
        return "allow"

    def raises(request: object) -> str:
        raise RuntimeError

    for hook in (never, raises):
        session = session_of(tmp_path, hooked(hook), hook_timeout_s=0.05)
        assert not await allowed(session, "Read")


async def test_without_any_policy_calls_pass(tmp_path: Path) -> None:
    put(tmp_path, "reader", "allowed-tools: Read")
    session = session_of(tmp_path, ToolPolicy())
    await session.activate("reader")
    assert await allowed(session, "bash", RM)


async def test_enforcing_lets_through_the_union_of_what_active_skills_declare(tmp_path: Path) -> None:
    put(tmp_path, "git-helper", "allowed-tools: Bash(git log:*), Read")
    put(tmp_path, "issues", "allowed-tools: mcp__tracker__*")
    put(tmp_path, "plain")
    session = session_of(tmp_path, ToolPolicy(enforce=True))
    assert await allowed(session, "bash", RM)
    await session.activate("plain")
    assert await allowed(session, "bash", RM)
    await session.activate("git-helper")
    fine: list[tuple[str, dict[str, Any]]] = [("bash", GIT), ("Read", {}), ("read", {})]
    assert [await allowed(session, *call) for call in fine] == [True] * 3
    others: list[tuple[str, dict[str, Any]]] = [("bash", RM), ("Write", {}), ("mcp__tracker__list", {})]
    assert [await allowed(session, *call) for call in others] == [False] * 3
    await session.activate("issues")
    assert await allowed(session, "mcp__tracker__list")
    refused = await session.check_call("bash", RM)
    assert "git-helper: Bash(git log:*), Read; issues: mcp__tracker__*" in refused.reason
    assert await allowed(session, "skill", {"name": "plain"})
    session.unload("git-helper")
    assert not await allowed(session, "bash", GIT)


async def test_enforcing_refuses_what_an_active_skill_disallows(tmp_path: Path) -> None:
    put(tmp_path, "careful", "disallowed-tools: Write, Bash(rm:*)")
    session = session_of(tmp_path, ToolPolicy(enforce=True))
    await session.activate("careful")
    assert [await allowed(session, "Write"), await allowed(session, "bash", RM)] == [False, False]
    assert [await allowed(session, "Read"), await allowed(session, "bash", GIT)] == [True, True]


async def test_enforcing_asks_the_hook_as_well(tmp_path: Path) -> None:
    put(tmp_path, "reader", "allowed-tools: Read")
    session = session_of(tmp_path, ToolPolicy(enforce=True, hook=lambda _: "deny"))
    await session.activate("reader")
    assert not await allowed(session, "Read")


async def test_consent_to_the_tools_is_needed_and_each_use_is_recorded(tmp_path: Path) -> None:
    put(tmp_path, "git-helper", "allowed-tools: Bash(git log:*)")
    policy = ToolPolicy(preapprove=True, hook=lambda _: "deny")
    audit = ListAudit()
    consenting = session_of(tmp_path, policy, answer="allow_tools", audit=audit)
    await consenting.activate("git-helper")
    assert [await allowed(consenting, "bash", GIT), await allowed(consenting, "bash", RM)] == [True, False]
    assert [(item.tool, item.decision, item.who, item.skill) for item in audit.entries[1:]] == [
        ("bash", "allow", "pre-approval", "git-helper"),
        ("bash", "deny", "hook", ""),
    ]
    assert audit.entries[1].digest == audit.entries[0].digest != ""
    consenting.unload("git-helper")
    assert not await allowed(consenting, "bash", GIT)
    merely_allowing = session_of(tmp_path, policy)
    await merely_allowing.activate("git-helper")
    assert not await allowed(merely_allowing, "bash", GIT)
    not_asked_for = session_of(tmp_path, ToolPolicy(hook=lambda _: "deny"), answer="allow_tools")
    await not_asked_for.activate("git-helper")
    assert not await allowed(not_asked_for, "bash", GIT)


async def test_what_the_session_denies_no_consent_allows(tmp_path: Path) -> None:
    put(tmp_path, "git-helper", "allowed-tools: Bash(*)")
    policy = ToolPolicy(preapprove=True, deny="Bash(rm:*)")
    session = session_of(tmp_path, policy, answer="allow_tools")
    await session.activate("git-helper")
    assert [await allowed(session, "bash", GIT), await allowed(session, "bash", RM)] == [True, False]


async def test_a_spelling_that_the_harness_ignores_limits_and_grants_nothing(tmp_path: Path) -> None:
    put(tmp_path, "odd", "allowedTools: Read")
    granting = session_of(
        tmp_path, ToolPolicy(preapprove=True, hook=lambda _: "deny"), answer="allow_tools", dialect="agent-sh"
    )
    await granting.activate("odd")
    assert not await allowed(granting, "Read")
    limiting = session_of(tmp_path, ToolPolicy(enforce=True), dialect="agent-sh")
    await limiting.activate("odd")
    assert [await allowed(limiting, "Read"), await allowed(limiting, "Write")] == [True, False]


async def test_trust_in_a_root_is_no_consent_to_tools(tmp_path: Path) -> None:
    put(tmp_path, "git-helper", "allowed-tools: Bash")
    policy = ToolPolicy(preapprove=True, hook=lambda _: "deny")
    session = SkillSession(discover([tmp_path]), trust=Trust(trusted_roots=[tmp_path]), tool_policy=policy)
    assert (await session.activate("git-helper")).kind == "ok"
    assert not await allowed(session, "bash", GIT)
