"""Whether a gateway that runs scripts stays whole under scripts that misbehave, and how fast a hang-up ends them.

    .venv/bin/python benchmarks/running.py [--clients 64] [--seconds 60] [--backend bubblewrap] [--json FILE]

A whole ``satchel serve`` before a scripted model server whose every answer runs a script of one skill: scripts that end
well, hang, spin, fork, leave children behind, print without end, fill the disk or the memory. Each client asks again as
soon as it has its answer; those whose script would never end hang up after a random time, and a few wait for the
deadline. Meanwhile another thread asks for ``/health``.

Counted before the first request, after the last one and after the end of the server: processes (all that descend from
this program, which is the one that orphans fall to), mounts, entries of the directory for temporary files,
control groups, and the server's descriptors, sockets and threads. Exits with 1 when anything is left.
"""

from __future__ import annotations

import argparse
import asyncio
import ctypes
import http.client
import json
import os
import random
import re
import secrets
import select
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from counting import Server, below, census, control_groups, lines_of, parents

from satchel.testing.scripted_openai import ScriptedCall, ScriptedOpenAI, ScriptedTurn

PROGRAM = Path(sys.executable).parent / "satchel"
SCRIPTS = {
    "well": "print('well done'); open('report.txt', 'w').write('x')",
    "hang": "import signal, time\nfor n in range(1, 32):\n"
    " if n not in (9, 19): signal.signal(n, signal.SIG_IGN)\ntime.sleep(600)",
    "spin": "while True: pass",
    "orphans": "import os, time\nfor n in range(20):\n if os.fork() == 0:\n  os.setsid()\n  if os.fork() == 0:\n"
    "   for fd in range(3): os.close(fd)\n   time.sleep(600)\n  os._exit(0)\nprint('left')",
    "bomb": "import os, time\nwhile True:\n try: os.fork()\n except OSError: time.sleep(0.05)",
    "endless": "import os\nwhile True: os.write(1, b'x' * 65536)",
    "flood": "import os\nfor n in range(800): os.write(n % 2 + 1, b'x' * 65536)",
    "disk": "import os\nos.makedirs('deep/er')\nfor n in range(100000):\n"
    " with open(f'deep/er/{n}', 'wb') as f: f.write(bytes(8 << 20))\n os.chmod('deep/er', 0o700)",
    "memory": "import os, time\nfor n in range(4):\n if os.fork() == 0:\n"
    "  x = b'x' * (400 << 20); time.sleep(600)\ntime.sleep(600)",
}
SHARES = {"well": 40, "orphans": 14, "hang": 12, "endless": 8, "flood": 8, "bomb": 6, "spin": 4, "disk": 3, "memory": 3}
LEAVES = frozenset({"hang", "spin", "bomb", "endless"})  # what ends by a hang-up
ENDS = {
    "well": r"\(exit code 0, ", "orphans": r"\(exit code 0, ", "flood": r"\(exit code 0, ",
    "disk": r"\(stopped because it wrote too much ", "memory": r"\(stopped because it used too much memory ",
    "hang": r"\(stopped at the time limit ",
}  # fmt: skip
MAY_BE = rf"Less than 64 MiB are free|{ENDS['hang']}"  # the latter where so many want the processors
LONGEST_S = 4.0  # until a hang-up
KILL_TARGET_S = 1.0
HEALTH_TARGET_S = 2.0
SETTLED_WITHIN_S = 30.0
DEADLINE_S = 180.0  # of one answer
_PR_SET_CHILD_SUBREAPER = 36


@dataclass(slots=True)
class Seen:
    """What the clients saw: seconds from a hang-up to the end of the last process and of the directory."""

    counts: Counter[str] = field(default_factory=Counter[str])
    errors: Counter[str] = field(default_factory=Counter[str])
    kills: list[float] = field(default_factory=list[float])
    removals: list[float] = field(default_factory=list[float])
    answers: list[float] = field(default_factory=list[float])
    health: list[float] = field(default_factory=list[float])


def threads(server: Server) -> int:
    return len(list(Path(f"/proc/{server.process.pid}/task").iterdir()))


