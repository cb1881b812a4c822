from __future__ import annotations

import asyncio
import sys
import threading
from contextvars import ContextVar
from pathlib import Path
from typing import Any, cast

import pytest

from satchel.activation.permission import PermissionRequest, ask
from satchel.activation.session import SkillSession
from satchel.activation.trust import SENSITIVE, Trust, sensitive_pattern
from satchel.errors import SetupError
from satchel.library import discover, load_skill
from satchel.library.approvals import Approvals
from satchel.ports.skills import SkillEntry
from satchel.ports.state import AuditEntry
from satchel.skills.model import LoadedSkill
from satchel.skills.plain import inline
from tests.activation.shelves import ListAudit, allow, brief, put, session_over

CALLER: ContextVar[str] = ContextVar("CALLER")


class Loud(BaseException):
    pass


def raises(request: object) -> str:
    raise RuntimeError("no")


def raises_loudly(request: object) -> str:
    raise Loud


async def raises_later(request: object) -> str:
    raise KeyError("no")


def stops(request: object) -> str:
    raise StopIteration


class Callable:
    async def __call__(self, request: object) -> str:
        raise ValueError


@pytest.mark.parametrize("hook", [raises, raises_loudly, raises_later, stops, Callable()])
async def test_a_hook_that_raises_has_denied(tmp_path: Path, hook: Any) -> None:
    put(tmp_path, "a")
    audit = ListAudit()
    session = session_over(tmp_path, permission=hook, trust=Trust(trusted_roots=[tmp_path]), audit=audit)
    reply = await session.activate("a")
    assert brief(reply) == ("error", "PERMISSION_DENIED")
    assert reply.reason.startswith("the hook raised ")
    assert audit.decisions == [("a", "deny", "hook", "PERMISSION_DENIED")]
    assert session.active == ()


@pytest.mark.parametrize("answer", [None, True, 1, "ALLOW", "yes", "", ["allow"], {"decision": "allow"}, object()])
async def test_an_answer_that_means_nothing_has_denied(tmp_path: Path, answer: object) -> None:
    put(tmp_path, "a")
    reply = await session_over(tmp_path, permission=lambda _: answer).activate("a")
    assert brief(reply) == ("error", "NOT_TRUSTED")
    assert "means nothing" in reply.reason


async def test_a_hook_that_hangs_has_denied_and_the_next_call_is_judged(tmp_path: Path) -> None:
    put(tmp_path, "a")
    release = threading.Event()
    cancelled: list[bool] = []

    def blocks(request: object) -> str:
        release.wait(60)
        return "allow"

    async def never(request: object) -> str:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.append(True)
        return "allow"

    for hook in (blocks, never):
        session = session_over(tmp_path, permission=hook, hook_timeout_s=0.05)
        replies = await asyncio.gather(session.activate("a"), session.activate("a"))
        assert [brief(reply) for reply in replies] == [("error", "NOT_TRUSTED")] * 2
        assert replies[0].reason == "the hook did not answer within 0.05 seconds"
    release.set()
    assert cancelled == [True, True]


async def test_a_hook_may_be_plain_or_async_or_return_an_awaitable(tmp_path: Path) -> None:
    put(tmp_path, "a")

    async def later(request: PermissionRequest) -> str:
        await asyncio.sleep(0)
        return "allow_once"

    for hook in (allow, later, later, lambda _: "allow_tools"):
        assert (await session_over(tmp_path, permission=hook).activate("a")).kind == "ok"


async def test_a_hook_that_activates_itself_is_not_let_in(tmp_path: Path) -> None:
    put(tmp_path, "a")
    put(tmp_path, "b")

    async def hook(request: PermissionRequest) -> str:
        return "allow" if (await session.activate("b")).ok else "deny"

    session = session_over(tmp_path, permission=hook, hook_timeout_s=0.05)
    assert brief(await session.activate("a")) == ("error", "NOT_TRUSTED")


async def test_a_cancelled_activation_leaves_nothing_behind(tmp_path: Path) -> None:
    put(tmp_path, "a")
    asked, cancelled = asyncio.Event(), asyncio.Event()

    async def hook(request: PermissionRequest) -> str:
        asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        return "allow"

    session = session_over(tmp_path, permission=hook)
    task = asyncio.create_task(session.activate("a"))
    await asked.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await cancelled.wait()
    assert session.active == ()


async def test_skills_that_the_host_made_are_its_own(tmp_path: Path) -> None:
    made = inline(name="plan", description="Plans.", instructions="Think.")
    session = SkillSession(discover([tmp_path], inline=[made]))
    assert session.system_message()["content"] != ""
    reply = await session.activate("plan")
    assert (reply.kind, reply.dir) == ("ok", "")
    assert reply.output.endswith('\n</skill>\n(Skill "plan" activated. Body is 6 bytes.)')


