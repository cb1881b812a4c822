"""The least that reads and rewrites a stream: an aiohttp proxy that parses every event and writes it anew.

    python proxy.py UPSTREAM

Prints ``{"port": N}`` and serves until its standard input ends. Only an anchor: it has no keys, no bounds, no skills.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import aiohttp
import uvloop
from aiohttp import web


class Proxy:
    """``POST /v1/chat/completions`` and nothing else."""

    def __init__(self, upstream: str, session: aiohttp.ClientSession) -> None:
        self._url = f"{upstream}/chat/completions"
        self._session = session

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        body: dict[str, Any] = json.loads(await request.read())
        async with self._session.post(self._url, data=json.dumps(body).encode(), headers=_JSON) as answer:
            if not body.get("stream"):
                whole: Any = json.loads(await answer.read())
                return web.Response(body=json.dumps(whole).encode(), content_type="application/json")
            response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
            await response.prepare(request)
            tail = b""
            async for piece in answer.content.iter_any():
                *events, tail = (tail + piece).split(b"\n\n")
                for event in events:
                    await response.write(_again(event))
            await response.write_eof()
            return response


_JSON = {"Content-Type": "application/json"}


def _again(event: bytes) -> bytes:
    data = event.removeprefix(b"data: ")
    return event + b"\n\n" if data == b"[DONE]" else b"data: " + json.dumps(json.loads(data)).encode() + b"\n\n"


async def _serve(upstream: str) -> None:
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        app = web.Application()
        app.router.add_post("/v1/chat/completions", Proxy(upstream, session))
        runner = web.AppRunner(app, access_log=None, handler_cancellation=True)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        print(json.dumps({"port": runner.addresses[0][1]}), flush=True)
        await asyncio.to_thread(sys.stdin.read)
        await runner.cleanup()


def main() -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(sys.argv[1]))


if __name__ == "__main__":
    main()
