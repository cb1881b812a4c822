"""The servers that are compared, each a process on the core that is named, in front of the same stub."""

from __future__ import annotations

import json
import os
import select
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from serving.stub import SCRIPTS, SKILL

_START_S = 120.0
_HERE = Path(__file__).parent

_NGINX = """
worker_processes 1;
daemon off;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{ worker_connections 4096; }}
http {{
  access_log off;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  keepalive_requests 1000000;
  upstream stub {{ server 127.0.0.1:{stub_port}; keepalive 256; keepalive_requests 1000000; }}
  server {{
    listen 127.0.0.1:{port};
    location / {{
      proxy_pass http://stub;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_buffering off;
    }}
  }}
}}
"""
_SKILL = """---
name: {name}
description: {text} Use when the user asks for number {number} of the things that are kept here for measurements.
---

# {name}

Answer in one short sentence, and say which number this is: {number}.
"""


class Missing(Exception):  # noqa: N818
    """A peer that is not on this machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Something that answers Chat Completions. ``more`` are fields that its requests carry."""

    name: str
    url: str
    version: str = ""
    pids: tuple[int, ...] = ()
    more: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def cpu_s(self) -> float:
        """Processor time of its processes so far."""
        return sum(_cpu_s(pid) for pid in self.pids)


def _cpu_s(pid: int) -> float:
    # The kernel's clock of another process: what /proc/PID/stat tells in ticks of 10 ms, in nanoseconds.
    return time.clock_gettime((~pid << 3) | 2)


