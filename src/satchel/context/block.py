"""The text about skills that stands in front of a conversation. It is a pure function of skills and options.

No path, clock, count of the registry or order of the caller's list reaches it, so that the same conversation starts
with the same bytes turn after turn and a model server can reuse its cache.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from satchel.context.budget import (
    CATALOG_ENTRIES,
    DESCRIPTION_CAP,
    DESCRIPTION_STEPS,
    body_cap,
    format_bytes,
    inline_budget,
    metadata_budget,
    tokens,
    truncate,
)
from satchel.context.marks import unmarked_line
from satchel.skills.model import LoadedSkill, Skill
from satchel.skills.oneline import one_line

HEADING = "## Agent skills"

_LEAD = (
    "Settle what the user asks for before you pick a tool. Use a skill that the user names or whose description matches"
    " the request. When information or a choice that you need is missing, ask one focused question and wait for the"
    " answer before any step that depends on it; once the user supplies it or confirms a handoff, resume the pending"
    " task."
)
_DEFINITION = (
    "A skill is a set of instructions for one kind of task, which for that task outrank your default approach; not"
    " every request needs a skill that is listed or selected here."
)
_SELECTED = "### Skills selected for this conversation"
_OTHERS = "### Other available skills"
_OTHERS_NOTE = "If one of these fits the task better, load it with skills_read."
_INSTRUCTIONS = "### Instructions of the selected skills"
_HOW = "### How to use a skill"
_HOW_WITH_TOOLS = (
    "Use a skill that the user names (also as $name) or whose scope matches; call no skill tool just to start a turn.",
    'Before acting, read its whole SKILL.md: skills_read(skill="NAME", path="SKILL.md").',
    "When a file comes back truncated, continue from the offset it reports.",
    "Relative paths in a skill lie inside that skill, never on the host; another agent's install paths are examples.",
    "Load a reference only when the task calls for it.",
)
_SCRIPTS = "Prefer a script that the skill ships to retyping its logic; skills_read shows it and does not run it."
_SCRIPTS_RUN = (
    "Prefer a script that the skill ships to retyping its logic: skills_run runs it where it lies, so never copy it."
)
_HOW_WITHOUT_TOOLS = (
    "Use a skill that the user names (also as $name) or whose scope matches.",
    "Follow its instructions as they stand here.",
    "Other files that they mention cannot be opened in this conversation: say so when the task needs one.",
)
_CUT = "[The instructions are cut here; the rest cannot be read in this conversation.]"

_SELECTED_COST = 32
_INLINED_COST = 64
_DEFERRED_COST = 48
_ENTRY_COST = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockOptions:
    """``context_tokens`` is the model's window, None when unknown.

    ``max_block_tokens`` replaces every budget: the whole text keeps to it, except that selected skills stay listed.
    ``read_tool`` and ``list_tool``: whether skills_read and skills_list are declared; ``search_tool``: whether
    skill_search is when skills had to be left out; ``run_tool``: whether skills_run is. ``inline_selected`` puts bodies
    of selected skills into the block, for models that would not make the extra call.
    """

    context_tokens: int | None = None
    max_block_tokens: int | None = None
    read_tool: bool = True
    list_tool: bool = True
    search_tool: bool = False
    run_tool: bool = False
    inline_selected: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryCost:
    """What one skill's entry takes, in estimated tokens; ``shortened`` when its description was cut."""

    name: str
    tokens: int
    shortened: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """The ``text``, "" when there is nothing to say, and what became of each skill.

    ``inlined``: the body is in the text. ``deferred``: selected, the body is not. ``advertised``: listed with its
    description. ``omitted``: how many others did not fit.
    """

    text: str = ""
    deferred: tuple[str, ...] = ()
    inlined: tuple[str, ...] = ()
    advertised: tuple[str, ...] = ()
    omitted: int = 0
    tokens: int = 0
    entries: tuple[EntryCost, ...] = ()


