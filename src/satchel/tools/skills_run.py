"""``skills_run``: runs a script that a skill ships, with arguments that no shell reads."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import replace

from satchel.chat.messages import Json
from satchel.chat.request import ToolSpec
from satchel.context.budget import INDEX_FILES
from satchel.errors import PathError, SandboxError, SkillError
from satchel.execution.arguments import command_words
from satchel.execution.declared import asked_packages
from satchel.execution.scripts import ScriptRequest, ScriptRunner
from satchel.skills.model import MANIFEST, REQUEST_SOURCE, LoadedSkill, Skill
from satchel.skills.names import near_names
from satchel.skills.oneline import one_line
from satchel.tools.access import (
    RUN_TOOL,
    SkillAccess,
    plain_path,
    text_argument,
    told,
    usage,
    without_placeholder,
    without_prefix,
)
from satchel.tools.base import Progress, ToolCall, ToolContext, ToolResult, failure
from satchel.tools.words import split_arguments

_PATHS = ("path", "script", "file", "resource", "script_name", "script_path")
_SHOWN = 500
_QUOTING = (
    'args begins with "[" and is not a list of texts. Write a list as ["first", "second value"], each argument in'
    ' double quotes; write one argument that begins with a bracket as ["[like this"].'
)
_NO_OBJECT = 'args must be one text or a list of texts, like ["--month", "2026-05"], and not an object.'

SPEC = ToolSpec(
    name=RUN_TOOL,
    description="Run a script that a skill ships.",
    parameters={
        "type": "object",
        "properties": {
            "skill": {"type": "string", "description": "The skill's name."},
            "path": {"type": "string", "description": "The script inside the skill, like scripts/report.py."},
            "args": {
                "type": "string",
                "description": "Its arguments as on a command line; quote those with blanks. No shell reads them.",
            },
        },
        "required": ["skill", "path"],
    },
)


class SkillsRun:
    """Runs scripts of what the turn may reach. Its ``spec.choices`` are the scripts of skills that were read."""

    def __init__(self, access: SkillAccess, runner: ScriptRunner) -> None:
        self._access = access
        self._runner = runner
        self._ran: set[tuple[str, str]] = set()
        self._spec = replace(SPEC, description=f"{SPEC.description} {runner.terms}")

    @property
    def spec(self) -> ToolSpec:
        open_choices = (
            choice
            for choice in self._access.run_choices()
            if (choice.arguments["skill"], choice.arguments["path"]) not in self._ran
        )
        return replace(self._spec, choices=tuple(open_choices))

    async def run(self, call: ToolCall, context: ToolContext) -> ToolResult:
        given = text_argument(call.arguments, "skill", "skill_name", "name")
        skill = self._access.find(given) if given else None
        if skill is None:
            return self._access.no_such_skill(given, tool=RUN_TOOL)
        whole = without_placeholder(text_argument(call.arguments, *_PATHS))
        path = whole
        try:
            loaded = await self._access.load(skill)
            path = _meant(loaded, whole)
            if path == MANIFEST:
                return self._which(loaded, "", f"{RUN_TOOL} needs the path of a script.")
            arguments = await self._arguments(skill, path, call.arguments)
            if not isinstance(arguments, str) and any("\0" in item for item in arguments):
                arguments = "An argument holds a NUL character, which no program can be given. Leave it out."
            if isinstance(arguments, str):
                return failure("arguments-unreadable", arguments, skill=skill.name, path=path)
            context.report(Progress(phase="running", detail=f"{skill.name}: {path}"))
            try:
                result = await self._run(skill, path, arguments, _packages(call.arguments))
            except PathError as error:
                if error.code not in {"path-not-found", "not-a-file"}:
                    raise
                return _glued(loaded, whole) or self._which(loaded, path, error.message)
        except PathError as error:
            return told(error, skill=skill.name, path=path)
        except (SandboxError, SkillError) as error:
            return failure(error.code, f"{error.message} {error.hint}".rstrip(), skill=skill.name, path=path)
        context.report(Progress(phase="finished", detail=f"{skill.name}: {path}", files=result.files))
        return result

    async def _run(self, skill: Skill, path: str, arguments: tuple[str, ...], packages: tuple[str, ...]) -> ToolResult:
        async with self._access.directory(skill) as directory:
            done = await self._runner.run(
                ScriptRequest(
                    skill=skill.name,
                    directory=directory,
                    path=path,
                    arguments=arguments,
                    packages=packages,
                    is_sent=skill.ref.source == REQUEST_SOURCE,
                )
            )
        command = one_line(shlex.join((path, *arguments)))[:_SHOWN]
        if done.outcome is None:
            return replace(failure(done.code, done.text, skill=skill.name, path=path), command=command)
        self._ran.add((skill.name, path))
        return ToolResult(
            text=done.text,
            ok=done.ok,
            code=done.code,
            skill=skill.name,
            path=path,
            files=tuple(file.path for file in done.produced),
            command=command,
            exit_code=done.outcome.exit_code,
            reason=done.reason,
        )

    def _which(self, loaded: LoadedSkill, wanted: str, reason: str) -> ToolResult:
        """A refusal that names the skill's scripts and a call that would run the likeliest."""
        scripts = [file.path for file in self._access.scripts(loaded)]
        if not scripts:
            text = f'{reason} The skill "{loaded.name}" ships no script that can be run here.'
            return failure("path-not-found", text, skill=loaded.name, path=wanted)
        same = [path for path in scripts if path.rpartition("/")[2] == wanted.rpartition("/")[2]]
        likely = (*same, *near_names(wanted, scripts), *scripts)[0]
        meant = {"skill": loaded.name, "path": likely} | _shown_usage(loaded, likely)
        listed = ", ".join(one_line(path) for path in scripts[:INDEX_FILES])
        text = f"{reason} Its scripts: {listed}. Call {RUN_TOOL} with, for example, {_json(meant)}."
        return failure("path-not-found", text, skill=loaded.name, path=wanted)

    async def _arguments(self, skill: Skill, path: str, given: Mapping[str, Json]) -> tuple[str, ...] | str:
        """The argument vector, or a sentence that says how to write it."""
        value = next(
            (given[name] for name in ("args", "arguments", "argv") if given.get(name) not in (None, "", [])), ""
        )
        if isinstance(value, list):
            return tuple(item if isinstance(item, str) else _json(item) for item in value if item is not None)
        if isinstance(value, dict):
            declared = await self._access.arguments(skill, path)
            return command_words(declared, value) if declared else _NO_OBJECT
        if not isinstance(value, str):
            return (_json(value),)
        text = value.strip()
        if text.startswith("["):
            return _listed(text)
        if any(char.isspace() for char in text) and await self._runner.has_file(text):
            return (text,)
        return tuple(split_arguments(text))


