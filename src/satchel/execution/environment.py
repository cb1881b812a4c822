"""The environment of a program in a workspace, and the paths that it sees. Nothing of the host's passes by default.

Most of it looks at the disk: from an event loop, call it in a thread.
"""

# ruff: noqa: PTH111, PTH112, PTH113, PTH117, PTH118, PTH120 - plain strings, as everywhere that paths are compared.

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Collection, Iterable, Mapping

from satchel.execution.workspace import Workspace, host_python, make_enterable
from satchel.ports.execution import Purpose

_PASSED = ("LANG", "LC_ALL", "TZ")
_PASSED_ON_WINDOWS = (*_PASSED, "SystemRoot", "SystemDrive", "COMSPEC", "PATHEXT", "NUMBER_OF_PROCESSORS")
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/System", "/Library")
_SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"
_SWITCHERS = re.compile(r"[/\\](?:shims|\.volta[/\\]bin)[/\\]?$")

_SECRET_NAME = re.compile(r"(?:^|_)(?:(?:API_?)?KEY|TOKEN|SECRET|PASS(?:WORD|WD)?|CREDENTIALS?)(?:_|$)", re.IGNORECASE)
_PROVIDER_NAME = re.compile(
    r"^(?:AWS|AZURE|GOOGLE|GEMINI|OPENAI|ANTHROPIC|MISTRAL|COHERE|GROQ|DEEPSEEK|XAI|OPENROUTER|TOGETHER|FIREWORKS"
    r"|HF|HUGGING_?FACE|PERPLEXITY|OLLAMA|SATCHEL)_.*(?:KEY|TOKEN|SECRET|CREDENTIAL)",
    re.IGNORECASE,
)
_SHORTEST_SECRET = 8


def session_environment(workspace: Workspace, host: Mapping[str, str]) -> dict[str, str]:
    """The whole environment of a program in ``workspace``; ``host`` is the environment of this process.

    PATH has the session's own directories before the host's. Python holds no output back in a buffer, so that what a
    program printed is there when it is stopped, and leaves no bytecode beside the sources.
    """
    names = _PASSED_ON_WINDOWS if os.name == "nt" else _PASSED
    passed = {name: host[name] for name in names if host.get(name)}
    own = (workspace.packages_bin, workspace.local_bin, workspace.shims)
    return passed | {
        "PATH": os.pathsep.join(dict.fromkeys((*own, *host_path(host)))),
        "HOME": workspace.work,
        "PWD": workspace.work,
        "TMPDIR": workspace.tmp,
        "TEMP": workspace.tmp,
        "TMP": workspace.tmp,
        "PYTHONPATH": workspace.python_packages,
        "NODE_PATH": os.path.join(workspace.node_packages, "node_modules"),
        "PYTHONUNBUFFERED": "1",
        "PYTHONPYCACHEPREFIX": os.path.join(workspace.tmp, "pycache"),
    }


def host_path(host: Mapping[str, str]) -> tuple[str, ...]:
    """The host's PATH without relative entries and version switchers, and at its end our own Python and node."""
    given = host.get("PATH") or _SYSTEM_PATH
    entries = [entry for entry in given.split(os.pathsep) if os.path.isabs(entry) and not _SWITCHERS.search(entry)]
    entries.append(os.path.dirname(host_python()))
    node = shutil.which("node", path=os.pathsep.join(entries))
    if node:
        entries.append(os.path.dirname(os.path.realpath(node)))
    return tuple(dict.fromkeys(entry for entry in entries if entry))


def readable_paths() -> tuple[str, ...]:
    """What the interpreters of this host need beyond the system's directories. Never a home directory as a whole."""
    wanted = [sys.prefix, sys.base_prefix]
    node = shutil.which("node", path=os.pathsep.join(host_path(os.environ)))
    if node:
        wanted.append(_home_of(node))
    return tuple(dict.fromkeys(_needed(wanted)))


def find_program(name: str, workspace: Workspace, environment: Mapping[str, str]) -> tuple[str, tuple[str, ...]]:
    """Where a program of a session lies, and what it needs beside ``readable_paths``; "" when there is none.

    Our own ``python`` is called without its shim. What programs put into the workspace is taken as it is: a link
    there must not open what it points to.
    """
    found = shutil.which(name, path=environment.get("PATH", ""))
    if not found:
        return "", ()
    if os.path.dirname(found) == workspace.shims:
        return host_python(), ()
    if found.startswith(workspace.root + os.sep):
        return found, ()
    is_venv = os.path.isfile(os.path.join(os.path.dirname(os.path.dirname(found)), "pyvenv.cfg"))
    return found if is_venv else os.path.realpath(found), tuple(_needed([_home_of(found)]))


def launch_paths(workspace: Workspace, purpose: Purpose) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """``(readable, writable)`` of a launch in ``workspace``, apart from a skill's own directory.

    A program can enter them afterwards, whatever another one did to them.
    """
    make_enterable(workspace)
    writable = (workspace.work, workspace.tmp, workspace.state)
    readable = (workspace.shims, *readable_paths())
    if purpose == "install":
        return readable, (*writable, workspace.packages)
    if purpose == "shell":
        readable = (workspace.calls, *readable)
    return (workspace.packages, *readable), writable


def is_provider_key(name: str) -> bool:
    """Whether a variable of that name holds a key of a model provider or of this program."""
    return _PROVIDER_NAME.search(name) is not None


def secret_values(host: Mapping[str, str], also: Collection[str] = ()) -> tuple[str, ...]:
    """The values of variables that are named like secrets or in ``also``, longest first; short ones are left out."""
    named = (value for name, value in host.items() if name in also or _SECRET_NAME.search(name))
    return tuple(sorted({value for value in named if len(value) >= _SHORTEST_SECRET}, key=len, reverse=True))


def masked(text: str, secrets: Iterable[str]) -> str:
    """``text`` with every known secret value replaced."""
    for value in secrets:
        text = text.replace(value, "[masked]")
    return text


def _home_of(program: str) -> str:
    """The directory that a program was installed to, with its library, else the program alone."""
    real = os.path.realpath(program)
    folder, name = os.path.split(os.path.dirname(real))
    return folder if name == "bin" and os.path.isdir(os.path.join(folder, "lib")) else real


def _needed(paths: Iterable[str]) -> Iterable[str]:
    home = os.path.realpath(os.path.expanduser("~"))
    for path in paths:
        real = os.path.realpath(path)
        is_system = any(real == root or real.startswith(root + "/") for root in _SYSTEM)
        holds_home = home == real or home.startswith(real.rstrip("/") + "/")
        if not is_system and not holds_home:
            yield real
