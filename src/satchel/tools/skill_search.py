"""``skill_search``: which of the reachable skills a task is about, when there are more than a listing can hold."""

from __future__ import annotations

import asyncio

from satchel.chat.request import ToolSpec
from satchel.context.budget import DESCRIPTION_CAP, truncate
from satchel.context.marks import unmarked_line
from satchel.skills.oneline import one_line
from satchel.tools.access import FULL_TOOL, LIST_TOOL, SEARCH_TOOL, SkillAccess, count_argument, text_argument
from satchel.tools.base import ToolCall, ToolContext, ToolResult, failure

_LONGEST_QUERY = 1000
_FOUND = 5
_MOST_FOUND = 20

SPEC = ToolSpec(
    name=SEARCH_TOOL,
    description=(
        "Search all available skills, also those that are not listed. Describe the task in a few words; a skill that is"
        " named as $name comes first."
    ),
    parameters={
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "What the task is about."},
            "limit": {"type": "integer", "description": f"Most skills to return, {_FOUND} when left out."},
        },
        "required": ["query"],
    },
)


class SkillSearch:
    """Finds skills by mention and by BM25 over names and descriptions. Finds nothing that the turn cannot read."""

    def __init__(self, access: SkillAccess) -> None:
        self._access = access

    @property
    def spec(self) -> ToolSpec:
        return SPEC

    async def run(self, call: ToolCall, context: ToolContext) -> ToolResult:
        del context
        query = text_argument(call.arguments, "query", "q", "text", "task")[:_LONGEST_QUERY]
        if not query:
            return failure("missing-argument", f"{SEARCH_TOOL} needs a query that says what the task is about.")
        limit = min(count_argument(call.arguments, "limit", "top_n") or _FOUND, _MOST_FOUND)
        # The index over a large catalogue takes a while to make.
        found = await asyncio.to_thread(self._access.search, query, limit)
        if not found:
            every = f"{LIST_TOOL}() lists all {len(self._access.skills)} skills."
            return ToolResult(text=f"No skill matches. Try other words; {every}")
        lines = [
            f"- {one_line(skill.name)}: {truncate(unmarked_line(skill.summary), DESCRIPTION_CAP)}" for skill in found
        ]
        return ToolResult(text="\n".join((*lines, "", f'Load one with {FULL_TOOL}(name="{found[0].name}").')))
