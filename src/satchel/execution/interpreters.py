"""What runs a script: chosen by the file's ending, never by its mode. Pure.

A ``#!`` line chooses only where there is no ending, and then only among the interpreters that are allowed. Where it
names the interpreter that the ending chose, its harmless options are kept: a script that asks to stop at the first
error must not go on and look as if it had worked.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Mapping, Sequence

from satchel.skills.model import SkillFile

_LONGEST_LINE = 256
_FAMILIES = {"sh": "bash", "dash": "bash", "nodejs": "node"}
_SHELL_SETTINGS = frozenset({"errexit", "nounset", "pipefail", "xtrace", "verbose", "noglob", "errtrace", "functrace"})
_SHELL_LETTERS = re.compile(r"-[euxvfETC]+\Z")
_PYTHON_LETTERS = re.compile(r"-[uBEsSIOOb]+\Z")


def extension(path: str) -> str:
    """The ending in lower case with its dot, "" for a name without one."""
    name = path.replace("\\", "/").rpartition("/")[2].lstrip(".")
    return f".{name.rpartition('.')[2].lower()}" if "." in name else ""


def is_runnable(file: SkillFile, endings: Collection[str]) -> bool:
    """Whether a bundled file is offered to be run: a text with such an ending, or a script without any."""
    if not file.is_text:
        return False
    ending = extension(file.path)
    return ending in endings if ending else file.kind == "script" and bool(endings)


def interpreter(path: str, head: bytes, interpreters: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """The command in front of the script, () when nothing that is allowed runs it. ``head`` is the file's beginning."""
    asked = _shebang(head)
    ending = extension(path)
    if ending:
        command = tuple(interpreters.get(ending, ()))
    else:
        allowed = (tuple(command) for command in interpreters.values() if command)
        command = next((item for item in allowed if asked and _family(item[0]) == _family(asked[0])), ())
    if command and asked and _family(command[0]) == _family(asked[0]):
        return (*command, *_harmless(_family(command[0]), asked[1:]))
    return command


def allowed_endings(interpreters: Mapping[str, Sequence[str]]) -> str:
    """The endings that can be run, for a sentence."""
    return ", ".join(ending for ending, command in interpreters.items() if command) or "none"


def is_shell(command: Sequence[str]) -> bool:
    """Whether a command is a shell, which cannot read a file with Windows line ends."""
    return bool(command) and _family(command[0]) == "bash"


def _shebang(head: bytes) -> tuple[str, ...]:
    """The words of a ``#!`` line, ``env`` and what belongs to it taken away; () when there is none."""
    text = head.removeprefix(b"\xef\xbb\xbf")[:_LONGEST_LINE].split(b"\n", 1)[0].decode("utf-8", "replace").strip()
    if not text.startswith("#!"):
        return ()
    try:
        words = shlex.split(text[2:])
    except ValueError:
        return ()
    if words and words[0].rpartition("/")[2] == "env":
        words = words[1:]
        while words and (words[0].startswith("-") or "=" in words[0]):
            words = words[1:]
    return tuple(words)


def _family(program: str) -> str:
    name = program.replace("\\", "/").rpartition("/")[2].lower().removesuffix(".exe")
    if re.fullmatch(r"python[0-9.]*", name):
        return "python"
    return _FAMILIES.get(name, name)


def _harmless(family: str, options: Sequence[str]) -> tuple[str, ...]:
    """Those options, from the first on, that only make an interpreter stricter or plainer."""
    kept: list[str] = []
    words = iter(options)
    for word in words:
        if family == "bash" and re.fullmatch(r"-[euxvfETC]*o", word):
            setting = next(words, "")
            if setting not in _SHELL_SETTINGS:
                break
            kept += [word, setting]
        elif (family == "bash" and _SHELL_LETTERS.match(word)) or (family == "python" and _PYTHON_LETTERS.match(word)):
            kept.append(word)
        else:
            break
    return tuple(kept)
