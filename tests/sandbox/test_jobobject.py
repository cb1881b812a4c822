"""The records and numbers of Windows job objects, which cannot be made here."""

from __future__ import annotations

import ctypes
import sys

import pytest

from satchel.errors import SandboxError
from satchel.ports.execution import GAP_HOME, GAP_NETWORK, GAP_WRITES, Launch, Limits
from satchel.sandbox import jobinit
from satchel.sandbox.jobobject import JobObjectExecutor, command


@pytest.mark.skipif(ctypes.sizeof(ctypes.c_void_p) != 8, reason="the sizes are those of 64 bit")
def test_the_records_are_as_the_system_reads_them() -> None:
    basic, extended = jobinit.BasicLimits, jobinit.ExtendedLimits
    assert ctypes.sizeof(basic) == 64
    assert ctypes.sizeof(jobinit.IoCounters) == 48
    assert ctypes.sizeof(extended) == 144
    offsets = {
        "LimitFlags": 16,
        "MinimumWorkingSetSize": 24,
        "MaximumWorkingSetSize": 32,
        "ActiveProcessLimit": 40,
        "Affinity": 48,
        "PriorityClass": 56,
        "SchedulingClass": 60,
    }
    assert {name: getattr(basic, name).offset for name in offsets} == offsets
    offsets = {"IoInfo": 64, "ProcessMemoryLimit": 112, "JobMemoryLimit": 120, "PeakJobMemoryUsed": 136}
    assert {name: getattr(extended, name).offset for name in offsets} == offsets
    assert [field[0] for field in jobinit.IoCounters._fields_][:4] == [
        "ReadOperationCount",
        "WriteOperationCount",
        "OtherOperationCount",
        "ReadTransferCount",
    ]


def test_the_limits_of_a_job() -> None:
    limits = jobinit.extended_limits(128, 2**31, 600)
    basic = limits.BasicLimitInformation
    assert basic.LimitFlags == 0x2000 | 0x200 | 0x400 | 0x8 | 0x2
    assert basic.ActiveProcessLimit == 129
    assert basic.PerProcessUserTimeLimit == 6_000_000_000
    assert limits.JobMemoryLimit == 2**31
    assert (jobinit.EXTENDED_LIMITS, jobinit.USER_INTERFACE, jobinit.UI_ALL) == (9, 4, 0xFF)


def launch() -> Launch:
    limits = Limits(processes=7, memory_bytes=1000, cpu_s=5)
    return Launch(command=("python", "a b", "&", "x"), purpose="script", cwd="C:\\w", limits=limits)


def test_the_command_is_a_program_of_its_own_with_the_arguments_behind_it() -> None:
    python, isolated, bare, flag, text, *rest = command(launch())
    assert (python, isolated, bare, flag) == (sys.executable, "-I", "-S", "-c")
    compile(text, "jobinit", "exec")
    assert "satchel." not in text
    assert rest[:3] == ["7", "1000", "5"]
    assert rest[3].isdigit()
    assert rest[4:] == ["python", "a b", "&", "x"]


@pytest.mark.skipif(sys.platform == "win32", reason="there it is available")
async def test_elsewhere_it_says_that_it_is_not_there() -> None:
    executor = JobObjectExecutor()
    with pytest.raises(SandboxError) as caught:
        await executor.run(launch())
    assert caught.value.code == "sandbox-unavailable"
    assert jobinit.main(["1", "1", "1", "1", "x"]) == 125


def test_it_never_passes_for_confinement() -> None:
    confinement = JobObjectExecutor().confinement
    assert not confinement.is_full
    assert confinement.process_tree
    assert confinement.gaps == (GAP_WRITES, GAP_NETWORK, GAP_HOME)
    assert JobObjectExecutor().shell is None


@pytest.mark.parametrize("given", ["dir", ()])
def test_only_programs_are_run(given: tuple[str, ...] | str) -> None:
    with pytest.raises(SandboxError) as caught:
        command(Launch(command=given, purpose="script", cwd="C:\\w"))
    assert caught.value.code == "launch-failed"