async def test_without_a_hook_only_trusted_skills_are_told_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    project, user = tmp_path / "project", tmp_path / "user"
    put(project, "evil")
    put(user, "good")
    session = SkillSession(discover([project, user]), trust=Trust(trusted_roots=[user]))
    await session.discover()
    assert [skill.name for skill in session.offered] == ["good"]
    told = "1 skills from roots that are not trusted are not offered, evil for one; to change that: "
    assert f"{told}give the session a permission hook, Trust(trusted_roots=...) or Trust(approvals=...)" in caplog.text
    asks = SkillSession(discover([project]), trust=Trust(approvals=Approvals(tmp_path / "trust.json")))
    await asks.discover()
    assert asks.offered == ()
    assert f"{told}satchel trust add {project / 'evil'}" in caplog.text
    tool = cast("Any", session.tools("mcp", names=True)[0])
    assert tool["inputSchema"]["properties"]["name"]["enum"] == ["good"]
    assert brief(await session.activate("evil")) == ("error", "NOT_TRUSTED")
    with_hook = SkillSession(discover([project, user]), permission=allow)
    assert [skill.name for skill in with_hook.offered] == ["evil", "good"]


def test_a_word_that_says_nothing_about_trust_is_refused() -> None:
    with pytest.raises(SetupError) as caught:
        Trust(untrusted_project_skills=cast("Any", "alow"))
    assert caught.value.code == "setting-invalid"


async def test_one_trusted_root_as_text_is_one_root(tmp_path: Path) -> None:
    put(tmp_path / "a", "x")
    put(tmp_path / "b", "y")
    session = SkillSession([tmp_path / "a", tmp_path / "b"], trust=Trust(trusted_roots=str(tmp_path / "a")))
    assert (await session.activate("x")).kind == "ok"
    assert brief(await session.activate("y")) == ("error", "NOT_TRUSTED")


async def test_a_sibling_that_begins_like_a_trusted_root_is_not_in_it(tmp_path: Path) -> None:
    put(tmp_path / "skills-evil", "x")
    (tmp_path / "skills").mkdir()
    session = SkillSession(tmp_path / "skills-evil", trust=Trust(trusted_roots=[tmp_path / "skills"]))
    assert brief(await session.activate("x")) == ("error", "NOT_TRUSTED")


@pytest.mark.parametrize(
    ("path", "is_sensitive"),
    [
        ("/w/.env", True),
        ("/w/.ENV/skills/a", True),
        ("/w/.env.local/a", True),
        ("/w/secrets/a", True),
        ("/w/skills/secrets", False),
        ("/home/u/.ssh/a", True),
        ("/home/u/.aws", True),
        ("/w/server.pem", True),
        ("/w/environment/a", False),
        ("/w/my.envelope/a", False),
        ("/w/skills/a", False),
    ],
)
def test_sensitive_places(path: str, is_sensitive: bool) -> None:
    assert bool(sensitive_pattern(path, SENSITIVE)) is is_sensitive


async def test_places_of_ones_own_are_sensitive(tmp_path: Path) -> None:
    put(tmp_path / "drafts", "a")
    session = SkillSession(tmp_path, trust=Trust(trusted_roots=[tmp_path]), sensitive=["**/drafts/**"])
    assert brief(await session.activate("a")) == ("error", "SENSITIVE")


class Elsewhere:
    """A registry whose skill lies where its host puts it."""

    def __init__(self, loaded: LoadedSkill, **entry: Any) -> None:
        self._loaded = loaded
        self._entry = SkillEntry(name=loaded.name, skill=loaded.skill, **entry)

    async def discover(self) -> list[SkillEntry]:
        return [self._entry]

    async def load(self, name: str) -> LoadedSkill | None:
        return self._loaded


async def test_a_registry_s_skill_must_lie_in_a_root_or_the_workspace(tmp_path: Path) -> None:
    loaded = await asyncio.to_thread(load_skill, put(tmp_path / "cache", "a"))
    trust = Trust(trusted_roots=[tmp_path])
    assert brief(await SkillSession(Elsewhere(loaded), trust=trust).activate("a")) == (
        "error",
        "OUTSIDE_WORKSPACE",
    )
    for session in (
        SkillSession(Elsewhere(loaded), trust=trust, workspace=[tmp_path / "cache"]),
        SkillSession(Elsewhere(loaded, root=str(tmp_path / "cache")), trust=trust),
        SkillSession(Elsewhere(loaded), trust=trust, permission=allow),
    ):
        assert (await session.activate("a")).kind == "ok"


