"""Attacks that must fail, run by a backend on the host at hand before it is trusted. None of them changes the host."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
from dataclasses import replace
from pathlib import Path

from satchel.errors import SandboxError
from satchel.ports.execution import Executor, Launch
from satchel.sandbox.bubblewrap import GAP_DEVICES
from satchel.sandbox.shells import BASH
from satchel.scratch.roots import new_root, remove_root

TRIED_S = 10.0
# What a program needs, and what the attacks are made with, has to be there, or all would seem to be stopped. Then it
# says "name open" or "name blocked" of each. What belongs to the whole machine is opened and never written; a device
# gets the mode that it has.
_SCRIPT = """
probe() { if eval "$2" 2>/dev/null; then echo "$1 open"; else echo "$1 blocked"; fi; }
for tool in $TOOLS; do command -v "$tool" > /dev/null || { echo "its tests need $tool" >&2; exit 9; }; done
echo works > mine || exit 9
: > /dev/null || exit 9
read -r word < "$READABLE/given" || exit 9
probe outside '( read -r word < "$OUTSIDE/secret" )'
probe write '( echo x > "$OUTSIDE/new" )'
probe link '( echo x > planted/new )'
probe read-only '( echo x > "$READABLE/new" )'
probe network '( exec 3<>"/dev/tcp/127.0.0.1/$PORT" )'
probe processes '[ -e "/proc/$HOST/exe" ] && kill -0 "$HOST"'
probe environment '( read -r -d "" words < /proc/1/environ; [ -n "$words" ] )'
probe capabilities '( while read -r name mask; do [[ $name = CapEff: && $mask = *[1-9a-f]* ]] && exit; done
    exit 1 ) < /proc/self/status'
probe kernel-settings '[ -w /proc/sys/kernel/core_pattern ] && ( : >> /proc/sys/kernel/core_pattern )'
probe devices 'chmod 666 /dev/null'
probe namespaces 'unshare --user true'
"""
_OF_THE_SCRIPT = (
    "outside", "write", "link", "read-only", "network", "processes", "environment", "capabilities", "kernel-settings",
    "devices", "namespaces",
)  # fmt: skip
CANARIES = (*_OF_THE_SCRIPT, "mount-targets")
_OPEN_UNDER_LANDLOCK = frozenset({"processes", "devices"})  # as its gaps tell
_STOPPED = {"deadline": "its tests took too long, on a host that is busy", "memory": "they were short of memory"}
_TOOLS = ("chmod", "unshare")
_OUTSIDE = ("secret", "inner")


async def try_canaries(executor: Executor, deadline_s: float = TRIED_S) -> tuple[dict[str, bool], str]:
    """Whether each attack was stopped, and why the backend cannot be trusted, "" when it can."""
    if BASH is None:
        return {}, "its tests need bash, which is not installed"
    try:
        folder = Path(await asyncio.to_thread(new_root, "canary"))
    except OSError as error:
        return {}, f"there is no place for its tests: {error.strerror}"
    try:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            launch = await asyncio.to_thread(_laid_out, folder, listener.getsockname()[1], BASH.program)
            launch = replace(launch, deadline_s=deadline_s)
            outcome = await executor.run(launch)
            said = dict(line.split(" ", 1) for line in outcome.stdout.text.splitlines() if " " in line)
            if outcome.exit_code != 0 or set(said) != set(_OF_THE_SCRIPT):
                words = outcome.stderr.text.strip().splitlines()
                return (
                    {},
                    f"no program runs in it: {words[-1][:200] if words else _STOPPED.get(outcome.stopped, 'no word')}",
                )
            leaked = await asyncio.to_thread(_strangers, folder)
            await _aim_mounts(executor, launch, folder)
            stopped = {name: word == "blocked" for name, word in said.items()}
            if leaked:
                stopped |= {"write": False, "link": False}
            stopped["mount-targets"] = await asyncio.to_thread(_strangers, folder) == leaked
    except (OSError, SandboxError) as error:
        return {}, error.message.rstrip(".") if isinstance(error, SandboxError) else str(error)
    finally:
        await asyncio.to_thread(remove_root, str(folder))
    confinement = executor.confinement
    told = _OPEN_UNDER_LANDLOCK if confinement.backend == "landlock" else frozenset[str]()
    told |= frozenset({"devices"} if GAP_DEVICES in confinement.gaps else ())
    escaped = [name for name, held in stopped.items() if not held and name not in told]
    return stopped, f"an attack works in it: {', '.join(escaped)}" if escaped else ""


async def _aim_mounts(executor: Executor, launch: Launch, folder: Path) -> None:
    """Asks for mounts whose targets lead through links that a program left behind.

    An older bubblewrap makes directories where such a link points to. A launch of that kind is refused or does no harm.
    """
    work = folder / "work"
    for link in ("planted", "planted-old"):
        for name in ("inner", "made"):
            target = str(work / link / name)
            for aimed in (
                replace(launch, command=("true",), readable=(target,)),
                replace(launch, command=("true",), writable=(*launch.writable, target)),
                replace(launch, command=("true",), readable=launch.writable, writable=(target,), cwd=target),
            ):
                try:
                    await executor.run(aimed)
                except SandboxError:
                    continue


def _laid_out(folder: Path, port: int, shell: str) -> Launch:
    for name in ("work", "readable", "outside", "outside/inner"):
        (folder / name).mkdir()
    (folder / "readable" / "given").write_text("x\n", encoding="ascii")
    (folder / "outside" / "secret").write_text("x\n", encoding="ascii")
    (folder / "work" / "planted").symlink_to(folder / "outside")
    # The host's root, as bubblewrap has it while it mounts.
    (folder / "work" / "planted-old").symlink_to(f"/oldroot{folder}/outside")
    variables = {"OUTSIDE": str(folder / "outside"), "READABLE": str(folder / "readable"), "PORT": str(port)}
    return Launch(
        command=(shell, "-c", _SCRIPT),
        purpose="probe",
        cwd=str(folder / "work"),
        env={"PATH": _search_path(), "TOOLS": " ".join(_TOOLS), "HOST": str(os.getpid()), **variables},
        readable=(str(folder / "readable"),),
        writable=(str(folder / "work"),),
    )


def _search_path() -> str:
    """Where the tools of the attacks are, also on systems that keep nothing in /usr/bin."""
    found = (shutil.which(tool) for tool in _TOOLS)
    return ":".join(("/usr/bin", "/bin", *(str(Path(path).resolve().parent) for path in found if path)))


def _strangers(folder: Path) -> set[str]:
    """What was made where nothing may be."""
    outside = folder / "outside"
    return {str(path.relative_to(outside)) for path in outside.rglob("*")} - set(_OUTSIDE)
