"""A model client that says what a test tells it to say, and keeps what it was asked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from satchel.chat.capabilities import ModelCapabilities, ModelInfo
from satchel.chat.events import Finish, ModelCall, ModelDone, ModelEvent, ModelReasoning, ModelText, Usage
from satchel.chat.messages import Extra, Message, Opaque, Part, Reasoning, Text, ToolUse
from satchel.chat.request import Caller, ChatRequest
from satchel.errors import UpstreamError


def _no_extra() -> Extra:
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """One generation. Text and reasoning stream piece by piece, each call in two fragments.

    ``cut`` is a last call of which the first half of the arguments streams, and that is not in the whole message;
    ``beside`` are parts of the whole message that no piece tells, ``extra`` is what is kept with it.
    ``wait`` is awaited before the first piece; ``error`` is raised after the last one, in place of the end.
    """

    text: tuple[str, ...] = ()
    reasoning: tuple[str, ...] = ()
    calls: tuple[ToolUse, ...] = ()
    cut: ToolUse | None = None
    beside: tuple[Opaque, ...] = ()
    extra: Extra = field(default_factory=_no_extra)
    finish: Finish | None = None
    usage: Usage | None = field(default_factory=lambda: Usage(prompt_tokens=10, completion_tokens=5))
    wait: asyncio.Event | None = None
    error: UpstreamError | None = None


def call(name: str, arguments: str = "{}", call_id: str = "") -> ToolUse:
    """A call to script, with an id made from its name unless one is given."""
    return ToolUse(call_id=call_id or f"call_{name}", name=name, arguments=arguments)


class ScriptedModel:
    """Plays ``replies`` in order; a reply may be made from the request that it answers.

    ``requests`` holds every request and ``asked`` is set by the first one. ``closed`` counts the generations whose
    block was left.
    """

    def __init__(
        self,
        replies: Sequence[Reply | Callable[[ChatRequest], Reply]],
        *,
        capabilities: ModelCapabilities = ModelCapabilities(),
    ) -> None:
        self._replies = list(replies)
        self._capabilities = capabilities
        self.requests: list[ChatRequest] = []
        self.asked = asyncio.Event()
        self.closed = 0

    async def models(self, caller: Caller = Caller()) -> tuple[ModelInfo, ...]:
        del caller
        return (ModelInfo(id="scripted", owned_by="satchel"),)

    async def capabilities(self, model: str, caller: Caller = Caller()) -> ModelCapabilities:
        del model, caller
        return self._capabilities

    @asynccontextmanager
    async def stream(self, request: ChatRequest) -> AsyncGenerator[AsyncIterator[ModelEvent], None]:
        self.requests.append(request)
        self.asked.set()
        if not self._replies:
            raise UpstreamError("upstream-failed", "The script has no further reply.")
        scripted = self._replies.pop(0)
        reply = scripted if isinstance(scripted, Reply) else scripted(request)
        events = _play(reply)
        try:
            yield events
        finally:
            self.closed += 1
            await events.aclose()

    async def aclose(self) -> None:
        return


async def _play(reply: Reply) -> AsyncGenerator[ModelEvent, None]:
    if reply.wait is not None:
        await reply.wait.wait()
    for piece in reply.reasoning:
        yield ModelReasoning(text=piece)
    for piece in reply.text:
        yield ModelText(text=piece)
    for index, use in enumerate(reply.calls):
        half = len(use.arguments) // 2
        for fragment in (use.arguments[:half], use.arguments[half:]):
            yield ModelCall(index=index, call_id=use.call_id, name=use.name, arguments=fragment)
    if reply.cut is not None:
        half = reply.cut.arguments[: len(reply.cut.arguments) // 2]
        yield ModelCall(index=len(reply.calls), call_id=reply.cut.call_id, name=reply.cut.name, arguments=half)
    if reply.error is not None:
        raise reply.error
    parts: list[Part] = []
    if reply.reasoning:
        parts.append(Reasoning(text="".join(reply.reasoning)))
    if reply.text:
        parts.append(Text(text="".join(reply.text)))
    finish: Finish = "tool_calls" if reply.calls else (reply.finish or "stop")
    said = Message(role="assistant", parts=(*parts, *reply.beside, *reply.calls), extra=reply.extra)
    yield ModelDone(finish=finish, message=said, usage=reply.usage)