async def test_an_approval_counts_until_a_byte_changes(tmp_path: Path) -> None:
    folder = put(tmp_path / "skills", "a", files={"scripts/x.py": "print(1)\n"})
    approvals = Approvals(tmp_path / "state" / "trust.json")
    await asyncio.to_thread(approvals.add, folder)
    audit = ListAudit()
    trust = Trust(approvals=approvals)
    session = SkillSession(tmp_path / "skills", trust=trust, audit=audit)
    await session.discover()
    assert [skill.name for skill in session.offered] == ["a"]
    assert (await session.activate("a")).kind == "ok"
    (folder / "scripts" / "x.py").write_text("print(2)\n", encoding="utf-8")
    session.unload("a")
    assert brief(await session.activate("a")) == ("error", "NOT_TRUSTED")
    assert audit.decisions == [("a", "allow", "approval", ""), ("a", "deny", "policy", "NOT_TRUSTED")]


async def test_a_hook_s_word_is_remembered_when_the_host_wants_it(tmp_path: Path) -> None:
    for name in ("a", "b"):
        put(tmp_path / "skills", name)
    approvals = Approvals(tmp_path / "trust.json")
    trust = Trust(approvals=approvals, remember=True)
    asking = SkillSession(
        tmp_path / "skills", permission=lambda r: "allow" if r.skill.name == "a" else "allow_once", trust=trust
    )
    assert [(await asking.activate(name)).kind for name in ("a", "b")] == ["ok", "ok"]
    silent = SkillSession(tmp_path / "skills", trust=trust)
    assert [(await silent.activate(name)).kind for name in ("a", "b")] == ["ok", "error"]


async def test_approvals_that_cannot_be_read_trust_nobody(tmp_path: Path) -> None:
    put(tmp_path / "skills", "a")
    (tmp_path / "trust.json").write_text("[]", encoding="utf-8")
    session = SkillSession(
        tmp_path / "skills", permission=allow, trust=Trust(approvals=Approvals(tmp_path / "trust.json"))
    )
    assert brief(await session.activate("a")) == ("error", "NOT_TRUSTED")


class FullDisk:
    async def append(self, entry: AuditEntry) -> None:
        raise OSError(28, "No space left on device")


async def test_what_cannot_be_recorded_is_not_allowed(tmp_path: Path) -> None:
    put(tmp_path, "a")
    session = session_over(tmp_path, audit=FullDisk())
    reply = await session.activate("a")
    assert brief(reply) == ("error", "PERMISSION_DENIED")
    assert reply.reason == "the audit log raised OSError"
    assert not (await session.check_call("Read", {})).allowed


async def test_every_decision_is_recorded_with_who_made_it(tmp_path: Path) -> None:
    put(tmp_path, "a")
    put(tmp_path, "b", "disable-model-invocation: true")
    audit = ListAudit()
    session = session_over(tmp_path, audit=audit, session_id="s1")
    for name in ("a", "a", "b", "nope", "Wrong"):
        await session.activate(name)
    await session.activate("b", by="user")
    assert audit.decisions == [
        ("a", "allow", "hook", ""),
        ("b", "deny", "policy", "DISABLED"),
        ("b", "allow", "hook", ""),
    ]
    first, _, last = audit.entries
    assert (first.session, first.by, last.by, first.event) == ("s1", "model", "user", "activate")
    assert first.digest.startswith("sha256:")
    assert first.time > 0
    trusted = session_over(tmp_path, permission=None, trust=Trust(trusted_roots=[tmp_path]), audit=audit)
    await trusted.activate("a")
    unsafe = session_over(tmp_path, permission=None, unsafe_allow_skill_without_hook=True, audit=audit)
    await unsafe.activate("a")
    assert [item.who for item in audit.entries[3:]] == ["trusted-root", "unsafe-flag"]


async def test_a_plain_hook_sees_the_context_of_the_call(tmp_path: Path) -> None:
    put(tmp_path, "a")
    CALLER.set("somebody")
    seen: list[str] = []

    def hook(request: object) -> str:
        seen.append(CALLER.get())
        return "allow"

    assert (await session_over(tmp_path, permission=hook).activate("a")).kind == "ok"
    assert seen == ["somebody"]


async def test_a_plain_hook_that_exits_is_a_no_and_ends_nothing() -> None:
    answer = await ask(lambda _: sys.exit(3), object(), timeout_s=5)
    assert (answer.verdict, answer.reason) == ("failed", "the hook raised SystemExit")
