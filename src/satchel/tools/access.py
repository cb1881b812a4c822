"""What one turn may reach, and what was read in it. Nothing else on disk exists for the model."""

from __future__ import annotations

import contextlib
import re
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial

from satchel.chat.messages import Json
from satchel.chat.request import Choice
from satchel.context.budget import INDEX_FILES, truncate
from satchel.errors import PathError, SkillError
from satchel.execution.arguments import ScriptArgument, arguments_schema
from satchel.execution.bundle import private_copy
from satchel.execution.interpreters import is_runnable
from satchel.execution.lease import leased
from satchel.execution.python_arguments import MAX_SOURCE_CHARS
from satchel.execution.script_arguments import script_arguments
from satchel.ports.skills import HasDirectories, SkillSource
from satchel.scratch.graves import bury
from satchel.skills.catalog import Catalog
from satchel.skills.files import is_manifest
from satchel.skills.model import MANIFEST, LoadedSkill, Page, Skill, SkillFile
from satchel.skills.names import near_names
from satchel.skills.oneline import one_line
from satchel.tools.base import ToolResult, failure
from satchel.tools.words import split_arguments

READ_TOOL = "skills_read"
LIST_TOOL = "skills_list"
RUN_TOOL = "skills_run"
SEARCH_TOOL = "skill_search"
FULL_TOOL = "skill_read"

_COMMAND = re.compile(r"[ \t]*(?:[$>][ \t]+)?\S*(?:python|node|sh)[0-9.]*[ \t]+\S*")
_PLACEHOLDER = re.compile(r"(?:\$\{?[A-Z_]*SKILL_DIR\}?|\{baseDir\})/")
_SMALLEST_PAGE = 256
_SCRIPTS_LOOKED_INTO = 2 * MAX_SOURCE_CHARS  # for each skill that is read, in bytes
_LARGEST_COPY = 16 * 1024 * 1024
_NAMES_SHOWN = 40
_LABEL_LENGTH = 160
_GIVEN_LENGTH = 80