@dataclass(slots=True)
class _Draft:
    deferred: list[str] = field(default_factory=list[str])
    inlined: list[str] = field(default_factory=list[str])
    bodies: list[str] = field(default_factory=list[str])
    listed: list[str] = field(default_factory=list[str])
    others: list[str] = field(default_factory=list[str])
    entries: list[EntryCost] = field(default_factory=list[EntryCost])

    def add(self, lines: list[str], name: str, line: str, *, shortened: bool) -> None:
        lines.append(line)
        self.entries.append(EntryCost(name=name, tokens=tokens(line + "\n"), shortened=shortened))


def plan(selected: Sequence[LoadedSkill], others: Sequence[Skill], options: BlockOptions) -> Block:
    """Decides what fits and renders it. A skill in both lists counts as selected."""
    chosen = _unique(selected)
    names = {loaded.name.casefold() for loaded in chosen}
    catalog = [skill for skill in _unique(others) if skill.name.casefold() not in names] if options.read_tool else []
    if not chosen and not catalog:
        return Block()
    draft = _Draft()
    spent = _place_selected(draft, chosen, options)
    omitted = 0
    if catalog:
        room = _block_budget(options, inlines=bool(draft.inlined)) - spent
        if options.max_block_tokens is not None:
            room -= tokens(_render(_Draft(), options, omitted=len(catalog), has_others=True))
        omitted = _fill(draft, catalog, room)
    advertised = tuple(entry.name for entry in draft.entries if entry.name.casefold() not in names)
    text = _render(draft, options, omitted=omitted, has_others=bool(catalog))
    return Block(
        text=text,
        deferred=tuple(draft.deferred),
        inlined=tuple(draft.inlined),
        advertised=advertised,
        omitted=omitted,
        tokens=tokens(text),
        entries=tuple(draft.entries),
    )


def render_block(
    selected: Sequence[LoadedSkill] = (), others: Sequence[Skill] = (), *, options: BlockOptions | None = None
) -> str:
    """The text alone, for a prompt of your own."""
    return plan(selected, others, options or BlockOptions()).text


def _block_budget(options: BlockOptions, *, inlines: bool) -> int:
    if options.max_block_tokens is not None:
        return options.max_block_tokens
    return (inline_budget if inlines else metadata_budget)(options.context_tokens)


def _place_selected(draft: _Draft, chosen: Sequence[LoadedSkill], options: BlockOptions) -> int:
    """Puts the selected skills into the draft, each listed or with its body, and returns what they cost."""
    spent = 0
    if options.read_tool and not options.inline_selected:
        for loaded in chosen:
            spent += max(_SELECTED_COST + tokens(_listing(loaded.skill, DESCRIPTION_CAP)), _list(draft, loaded))
        return spent
    budget = _block_budget(options, inlines=True)
    cap = body_cap(budget)
    for loaded in chosen:
        body = loaded.body.strip("\r\n")
        cost = tokens(body)
        is_first = not draft.inlined
        if is_first and not options.read_tool:
            # Without tools there is no second chance: the beginning of the instructions beats none of them.
            if cost > cap:
                body = body.encode("utf-8", "replace")[: cap * 4].decode("utf-8", "ignore").rstrip() + "\n\n" + _CUT
                cost = cap
        elif cost > cap or spent + cost + _INLINED_COST > budget:
            if options.read_tool:
                spent += max(_DEFERRED_COST, _list(draft, loaded))
            else:
                draft.deferred.append(loaded.name)
            continue
        text = wrapped(loaded, body)
        draft.inlined.append(loaded.name)
        draft.add(draft.bodies, loaded.name, text, shortened=body.endswith(_CUT))
        spent += cost + _INLINED_COST
    return spent


