"""What a turn puts in front of the model before the first round: which skills it may reach, and the block of text."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from satchel.chat.capabilities import ModelCapabilities
from satchel.chat.messages import Message, Text
from satchel.context.block import Block, BlockOptions, plan
from satchel.context.place import place
from satchel.engine.request import SkillSelection
from satchel.errors import RequestError
from satchel.skills.catalog import Catalog
from satchel.skills.model import LoadedSkill, Skill
from satchel.skills.names import near_names
from satchel.skills.rank import mentioned

LIST_TOOL = "skills_list"
READ_TOOL = "skills_read"
RUN_TOOL = "skills_run"
SEARCH_TOOL = "skill_search"
FULL_TOOL = "skill_read"
SEARCH_TOOLS = frozenset({SEARCH_TOOL, FULL_TOOL})
"""Offered only when the block had to leave skills out."""
_MAX_UNKNOWN = 8
_MAX_SHOWN_CHARS = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """The skills of one turn. ``selected`` were asked for or came with the request, ``others`` are advertised.

    ``named`` are further ones that a user's message mentions, which no model may invoke by itself. Nothing else can be
    read.
    """

    selected: tuple[Skill, ...] = ()
    others: tuple[Skill, ...] = ()
    named: tuple[Skill, ...] = ()

    @property
    def reachable(self) -> tuple[Skill, ...]:
        """All of them, sorted by name."""
        return tuple(sorted((*self.selected, *self.others, *self.named), key=lambda skill: skill.name))


@dataclass(frozen=True, slots=True, kw_only=True)
class Mentions:
    """``by_message``: the skills that users' messages name as $name, each at its first mention.

    ``unknown``: names in the last of these messages that lead to no skill of this turn.
    """

    by_message: Mapping[int, tuple[Skill, ...]] = field(default_factory=dict[int, tuple[Skill, ...]])
    unknown: tuple[str, ...] = ()


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


def mentions(messages: Sequence[Message], catalog: Catalog, open_to: Reach, selection: SkillSelection) -> Mentions:
    """What users name in their own messages, as far as the selection lets them."""
    allowed = {skill.name for skill in open_to.selected}
    if selection.discovery:
        allowed |= {skill.name for skill in catalog.skills}
    chosen = {skill.name.casefold(): skill for skill in open_to.selected}
    found: dict[int, tuple[Skill, ...]] = {}
    unknown: list[str] = []
    seen: set[str] = set()
    for index, said in enumerate(messages):
        if said.role != "user":
            continue
        unknown = []
        for name in (name for part in said.parts if isinstance(part, Text) for name in mentioned(part.text)):
            skill = chosen.get(name) or catalog.get(name)
            if skill is None or skill.name not in allowed or not skill.flags.user_may_name:
                unknown.append(name)
            elif skill.name not in seen:
                seen.add(skill.name)
                found[index] = (*found.get(index, ()), skill)
    return Mentions(by_message=found, unknown=tuple(dict.fromkeys(unknown)))


def unknown_mentions(named: Mentions) -> tuple[str, ...]:
    """What there is to say of names that lead to no skill; few sentences, however many names there are."""
    said = [f"${_cut(name)} names no skill; it stays text." for name in named.unknown[:_MAX_UNKNOWN]]
    more = len(named.unknown) - _MAX_UNKNOWN
    return (*said, f"{more} further names after a $ name no skill.") if more > 0 else tuple(said)


def _cut(name: str) -> str:
    return name if len(name) <= _MAX_SHOWN_CHARS else f"{name[:_MAX_SHOWN_CHARS]}…"


def with_named(open_to: Reach, named: Mentions) -> Reach:
    """The reach of a turn in which these skills were named."""
    known = {skill.name for skill in open_to.reachable}
    more = (skill for skills in named.by_message.values() for skill in skills if skill.name not in known)
    return replace(open_to, named=tuple(more))


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


def without(withdrawn: Collection[str]) -> frozenset[str]:
    """The tools of ours that are of no use without the withdrawn ones."""
    if READ_TOOL in withdrawn:
        return frozenset({LIST_TOOL, RUN_TOOL, *SEARCH_TOOLS})
    return SEARCH_TOOLS if SEARCH_TOOLS & set(withdrawn) else frozenset()


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
            search_tool=SEARCH_TOOL in own_tools,
            run_tool=RUN_TOOL in own_tools,
        ),
    )


def with_block(
    messages: Sequence[Message], block: Block | None, capabilities: ModelCapabilities
) -> tuple[Message, ...]:
    """The conversation with the block at its one place."""
    return place(messages, block.text, capabilities) if block is not None else tuple(messages)