class SkillAccess:
    """The skills of one turn: ``reachable`` is all there is, ``selected`` are the names that the caller asked for.

    A page has at most ``page_bytes`` bytes. Files are indexed once a turn, pages are read from the source each time.
    ``offers_choices`` False leaves ``choices`` empty, for models that nobody leads. ``runnable`` are the endings of
    scripts that may be run, none when scripts may not.
    """

    def __init__(
        self,
        source: SkillSource,
        reachable: Sequence[Skill],
        *,
        selected: Collection[str] = (),
        page_bytes: int = 48 * 1024,
        offers_choices: bool = True,
        runnable: Collection[str] = (),
    ) -> None:
        self._source = source
        self._catalog = Catalog(skills=tuple(reachable))
        self._loaded: dict[str, LoadedSkill] = {}
        self._arguments: dict[tuple[str, str], tuple[ScriptArgument, ...]] = {}
        self._pages: set[tuple[str, str, int]] = set()
        self._next: dict[tuple[str, str], int | None] = {}
        self.selected = frozenset(name.casefold() for name in selected)
        self.page_bytes = max(_SMALLEST_PAGE, page_bytes)
        self._offers_choices = offers_choices
        self._runnable = frozenset(runnable)

    @property
    def skills(self) -> tuple[Skill, ...]:
        """Every reachable skill, sorted by name."""
        return self._catalog.skills

    def find(self, name: str) -> Skill | None:
        """The reachable skill of that name, in any letter case, also with the ``$`` of a mention."""
        return self._catalog.get(name) or self._catalog.get(name.strip().removeprefix("$"))

    def search(self, query: str, limit: int) -> tuple[Skill, ...]:
        """At most ``limit`` reachable skills for a query: those that it mentions as ``$name``, then the best ranked."""
        ranked = (skill for skill, _ in self._catalog.rank(query, limit=limit))
        found = {skill.location or skill.name: skill for skill in (*self._catalog.mentions(query), *ranked)}
        return tuple(found.values())[:limit]

    async def load(self, skill: Skill) -> LoadedSkill:
        """Body and file index. Raises ``SkillError``."""
        loaded = self._loaded.get(skill.name)
        if loaded is None:
            loaded = self._loaded[skill.name] = await self._source.load(skill.ref)
        return loaded

    async def read(self, skill: Skill, path: str, offset: int) -> tuple[Page, bool]:
        """``(page, whether this page was read before)``. Raises ``SkillError`` or ``PathError``."""
        page = await self._source.read(skill.ref, path, offset=offset, max_bytes=self.page_bytes)
        key = (skill.name, path, page.start)
        repeated = key in self._pages
        self._pages.add(key)
        if not repeated:
            self._next[skill.name, path] = page.next_offset
        if path == MANIFEST and self._offers_choices:
            await self._look_into_scripts(skill, await self.load(skill))
        return page, repeated

    def is_read(self, skill: Skill) -> bool:
        """Whether its instructions were read in this turn."""
        return (skill.name, MANIFEST) in self._next

    async def _look_into_scripts(self, skill: Skill, loaded: LoadedSkill) -> None:
        sizes = {file.path: file.bytes for file in loaded.files}
        room = _SCRIPTS_LOOKED_INTO
        for path in self._scripts_spoken_of(loaded):
            if sizes[path] <= room:
                room -= sizes[path]
                await self.arguments(skill, path)

    async def arguments(self, skill: Skill, path: str) -> tuple[ScriptArgument, ...]:
        """What a script takes, () when its texts do not tell. Raises ``SkillError``."""
        key = (skill.name, path)
        if key not in self._arguments:
            body, source = (await self.load(skill)).body, ""
            with contextlib.suppress(PathError):
                page = await self._source.read(skill.ref, path, max_bytes=MAX_SOURCE_CHARS)
                source = page.text if page.is_last else ""
            # Not in a thread: the parser holds the interpreter anyway, and its warnings are silenced for all threads.
            self._arguments[key] = script_arguments(path, source, usage(body, path))
        return self._arguments[key]

    def scripts(self, loaded: LoadedSkill) -> list[SkillFile]:
        """The files of a skill that may be run, those that its instructions name first."""
        found = [file for file in bundled(loaded) if is_runnable(file, self._runnable)]
        return sorted(found, key=lambda file: file.path not in loaded.body)

    async def has_scripts(self) -> bool:
        """Whether a reachable skill ships a script that may be run; the selected ones are looked at first."""
        if not self._runnable:
            return False
        for skill in sorted(self.skills, key=lambda skill: skill.name.casefold() not in self.selected):
            with contextlib.suppress(SkillError):
                if self.scripts(await self.load(skill)):
                    return True
        return False

    @asynccontextmanager
    async def directory(self, skill: Skill) -> AsyncGenerator[str]:
        """The skill's files on disk: its own directory, or a copy of its texts that is gone afterwards.

        Raises:
            SkillError: it is gone.
            PathError: a file of it cannot be copied.
        """
        if isinstance(self._source, HasDirectories):
            async with self._source.directory(skill.ref) as found:
                if found:
                    yield found
                    return
        async with leased(partial(private_copy, await self._texts(skill)), bury) as copy:
            yield copy

    async def _texts(self, skill: Skill) -> dict[str, bytes]:
        found: dict[str, bytes] = {}
        room = _LARGEST_COPY
        for file in (await self.load(skill)).files:
            room -= file.bytes if file.is_text else 0
            if room < 0:
                raise PathError("path-refused", f"The files of this skill are larger than {_LARGEST_COPY} bytes.")
            if file.is_text:
                page = await self._source.read(skill.ref, file.path, max_bytes=max(file.bytes, _SMALLEST_PAGE))
                found[file.path] = page.text.encode()
        return found

    def advise(self, name: str) -> str:
        """A sentence for a call to a tool that does not exist but is the name of a reachable skill, else ""."""
        skill = self.find(name)
        if skill is None:
            return ""
        return f'"{skill.name}" is a skill, not a tool. Load it with {read_call(skill.name, MANIFEST)}.'

    def no_such_skill(self, given: str, *, tool: str = READ_TOOL) -> ToolResult:
        """The failure of ``tool`` for a skill that this turn cannot reach, whether it exists or not."""
        names = [skill.name for skill in self.skills]
        if not names:
            return failure("skill-not-found", "No skills are available in this conversation.")
        said = one_line(given)[:_GIVEN_LENGTH]
        reason = f'No skill called "{said}" is available.' if said else f"{tool} needs the name of a skill."
        near = near_names(said, names) if len(names) > _NAMES_SHOWN else ()
        close = f" Did you mean {', '.join(near)}?" if near else ""
        more = f" and {len(names) - _NAMES_SHOWN} more; call {LIST_TOOL}" if len(names) > _NAMES_SHOWN else ""
        code = "skill-not-found" if said else "missing-argument"
        return failure(code, f"{reason}{close} Available skills: {', '.join(names[:_NAMES_SHOWN])}{more}.")

    def choices(self) -> tuple[Choice, ...]:
        """What is worth reading now: skills that were not, rests of files, and files of skills that were."""
        if not self._offers_choices:
            return ()
        ordered = sorted(self.skills, key=lambda skill: skill.name.casefold() not in self.selected)
        return tuple(choice for skill in ordered for choice in self._choices_of(skill))

    def run_choices(self) -> tuple[Choice, ...]:
        """The scripts of the skills whose instructions were read, each with the line that speaks of it.

        Scripts that the instructions do not speak of are what others import, unless they speak of none.
        """
        if not self._offers_choices:
            return ()
        found: list[Choice] = []
        for loaded in [loaded for name, loaded in self._loaded.items() if (name, MANIFEST) in self._next]:
            for path, label in self._scripts_spoken_of(loaded).items():
                arguments = {"skill": loaded.name, "path": path}
                declared = self._arguments.get((loaded.name, path), ())
                given = arguments_schema(declared) if declared else _listed(loaded.body, path)
                found.append(Choice(arguments=arguments, label=label or f"runs {path}", open={"args": given}))
        return tuple(found)

    def _scripts_spoken_of(self, loaded: LoadedSkill) -> dict[str, str]:
        labels = {file.path: mention(loaded.body, file.path) for file in self.scripts(loaded)[:INDEX_FILES]}
        return {path: label for path, label in labels.items() if label} or labels

    def _choices_of(self, skill: Skill) -> list[Choice]:
        if not self.is_read(skill):
            return [_choice(skill, MANIFEST, label=one_line(skill.summary))]
        found = [
            _choice(skill, path, offset=rest, label=f"the rest of {path}")
            for (name, path), rest in self._next.items()
            if name == skill.name and rest is not None
        ]
        loaded = self._loaded.get(skill.name)
        unread = [file for file in bundled(loaded) if file.is_text and (skill.name, file.path) not in self._next]
        body = loaded.body if loaded else ""
        return found + [_choice(skill, file.path, label=mention(body, file.path)) for file in unread[:INDEX_FILES]]


