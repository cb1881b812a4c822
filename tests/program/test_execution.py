"""What ``satchel serve`` says of programs when it starts."""

from __future__ import annotations

import asyncio
import json
import signal
from pathlib import Path
from typing import Any

from tests.program.program import PATIENCE_S, start


async def started(*arguments: str, folder: Path) -> tuple[Any, str]:
    """The event that it listens, and what stderr had when it was ended."""
    upstream = ("--upstream", "http://127.0.0.1:9/v1", "--skills-dir", str(folder))
    process = await start("serve", "--port", "0", "--json", *upstream, *arguments)
    assert process.stdout is not None
    async with asyncio.timeout(PATIENCE_S):
        line = await process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        _, err = await process.communicate()
    return json.loads(line), err.decode()


async def test_nothing_is_said_where_nothing_may_run(tmp_path: Path) -> None:
    event, err = await started(folder=tmp_path)
    assert "execution" not in event
    assert "confined" not in err


async def test_what_is_allowed_and_open_is_said_before_it_listens(tmp_path: Path) -> None:
    allowed = ("--skills-allow-exec", "--code-exec", "--code-exec-unconfined", "--skills-sandbox", "off")
    event, err = await started(*allowed, folder=tmp_path)
    told = event["execution"]
    assert (told["scripts"], told["code"], told["installs"]) == (True, True, False)
    assert (told["confinement"]["backend"], told["confinement"]["is_full"]) == ("none", False)
    scripts, code, warning = err.splitlines()[:3]
    for line in (scripts, code):
        assert "Not confined on this host: " + "; ".join(told["confinement"]["gaps"]) in line
    assert warning.startswith("WARNING: --code-exec-unconfined: ")