def rss_mb(pid: int) -> float:
    """Resident memory in MB of 10^6 bytes."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def descriptors(pid: int) -> int:
    """Open file descriptors."""
    return len(os.listdir(f"/proc/{pid}/fd"))  # noqa: PTH208


def cores() -> tuple[int, int]:
    """``(the gateway's core, the other one)``; the same twice on a machine with one."""
    usable = sorted(os.sched_getaffinity(0))
    return usable[0], usable[-1]


@contextmanager
def process(
    command: Sequence[str], *, core: int, log: Path, environment: Mapping[str, str] | None = None, speaks: bool = False
) -> Generator[subprocess.Popen[str]]:
    """A process on one core, ended when the block is left. One that ``speaks`` has its output in a pipe."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SATCHEL_")}
    ours = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})  # what it starts with is what it inherits
    try:
        with log.open("w") as file:
            started = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE if speaks else file,
                stderr=file,
                text=True,
                env={**kept, **(environment or {})},
            )
    finally:
        os.sched_setaffinity(0, ours)
    try:
        yield started
    finally:
        assert started.stdin is not None
        started.stdin.close()
        started.terminate()
        try:
            started.wait(timeout=15)
        except subprocess.TimeoutExpired:
            started.kill()
            started.wait()
        if started.stdout is not None:
            started.stdout.close()


def said(started: subprocess.Popen[str], log: Path) -> dict[str, Any]:
    """The first line of a process, one JSON object."""
    assert started.stdout is not None
    ready, _, _ = select.select([started.stdout], [], [], _START_S)
    line = started.stdout.readline() if ready else ""
    if not line:
        raise RuntimeError(f"{started.args!r} did not start: {log.read_text()[-2000:]}")
    return json.loads(line)


@contextmanager
def stub(folder: Path, core: int) -> Generator[Target]:
    """The model server by script."""
    log = folder / "stub.log"
    with process([sys.executable, str(_HERE / "stub.py")], core=core, log=log, speaks=True) as started:
        yield Target(name="direct", url=f"http://127.0.0.1:{said(started, log)['port']}", pids=())


def make_skills(root: Path, count: int = 10) -> Path:
    """A folder of small skills, ``SKILL`` among them."""
    for number in range(count):
        name = SKILL if number == 0 else f"other-skill-{number}"
        path = root / name / "SKILL.md"
        path.parent.mkdir(parents=True)
        text = "Says how a thing of the shop is found, weighed, packed and sent."
        path.write_text(_SKILL.format(name=name, text=text, number=number))
    return root


@contextmanager
def satchel(folder: Path, core: int, stub_url: str) -> Generator[Target]:
    """The gateway as its command line starts it, with ten skills on offer."""
    log = folder / "satchel.log"
    skills = make_skills(folder / "skills")
    command = [sys.executable, "-c", "from satchel.cli import main; main()", "serve", "--port", "0", "--json"]
    command += ["--upstream", f"{stub_url}/v1", "--skills-dir", str(skills)]
    with process(command, core=core, log=log, speaks=True) as started:
        url = said(started, log)["url"]
        yield Target(name="satchel", url=url, version=version("satchel"), pids=(started.pid,))


@contextmanager
def bare(folder: Path, core: int, stub_url: str) -> Generator[Target]:
    """The bare aiohttp proxy."""
    log = folder / "proxy.log"
    command = [sys.executable, str(_HERE / "proxy.py"), f"{stub_url}/v1"]
    with process(command, core=core, log=log, speaks=True) as started:
        url = f"http://127.0.0.1:{said(started, log)['port']}"
        yield Target(name="aiohttp proxy", url=url, version=version("aiohttp"), pids=(started.pid,))


@contextmanager
def nginx(folder: Path, core: int, stub_url: str) -> Generator[Target]:
    """An nginx that passes bytes on. Raises ``Missing``."""
    program = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if program is None:
        raise Missing("nginx is not installed (apt-get install nginx-light)")
    shown = subprocess.run([program, "-v"], capture_output=True, text=True, check=True).stderr
    port = free_port()
    (folder / "nginx").mkdir()
    config = folder / "nginx" / "nginx.conf"
    config.write_text(_NGINX.format(folder=folder / "nginx", port=port, stub_port=stub_url.rpartition(":")[2]))
    with process([program, "-c", str(config)], core=core, log=folder / "nginx.log") as started:
        url = f"http://127.0.0.1:{port}"
        wait_for(url, started, folder / "nginx.log")
        workers = Path(f"/proc/{started.pid}/task/{started.pid}/children").read_text().split()
        yield Target(name="nginx", url=url, version=shown.strip().rpartition("/")[2], pids=tuple(map(int, workers)))


@contextmanager
def litellm(folder: Path, core: int, stub_url: str, python: str) -> Generator[Target]:
    """LiteLLM's proxy from an environment of its own. Raises ``Missing``."""
    if not python:
        raise Missing("no --litellm-python was given")
    program = Path(python).with_name("litellm")
    if not program.is_file():
        raise Missing(f"{program} does not exist (pip install 'litellm[proxy]' there)")
    code = "import importlib.metadata as m; print(m.version('litellm'))"
    number = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    models = [
        {
            "model_name": name,
            "litellm_params": {"model": f"openai/{name}", "api_base": f"{stub_url}/v1", "api_key": "sk-bench"},
        }
        for name in SCRIPTS
    ]
    config = folder / "litellm.yaml"
    config.write_text(json.dumps({"model_list": models}))  # JSON is YAML too
    port = free_port()
    command = [str(program), "--config", str(config), "--host", "127.0.0.1", "--port", str(port), "--num_workers", "1"]
    environment = {
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # the newer one is on the network
        "LITELLM_LOG": "ERROR",
        "LITELLM_MODE": "PRODUCTION",
        "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true",  # the others ask for no key either
    }
    with process(command, core=core, log=folder / "litellm.log", environment=environment) as started:
        url = f"http://127.0.0.1:{port}"
        wait_for(url, started, folder / "litellm.log")
        yield Target(name="litellm", url=url, version=number, pids=tuple(_family(started.pid)))


def _family(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *(member for child in children for member in _family(int(child)))]


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(url: str, started: subprocess.Popen[str], log: Path) -> None:
    """Returns once something listens there."""
    host, _, port = url.removeprefix("http://").partition(":")
    until = time.monotonic() + _START_S
    while time.monotonic() < until and started.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex((host, int(port))) == 0:
                return
        time.sleep(0.1)
    raise RuntimeError(f"{started.args!r} did not start: {log.read_text()[-2000:]}")
