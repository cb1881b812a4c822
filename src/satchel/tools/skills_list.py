"""``skills_list``: every skill that the turn may reach, with its files."""

from __future__ import annotations

from satchel.chat.request import ToolSpec
from satchel.errors import SkillError
from satchel.skills.model import MANIFEST, Skill, SkillFile
from satchel.skills.oneline import one_line
from satchel.tools.access import LIST_TOOL, SkillAccess, bundled, offset_argument, text_argument, told
from satchel.tools.base import ToolCall, ToolContext, ToolResult

_FILES_SHOWN = 30

SPEC = ToolSpec(
    name=LIST_TOOL,
    description=(
        "List the available skills with their descriptions and bundled files. With a skill's name, list all files of"
        " that skill."
    ),
    parameters={
        "type": "object",
        "properties": {
            "skill": {"type": "string", "description": "Optional: one skill's name."},
            "offset": {"type": "integer", "description": "Optional: where a list that was cut goes on."},
        },
        "required": [],
    },
)


class SkillsList:
    """Lists skills in pages that never split an entry; ``offset`` counts skills, or files of the one skill."""

    def __init__(self, access: SkillAccess) -> None:
        self._access = access

    @property
    def spec(self) -> ToolSpec:
        return SPEC

    async def run(self, call: ToolCall, context: ToolContext) -> ToolResult:
        del context
        name = text_argument(call.arguments, "skill", "name")
        offset = offset_argument(call.arguments)
        if not name:
            return await self._skills(offset)
        skill = self._access.find(name)
        return await self._files(skill, offset) if skill else self._access.no_such_skill(name)

    async def _skills(self, offset: int) -> ToolResult:
        skills = self._access.skills
        count = f"{len(skills)} skill{' is' if len(skills) == 1 else 's are'} available."
        room = self._access.page_bytes
        entries: list[str] = []
        for skill in skills[offset:]:
            entry = await self._entry(skill)
            room -= len(entry.encode()) + 2
            if entries and room < 0:
                break
            entries.append(entry)
        reached = offset + len(entries)
        if reached < len(skills):
            entries.append(f"[More skills follow. Continue with {LIST_TOOL}(offset={reached}).]")
        return ToolResult(text="\n\n".join((count, *entries)))

    async def _entry(self, skill: Skill) -> str:
        mark = " (selected for this conversation)" if skill.name.casefold() in self._access.selected else ""
        lines = [f"{skill.name}{mark}", f"  {one_line(skill.summary)}"]
        requires = one_line(skill.text("compatibility"))
        if requires:
            lines.append(f"  requires: {requires}")
        try:
            files = bundled(await self._access.load(skill))
        except SkillError as error:
            lines.append(f"  cannot be read now: {error.message}")
            return "\n".join(lines)
        shown = ", ".join((MANIFEST, *map(_file, files[:_FILES_SHOWN])))
        if len(files) > _FILES_SHOWN:
            shown += f", … and {len(files) - _FILES_SHOWN} more"
        lines.append(f"  files: {shown}" if files else f"  files: {MANIFEST} only")
        return "\n".join(lines)

    async def _files(self, skill: Skill, offset: int) -> ToolResult:
        try:
            loaded = await self._access.load(skill)
        except SkillError as error:
            return told(error, skill=skill.name)
        lines = [f"- {_file(file)}" for file in bundled(loaded)]
        room = self._access.page_bytes
        page: list[str] = []
        for line in lines[offset:]:
            room -= len(line.encode()) + 1
            if page and room < 0:
                break
            page.append(line)
        reached = offset + len(page)
        if reached < len(lines):
            call = f'{LIST_TOOL}(skill="{skill.name}", offset={reached})'
            page.append(f"[More files follow. Continue with {call}.]")
        head = f"{skill.name}: {MANIFEST} and {len(lines)} bundled file{'' if len(lines) == 1 else 's'}."
        return ToolResult(text="\n".join((head, *page)), skill=skill.name)


def _file(file: SkillFile) -> str:
    return one_line(file.path) + ("" if file.is_text else " [binary]")
