"""``satchel serve``: its words."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from satchel.cli.options import ExecOptions, Json, ModelOptions, SkillOptions, settings_from


def serve(
    *,
    skills: SkillOptions = SkillOptions(),
    options: ModelOptions = ModelOptions(),
    execution: ExecOptions = ExecOptions(),
    host: Annotated[str | None, Parameter(name="--host", help="Address to listen on (127.0.0.1).")] = None,
    port: Annotated[int | None, Parameter(name="--port", help="Port to listen on (8321); 0 takes a free one.")] = None,
    ollama_port: Annotated[
        int | None, Parameter(name="--ollama-port", help="A second port that stands in for an Ollama: often 11434.")
    ] = None,
    json: Json = False,
) -> int:
    """Serve skills to OpenAI, Anthropic and Ollama clients over HTTP, in front of the embedded model or of --upstream.

    SATCHEL_KEYS (comma-separated) makes clients send one of these as their API key.
    SATCHEL_UPSTREAM_KEY is sent to the first upstream, SATCHEL_UPSTREAM_KEY_<NAME> to the one of that name.
    Ctrl-C or SIGTERM lets open answers finish; the second one cuts them off.
    Skills are read at the start, and again on POST /api/skills/rescan. Each request is one line of log on stderr.
    """
    settings = settings_from(skills, options, execution, host=host, port=port, ollama_port=ollama_port)
    from satchel.cli.listening import listen

    return listen(settings, as_json=json)
