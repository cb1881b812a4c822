"""Plain clients of every surface: what each sends, and what its answer says, read from the bytes as they come."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import aiohttp

DEADLINE_S = 30.0
"""How long a test waits for something that has to happen; reached only when it fails."""

Kind = Literal["text", "reasoning", "call", "begun"]
Piece = tuple[Kind, str]
"""Of a call: its name and arguments in pieces. "begun" is a call's number and name where every piece has them."""
Body = dict[str, Any]

QUESTION = "Which share?"
TOOL = "weather"
"""The name of the one tool that clients bring themselves."""

_SCHEMA: Body = {"type": "object", "properties": {"city": {"type": "string"}}}
_FUNCTION: Body = {"name": TOOL, "description": "Tells the weather.", "parameters": _SCHEMA}


@dataclass(frozen=True, slots=True, kw_only=True)
class Surface:
    """One way to ask. ``ask`` makes a body; ``said`` reads one message of a stream, ``whole`` one whole answer.

    ``ends`` tells a stream's last message, ``fails`` the message of an error in a stream or of an error's body.
    ``on_second_port`` stands for the listener that plays an Ollama; ``takes_tools`` for tools of the client's own, and
    ``streams_calls`` for calls to them in pieces. A surface that ``opens`` has a message that begins an answer, before
    anything is said. ``extensions`` are fields in which clients may look for what was called here.
    """

    name: str
    path: str
    ask: Callable[[bool], Body]
    said: Callable[[Body], Iterator[Piece]]
    whole: Callable[[Body], Iterator[Piece]]
    ends: Callable[[Body | str], bool]
    fails: Callable[[Body], str]
    finish: Callable[[Body], str]
    is_lines: bool = False
    heartbeat: str = ": ping"
    on_second_port: bool = False
    takes_tools: bool = True
    streams_calls: bool = False
    opens: bool = True
    extensions: frozenset[str] = frozenset({"satchel"})

    def __str__(self) -> str:
        return self.name


@dataclass(slots=True)
class Heard:
    """What an answer has said so far. ``beats`` counts signs of life; ``messages`` are all that came, in order."""

    status: int = 0
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    raw: bytes = b""
    text: str = ""
    reasoning: str = ""
    calls: str = ""
    finish: str = ""
    error: str = ""
    beats: int = 0
    is_ended: bool = False
    is_over: bool = False
    messages: list[Body] = field(default_factory=list[Body])
    begun: set[str] = field(default_factory=set[str])
    _grown: asyncio.Event = field(default_factory=asyncio.Event)

    def take(self, pieces: Iterator[Piece]) -> None:
        for kind, text in pieces:
            match kind:
                case "text":
                    self.text += text
                case "reasoning":
                    self.reasoning += text
                case "call":
                    self.calls += text
                case "begun":
                    self.calls += "" if text in self.begun else text.partition(" ")[2]
                    self.begun.add(text)

    def grow(self) -> None:
        """Wakes who waits for more."""
        self._grown.set()
        self._grown = asyncio.Event()

    async def until(self, wanted: Callable[[Heard], bool]) -> None:
        """Waits until the answer has come as far as ``wanted``."""
        async with asyncio.timeout(DEADLINE_S):
            while not wanted(self):
                await self._grown.wait()

    @property
    def said(self) -> tuple[str, str, str]:
        """Text, reasoning, and the client's own calls."""
        return self.text, self.reasoning, self.calls


@dataclass(frozen=True, slots=True, kw_only=True)
class Bases:
    """Where a gateway listens."""

    url: str
    ollama_url: str = ""

    def of(self, surface: Surface) -> str:
        return (self.ollama_url if surface.on_second_port else self.url) + surface.path


def body_of(surface: Surface, model: str, *, stream: bool, tools: bool = False, **fields: Any) -> Body:
    """A request for the surface; ``fields`` are added as they are."""
    return {**surface.ask(tools), "model": model, "stream": stream, **fields}


async def hear(url: str, surface: Surface, body: Body, heard: Heard | None = None) -> Heard:
    """Asks and reads to the end. ``heard`` is filled as the bytes come."""
    heard = heard or Heard()
    timeout = aiohttp.ClientTimeout(total=None)
    async with asyncio.timeout(DEADLINE_S), aiohttp.ClientSession(timeout=timeout) as session:
        async with session.post(url, json=body) as answer:
            heard.status, heard.headers = answer.status, dict(answer.headers)
            heard.grow()
            if body["stream"] and answer.status == 200:
                await _read_stream(surface, answer, heard)
            else:
                heard.raw = await answer.read()
                _read_whole(surface, json.loads(heard.raw), heard)
    heard.is_over = True
    heard.grow()
    return heard


def _read_whole(surface: Surface, body: Body, heard: Heard) -> None:
    heard.messages.append(body)
    if heard.status != 200:
        heard.error = surface.fails(body)
        return
    heard.take(surface.whole(body))
    heard.finish = surface.finish(body)
    heard.is_ended = True


