"""``skill_read``: the full instructions of one skill, without the frontmatter, as ``skill_search`` points to them."""

from __future__ import annotations

from satchel.chat.request import ToolSpec
from satchel.errors import PathError, SkillError
from satchel.skills.model import MANIFEST, Page
from satchel.tools.access import FULL_TOOL, SkillAccess, text_argument, told
from satchel.tools.base import ToolCall, ToolContext, ToolResult
from satchel.tools.skills_read import delivered, page_text

SPEC = ToolSpec(
    name=FULL_TOOL,
    description="Load the full instructions of one skill.",
    parameters={
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "The skill's name, as a search or a listing gave it."}
        },
        "required": ["name"],
    },
)


class SkillRead:
    """Answers with the body alone; instructions longer than a page come in the pages of ``skills_read``."""

    def __init__(self, access: SkillAccess) -> None:
        self._access = access

    @property
    def spec(self) -> ToolSpec:
        return SPEC

    async def run(self, call: ToolCall, context: ToolContext) -> ToolResult:
        del context
        given = text_argument(call.arguments, "name", "skill", "skill_name")
        skill = self._access.find(given) if given else None
        if skill is None:
            return self._access.no_such_skill(given, tool=FULL_TOOL)
        try:
            page, repeated = await self._access.read(skill, MANIFEST, 0)
            if not page.is_last:
                return ToolResult(
                    text=page_text(skill, MANIFEST, page, repeated=repeated), skill=skill.name, path=MANIFEST
                )
            loaded = await self._access.load(skill)
        except (PathError, SkillError) as error:
            return told(error, skill=skill.name, path=MANIFEST)
        body = loaded.body.lstrip("\r\n")
        whole = Page(text=body, start=0, end=page.end, total=page.end)
        return delivered(self._access, loaded, whole, repeated=repeated)
