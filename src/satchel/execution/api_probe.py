"""What an installed library really offers, when a program guessed a name of it wrong.

The message of Python says which name was wrong and of what. A confined probe imports the installed module and
prints the names that are there; what it prints is a stranger's text, read as such.
"""

# ruff: noqa: PTH118 - plain strings, as everywhere that paths are compared.

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, cast

from satchel.errors import SandboxError
from satchel.execution.environment import launch_paths, session_environment
from satchel.execution.probe_source import PROBE
from satchel.execution.workspace import Workspace
from satchel.ports.execution import Executor, Launch
from satchel.skills.names import near_names
from satchel.skills.oneline import one_line

PROBE_SECONDS = 10.0

_MAX_OUTPUT = 64 * 1024
_MAX_SCANNED = 64 * 1024
_MAX_NAMES = 2000
_SHOWN = 40
_LONGEST_NAME = 80
_LONGEST_SIGNATURE = 400

_WORD = r"[A-Za-z_]\w{0,79}"
_DOTTED = rf"{_WORD}(?:\.{_WORD}){{0,9}}"
_LINE = re.compile(
    r"^(?P<kind>AttributeError|ImportError|TypeError|ModuleNotFoundError): (?P<text>.{1,1000})$", re.MULTILINE
)
_OF_MODULE = re.compile(rf"(?:partially initialized )?module '({_DOTTED})' has no attribute '({_WORD})'")
_OF_OBJECT = re.compile(rf"(?:'({_DOTTED})' object|type object '({_DOTTED})') has no attribute '({_WORD})'")
_IMPORTED = re.compile(rf"cannot import name '({_WORD})' from '({_DOTTED})'")
_KEYWORD = re.compile(rf"({_WORD}(?:\.{_WORD}){{0,9}})\(\) got an unexpected keyword argument '({_WORD})'")
_SUBMODULE = re.compile(rf"No module named '({_DOTTED})\.({_WORD})'")
_FRAME = re.compile(r'^  File "([^"\n]{1,1000})", line \d+', re.MULTILINE)
_IMPORTS = re.compile(
    rf"(?:^|[;'\"\n])[ \t]*(?:from[ \t]+({_DOTTED})[ \t]+import|import[ \t]+([\w.,\t ]{{1,200}}))", re.MULTILINE
)
_DEFINED = re.compile(rf"^[ \t]*(?:class|def|async def)[ \t]+({_WORD})", re.MULTILINE)

