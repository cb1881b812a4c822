"""``satchel serve``."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from satchel.cli.console import print_line_json, say
from satchel.cli.options import Json, ModelOptions, SkillOptions, settings_from
from satchel.cli.progress import DownloadProgress
from satchel.settings import Settings
from satchel.wiring.models import ensure_weights
from satchel.wiring.serve import serve as serve_gateway


async def serve(
    *,
    skills: SkillOptions = SkillOptions(),
    options: ModelOptions = ModelOptions(),
    host: Annotated[str | None, Parameter(name="--host", help="Address to listen on (127.0.0.1).")] = None,
    port: Annotated[int | None, Parameter(name="--port", help="Port to listen on (8321); 0 takes a free one.")] = None,
    json: Json = False,
) -> int:
    """Serve skills to OpenAI clients over HTTP, in front of the embedded model or of --upstream.

    SATCHEL_KEYS (comma-separated) makes clients send one of these as their API key.
    SATCHEL_UPSTREAM_KEY is sent to the upstream. Ctrl-C or SIGTERM lets open answers finish.
    """
    settings = settings_from(skills, options, host=host, port=port)
    if settings.upstream is None:
        progress = DownloadProgress()
        await ensure_weights(settings, progress)
        progress.finish()

    def started(url: str) -> None:
        if json:
            print_line_json({"event": "listening", "url": url})
        else:
            _greet(url, settings)

    await serve_gateway(settings, started)
    return 0


def _greet(url: str, settings: Settings) -> None:
    say(f"listening  {url}")
    say(f"model      {settings.upstream.url if settings.upstream else 'embedded, on this machine'}")
    say(f"skills     {url}/v1/skills" if settings.skills.enabled else "skills     off")
    if not settings.server.keys:
        say("clients    need no key (set SATCHEL_KEYS to ask for one)")
    say(f"try        curl {url}/v1/chat/completions -H 'content-type: application/json' \\")
    say(
        '             -d \'{"model": "'
        + (settings.model or "default")
        + '", "messages": [{"role": "user", "content": "..."}]}\''
    )
