from __future__ import annotations

from pathlib import Path

import pytest

from satchel.errors import FileError
from satchel.execution.options import ExecutionOptions
from satchel.execution.shell_call import ShellRequest
from satchel.execution.workbench import Execution
from satchel.sandbox.unconfined import UnconfinedExecutor


@pytest.mark.parametrize("read_first", [False, True])
async def test_the_operator_decides_whether_a_file_is_read_before_it_is_changed(
    tmp_path: Path, read_first: bool
) -> None:
    options = ExecutionOptions(code=True, unconfined=True, read_first=read_first)
    bench = await Execution(UnconfinedExecutor(), options, base=str(tmp_path)).open()
    try:
        assert bench.files is not None
        assert bench.code is not None
        await bench.code.run(ShellRequest(command="echo one > a"))
        if read_first:
            with pytest.raises(FileError) as caught:
                await bench.files.replace("a", "one", "two")
            assert caught.value.code == "NOT_READ_THIS_SESSION"
            await bench.files.read("a")
        await bench.files.replace("a", "one", "two")
    finally:
        await bench.aclose()