def answer(body: dict[str, Any]) -> ScriptedTurn:
    """Runs what the question names, then says what the program said."""
    last = body["messages"][-1]
    if last["role"] == "tool":
        return ScriptedTurn(text=(str(last["content"])[:2000],))
    kind, token = re.findall(r"run (\w+) (\w+)", json.dumps(body["messages"]))[-1]
    call = json.dumps({"skill": "load", "path": f"scripts/{kind}.py", "args": [token]})
    return ScriptedTurn(calls=(ScriptedCall(name="skills_run", fragments=(call,), call_id="c1"),))


async def ask(server: Server, kind: str, token: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    body = json.dumps(
        {"model": "scripted", "skills": ["load"], "messages": [{"role": "user", "content": f"run {kind} {token}"}]}
    ).encode()
    address = urlsplit(server.url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: {address.netloc}\r\nConnection: close\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body)
    return reader, writer


async def one_client(server: Server, rng: random.Random, until: float, seen: Seen, *, waits: bool) -> None:
    """Asks until the time is over. One that ``waits`` sits out the deadline of a script that hangs."""
    while time.monotonic() < until:
        kind = "hang" if waits else rng.choices(list(SHARES), list(SHARES.values()))[0]
        token = secrets.token_hex(8)
        began = time.monotonic()
        reader, writer = await ask(server, kind, token)
        try:
            if kind in LEAVES and not waits:
                await asyncio.sleep(rng.random() * LONGEST_S)
                await leave(server, writer, token, kind, seen)
                continue
            async with asyncio.timeout(DEADLINE_S):
                said = (await reader.read()).decode("utf-8", "replace")
            seen.answers.append(time.monotonic() - began)
            is_late = kind != "hang" and re.search(ENDS["hang"], said) is not None
            if not said.startswith("HTTP/1.1 200") or not re.search(f"{ENDS[kind]}|{MAY_BE}", said):
                seen.errors[f"{kind}: {said[:1000]!r}"] += 1
            seen.counts["waited" if waits else f"{kind}, at its time limit" if is_late else kind] += 1
        except (OSError, TimeoutError) as error:
            seen.errors[f"{kind}: {error!r}"] += 1
        finally:
            writer.close()


async def leave(server: Server, writer: asyncio.StreamWriter, token: str, kind: str, seen: Seen) -> None:
    """Hangs up, and waits for what that ends."""
    sandbox, root = await asyncio.to_thread(sandbox_of, server, token)
    left = time.monotonic()
    writer.transport.abort()
    seen.counts[f"{kind}, hung up" + ("" if sandbox else " before its start")] += 1
    if not sandbox:
        return
    try:
        killed = await asyncio.to_thread(all_ended, sandbox)
    finally:
        for handle in sandbox:
            os.close(handle)
    seen.kills.append(killed - left)
    while await asyncio.to_thread(root.exists):
        await asyncio.sleep(0.01)
        if time.monotonic() > left + SETTLED_WITHIN_S:
            seen.errors[f"{kind}: a directory is there still after {SETTLED_WITHIN_S:g} s"] += 1
            return
    if root.name != "nowhere":
        seen.removals.append(time.monotonic() - left)


def sandbox_of(server: Server, token: str) -> tuple[list[int], Path]:
    """Handles on all processes around the script that got this argument, and the directory that it works in."""
    known = parents()
    handles: dict[int, int] = {}
    root = Path("/nowhere")
    for pid in sorted(below(server.process.pid, known)):
        with suppress(OSError):
            if token not in Path(f"/proc/{pid}/cmdline").read_text():
                continue
            found = re.search(r"(?:^|\0)HOME=([^\0]*)/work\0", Path(f"/proc/{pid}/environ").read_text())
            if found is not None:
                root = Path(found[1])
            top = pid
            while known[top] != server.process.pid:
                top = known[top]
            for one in {top, *below(top, known)} - set(handles):
                with suppress(OSError):
                    handles[one] = os.pidfd_open(one)
    return list(handles.values()), root


def all_ended(handles: Sequence[int]) -> float:
    """When the last of these processes had ended."""
    end = time.monotonic() + SETTLED_WITHIN_S
    for handle in handles:
        poll = select.poll()
        poll.register(handle, select.POLLIN)
        poll.poll(max(0, end - time.monotonic()) * 1000)
    return time.monotonic()


class Health(threading.Thread):
    """Asks for ``/health`` again and again, on a new connection each time, until it is told to stop."""

    def __init__(self, url: str, seen: Seen) -> None:
        super().__init__(daemon=True)
        self._netloc = urlsplit(url).netloc
        self._seen = seen
        self.over = threading.Event()

    def run(self) -> None:
        while not self.over.wait(0.05):
            began = time.monotonic()
            connection = http.client.HTTPConnection(self._netloc, timeout=30)
            try:
                connection.request("GET", "/health")
                if connection.getresponse().status != http.HTTPStatus.OK:
                    self._seen.errors["health: not OK"] += 1
            except OSError as error:
                self._seen.errors[f"health: {error!r}"] += 1
            finally:
                connection.close()
            self._seen.health.append(time.monotonic() - began)


async def settled(server: Server, before: dict[str, int]) -> tuple[dict[str, int], float]:
    """The census once nothing is more than it was, or as it is when it does not come to that."""
    began = time.monotonic()
    while True:
        now = await asyncio.to_thread(census, server)
        took = time.monotonic() - began
        if all(count <= before[name] for name, count in now.items()) or took > SETTLED_WITHIN_S:
            return now, took
        await asyncio.sleep(0.25)


async def loaded(server: Server, options: argparse.Namespace) -> dict[str, Any]:
    warm = Seen()
    await one_client(server, random.Random(0), time.monotonic() + 0.01, warm, waits=False)  # noqa: S311
    await asyncio.sleep(1)
    before, threads_before = census(server), threads(server)
    seen = Seen()
    health = Health(server.url, seen)
    health.start()
    until = time.monotonic() + options.seconds
    waiting = options.clients // 16 if options.seconds >= 30 else 0
    clients = [
        asyncio.create_task(
            one_client(server, random.Random(f"{options.seed}{number}"), until, seen, waits=number < waiting)  # noqa: S311
        )
        for number in range(options.clients)
    ]
    most: Counter[str] = Counter()
    while time.monotonic() < until:
        await asyncio.sleep(1)
        most |= Counter(await asyncio.to_thread(census, server))
    await asyncio.gather(*clients)
    health.over.set()
    await asyncio.to_thread(health.join)
    after, took = await settled(server, before)
    return {
        "requests": dict(seen.counts),
        "errors": dict(seen.errors),
        "seconds": {
            name: spread(values)
            for name, values in (
                ("answers", seen.answers),
                ("health", seen.health),
                ("hang-up to the last process", seen.kills),
                ("hang-up to the directory", seen.removals),
            )
        },
        "counts": {name: [before[name], most[name], after[name]] for name in before},
        "threads": [threads_before, threads(server)],
        "settled_s": round(took, 2),
    }


def spread(values: Sequence[float]) -> dict[str, float]:
    if not values:
        return {}
    ordered = sorted(values)
    p95 = ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))]
    figures = {"median": statistics.median(ordered), "p95": p95, "max": ordered[-1]}
    return {"n": len(ordered)} | {name: round(value, 4) for name, value in figures.items()}


