"""An active skill, and a session's memory as plain JSON."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from satchel.activation.reply import Activation, behind_block, block, plain
from satchel.chat.messages import Json
from satchel.errors import StoreError
from satchel.skills.fields import YamlValue
from satchel.skills.model import Skill, SkillRef

_VERSION = 1
_NONCE = re.compile("[0-9a-f]{16}")


@dataclass(slots=True, kw_only=True)
class Active:
    """A skill in the conversation, as it was activated: what changes on disk afterwards does not change it.

    ``granted`` are the patterns that its harness would read as a grant, which count only with ``consent``. ``is_whole``
    is False once a compaction has cut it or left it out.
    """

    skill: Skill
    turn: int
    nonce: str
    body: str
    frontmatter: Mapping[str, YamlValue]
    resources: tuple[str, ...]
    granted: tuple[str, ...] = ()
    consent: bool = False
    is_whole: bool = True

    @property
    def name(self) -> str:
        """The name that it was activated by."""
        return self.skill.name

    @property
    def size(self) -> int:
        """Bytes of the body."""
        return len(self.body.encode("utf-8", "replace"))

    def rendered(self) -> str:
        """The ``<skill>`` block with the line behind it."""
        return f"{self.block()}\n{behind_block(self.name, self.skill.location, self.size)}"

    def block(self, body: str | None = None) -> str:
        """The ``<skill>`` block, around this ``body`` when given."""
        return block(
            name=self.name,
            directory=self.skill.location,
            nonce=self.nonce,
            frontmatter=self.frontmatter,
            body=self.body if body is None else body,
            resources=self.resources,
        )

    def reply(self, warnings: tuple[str, ...] = ()) -> Activation:
        """What the model gets."""
        return Activation(
            kind="ok",
            name=self.name,
            output=self.rendered(),
            dir=self.skill.location,
            body=self.body,
            frontmatter=self.frontmatter,
            resources=self.resources,
            bytes=self.size,
            at_turn=self.turn,
            digest=self.skill.ref.digest,
            warnings=warnings,
        )


def granted_patterns(skill: Skill) -> tuple[str, ...]:
    """What the skill's own harness would grant: only its own spelling counts, while any spelling limits (ADR 0007)."""
    return skill.allowed_tools if "allowed-tools" in skill.frontmatter else ()


def to_json(session: str, turn: int, active: Sequence[Active]) -> dict[str, Json]:
    """A session as plain JSON."""
    return {"version": _VERSION, "session": session, "turn": turn, "active": [_row(item) for item in active]}


def from_json(state: Mapping[str, Json]) -> tuple[str, int, list[Active]]:
    """``(session, turn, active)``. Raises ``StoreError`` "state-invalid" for what ``to_json`` does not give."""
    match state:
        case {"version": 1, "session": str(session), "turn": int(turn), "active": list(rows)} if session and _is_turn(
            turn
        ):
            try:
                active = [_active(row) for row in rows]
            except RecursionError as error:
                raise _invalid() from error
            if len({item.name for item in active}) == len(active):
                return session, turn, active
        case _:
            pass
    raise _invalid()


def _row(item: Active) -> dict[str, Json]:
    skill = item.skill
    return {
        "name": skill.name,
        "source": skill.ref.source,
        "digest": skill.ref.digest,
        "description": skill.description,
        "summary": skill.summary,
        "location": skill.location,
        "skill_frontmatter": plain(skill.frontmatter),
        "allowed_tools": list(skill.allowed_tools),
        "disallowed_tools": list(skill.disallowed_tools),
        "turn": item.turn,
        "nonce": item.nonce,
        "body": item.body,
        "frontmatter": plain(item.frontmatter),
        "resources": list(item.resources),
        "granted": list(item.granted),
        "consent": item.consent,
        "is_whole": item.is_whole,
    }


def _active(row: Json) -> Active:
    if not isinstance(row, dict):
        raise _invalid()
    ref = SkillRef(source=_str(row, "source"), name=_str(row, "name"), digest=_str(row, "digest"))
    turn, consent, is_whole = row.get("turn"), row.get("consent"), row.get("is_whole")
    if (
        not ref.name
        or not isinstance(turn, int)
        or not _is_turn(turn)
        or not _NONCE.fullmatch(_str(row, "nonce"))
        or not isinstance(consent, bool)
        or not isinstance(is_whole, bool)
    ):
        raise _invalid()
    return Active(
        skill=Skill(
            ref=ref,
            description=_str(row, "description"),
            summary=_str(row, "summary"),
            frontmatter=_fields(row, "skill_frontmatter"),
            allowed_tools=_texts(row, "allowed_tools"),
            disallowed_tools=_texts(row, "disallowed_tools"),
            location=_str(row, "location"),
        ),
        turn=turn,
        nonce=_str(row, "nonce"),
        body=_str(row, "body"),
        frontmatter=_fields(row, "frontmatter"),
        resources=_texts(row, "resources"),
        granted=_texts(row, "granted"),
        consent=consent,
        is_whole=is_whole,
    )


def _str(row: Mapping[str, Json], key: str) -> str:
    value = row.get(key)
    if not isinstance(value, str):
        raise _invalid()
    return value


def _texts(row: Mapping[str, Json], key: str) -> tuple[str, ...]:
    value = row.get(key)
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise _invalid()
    return tuple(cast("list[str]", value))


def _fields(row: Mapping[str, Json], key: str) -> dict[str, YamlValue]:
    value = row.get(key)
    if not isinstance(value, dict) or not all(_is_yaml(item) for item in value.values()):
        raise _invalid()
    return cast("dict[str, YamlValue]", value)


def _is_turn(value: int) -> bool:
    return not isinstance(value, bool) and value >= 0


def _is_yaml(value: Json) -> bool:
    if isinstance(value, dict):
        return all(map(_is_yaml, value.values()))
    return isinstance(value, str) or (isinstance(value, list) and all(map(_is_yaml, value)))


def _invalid() -> StoreError:
    return StoreError(
        "state-invalid",
        "This is not the state of a session.",
        hint="Give what snapshot() returned, as it was.",
    )
