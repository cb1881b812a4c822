"""A script of a skill that a model tried to run with ``shell``, where it is not: the call that runs it."""

from __future__ import annotations

import contextlib
import json
import re
import shlex
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from satchel.errors import SkillError
from satchel.execution.commandline import SimpleCommand, simple_commands
from satchel.skills.model import Skill
from satchel.skills.oneline import one_line
from satchel.tools.access import RUN_TOOL, SkillAccess, plain_path, without_placeholder

_INTERPRETER = re.compile(r"(?:python|node|bash|sh)[0-9.]*")
_MISSING = re.compile(r"No such file|[Cc]an(?:'t|not) open|Cannot find module|not found")
_MOST_SKILLS = 200  # whose files are looked through
_MOST_CALLS = 2
_MOST_PRINTED = 64 * 1024
# A model writes the command and its programs what is printed, so what is compared is bounded whatever they hold.
_LONGEST_COMMAND = 8 * 1024
_MOST_COMMANDS = 20
_MOST_LINES = 20
_LONGEST_LINE = 500
_LONGEST_NAME = 255


@dataclass(frozen=True, slots=True)
class _Tried:
    path: str
    arguments: tuple[str, ...] | None


class ScriptAdvice:
    """Knows the scripts that a turn may run."""

    def __init__(self, access: SkillAccess) -> None:
        self._access = access

    async def of(self, command: str, printed: str) -> str:
        """A sentence for a command that printed that a file is missing, when a reachable skill has it; else ""."""
        if len(command) > _LONGEST_COMMAND:
            return ""
        lines = (line for line in printed[:_MOST_PRINTED].splitlines() if _MISSING.search(line))
        missing = [line[:_LONGEST_LINE] for line in islice(lines, _MOST_LINES)]
        if not missing:
            return ""
        for tried in _tried(command, missing):
            found = [(skill, path) async for skill, path in self._having(tried.path)]
            if found:
                return _told(tried, found)
        return ""

    async def _having(self, path: str) -> AsyncIterator[tuple[Skill, str]]:
        """The skills with exactly that script, those that the model has read in front of the others."""
        read = [skill for skill in self._access.skills if self._access.is_read(skill)]
        others = [skill for skill in self._access.skills if not self._access.is_read(skill)]
        for skills in (read, others[:_MOST_SKILLS]):
            is_found = False
            for skill in skills:
                with contextlib.suppress(SkillError):
                    for file in self._access.scripts(await self._access.load(skill)):
                        if _is_meant(path, skill.name, file.path):
                            is_found = True
                            yield skill, file.path
            if is_found:
                return


def _tried(command: str, missing: Sequence[str]) -> Iterator[_Tried]:
    """What the command would have run as a script, and could not because it is not there."""
    before: SimpleCommand | None = None
    for one in islice(simple_commands(command), _MOST_COMMANDS):
        words = list(one.words)
        if words and _INTERPRETER.fullmatch(words[0].text.rpartition("/")[2]):
            words.pop(0)
            while words and words[0].text.startswith("-") and words[0].text not in {"-c", "-m", "-e", "-"}:
                words.pop(0)
        if words and not words[0].text.startswith("-"):
            name = words[0].text.replace("\\", "/").rpartition("/")[2]
            is_missing = bool(name) and len(name) <= _LONGEST_NAME and _is_named(name, missing)
            # Where the directory is not there, what stands behind && was not even tried.
            is_behind = bool(name) and _is_cd(before) and any("cd: " in line for line in missing)
            if is_missing or is_behind:
                rest = words[1:]
                plain = all(word.is_plain for word in rest)
                yield _Tried(
                    plain_path(without_placeholder(words[0].text)), tuple(word.text for word in rest) if plain else None
                )
        before = one


def _is_named(name: str, lines: Sequence[str]) -> bool:
    named = re.compile(rf"(?<![\w.-]){re.escape(name)}(?![\w-])")
    return any(named.search(line) for line in lines)


def _is_cd(command: SimpleCommand | None) -> bool:
    return command is not None and command.ended_by == "&&" and [word.text for word in command.words[:1]] == ["cd"]


def _is_meant(path: str, skill: str, script: str) -> bool:
    return path == script or f"/{path}".casefold().endswith(f"/{skill}/{script}".casefold())


def _told(tried: _Tried, found: Sequence[tuple[Skill, str]]) -> str:
    calls: list[str] = []
    for skill, path in found[:_MOST_CALLS]:
        call = {"skill": skill.name, "path": path}
        if tried.arguments:
            call["args"] = shlex.join(tried.arguments)
        calls.append(json.dumps(call, ensure_ascii=False))
    names = " and ".join(f'"{skill.name}"' for skill, _ in found[:_MOST_CALLS])
    whose = f"the skill {names}" if len(calls) == 1 else f"the skills {names}"
    more = " and the arguments in args" if tried.arguments is None else ""
    return (
        f"{one_line(found[0][1])} is a script of {whose} and not in the working directory. "
        f"Call {RUN_TOOL} with {' or '.join(calls)}{more}."
    )