def _list(draft: _Draft, loaded: LoadedSkill) -> int:
    name = one_line(loaded.name)
    description = _listing(loaded.skill, DESCRIPTION_CAP)
    size = format_bytes(loaded.manifest_bytes)
    line = f'- {name}: {description} ({size}: skills_read(skill="{name}", path="SKILL.md"))'
    draft.deferred.append(loaded.name)
    draft.add(draft.listed, loaded.name, line, shortened=description != _listing(loaded.skill))
    return draft.entries[-1].tokens


def _fill(draft: _Draft, catalog: Sequence[Skill], room: int) -> int:
    """Lists what fits into ``room`` tokens, all shortened before any is left out; returns how many were left out."""
    candidates = catalog[:CATALOG_ENTRIES]
    whole = [_listing(skill) for skill in candidates]
    length = DESCRIPTION_STEPS[-1]
    for step in DESCRIPTION_STEPS:
        if sum(_entry(skill, truncate(text, step))[1] for skill, text in zip(candidates, whole, strict=True)) <= room:
            length = step
            break
    omitted = len(catalog) - len(candidates)
    for skill, text in zip(candidates, whole, strict=True):
        description = truncate(text, length)
        line, cost = _entry(skill, description)
        if cost > room:
            omitted += 1
            continue
        room -= cost
        draft.add(draft.others, skill.name, line, shortened=description != text)
    return omitted


def _entry(skill: Skill, description: str) -> tuple[str, int]:
    line = f"- {one_line(skill.name)}: {description}"
    return line, max(tokens(description) + _ENTRY_COST, tokens(line + "\n"))


def _listing(skill: Skill, limit: int | None = None) -> str:
    """The description as one line that a chat template cannot take for one of its own marks."""
    text = unmarked_line(skill.summary)
    return text if limit is None else truncate(text, limit)


def wrapped(loaded: LoadedSkill, body: str) -> str:
    """The body between marks that it cannot contain: they carry a digest of what they enclose."""
    name = one_line(loaded.name)
    mark = hashlib.sha256(f"{name}\0{body}".encode("utf-8", "replace")).hexdigest()[:16]
    return f'<skill name="{name}" mark="{mark}">\n{body}\n</skill mark="{mark}">'


def _render(draft: _Draft, options: BlockOptions, *, omitted: int, has_others: bool) -> str:
    parts = [_LEAD] if options.read_tool else []
    parts.append(f"{HEADING}\n\n{_DEFINITION}")
    if draft.listed:
        parts.append("\n".join((_SELECTED, *draft.listed)))
    if draft.bodies:
        parts.append("\n\n".join((_INSTRUCTIONS, *draft.bodies)))
    if draft.deferred and not options.read_tool:
        parts.append(f"Selected too, but too long to be included: {', '.join(map(one_line, draft.deferred))}.")
    if has_others:
        lines = [_OTHERS, _OTHERS_NOTE, *draft.others]
        if omitted:
            further = "1 further skill is" if omitted == 1 else f"{omitted} further skills are"
            ways = "; call skill_search with what the task is about" if options.search_tool else ""
            if options.list_tool:
                ways += ", or skills_list to see them" if ways else "; call skills_list to see them"
            lines.append(f"({further} installed{ways}.)")
        parts.append("\n".join(lines))
    with_tools = (*_HOW_WITH_TOOLS, _SCRIPTS_RUN if options.run_tool else _SCRIPTS)
    rules = with_tools if options.read_tool else _HOW_WITHOUT_TOOLS
    parts.append("\n".join((_HOW, *(f"- {rule}" for rule in rules))))
    return "\n\n".join(parts)


def _order(skill: Skill | LoadedSkill) -> tuple[str, str, str]:
    record = skill.skill if isinstance(skill, LoadedSkill) else skill
    return record.name, record.ref.source, record.summary


_Named = TypeVar("_Named", Skill, LoadedSkill)


def _unique(skills: Iterable[_Named]) -> list[_Named]:
    """Sorted by name (code points), each name once in whatever case."""
    found: dict[str, _Named] = {}
    for skill in sorted(skills, key=_order):
        found.setdefault(skill.name.casefold(), skill)
    return list(found.values())