async def _read_stream(surface: Surface, answer: aiohttp.ClientResponse, heard: Heard) -> None:
    async for frame in _frames(surface, answer.content.iter_any(), heard):
        # No word may follow a clean end.
        assert not heard.is_ended, frame
        _read_frame(surface, frame, heard)
        heard.grow()


async def _frames(surface: Surface, chunks: AsyncIterator[bytes], heard: Heard) -> AsyncIterator[str]:
    mark = b"\n" if surface.is_lines else b"\n\n"
    rest = b""
    async for chunk in chunks:
        heard.raw += chunk
        *frames, rest = (rest + chunk).split(mark)
        for frame in frames:
            yield frame.decode()
    assert rest == b"", rest


def _read_frame(surface: Surface, frame: str, heard: Heard) -> None:
    if frame == surface.heartbeat:
        heard.beats += 1
        return
    data = frame
    if not surface.is_lines:
        *named, data = frame.split("\n")
        data = data.removeprefix("data: ")
        assert data != frame.rsplit("\n", maxsplit=1)[-1], frame
        assert not named or named == [f"event: {json.loads(data)['type']}"], frame
    if data == "[DONE]":
        heard.is_ended = surface.ends(data)
        return
    message = json.loads(data)
    heard.messages.append(message)
    if error := surface.fails(message):
        heard.error = error
        return
    pieces = list(surface.said(message))
    if surface.is_lines and not pieces and not message["done"]:
        heard.beats += 1
    heard.take(iter(pieces))
    heard.finish = surface.finish(message) or heard.finish
    heard.is_ended = surface.ends(message)


# --- OpenAI Chat Completions


def _chat_ask(tools: bool) -> Body:
    own = {"tools": [{"type": "function", "function": _FUNCTION}]} if tools else {}
    return {"messages": [{"role": "user", "content": QUESTION}], "stream_options": {"include_usage": True}, **own}


def _chat_words(message: Body) -> Iterator[Piece]:
    if message.get("reasoning_content"):
        yield "reasoning", message["reasoning_content"]
    if message.get("content"):
        yield "text", message["content"]
    for call in message.get("tool_calls") or ():
        yield "call", call["function"].get("name", "") + call["function"]["arguments"]


def chat_said(message: Body) -> Iterator[Piece]:
    for choice in message["choices"]:
        yield from _chat_words(choice["delta"])


def _chat_whole(body: Body) -> Iterator[Piece]:
    yield from _chat_words(body["choices"][0]["message"])


def _chat_finish(message: Body) -> str:
    return next((choice["finish_reason"] or "" for choice in message["choices"]), "")


def _vendor_fails(message: Body) -> str:
    error = message.get("error")
    if not error or message.get("object") == "response":
        return ""
    assert set(message) == {"error"}, message
    assert {"message", "type", "code", "param"} <= set(error), message
    return str(error["message"])


# --- OpenAI Responses


def _responses_ask(tools: bool) -> Body:
    own = {"tools": [{"type": "function", **_FUNCTION}]} if tools else {}
    return {"input": QUESTION, "store": False, **own}


def responses_said(message: Body) -> Iterator[Piece]:
    match message["type"]:
        case "response.output_text.delta":
            yield "text", message["delta"]
        case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
            yield "reasoning", message["delta"]
        case "response.output_item.added" if message["item"]["type"] == "function_call":
            yield "call", message["item"]["name"]
        case "response.function_call_arguments.delta":
            yield "call", message["delta"]
        case _:
            pass


def _responses_whole(body: Body) -> Iterator[Piece]:
    for item in body["output"]:
        match item["type"]:
            case "message":
                yield "text", "".join(part["text"] for part in item["content"])
            case "reasoning":
                yield "reasoning", "".join(part["text"] for part in item["summary"] + item.get("content", []))
            case _:
                yield "call", item["name"] + item["arguments"]


def _responses_ends(message: Body | str) -> bool:
    return not isinstance(message, str) and message["type"] in {"response.completed", "response.incomplete"}


def _responses_fails(message: Body) -> str:
    if message.get("type") == "response.failed":
        response = message["response"]
        assert (response["status"], response["usage"]) == ("failed", None), message
        assert response["error"]["code"] in {"server_error", "rate_limit_exceeded", "invalid_prompt"}, message
        return str(response["error"]["message"])
    return "" if "type" in message else _vendor_fails(message)


def _responses_finish(message: Body) -> str:
    return str(message.get("response", message).get("status", ""))


# --- Anthropic Messages


def _messages_ask(tools: bool) -> Body:
    own = {"tools": [{"name": TOOL, "description": "Tells the weather.", "input_schema": _SCHEMA}]} if tools else {}
    thinking = {"type": "enabled", "budget_tokens": 2000}
    return {"max_tokens": 9000, "thinking": thinking, "messages": [{"role": "user", "content": QUESTION}], **own}


def messages_said(message: Body) -> Iterator[Piece]:
    block = message.get("content_block", {})
    if block.get("type") == "tool_use":
        yield "call", block["name"]
    delta = message.get("delta", {})
    match delta.get("type"):
        case "text_delta":
            yield "text", delta["text"]
        case "thinking_delta":
            yield "reasoning", delta["thinking"]
        case "input_json_delta":
            yield "call", delta["partial_json"]
        case _:
            pass


