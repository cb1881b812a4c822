"""``skills_read``: one page of one file of a skill. SKILL.md is the instructions, and brings the index of the rest."""

from __future__ import annotations

import json
from dataclasses import replace

from satchel.chat.request import ToolSpec
from satchel.context.budget import INDEX_FILES, format_bytes
from satchel.errors import PathError, SkillError
from satchel.skills.model import MANIFEST, LoadedSkill, Page, Skill
from satchel.skills.names import near_names
from satchel.skills.oneline import one_line
from satchel.tools.access import (
    LIST_TOOL,
    READ_TOOL,
    RUN_TOOL,
    SkillAccess,
    bundled,
    offset_argument,
    plain_path,
    read_call,
    text_argument,
    told,
    usage,
    without_prefix,
)
from satchel.tools.base import ToolCall, ToolContext, ToolResult

_NEAR = 3

SPEC = ToolSpec(
    name=READ_TOOL,
    description=(
        "Read a file of a skill. SKILL.md holds the skill's instructions; other files are named relative to the skill."
    ),
    parameters={
        "type": "object",
        "properties": {
            "skill": {"type": "string", "description": "The skill's name."},
            "path": {"type": "string", "description": "A file inside the skill; SKILL.md when left out."},
            "offset": {"type": "integer", "description": "The byte to start at, to continue a truncated file."},
        },
        "required": ["skill"],
    },
)


class SkillsRead:
    """Reads within what the turn may reach. Its ``spec.choices`` say what is worth reading now."""

    def __init__(self, access: SkillAccess) -> None:
        self._access = access

    @property
    def spec(self) -> ToolSpec:
        return replace(SPEC, choices=self._access.choices())

    async def run(self, call: ToolCall, context: ToolContext) -> ToolResult:
        del context
        given = text_argument(call.arguments, "skill", "skill_name", "name")
        skill = self._access.find(given) if given else None
        if skill is None:
            return self._access.no_such_skill(given)
        whole = plain_path(text_argument(call.arguments, "path", "file", "resource", "script"))
        path = plain_path(without_prefix(skill.name, whole))
        offset = offset_argument(call.arguments)
        try:
            try:
                page, repeated = await self._access.read(skill, path, offset)
            except PathError as error:
                if path == whole or error.code != "path-not-found":
                    raise
                # The skill may really have a folder of its own name.
                page, repeated = await self._access.read(skill, whole, offset)
                path = whole
            if path == MANIFEST and page.is_last:
                return delivered(self._access, await self._access.load(skill), page, repeated=repeated)
        except PathError as error:
            return told(error, skill=skill.name, path=path, more=await self._instead(skill, path, error))
        except SkillError as error:
            return told(error, skill=skill.name, path=path)
        return ToolResult(text=page_text(skill, path, page, repeated=repeated), skill=skill.name, path=path)

    async def _instead(self, skill: Skill, path: str, error: PathError) -> str:
        """Which files there are, when the model named none of them."""
        if error.code not in {"path-not-found", "not-a-file"}:
            return ""
        try:
            files = [file.path for file in bundled(await self._access.load(skill)) if file.is_text]
        except SkillError:
            return ""
        wanted = path.replace("\\", "/").strip("/")
        below = [file for file in files if file.startswith(wanted + "/")]
        same = [file for file in files if file.rpartition("/")[2] == wanted.rpartition("/")[2]]
        near = below or same or near_names(wanted, files)
        listed = ", ".join(one_line(file) for file in near[:_NEAR])
        return f"Did you mean {listed}?" if near else f'{LIST_TOOL}(skill="{skill.name}") lists its files.'


def _how_to_run(loaded: LoadedSkill, script: str) -> str:
    example = {"skill": loaded.name, "path": script, "args": usage(loaded.body, script) or "ARGUMENTS"}
    return (
        f"[Satchel: running scripts here, not part of {MANIFEST}]\n"
        f"{RUN_TOOL} runs a script of this skill where it lies. Folders that the text above may name for other programs"
        f" do not exist here, and no shell finds the script. Arguments, for example: "
        f"{json.dumps(example, ensure_ascii=False)}"
    )


def page_text(skill: Skill, path: str, page: Page, *, repeated: bool) -> str:
    """A page as the model gets it: what it is, its text, and when more follows the call for that."""
    head = [f"Skill: {skill.name}", f"File: {path}"]
    if page.start or not page.is_last:
        head.append(f"Bytes {page.start}-{page.end} of {page.total}")
    if repeated:
        head.append("(You have read this before in this turn; here it is again.)")
    text = "\n".join(head) + "\n\n" + page.text
    if page.is_last:
        return text
    return f"{text}\n\n[Truncated. Continue with {read_call(skill.name, path, page.end)}.]"


def delivered(access: SkillAccess, loaded: LoadedSkill, page: Page, *, repeated: bool) -> ToolResult:
    """The last page of the instructions, with the index of the bundled files and how to run those that can be."""
    text = page_text(loaded.skill, MANIFEST, page, repeated=repeated)
    files = bundled(loaded)
    if files:
        lines = [
            f"- {one_line(file.path)}{'' if file.is_text else ' [binary]'} ({format_bytes(file.bytes)})"
            for file in files[:INDEX_FILES]
        ]
        if len(files) > INDEX_FILES:
            lines.append(f'({len(files) - INDEX_FILES} more; call {LIST_TOOL}(skill="{loaded.name}"))')
        head = f"[Files of this skill, not part of SKILL.md; read one with {READ_TOOL} when the task calls for it]"
        text = "\n".join((text.rstrip("\r\n"), "", head, *lines))
    scripts = access.scripts(loaded)
    if scripts:
        text += f"\n\n{_how_to_run(loaded, scripts[0].path)}"
    return ToolResult(
        text=text,
        skill=loaded.name,
        path=MANIFEST,
        loaded=loaded.skill.ref,
        loaded_bytes=loaded.manifest_bytes,
    )
