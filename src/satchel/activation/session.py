"""The activation session: which skills are in one conversation, and every check on the way there.

Order of the checks (seed 000, section 7, and its code): the call's keys and shape; already active; known; usable;
disabled for this caller; arguments; body and files; sensitive place; fence; trust and permission; placing arguments.
A refusal changes nothing: the skill is not active, and the next call is judged anew.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from weakref import WeakKeyDictionary

from satchel.activation.calls import ModelCall, answers, read_calls
from satchel.activation.carry import Carried, Marker, carry, find_markers
from satchel.activation.enforce import ToolDecision, ToolPolicy, judge_call
from satchel.activation.gate import Gate
from satchel.activation.loading import By, instructions_of, load_entry, require_caller, require_usable
from satchel.activation.params import (
    Given,
    check_arguments,
    command_arguments,
    parse_command,
    parse_input,
    require_name,
)
from satchel.activation.permission import PermissionHook
from satchel.activation.registry import FilesystemSkillRegistry, Skills, open_registry, roots_of
from satchel.activation.reply import (
    Activation,
    Bodies,
    RefusedError,
    already_loaded,
    no_such_tool,
    not_found,
    resources_of,
    with_shadowed,
    without_tools,
)
from satchel.activation.schema import TOOL, Shape, instructions, tool_schema
from satchel.activation.shelf import Shelf
from satchel.activation.state import Active, from_json, granted_patterns, to_json
from satchel.activation.trust import SENSITIVE, Trust
from satchel.chat.messages import Json
from satchel.errors import StoreError
from satchel.ports.skills import SkillEntry
from satchel.ports.state import AuditLog
from satchel.skills.dialect import Dialect
from satchel.skills.dialects import PORTABLE, find_dialect
from satchel.skills.model import LoadedSkill, Skill
from satchel.skills.named_tools import missing_tools


class SkillSession:
    """The skills of one conversation: activated once each, under the host's permission (seed 000).

    ``skills`` is a ``Library``, directories, a ``SkillRegistry``, a ``SkillSource``, or several of these in order of
    precedence. ``permission`` is asked about every activation; without it only trusted skills activate. ``dialect``
    counts for directories and arguments (a library brings its own). ``workspace`` are further directories that skills
    may lie in, ``sensitive`` globs of places where none should. A hook that takes longer than ``hook_timeout_s`` has
    denied. ``state`` is what ``snapshot`` gave. ``bodies`` says where instructions stand: in the "result" of each
    activation, or in the "system" prompt, where the host puts ``active_message`` before every generation. ``environ``
    are values of ``${NAME}`` in bodies, beside those that the dialect knows. ``unsafe_allow_skill_without_hook`` is for
    tests. ``host_tools`` are the names of all other tools that the model has, and may be set anew at any time: an
    activation then says which tools the skill names that are not among them. None says nothing.

    Activations of one session happen one after another, in the order in which they were asked for.

    Raises:
        SetupError: "setting-invalid" for skills that are none, or an unknown dialect.
        StoreError: "state-invalid" for a ``state`` that is none.
    """

    def __init__(
        self,
        skills: Skills | Iterable[Skills],
        *,
        permission: PermissionHook | None = None,
        trust: Trust = Trust(),  # noqa: B008 - it never changes
        tool_policy: ToolPolicy = ToolPolicy(),  # noqa: B008 - it never changes
        dialect: str | Dialect | None = None,
        audit: AuditLog | None = None,
        state: Mapping[str, Json] | None = None,
        session_id: str = "",
        workspace: Collection[str | os.PathLike[str]] = (),
        sensitive: Sequence[str] = SENSITIVE,
        bodies: Bodies = "result",
        environ: Mapping[str, str] | None = None,
        unsafe_allow_skill_without_hook: bool = False,
        hook_timeout_s: float = 300.0,
        host_tools: Collection[str] | None = None,
    ) -> None:
        registry = open_registry(skills, dialect=PORTABLE if dialect is None else dialect)
        self.dialect = find_dialect(PORTABLE if dialect is None else dialect)
        if dialect is None and isinstance(registry, FilesystemSkillRegistry):
            self.dialect = registry.library.dialect
        lists_all = (
            permission is not None
            or unsafe_allow_skill_without_hook
            or trust.untrusted_project_skills != "hook_required"
        )
        self._shelf = Shelf(registry, self.dialect, trust, lists_all=lists_all)
        self._policy = tool_policy
        self.bodies: Bodies = bodies
        self.host_tools = host_tools
        self._environ = dict(environ or {})
        self._gate = Gate(
            session=session_id or secrets.token_hex(8),
            permission=permission,
            trust=trust,
            audit=audit,
            workspace=(*(os.fspath(path) for path in workspace), *roots_of(registry)),
            sensitive=tuple(sensitive),
            unsafe_without_hook=unsafe_allow_skill_without_hook,
            timeout_s=hook_timeout_s,
        )
        self._active: dict[str, Active] = {}
        self._turn = 0
        self._locks: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()
        self._offered: dict[tuple[str, bool], str] = {}
        self._instructions: str | None = None
        if state is not None:
            self.restore(state)

    @property
    def id(self) -> str:
        """The session's name in the audit log and in ``${SESSION_ID}``."""
        return self._gate.session

    @property
    def turn(self) -> int:
        """How many calls, or answers to a round of calls, there were."""
        return self._turn

    @property
    def active(self) -> tuple[Skill, ...]:
        """The active skills, the most recent last."""
        return tuple(item.skill for item in self._active.values())

    # What the model is told.

    def tools(self, shape: Shape = "openai", *, names: bool = False) -> list[dict[str, Json]]:
        """The tool's declaration, the same through the whole session. ``names`` lists the skills' names in it."""
        key = (shape, names)
        if key not in self._offered:
            listed = [skill.name for skill in self.offered] if names else ()
            self._offered[key] = json.dumps(tool_schema(shape, listed))
        return [json.loads(self._offered[key])]

    def system_message(self) -> dict[str, Json]:
        """``{"role": "system", "content": ...}`` with the list of skills, the same through the whole session."""
        if self._instructions is None:
            self._instructions = instructions(self.offered, dialect=self.dialect, bodies=self.bodies)
        return {"role": "system", "content": self._instructions}

    def active_message(self) -> dict[str, Json] | None:
        """A system message with the instructions of all active skills, the most recent last; None without any.

        Where ``bodies`` is "result" they stand in the conversation already, and there is never such a message.
        """
        if self.bodies == "result" or not self._active:
            return None
        blocks = "\n\n".join(item.rendered() for item in self._active.values())
        return {"role": "system", "content": f"## Active skills\n\n{blocks}"}

    @property
    def offered(self) -> tuple[Skill, ...]:
        """The skills that a model is told of, by name.

        Without a permission hook, skills from roots that are not trusted are left out, and named in the log.

        Raises:
            SetupError: "setting-invalid" before ``discover``, when the skills come from a registry.
        """
        return self._shelf.offered()

    async def discover(self) -> tuple[SkillEntry, ...]:
        """The catalogue, with the skills that cannot be used among it. Asks the registry the first time.

        Raises:
            StoreError: "store-unavailable" when the registry fails.
        """
        try:
            await self._shelf.decide_what_is_listed()
            return tuple((await self._shelf.known()).values())
        except RefusedError as refusal:
            raise StoreError("store-unavailable", f"{refusal.reply.message} {refusal.reply.reason}") from refusal

    async def reload(self) -> tuple[SkillEntry, ...]:
        """Asks the registry again, and reads directories again. Active skills, and what was told of them, stay."""
        async with self._locked():
            await self._shelf.forget()
        return await self.discover()

    # Activating.

    async def activate(self, name: str, arguments: Given = None, *, by: By = "model") -> Activation:
        """Activates one skill. Never raises for what a model, a skill or a hook does."""
        return await self.call({"name": name, "arguments": arguments}, by=by)

    async def call(self, tool_input: object, *, by: By = "model") -> Activation:
        """The same from the tool's input as the model wrote it: a mapping with ``name`` and ``arguments``."""
        self._turn += 1
        return await self._call(tool_input, by, self._turn)

    async def invoke(self, text: str) -> Activation | None:
        """What a user typed: ``/name arguments`` of a known skill is activated; None for any other text."""
        command = parse_command(text)
        if command is None:
            return None
        try:
            entry = await self._shelf.find(command[0])
        except RefusedError as refusal:
            return refusal.reply
        if entry is None:
            return None
        given = command_arguments(command[1], entry.skill, self.dialect) if entry.skill else None
        return await self.activate(entry.name, given, by="user")

    async def answer(self, calls: object) -> list[Json]:
        """The messages that answer a round of calls, in call order; [] for None or no calls.

        ``calls`` are OpenAI ``tool_calls`` or Anthropic content blocks, as objects or dicts. A call to another tool is
        answered with an error, so pass those that are the host's own elsewhere.
        """
        self._turn += 1
        turn = self._turn
        replies: list[tuple[ModelCall, str, bool]] = []
        read = read_calls(calls)
        try:
            for call in read:
                if call.name != TOOL:
                    replies.append((call, no_such_tool(call.name), False))
                    continue
                reply = await self._call(call.arguments, "model", turn)
                replies.append((call, reply.output, reply.ok))
        finally:
            if len(replies) < len(read):
                self.untold(turn - 1)
        return answers(replies)

    def untold(self, since: int) -> None:
        """Skills activated after the turn ``since`` never reached a model: their next activation has the whole text.

        For hosts that lose an answer between getting and sending it; ``answer`` says so itself when it is cancelled.
        """
        for item in self._active.values():
            item.is_whole = item.is_whole and item.turn <= since

    async def check_call(self, tool: str, arguments: object) -> ToolDecision:
        """Whether a call to another tool may run while these skills are active; see ``ToolPolicy``.

        ``arguments`` are as the model wrote them, read from JSON: what is no object is refused.
        """
        if tool == TOOL:
            return ToolDecision(allowed=True, who="policy")
        timeout_s = self._gate.timeout_s
        decision = await judge_call(self._policy, tool, arguments, [*self._active.values()], timeout_s=timeout_s)
        failure = await self._gate.record(
            event="tool",
            decision="allow" if decision.allowed else "deny",
            who=decision.who,
            skill=decision.skill,
            digest=decision.digest,
            tool=str(tool),
            code="" if decision.allowed else "PERMISSION_DENIED",
            reason=decision.reason,
        )
        if failure and decision.allowed:
            output = f"Error [PERMISSION_DENIED]: the call to {tool} could not be recorded.\nReason: {failure}"
            return replace(decision, allowed=False, who="policy", reason=failure, output=output)
        return decision

    # The conversation grows shorter, ends, goes on elsewhere.

    def unload(self, name: str) -> bool:
        """Takes an active skill out, so that it can be activated anew; False when it was not active."""
        return self._active.pop(name, None) is not None

    def find_markers(self, text: str) -> tuple[Marker, ...]:
        """Where ``text`` holds blocks of active skills exactly as this session gave them out."""
        return find_markers(self._active.values(), text)

    def carry_forward(
        self, tokens_per_skill: int = 5000, tokens_total: int = 25000, *, kept: Iterable[str] = ()
    ) -> Carried:
        """What to put into a conversation that is being shortened: the active skills, most recent first.

        ``kept`` are texts that stay in it as they are; skills whose block stands in one are not given again. A skill
        that is cut here, or has no room, answers the next activation with its whole text.
        """
        there = {marker.name for text in kept for marker in self.find_markers(text)}
        carried = carry(
            [item for item in self._active.values() if item.name not in there],
            tokens_per_skill=tokens_per_skill,
            tokens_total=tokens_total,
        )
        whole = there | {skill.name for skill in carried.skills if not skill.is_cut}
        for item in self._active.values():
            item.is_whole = item.name in whole
        return carried

    def snapshot(self) -> dict[str, Json]:
        """The session as plain JSON. It holds the bodies: keep it where the conversation itself is kept."""
        return to_json(self.id, self._turn, [*self._active.values()])

    def restore(self, state: Mapping[str, Json]) -> None:
        """Becomes the session of a ``snapshot``. Raises ``StoreError`` "state-invalid"."""
        session, self._turn, active = from_json(state)
        self._gate = replace(self._gate, session=session)
        self._active = {item.name: item for item in active}

    # Inside.

    async def _call(self, tool_input: object, by: By, turn: int) -> Activation:
        async with self._locked():
            try:
                return await self._activated(tool_input, by, turn)
            except RefusedError as refusal:
                await self._gate.record_refusal(refusal, by=by)
                return refusal.reply

    async def _activated(self, tool_input: object, by: By, turn: int) -> Activation:
        given = parse_input(tool_input)
        name = given.name
        known = self._active.get(name)
        if known is None:
            entry = await self._shelf.find(name)
            if entry is None or entry.skill is None:
                require_name(name, is_kebab=by == "model")
            known = self._active.get(entry.name) if entry else None
            if entry is None:
                return not_found(name, await self._shelf.siblings(name, for_model=by == "model"))
            if known is None:
                return await self._loaded(entry, given.arguments, by, turn)
        if known.is_whole:
            return already_loaded(known.name, known.turn)
        # A compaction took it out of the conversation, so what the host allowed then is given again.
        del self._active[known.name]
        known.is_whole, known.turn = True, turn
        self._active[known.name] = known
        return self._told(known)

    async def _loaded(self, entry: SkillEntry, arguments: Given, by: By, turn: int) -> Activation:
        skill = require_usable(entry)
        require_caller(skill, by)
        check_arguments(skill, arguments, self.dialect)
        loaded, place = await load_entry(self._shelf.registry, entry, partial(self._gate.look, entry))
        # What is read now counts, also where it is another text than was found.
        require_caller(loaded.skill, by)
        text = check_arguments(loaded.skill, arguments, self.dialect)
        passed = await self._gate.judge(entry, loaded, place, by=by)
        body = self._body(loaded, text)
        active = self._active.get(entry.name)
        if active is not None:
            return already_loaded(active.name, active.turn)  # in another loop, meanwhile
        known = loaded.skill
        item = Active(
            skill=known if known.name == entry.name else replace(known, ref=replace(known.ref, name=entry.name)),
            turn=turn,
            nonce=secrets.token_hex(8),
            body=body,
            frontmatter=with_shadowed(loaded.skill.frontmatter, skill.shadowed),
            resources=resources_of(loaded),
            granted=granted_patterns(loaded.skill),
            consent=passed.consent,
        )
        self._active[entry.name] = item
        return self._told(item, passed.warnings)

    def _told(self, item: Active, warnings: tuple[str, ...] = ()) -> Activation:
        reply = item.reply(warnings)
        if self.bodies == "system":
            text = f'(Skill "{item.name}" activated. Its instructions stand in the system prompt.)'
            reply = replace(reply, output=text)
        there = self.host_tools
        missing = () if there is None else missing_tools(item.skill.allowed_tools, item.body, {*there, TOOL})
        return without_tools(reply, missing)

    def _body(self, loaded: LoadedSkill, arguments: str | dict[str, str] | None) -> str:
        return instructions_of(loaded, arguments, dialect=self.dialect, session=self.id, environ=self._environ)

    def _locked(self) -> asyncio.Lock:
        """One lock a loop: a program may run each call in a loop of its own."""
        return self._locks.setdefault(asyncio.get_running_loop(), asyncio.Lock())