def write_skill(folder: Path) -> None:
    scripts = folder / "load" / "scripts"
    scripts.mkdir(parents=True)
    text = "---\nname: load\ndescription: Runs what misbehaves. Use when a load is asked for.\n---\n\nRun them.\n"
    (scripts.parent / "SKILL.md").write_text(text)
    for kind, source in SCRIPTS.items():
        (scripts / f"{kind}.py").write_text(source + "\n")


async def served(folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    # Our own threads must not wait for each other, or the wait would be measured.
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(2 * options.clients + 8))
    write_skill(folder / "skills")
    temporary = folder / "tmp"
    temporary.mkdir()
    # No bubblewrap is that new, so that the other backend is taken.
    floor = () if options.backend == "bubblewrap" else ("--skills-sandbox-bwrap-floor", "99.0")
    async with ScriptedOpenAI(_always(answer)) as model:
        command = [PROGRAM, "serve", "--port", "0", "--json", "--upstream", model.url]
        command += ["--skills-dir", folder / "skills", "--skills-allow-exec", *floor]
        with (folder / "log").open("w") as log:
            environment = {name: value for name, value in os.environ.items() if not name.startswith("SATCHEL_")}
            environment["TMPDIR"] = str(temporary)
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, env=environment)  # noqa: ASYNC220
        try:
            assert process.stdout is not None
            said = json.loads(await asyncio.to_thread(process.stdout.readline) or "{}")
            if "url" not in said:
                raise SystemExit((folder / "log").read_text())
            result = {"backend": said["execution"]["confinement"]["backend"]}
            result |= await loaded(Server(process, said["url"], temporary), options)
        finally:
            process.send_signal(signal.SIGTERM)
            code = await asyncio.to_thread(process.wait)
            if process.stdout is not None:
                process.stdout.close()
    result["after its end"] = {
        "exit code": code,
        "processes": len(below(os.getpid(), parents())),
        "temporary entries": sum(1 for _ in temporary.rglob("*")),
        "control groups": control_groups(process.pid),
    }
    result["log"] = [line for line in lines_of(str(folder / "log")) if "Traceback" in line or " ERROR " in line]
    return result


