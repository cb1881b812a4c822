"""A gateway that listens until it is told to end: what ``satchel serve`` does."""

from __future__ import annotations

import asyncio
import logging
import sys
from ipaddress import ip_address
from urllib.parse import urlsplit

from satchel.cli.allowed import allowed, held_by, tell
from satchel.cli.console import line, print_line_json, say
from satchel.cli.progress import DownloadProgress
from satchel.cli.signals import until_signalled
from satchel.ports.execution import Executor
from satchel.settings import Settings
from satchel.wiring.models import describe, embedded_models, ensure_weights
from satchel.wiring.serve import new_event_loop
from satchel.wiring.serve import serve as serve_gateway


def listen(settings: Settings, *, as_json: bool) -> int:
    """Serves until a signal; the exit code."""
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(until_signalled(_listen(settings, as_json=as_json)))


async def _listen(settings: Settings, *, as_json: bool) -> int:
    if embedded_models(settings):
        progress = DownloadProgress()
        await ensure_weights(settings, progress)
        progress.finish()
    executor = await tell(settings)

    def started(url: str, ollama_url: str) -> None:
        if not settings.server.keys and not _is_loopback(url):
            say(f"WARNING: everybody who reaches {url} may use its model and its skills: it asks for no key.")
            say("  hint: set SATCHEL_KEYS to the keys that clients must send, or leave --host out.")
        if as_json:
            told: dict[str, object] = {"ollama_url": ollama_url} if ollama_url else {}
            if executor is not None:
                told |= {"execution": _execution(settings, executor)}
            print_line_json({"event": "listening", "url": url} | told)
        else:
            _greet(url, ollama_url, settings)

    _log_to_stderr()
    return 130 if await serve_gateway(settings, started) else 0


def _execution(settings: Settings, executor: Executor) -> dict[str, object]:
    rows = allowed(settings.execution, executor)
    told: dict[str, object] = {row.what: row.is_on and not row.refusal for row in rows}
    return told | {"confinement": held_by(executor)}


def _log_to_stderr() -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    # A second Ctrl-C ends open answers at once, which is no failure.
    handler.addFilter(lambda record: not (record.exc_info and isinstance(record.exc_info[1], asyncio.CancelledError)))
    logging.getLogger().addHandler(handler)
    logging.getLogger("satchel.gateway").setLevel(logging.INFO)


def _is_loopback(url: str) -> bool:
    return ip_address(urlsplit(url).hostname or "").is_loopback


def _greet(url: str, ollama_url: str, settings: Settings) -> None:
    say(f"listening  {url}")
    if ollama_url:
        say(f"as Ollama  {ollama_url}")
    for options in settings.upstreams or embedded_models(settings):
        name = f"{options.name}: " if len(settings.upstreams) > 1 else ""
        say(f"model      {line(name + describe(options))}")
    say(f"skills     {url}/v1/skills" if settings.skills.enabled else "skills     off")
    if not settings.server.keys:
        say("clients    need no key (set SATCHEL_KEYS to ask for one)")
    say(f"try        curl {url}/v1/chat/completions -H 'content-type: application/json' \\")
    say(
        '             -d \'{"model": "'
        + line(settings.model or "default")
        + '", "messages": [{"role": "user", "content": "..."}]}\''
    )
