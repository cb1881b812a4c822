"""``satchel model``: the embedded model's weights."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Annotated

from cyclopts import App, Parameter

from satchel.cli.console import bytes_text, line, print_json, say
from satchel.cli.options import Json
from satchel.cli.progress import DownloadProgress
from satchel.ports.models import EmbeddedOptions
from satchel.settings import Settings, load
from satchel.wiring.models import embedded_models, ensure_weights, verify_weights, weights_status

app = App(name="model", help="The embedded model's weights: where they are, fetch, verify.", help_format="plaintext")

Which = Annotated[str | None, Parameter(name="--model", help="large (default), small, or a GGUF file.")]


def _settings(model: str | None) -> Settings:
    """As without any upstream: the command is about the model that serves then."""
    return replace(load({"--model": model}), upstreams=())


def _wanted(model: str | None) -> EmbeddedOptions:
    return embedded_models(_settings(model))[0]


@app.default
def status(*, model: Which = None, json: Json = False) -> int:
    """Say where the weights are, or would be. Exits 1 when they are not there."""
    found = weights_status(_wanted(model))
    if json:
        print_json(found)
    elif found["present"]:
        sys.stdout.write(f"{line(str(found['path']))}\n")
        say(f"{line(str(found['name']))}, {bytes_text(int(str(found['bytes'])))}")
    else:
        say(line(f"{found['name']} is not here; it would lie at {found['path']}"))
        say("  hint: satchel model fetch")
    return 0 if found["present"] else 1


@app.command
async def fetch(*, model: Which = None, json: Json = False) -> int:
    """Fetch the weights unless they are there, and verify them. An interrupted download goes on where it stopped."""
    settings = _settings(model)
    progress = DownloadProgress()
    (path,) = await ensure_weights(settings, progress)
    progress.finish()
    if json:
        print_json(weights_status(_wanted(model)))
    else:
        sys.stdout.write(f"{line(path)}\n")
    return 0


@app.command
def verify(*, model: Which = None, json: Json = False) -> int:
    """Read the whole file again and compare its SHA-256. Exits 1 when it is missing or damaged."""
    verified = verify_weights(_wanted(model))
    if json:
        print_json(verified)
    else:
        sys.stdout.write(line(f"{verified['path']}: {verified['verdict']}") + "\n")
    return 0