class _always(Sequence[Callable[[dict[str, Any]], ScriptedTurn]]):  # noqa: N801
    """A script that never ends."""

    def __init__(self, turn: Callable[[dict[str, Any]], ScriptedTurn]) -> None:
        self._turn = turn

    def __len__(self) -> int:
        return sys.maxsize

    def __getitem__(self, index: Any) -> Any:
        return self._turn


def complaints(result: dict[str, Any]) -> Iterator[str]:
    """What is not as it should be, whatever the time it took."""
    for error, count in result["errors"].items():
        yield f"{count} times: {error}"
    for name, (before, _, after) in result["counts"].items():
        if after > before:
            yield f"{after - before} {name} are left"
    for name, count in result["after its end"].items():
        if count:
            yield f"after its end: {name} {count}"
    yield from (f"log: {line}" for line in result["log"])


def delays(result: dict[str, Any]) -> Iterator[str]:
    """What took too long."""
    kills, health = result["seconds"]["hang-up to the last process"], result["seconds"]["health"]
    if kills and kills["max"] > KILL_TARGET_S:
        yield f"a hang-up took {kills['max']} s to end its sandbox"
    if health["max"] > HEALTH_TARGET_S:
        yield f"/health took {health['max']} s"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--backend", choices=("bubblewrap", "namespaces"), default="bubblewrap")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--untimed", action="store_true", help="do not mind how long anything took")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    options = parser.parse_args()
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # orphans become ours
    with tempfile.TemporaryDirectory() as name:
        result = asyncio.run(served(Path(name).resolve(), options))
    found = [*complaints(result), *(() if options.untimed else delays(result))]
    print(f"{result['backend']}: {options.clients} clients, {options.seconds:g} s, {os.cpu_count()} processors")
    print("requests  " + ", ".join(f"{count} {kind}" for kind, count in sorted(result["requests"].items())))
    for name, figures in result["seconds"].items():
        print(f"{name:<28}" + "  ".join(f"{key} {value:g}" for key, value in figures.items()) + " s")
    for name, (before, most, after) in result["counts"].items():
        print(f"{name:<28}{before} before, at most {most}, {after} after")
    print(f"settled after {result['settled_s']} s; threads {result['threads'][0]} before, {result['threads'][1]} after")
    print("after its end               " + ", ".join(f"{name} {n}" for name, n in result["after its end"].items()))
    for complaint in found:
        print(f"  WRONG  {complaint}")
    if options.json:
        options.json.write_text(json.dumps(result, indent=2) + "\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
