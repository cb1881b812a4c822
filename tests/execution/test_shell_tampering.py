"""What a confined program tries against the calls after it, through each sandbox of this host."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from satchel.errors import SandboxError
from satchel.ports.execution import Executor
from tests.execution.shells import printed, run, session

REWRITE = (
    "echo begun; (chmod 777 ../calls; mv ../calls ../old; rm -rf ../calls) 2>/dev/null; while :; do "
    "for f in ../calls/*.sh ../calls/*.restore ../state/*.sh ../state/*.restore; do "
    "echo 'echo INJECTED; exit 0' > $f; done 2>/dev/null; done"
)


async def test_a_job_cannot_change_what_the_next_call_runs(tmp_path: Path, confined: Executor) -> None:
    async with session(tmp_path, executor=confined) as made:
        await run(made, REWRITE, background=True)
        for _ in range(4):
            done = await run(made, "sleep 0.1; echo mine; exit 3")
            assert done.outcome is not None
            assert (printed(done), done.outcome.exit_code) == ("mine\n", 3)


async def test_a_directory_that_was_shut_is_opened_for_the_next_call(tmp_path: Path, confined: Executor) -> None:
    async with session(tmp_path, executor=confined) as made:
        await run(made, "mkdir sub; cd sub; export KEPT=1; chmod 0 ~ $TMPDIR ../../state")
        done = await run(made, 'echo "$KEPT"; mktemp >/dev/null && pwd')
        assert done.ok, done.text
        await run(made, "cd ~/sub; chmod 0 .")
        again = await run(made, "echo here")
        assert printed(again) == "here\n"


async def test_a_command_in_a_workspace_that_is_gone_is_not_said_to_have_run(
    tmp_path: Path, confined: Executor
) -> None:
    async with session(tmp_path, executor=confined) as made:
        await asyncio.to_thread(Path(made.workspace.work).rmdir)
        for background in (False, True):
            with pytest.raises(SandboxError, match="is not there"):
                await run(made, "echo here", background=background)
        await asyncio.to_thread(Path(made.workspace.work).mkdir)