def _messages_whole(body: Body) -> Iterator[Piece]:
    for block in body["content"]:
        match block["type"]:
            case "text":
                yield "text", block["text"]
            case "thinking":
                yield "reasoning", block["thinking"]
            case _:
                yield "call", block["name"] + json.dumps(block["input"], ensure_ascii=False)


def _messages_ends(message: Body | str) -> bool:
    return not isinstance(message, str) and message["type"] == "message_stop"


def _messages_fails(message: Body) -> str:
    if message["type"] != "error":
        return ""
    assert set(message) == {"type", "error"}, message
    assert set(message["error"]) == {"type", "message"}, message
    return str(message["error"]["message"])


def _messages_finish(message: Body) -> str:
    return str(message.get("delta", message).get("stop_reason") or "")


# --- Ollama


def _ollama_ask(tools: bool) -> Body:
    own = {"tools": [{"type": "function", "function": _FUNCTION}]} if tools else {}
    return {"messages": [{"role": "user", "content": QUESTION}], **own}


def ollama_said(message: Body) -> Iterator[Piece]:
    words: Body = message.get("message") or {
        "content": message.get("response", ""),
        "thinking": message.get("thinking"),
    }
    if words.get("thinking"):
        yield "reasoning", words["thinking"]
    if words["content"]:
        yield "text", words["content"]
    for call in words.get("tool_calls") or ():
        assert isinstance(call["function"]["arguments"], dict), call
        yield "call", call["function"]["name"] + json.dumps(call["function"]["arguments"], ensure_ascii=False)


def _ollama_ends(message: Body | str) -> bool:
    return not isinstance(message, str) and message["done"] is True


def _ollama_fails(message: Body) -> str:
    if "error" not in message:
        return ""
    assert set(message) == {"error"}, message
    return str(message["error"])


def _ollama_finish(message: Body) -> str:
    return str(message.get("done_reason", ""))


# --- our own


def _native_ask(tools: bool) -> Body:
    own = {"tools": [{"type": "function", "function": _FUNCTION}]} if tools else {}
    return {"messages": [{"role": "user", "content": QUESTION}], **own}


def _native_said(message: Body) -> Iterator[Piece]:
    if "reasoning" in message:
        yield "reasoning", message["reasoning"]
    if "text" in message:
        yield "text", message["text"]
    if call := message.get("tool_call"):
        yield "begun", f"{call['index']} {call['name']}"
        yield "call", call["arguments"]


def _native_whole(body: Body) -> Iterator[Piece]:
    yield "reasoning", body["reasoning"]
    yield "text", body["text"]
    for call in body["tool_calls"]:
        yield "call", call["function"]["name"] + call["function"]["arguments"]


def _native_fails(message: Body) -> str:
    if "error" not in message:
        return ""
    assert set(message) <= {"error", "code"}, message
    return str(message["error"])


CHAT = Surface(
    name="chat",
    path="/v1/chat/completions",
    ask=_chat_ask,
    said=chat_said,
    whole=_chat_whole,
    ends=lambda message: message == "[DONE]",
    fails=_vendor_fails,
    finish=_chat_finish,
    streams_calls=True,
)
RESPONSES = Surface(
    name="responses",
    path="/v1/responses",
    ask=_responses_ask,
    said=responses_said,
    whole=_responses_whole,
    ends=_responses_ends,
    fails=_responses_fails,
    finish=_responses_finish,
    streams_calls=True,
)
MESSAGES = Surface(
    name="messages",
    path="/v1/messages",
    ask=_messages_ask,
    said=messages_said,
    whole=_messages_whole,
    ends=_messages_ends,
    fails=_messages_fails,
    finish=_messages_finish,
    streams_calls=True,
    heartbeat='event: ping\ndata: {"type":"ping"}',
)
NATIVE = Surface(
    name="native",
    path="/api/chat",
    ask=_native_ask,
    said=_native_said,
    whole=_native_whole,
    ends=lambda message: not isinstance(message, str) and message.get("done") is True,
    fails=_native_fails,
    finish=lambda message: str(message.get("finish", "")),
    streams_calls=True,
    extensions=frozenset({"skill_step", "steps"}),
)
OLLAMA = Surface(
    name="ollama",
    path="/ollama/api/chat",
    ask=_ollama_ask,
    said=ollama_said,
    whole=ollama_said,
    ends=_ollama_ends,
    fails=_ollama_fails,
    finish=_ollama_finish,
    is_lines=True,
    opens=False,
)
SECOND_PORT = replace(OLLAMA, name="ollama-port", path="/api/chat", on_second_port=True)
BESIDE_OURS = replace(OLLAMA, name="ollama-beside", path="/api/chat/ollama")
GENERATE = replace(
    OLLAMA, name="generate", path="/ollama/api/generate", ask=lambda tools: {"prompt": QUESTION}, takes_tools=False
)

SURFACES: tuple[Surface, ...] = (CHAT, RESPONSES, MESSAGES, OLLAMA, SECOND_PORT, GENERATE, NATIVE)
