"""What a turn puts in front of the model before the first round: which skills it may reach, and the block of text."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from satchel.chat.capabilities import ModelCapabilities
from satchel.chat.messages import Message
from satchel.context.block import Block, BlockOptions, plan
from satchel.context.place import place
from satchel.engine.request import SkillSelection
from satchel.errors import RequestError
from satchel.skills.catalog import Catalog
from satchel.skills.model import LoadedSkill, Skill
from satchel.skills.names import near_names

LIST_TOOL = "skills_list"
READ_TOOL = "skills_read"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """The skills of one turn. ``selected`` were asked for or came with the request, ``others`` are advertised.

    Nothing else can be read.
    """

    selected: tuple[Skill, ...] = ()
    others: tuple[Skill, ...] = ()

    @property
    def reachable(self) -> tuple[Skill, ...]:
        """Both, sorted by name."""
        return tuple(sorted((*self.selected, *self.others), key=lambda skill: skill.name))


def reach(catalog: Catalog, selection: SkillSelection) -> Reach:
    """What the selection opens of the catalogue. Raises ``RequestError`` for names that no skill has."""
    inline = tuple(skill.loaded.skill for skill in selection.inline)
    brought = {skill.name.casefold() for skill in inline}
    picked, unknown = catalog.pick(name for name in selection.names if name.casefold() not in brought)
    if unknown:
        raise _unknown_names(catalog, unknown)
    chosen = (*inline, *(skill for skill in picked if skill.name.casefold() not in brought))
    selected = tuple(sorted(chosen, key=lambda skill: skill.name))
    if not selection.discovery:
        return Reach(selected=selected)
    names = {skill.name for skill in selected}
    others = (skill for skill in catalog.offered if skill.name.casefold() not in brought)
    return Reach(selected=selected, others=tuple(skill for skill in others if skill.name not in names))


def _unknown_names(catalog: Catalog, unknown: Sequence[str]) -> RequestError:
    names = [skill.name for skill in catalog.skills]
    near = {name: list(near_names(name, names)) for name in unknown}
    quoted = ", ".join(f'"{name}"' for name in unknown)
    found = [f'"{match}"' for matches in near.values() for match in matches]
    if found:
        hint = f"Did you mean {' or '.join(dict.fromkeys(found))}?"
    elif names:
        hint = f"Available skills: {', '.join(names[:20])}{' and more' if len(names) > 20 else ''}."  # noqa: PLR2004
    else:
        hint = "No skills are registered here."
    return RequestError(
        "invalid-request",
        f"No skill is called {quoted}." if len(unknown) == 1 else f"No skills are called {quoted}.",
        hint=hint,
        data={"field": "skills", "unknown": list(unknown), "suggestions": near},
    )


def block_for(
    selected: Sequence[LoadedSkill],
    others: Sequence[Skill],
    *,
    capabilities: ModelCapabilities,
    own_tools: Collection[str],
) -> Block | None:
    """The block for this model, or None where the upstream adapter shows the skills itself."""
    if capabilities.tools == "guided" and READ_TOOL in own_tools:
        return None
    return plan(
        selected,
        others,
        BlockOptions(
            context_tokens=capabilities.context_tokens,
            read_tool=READ_TOOL in own_tools,
            list_tool=LIST_TOOL in own_tools,
        ),
    )


def with_block(
    messages: Sequence[Message], block: Block | None, capabilities: ModelCapabilities
) -> tuple[Message, ...]:
    """The conversation with the block at its one place."""
    return place(messages, block.text, capabilities) if block is not None else tuple(messages)
