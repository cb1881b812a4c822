"""Asking the host: the hooks, what they are given, and how whatever they do ends in a decision.

A hook is foreign code. Only its words "allow" and "allow_once" (and "allow_tools" for an activation) let anything
through; an exception, silence past the time limit, "deny", "ask" and any other answer do not.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import os
import queue
import threading
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, TypeVar, cast

from satchel.activation.reply import plain
from satchel.chat.messages import Json
from satchel.skills.model import Skill

Decision = Literal["allow", "allow_once", "allow_tools", "deny", "ask"]
"""What a hook may answer. "ask" counts as "deny". "allow_once" is not remembered.

"allow_tools" allows the skill and consents to the tools that it declares, where the session pre-approves tools.
"""

Reason = Literal["normal", "untrusted_project_skill"]
Verdict = Literal["allow", "allow_once", "allow_tools", "deny", "ask", "failed"]

_T = TypeVar("_T")
_ANSWERS: Mapping[object, Verdict] = {
    "allow": "allow",
    "allow_once": "allow_once",
    "allow_tools": "allow_tools",
    "deny": "deny",
    "ask": "ask",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionRequest:
    """What the permission hook is asked about one activation (seed 000, section 5.6).

    ``path`` is the skill's directory. ``skill`` is the record behind the payload, with the digest of its SKILL.md.
    """

    skill: Skill
    path: str
    root_index: int
    reason: Reason
    frontmatter: Mapping[str, Json]
    tool: Literal["skill"] = "skill"
    action: Literal["activate"] = "activate"

    @property
    def always_patterns(self) -> tuple[str, ...]:
        """The pattern under which a host may remember its answer."""
        return (f"Skill(name:{self.skill.name})",)

    @property
    def metadata(self) -> dict[str, Json]:
        """``name``, ``root_index``, ``frontmatter`` (with ``allowed_tools`` as a list) and ``reason``."""
        return {
            "name": self.skill.name,
            "root_index": self.root_index,
            "frontmatter": dict(self.frontmatter),
            "reason": self.reason,
        }

    def to_dict(self) -> dict[str, Json]:
        """The payload with exactly the keys of the seed, JSON-safe."""
        return {
            "tool": self.tool,
            "action": self.action,
            "path": self.path,
            "always_patterns": list(self.always_patterns),
            "metadata": self.metadata,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRequest:
    """What the tool hook is asked about one call to another tool while skills are active (seed 000, section 6).

    ``skills`` are the active ones, most recent last; ``allowed_tools`` what each declares, as written. ``declared``
    tells whether some active skill declares this very call: a fact for the hook, not a permission.
    """

    tool: str
    arguments: Mapping[str, Json]
    skills: tuple[Skill, ...]
    declared: bool
    allowed_tools: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])


PermissionHook = Callable[[PermissionRequest], Decision | Awaitable[Decision]]
ToolHook = Callable[[ToolRequest], Decision | Awaitable[Decision]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A hook's ``verdict``. ``reason`` says what went wrong when it "failed"."""

    verdict: Verdict
    reason: str = ""

    @property
    def allows(self) -> bool:
        """Whether the hook let it through."""
        return self.verdict in {"allow", "allow_once", "allow_tools"}


def permission_request(skill: Skill, *, root_index: int, reason: Reason) -> PermissionRequest:
    """The request for one skill, with its fields as the seed writes them."""
    fields: dict[str, Json] = {key: plain(value) for key, value in skill.frontmatter.items()}
    fields = {"name": skill.name, "description": skill.description, **fields}
    fields["allowed_tools"] = list(skill.allowed_tools)
    return PermissionRequest(skill=skill, path=skill.location, root_index=root_index, reason=reason, frontmatter=fields)


async def ask(hook: Callable[[Any], object], request: object, *, timeout_s: float) -> Answer:
    """What the hook says. Never raises for what it does; a plain function runs in a thread of its own."""
    value, failure = await contained(partial(called, hook, request), timeout_s)
    if failure:
        return Answer(verdict="failed", reason=f"the hook {failure}")
    verdict = _ANSWERS.get(value) if isinstance(value, str) else None
    if verdict is None:
        return Answer(verdict="failed", reason=f"the hook answered with a {type(value).__name__} that means nothing")
    return Answer(verdict=verdict)


async def contained(work: Callable[[], Awaitable[_T]], timeout_s: float | None = None) -> tuple[_T | None, str]:
    """``(result, "")``, or None and what went wrong. Foreign code is left behind when it takes longer."""
    task = asyncio.ensure_future(_kept_in(work))
    try:
        await asyncio.wait((task,), timeout=timeout_s)
    finally:
        finished = task.done()
        if not finished:
            task.cancel()
    if not finished:
        return None, f"did not answer within {timeout_s:g} seconds"
    if task.cancelled():
        return None, "was cancelled"
    error = task.exception()
    if error is not None:
        return None, f"raised {error if isinstance(error, _RaisedError) else type(error).__name__}"
    return task.result(), ""


async def _kept_in(work: Callable[[], Awaitable[_T]]) -> _T:
    try:
        return await work()
    except SystemExit as error:
        # A task lets it out into the loop, and the caller's program would end.
        raise _RaisedError(type(error).__name__) from error


async def called(hook: Callable[..., object], *given: object) -> object:
    """What a function of the host's gives back: an async one here, a plain one in a thread of its own."""
    is_async = inspect.iscoroutinefunction(hook) or inspect.iscoroutinefunction(type(hook).__call__)
    value = hook(*given) if is_async else await in_worker(partial(hook, *given))
    return await value if inspect.isawaitable(value) else value


class _RaisedError(Exception):
    """Foreign code raised what must not be passed on as it is; the text is the name of that."""


async def in_worker(work: Callable[[], _T]) -> _T:
    """What ``work`` returns, in a daemon thread: if it hangs, it holds up neither the loop nor the end of the program.

    Cheaper than ``asyncio.to_thread``, and activations wait for two of these.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[_T] = loop.create_future()

    def settle(value: _T | None, error: BaseException | None) -> None:
        if done.done():
            return
        if error is None:
            done.set_result(cast("_T", value))
        elif isinstance(error, Exception) and not isinstance(error, StopIteration):
            done.set_exception(error)
        else:
            # Not the error itself: a future takes no StopIteration, and a SystemExit would end the caller's loop.
            done.set_exception(_RaisedError(type(error).__name__))

    def run() -> None:
        value: _T | None = None
        failure: BaseException | None = None
        try:
            value = work()
        except BaseException as error:  # noqa: BLE001 - told to whoever waits
            failure = error
        try:
            loop.call_soon_threadsafe(settle, value, failure)
        except RuntimeError:
            # The loop was closed in the meantime, so nobody waits for the answer.
            return

    try:
        worker = _idle.pop()
    except IndexError:
        worker = _Worker()
    worker.jobs.put(partial(contextvars.copy_context().run, run))
    return await done


class _Worker(threading.Thread):
    """Runs one piece of work after another. One that is held up is simply not there for the next."""

    def __init__(self) -> None:
        super().__init__(name="satchel-worker", daemon=True)
        self.jobs: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self.start()

    def run(self) -> None:
        while True:
            self.jobs.get()()
            _idle.append(self)


_idle: list[_Worker] = []
if hasattr(os, "register_at_fork"):
    # A forked process has none of its parent's threads.
    os.register_at_fork(after_in_child=_idle.clear)