def _meant(loaded: LoadedSkill, whole: str) -> str:
    """The path as the skill spells it; the skill may really have a folder of its own name."""
    spelled = plain_path(whole)
    if any(file.path == spelled for file in loaded.files):
        return spelled
    return plain_path(without_prefix(loaded.name, spelled))


def _glued(loaded: LoadedSkill, whole: str) -> ToolResult | None:
    """For a path with an interpreter in front or arguments behind it: the call that was meant."""
    words = whole.split()
    files = {file.path for file in loaded.files} - {MANIFEST}
    for word in words[:2] if len(words) > 1 else ():
        path = _meant(loaded, without_placeholder(word))
        if path in files:
            rest = whole.split(word, 1)[1].strip()
            meant = {"skill": loaded.name, "path": path} | ({"args": rest} if rest else {})
            text = (
                f"path names the script and nothing else; arguments go into args. Call {RUN_TOOL} with {_json(meant)}."
            )
            return failure("path-not-found", text, skill=loaded.name, path=path)
    return None


def _shown_usage(loaded: LoadedSkill, path: str) -> dict[str, str]:
    shown = usage(loaded.body, path)
    return {"args": shown} if shown else {}


def _listed(text: str) -> tuple[str, ...] | str:
    try:
        value: Json = json.loads(text)
    except ValueError:
        return _QUOTING
    if not isinstance(value, list):
        return _QUOTING
    items = [item for item in value if isinstance(item, str)]
    return tuple(items) if len(items) == len(value) else _QUOTING


def _packages(given: Mapping[str, Json]) -> tuple[str, ...]:
    value = given.get("packages")
    if isinstance(value, list):
        return tuple(name for item in value if isinstance(item, str) for name in asked_packages(item))
    return asked_packages(value) if isinstance(value, str) else ()


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
