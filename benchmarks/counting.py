"""What a server and all that descends from it hold, as Linux tells: for programs that look for what is left."""

from __future__ import annotations

import os
import re
import subprocess
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Server:
    """``folder`` is its directory for temporary files."""

    process: subprocess.Popen[str]
    url: str
    folder: Path


def lines_of(path: str) -> list[str]:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []


def parents() -> dict[int, int]:
    """The parent of each process of this machine. Ends that fall to us, as they do to the first process, are taken."""
    found: dict[int, int] = {}
    for name in os.listdir("/proc"):  # noqa: PTH208
        if name.isdigit():
            with suppress(OSError, IndexError):
                state, parent = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()[:2]
                if state == "Z" and int(parent) == os.getpid():
                    os.waitid(os.P_PID, int(name), os.WEXITED | os.WNOHANG)
                else:
                    found[int(name)] = int(parent)
    return found


def below(top: int, known: dict[int, int]) -> set[int]:
    """All that descend from a process."""
    children: dict[int, list[int]] = {}
    for pid, parent in known.items():
        children.setdefault(parent, []).append(pid)
    found: set[int] = set()
    waiting = [top]
    while waiting:
        fresh = [pid for pid in children.get(waiting.pop(), ()) if pid not in found]
        found.update(fresh)
        waiting += fresh
    return found


def control_groups(owner: int) -> int:
    return sum(1 for top, _, _ in os.walk("/sys/fs/cgroup") if f"/satchel-{owner}-" in top)


def entries(folder: Path) -> int:
    """Of the directory for temporary files, without what is on the shelf of produced files."""
    return sum(len(folders) + (0 if "artifacts" in top else len(files)) for top, folders, files in os.walk(folder))


def census(server: Server) -> dict[str, int]:
    """What there is now, by kind."""
    pid = server.process.pid
    kinds: Counter[str] = Counter()
    for name in os.listdir(f"/proc/{pid}/fd"):  # noqa: PTH208
        with suppress(OSError):
            kinds[re.sub(r"[:\d].*|^/.*", "", str(Path(f"/proc/{pid}/fd/{name}").readlink())) or "file"] += 1
    return {
        "processes": len(below(os.getpid(), parents()) - {pid}),
        "mounts of the host": len(lines_of("/proc/self/mountinfo")),
        "mounts of the server": len(lines_of(f"/proc/{pid}/mountinfo")),
        "temporary entries": entries(server.folder),
        "control groups": control_groups(pid),
        "descriptors": sum(kinds.values()),
        "sockets": kinds["socket"],
    }