def read_call(skill: str, path: str, offset: int = 0) -> str:
    """The call that reads a file, as a model would write it."""
    end = f", offset={offset})" if offset else ")"
    return f'{READ_TOOL}(skill="{skill}", path="{path}"{end}'


def bundled(loaded: LoadedSkill | None) -> list[SkillFile]:
    """The files that a model is told about: neither SKILL.md nor licences."""
    return [file for file in loaded.files if file.kind not in {"manifest", "license"}] if loaded else []


def mention(body: str, path: str) -> str:
    """The line of ``body`` that speaks of ``path``, "" when none does."""
    for wanted in (path, path.rpartition("/")[2]):
        at = re.search(rf"(?<![\w./-]){re.escape(wanted)}(?![\w/-])", body)
        if at is not None:
            start = max(body.rfind("\n", 0, at.start()), body.rfind("\r", 0, at.start())) + 1
            line = re.match(r"[^\r\n]*", body[start:])
            return truncate(one_line(line.group() if line else ""), _LABEL_LENGTH)
    return ""


def usage(body: str, path: str) -> str:
    """What follows ``path`` in a command that ``body`` shows, in code marks or behind an interpreter; else ""."""
    for found in re.finditer(rf"(?<![\w.-]){re.escape(path)}[ \t]+([^`\r\n]+)", body):
        before = body[body.rfind("\n", 0, found.start()) + 1 : found.start()]
        if before.count("`") % 2 or _COMMAND.fullmatch(before):
            return one_line(found.group(1))[:_LABEL_LENGTH]
    return ""


def plain_path(path: str) -> str:
    """The path without ``./`` in front, and SKILL.md for nothing. ``..`` stays: its refusal says what it is."""
    plain = path.replace("\\", "/")
    while plain.startswith("./"):
        plain = plain[2:].lstrip("/")
    return MANIFEST if plain in {"", "."} or is_manifest(plain) else plain


def without_prefix(skill: str, path: str) -> str:
    """Models spell ``api.md`` of skill ``pdf`` as it lies in the skills directory: ``pdf/api.md``."""
    folder, slash, rest = path.partition("/")
    return rest if slash and folder.casefold() == skill.casefold() else path


def without_placeholder(path: str) -> str:
    """The path without what skills put in front of it for their own directory: ``${SKILL_DIR}/``."""
    return _PLACEHOLDER.sub("", path, count=1)


def text_argument(arguments: Mapping[str, Json], *names: str) -> str:
    """The first of the named arguments that is a text or a number, without blanks around it; "" when there is none."""
    for name in names:
        value = arguments.get(name)
        if isinstance(value, (str, int, float)) and not isinstance(value, bool) and str(value).strip():
            return str(value).strip()
    return ""


def offset_argument(arguments: Mapping[str, Json]) -> int:
    """The ``offset`` as a whole number from 0 on, however it was written; 0 when it cannot be read."""
    return count_argument(arguments, "offset")


def count_argument(arguments: Mapping[str, Json], *names: str) -> int:
    """The first of the named arguments that is there, as a whole number from 0 on; 0 when it cannot be read."""
    value = next((arguments[name] for name in names if name in arguments), None)
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return 0
    try:
        return max(0, int(value) if isinstance(value, int) else int(float(value)))
    except (ValueError, OverflowError):
        return 0


def told(error: SkillError | PathError, *, skill: str, path: str = "", more: str = "") -> ToolResult:
    """A failure of the library as a sentence for the model."""
    text = " ".join(part for part in (error.message, more or error.hint) if part)
    return failure(error.code, text, skill=skill, path=path)


def _listed(body: str, path: str) -> dict[str, Json]:
    """The arguments of a script as a list, with those of the command that ``body`` shows as an example."""
    texts: dict[str, Json] = {"type": "array", "items": {"type": "string"}}
    words: list[Json] = [*split_arguments(usage(body, path))]
    if words:
        texts["examples"] = [words]
    return texts


def _choice(skill: Skill, path: str, *, offset: int = 0, label: str) -> Choice:
    arguments = {"skill": skill.name, "path": path}
    return Choice(arguments=arguments | ({"offset": str(offset)} if offset else {}), label=label)