Kind = Literal["module", "object", "keyword"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Guess:
    """``wanted`` was taken for a name of ``owner``: a module, a class by its bare name, or a function's keyword."""

    kind: Kind
    owner: str
    wanted: str
    files: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    defined: tuple[str, ...] = field(default=())


def read_guess(stderr: str, command: str) -> Guess | None:
    """The wrong guess that ended a Python program, from the end of its last traceback; None when it ended otherwise.

    ``files`` are the programs in that traceback, ``modules`` what ``command`` itself imports, ``defined`` what it
    defines and no library can be asked about.
    """
    start = stderr.rfind("Traceback (most recent call last):")
    if start < 0:
        return None
    trace = stderr[start : start + _MAX_SCANNED]
    last: re.Match[str] | None = None
    for line in _LINE.finditer(trace):
        last = line
    if last is None:
        return None
    found = _guessed(last["kind"], last["text"])
    if found is None:
        return None
    kind, owner, wanted = found
    source = command[:_MAX_SCANNED]
    frames = tuple(dict.fromkeys(_FRAME.findall(trace)))
    return Guess(
        kind=kind,
        owner=owner,
        wanted=wanted,
        files=frames[:20],
        modules=imported(source)[:20],
        defined=tuple(_DEFINED.findall(source))[:200],
    )


def imported(source: str) -> tuple[str, ...]:
    """The modules that a Python text imports, as far as they can be seen without running it."""
    found: list[str] = []
    for module, names in _IMPORTS.findall(source):
        found += [module] if module else [name.split()[0] for name in names.split(",") if name.strip()]
    return tuple(dict.fromkeys(name for name in found if re.fullmatch(_DOTTED, name)))


def _guessed(kind: str, text: str) -> tuple[Kind, str, str] | None:
    if kind == "AttributeError":
        if match := _OF_MODULE.match(text):
            return "module", match[1], match[2]
        if match := _OF_OBJECT.match(text):
            return "object", match[1] or match[2], match[3]
    elif kind == "ImportError" and (match := _IMPORTED.match(text)):
        return "module", match[2], match[1]
    elif kind == "ModuleNotFoundError" and (match := _SUBMODULE.match(text)):
        return "module", match[1], match[2]
    elif kind == "TypeError" and (match := _KEYWORD.match(text)):
        return "keyword", match[1], match[2]
    return None


async def probe(
    guess: Guess, workspace: Workspace, executor: Executor, host: Mapping[str, str], *, cwd: str, deadline_s: float
) -> str:
    """What the model is told of the real names, "" when nothing certain is known. Never raises for a probe that fails.

    Files of the traceback are looked at relative to ``cwd``. Nothing of the workspace's own modules is imported.
    """
    launch = await asyncio.to_thread(_launch, guess, workspace, host, cwd, deadline_s)
    try:
        outcome = await executor.run(launch)
    except SandboxError:
        return ""
    return told(guess, outcome.stdout.head) if outcome.exit_code == 0 else ""


def _launch(guess: Guess, workspace: Workspace, host: Mapping[str, str], cwd: str, deadline_s: float) -> Launch:
    readable, _ = launch_paths(workspace, "probe")
    own = (workspace.work, workspace.tmp, workspace.state)
    question = {
        "kind": guess.kind,
        "owner": guess.owner,
        "wanted": guess.wanted,
        "files": [os.path.join(cwd, file) for file in guess.files],
        "modules": list(guess.modules),
        "defined": list(guess.defined),
    }
    return Launch(
        command=(*_python(workspace), "-s", "-c", PROBE, json.dumps(question), *own),
        purpose="probe",
        cwd=workspace.tmp,
        env={**session_environment(workspace, host), "HOME": workspace.tmp, "PWD": workspace.tmp},
        readable=(*readable, workspace.work),
        writable=(workspace.tmp,),
        deadline_s=max(1.0, min(PROBE_SECONDS, deadline_s)),
        max_output_bytes=_MAX_OUTPUT,
    )


def _python(workspace: Workspace) -> tuple[str, ...]:
    return (os.path.join(workspace.shims, "python.bat" if os.name == "nt" else "python"),)


def told(guess: Guess, answer: bytes) -> str:
    """A probe's answer as a sentence for the model; "" for an answer of another shape."""
    lines = answer.decode("utf-8", "replace").strip().splitlines()
    try:
        read: object = json.loads(lines[-1]) if lines else None
    except (ValueError, RecursionError):
        return ""
    if not isinstance(read, list):
        return ""
    sentences = [_one(guess, cast("dict[str, object]", one)) for one in cast("list[object]", read)[:2] if _is_map(one)]
    return "\n".join(sentence for sentence in sentences if sentence)


def _is_map(value: object) -> bool:
    return isinstance(value, dict)


def _one(guess: Guess, answer: Mapping[str, object]) -> str:
    names = _names(answer.get("names"))
    place, signature = answer.get("place"), answer.get("signature")
    if not names or not isinstance(place, str) or guess.wanted in names:
        return ""
    what = _clean(place, _LONGEST_SIGNATURE)
    near = near_names(guess.wanted, _by_length(guess.wanted, names))
    meant = f" Did you mean: {', '.join(near)}?" if near else ""
    if guess.kind == "keyword":
        shape = _clean(signature, _LONGEST_SIGNATURE) if isinstance(signature, str) else ""
        return f"{what} takes no keyword {guess.wanted}.{meant} It is called as {what}{shape or _listed(names)}."
    shown = ", ".join(names[:_SHOWN]) + (f" ({len(names) - _SHOWN} more)" if len(names) > _SHOWN else "")
    return f"{what} has no {guess.wanted}.{meant} It has: {shown}."


def _by_length(wanted: str, names: Sequence[str]) -> list[str]:
    """Names that hold the wanted one are tried from the shortest on."""
    return sorted(names, key=lambda name: (wanted.casefold() not in name.casefold(), len(name)))


def _listed(names: Sequence[str]) -> str:
    return f"({', '.join(names[:_SHOWN])})"


def _names(value: object) -> list[str]:
    if not isinstance(value, list):
        return []
    found = [name for name in cast("list[object]", value)[:_MAX_NAMES] if isinstance(name, str)]
    return [name for name in found if len(name) <= _LONGEST_NAME and name.isidentifier()]


def _clean(text: str, limit: int) -> str:
    plain = one_line(text)
    return plain if len(plain) <= limit else plain[: limit - 3] + "..."
