"""What runs between us and a program on Windows: it puts itself into a job object, starts the program and waits.

When it ends, or is ended, the last handle on the job closes and everything in the job ends with it. It is run as
``python -I -S -c TEXT``, so it may use nothing but the standard library.
"""

from __future__ import annotations

import ctypes
import sys

EXTENDED_LIMITS, USER_INTERFACE = 9, 4  # JobObjectExtendedLimitInformation, JobObjectBasicUIRestrictions

LIMIT_PROCESS_TIME = 0x2
LIMIT_ACTIVE_PROCESS = 0x8
LIMIT_JOB_MEMORY = 0x200
LIMIT_DIE_ON_UNHANDLED_EXCEPTION = 0x400
LIMIT_KILL_ON_JOB_CLOSE = 0x2000
UI_ALL = 0xFF  # handles, clipboard, system parameters, display settings, atoms, desktops, the end of the session

_TICKS = 10_000_000  # a second in units of 100 ns
_SETUP_FAILED, _NOT_STARTED = 125, 127
_SYNCHRONIZE, _FOREVER = 0x100000, 0xFFFFFFFF


class BasicLimits(ctypes.Structure):
    """``JOBOBJECT_BASIC_LIMIT_INFORMATION``."""

    _fields_ = (
        ("PerProcessUserTimeLimit", ctypes.c_int64),
        ("PerJobUserTimeLimit", ctypes.c_int64),
        ("LimitFlags", ctypes.c_uint32),
        ("MinimumWorkingSetSize", ctypes.c_size_t),
        ("MaximumWorkingSetSize", ctypes.c_size_t),
        ("ActiveProcessLimit", ctypes.c_uint32),
        ("Affinity", ctypes.c_size_t),
        ("PriorityClass", ctypes.c_uint32),
        ("SchedulingClass", ctypes.c_uint32),
    )


class IoCounters(ctypes.Structure):
    """``IO_COUNTERS``."""

    _fields_ = tuple(
        (f"{kind}{what}Count", ctypes.c_uint64)
        for what in ("Operation", "Transfer")
        for kind in ("Read", "Write", "Other")
    )


class ExtendedLimits(ctypes.Structure):
    """``JOBOBJECT_EXTENDED_LIMIT_INFORMATION``."""

    _fields_ = (
        ("BasicLimitInformation", BasicLimits),
        ("IoInfo", IoCounters),
        ("ProcessMemoryLimit", ctypes.c_size_t),
        ("JobMemoryLimit", ctypes.c_size_t),
        ("PeakProcessMemoryUsed", ctypes.c_size_t),
        ("PeakJobMemoryUsed", ctypes.c_size_t),
    )


def extended_limits(processes: int, memory_bytes: int, cpu_s: int) -> ExtendedLimits:
    """The limits of a job in which this process is one more."""
    limits = ExtendedLimits()
    basic = limits.BasicLimitInformation
    basic.LimitFlags = (
        LIMIT_KILL_ON_JOB_CLOSE
        | LIMIT_ACTIVE_PROCESS
        | LIMIT_JOB_MEMORY
        | LIMIT_PROCESS_TIME
        | LIMIT_DIE_ON_UNHANDLED_EXCEPTION
    )
    basic.ActiveProcessLimit = processes + 1
    basic.PerProcessUserTimeLimit = cpu_s * _TICKS
    limits.JobMemoryLimit = memory_bytes
    return limits


def main(arguments: list[str]) -> int:
    """Processes, memory in bytes, processor time in seconds, the number of our parent, then the program's arguments."""
    if sys.platform != "win32":
        return _SETUP_FAILED
    import subprocess

    *numbers, parent = map(int, arguments[:4])
    kernel = ctypes.WinDLL("kernel32", use_last_error=True)
    kernel.CreateJobObjectW.restype = kernel.GetCurrentProcess.restype = kernel.OpenProcess.restype = ctypes.c_void_p
    job = ctypes.c_void_p(kernel.CreateJobObjectW(None, None))
    limits, interface = extended_limits(*numbers), ctypes.c_uint32(UI_ALL)
    starter = ctypes.c_void_p(kernel.OpenProcess(_SYNCHRONIZE, 0, parent))
    if not (
        job
        and starter
        and kernel.SetInformationJobObject(job, EXTENDED_LIMITS, ctypes.byref(limits), ctypes.sizeof(limits))
        and kernel.SetInformationJobObject(job, USER_INTERFACE, ctypes.byref(interface), ctypes.sizeof(interface))
        and kernel.AssignProcessToJobObject(job, ctypes.c_void_p(kernel.GetCurrentProcess()))
    ):
        sys.stderr.write(f"The job object could not be set up: error {ctypes.get_last_error()}.\n")
        return _SETUP_FAILED
    try:
        child = subprocess.Popen(arguments[4:], stdin=subprocess.DEVNULL)  # noqa: S603 - no shell reads it
    except OSError as error:
        sys.stderr.write(f"{arguments[4]}: {error.strerror}\n")
        return _NOT_STARTED
    # Its number stays its own while ``child`` holds on to it.
    ended = ctypes.c_void_p(kernel.OpenProcess(_SYNCHRONIZE, 0, child.pid))
    ends = (ctypes.c_void_p * 2)(ended, starter)
    kernel.WaitForMultipleObjects(2, ends, 0, _FOREVER)
    code = child.poll()
    return _SETUP_FAILED if code is None else code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
