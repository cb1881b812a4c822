"""The store of sessions alone."""

from __future__ import annotations

import pytest

from satchel.chat.messages import message
from satchel.chat.request import ToolSpec
from satchel.engine.pinned import PinnedSkills
from satchel.engine.request import SkillSelection
from satchel.errors import RequestError, StoreError
from satchel.gateway.sessions import Session, Sessions
from satchel.skills.catalog import Catalog
from tests.gateway.shelf import INVOICE, shelf


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def session(
    name: str, text: str = "Hi", *, pinned: PinnedSkills | None = None, tools: tuple[ToolSpec, ...] = ()
) -> Session:
    said = (message("user", text),)
    return Session(
        id=name,
        created=1,
        skills=SkillSelection(),
        pinned=pinned or PinnedSkills(Catalog()),
        tools=tools,
        messages=said,
        shown=said,
        turns=1,
    )


async def keep(sessions: Sessions, held: Session, owner: str = "me") -> bool:
    async with sessions.claim(owner, held.id, is_new=True) as claim:
        return claim.keep(held)


def has(sessions: Sessions, name: str, owner: str = "me") -> bool:
    try:
        return sessions.get(owner, name).id == name
    except RequestError:
        return False


async def test_what_is_not_used_for_its_time_is_gone() -> None:
    clock = Clock()
    sessions = Sessions(idle_s=60, clock=clock)
    assert await keep(sessions, session("a"))
    clock.now += 59
    assert has(sessions, "a")
    clock.now += 59
    assert has(sessions, "a"), "looking at it is a use"
    clock.now += 60
    assert not has(sessions, "a")


async def test_their_number_is_bounded_even_when_they_hold_nothing() -> None:
    sessions = Sessions(idle_s=60, max_bytes=1024 * 1024)
    for number in range(200):
        assert await keep(sessions, session(f"s{number}"))
    assert 40 < sum(has(sessions, f"s{number}") for number in range(200)) <= 64
    assert has(sessions, "s199")


@pytest.mark.parametrize("kind", ["text", "tools", "skills"])
async def test_one_that_is_larger_than_all_the_room_is_not_kept(kind: str) -> None:
    pinned = PinnedSkills(Catalog(skills=(INVOICE.skill,)))
    await pinned.load(INVOICE.skill.ref, shelf())
    large = {
        "text": session("a", "x" * 4096),
        "tools": session("a", tools=(ToolSpec(name="t", description="x" * 4096),)),
        "skills": session("a", pinned=pinned),
    }[kind]
    room = 16 * 1024 + 1400
    assert await keep(Sessions(idle_s=60, max_bytes=room), session("a"))
    assert await keep(Sessions(idle_s=60), large)
    assert not await keep(Sessions(idle_s=60, max_bytes=room), large)


async def test_a_claim_keeps_other_turns_out_until_it_ends_however_it_ends() -> None:
    sessions = Sessions(idle_s=60)
    held = session("a")
    await keep(sessions, held)

    async def break_off() -> None:
        async with sessions.claim("me", "a", is_new=False):
            with pytest.raises(StoreError) as refused:
                async with sessions.claim("me", "a", is_new=False):
                    pass
            assert (refused.value.code, refused.value.retryable) == ("session-conflict", True)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await break_off()
    async with sessions.claim("me", "a", is_new=False) as claim:
        assert claim.session == held


async def test_a_claim_of_another_owner_finds_nothing_and_blocks_nobody() -> None:
    sessions = Sessions(idle_s=60)
    await keep(sessions, session("a"))
    async with sessions.claim("me", "a", is_new=False):
        with pytest.raises(RequestError) as refused:
            async with sessions.claim("you", "a", is_new=False):
                pass
        assert refused.value.code == "not-found"
        with pytest.raises(RequestError):
            await sessions.drop("you", "a")


async def test_dropping_in_the_middle_of_a_turn_is_final() -> None:
    sessions = Sessions(idle_s=60)
    await keep(sessions, session("a"))
    async with sessions.claim("me", "a", is_new=False) as claim:
        await sessions.drop("me", "a")
        assert not claim.keep(session("a"))
    assert not has(sessions, "a")


def test_ids_cannot_be_guessed() -> None:
    ids = {Sessions.new_id() for _ in range(50)}
    assert len(ids) == 50
    assert min(map(len, ids)) > 30
