"""Skills across a compaction: finding our blocks in a transcript, and what of them to keep."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from satchel.activation.state import Active
from satchel.context.budget import tokens

_BYTES_A_TOKEN = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Marker:
    """A whole ``<skill>`` block of ours: characters ``start`` to ``end`` of the text."""

    name: str
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CarriedSkill:
    """One skill's block after a compaction. ``is_cut`` when lines at its end are missing."""

    name: str
    text: str
    tokens: int
    is_cut: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    """The blocks to put into the shortened conversation, the most recent first, and the names that have no room.

    A skill that was cut or dropped answers the next activation with its whole text again.
    """

    skills: tuple[CarriedSkill, ...] = ()
    dropped: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """All blocks as one text."""
        return "\n\n".join(skill.text for skill in self.skills)


def find_markers(active: Iterable[Active], text: str) -> tuple[Marker, ...]:
    """The blocks in ``text`` that are exactly what a session gave out, in order.

    A skill's text cannot pretend to be one: it does not know the nonce, and a block counts only as a whole.
    """
    found: list[Marker] = []
    for item in active:
        block = item.block()
        at = text.find(block)
        while at >= 0:
            found.append(Marker(name=item.name, start=at, end=at + len(block)))
            at = text.find(block, at + len(block))
    return tuple(sorted(found, key=lambda marker: marker.start))


def carry(active: Sequence[Active], *, tokens_per_skill: int, tokens_total: int) -> Carried:
    """The blocks of ``active``, the last one first, under both budgets (in estimated tokens)."""
    kept: list[CarriedSkill] = []
    dropped: list[str] = []
    room = tokens_total
    for item in reversed(active):
        carried = _fitted(item, min(tokens_per_skill, room))
        if carried is None:
            dropped.append(item.name)
        else:
            kept.append(carried)
            room -= carried.tokens
    return Carried(skills=tuple(kept), dropped=tuple(dropped))


def _fitted(item: Active, limit: int) -> CarriedSkill | None:
    whole = item.block()
    cost = tokens(whole)
    if cost <= limit:
        return CarriedSkill(name=item.name, text=whole, tokens=cost)
    # The mark is written with the largest number that it can hold, so that the text never outgrows the limit.
    frame = tokens(item.block(_marked(item, "", item.size)))
    room = (limit - frame) * _BYTES_A_TOKEN
    if room <= 0:
        return None
    kept = item.body.encode("utf-8", "replace")[:room].decode("utf-8", "ignore")
    kept = kept[: kept.rfind("\n") + 1] or kept
    size = len(kept.encode("utf-8", "replace"))
    text = item.block(_marked(item, kept, size))
    return CarriedSkill(name=item.name, text=text, tokens=tokens(text), is_cut=True)


def _marked(item: Active, kept: str, size: int) -> str:
    mark = (
        f"[Cut here after {size} of {item.size} bytes. To read all of these instructions again, call "
        f'skill({{"name": "{item.name}"}}).]'
    )
    return kept + ("" if kept.endswith("\n") or not kept else "\n") + mark
