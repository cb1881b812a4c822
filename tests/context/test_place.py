from __future__ import annotations

from typing import get_args

import pytest

from satchel.chat.capabilities import ModelCapabilities
from satchel.chat.messages import Media, Message, Role, Text, message
from satchel.context.place import place

BLOCK = "## Agent skills"
CAN = ModelCapabilities()
CACHED = {"anthropic": {"cache_control": {"type": "ephemeral"}}}


def first(*messages: Message) -> Message:
    return place(messages, BLOCK, CAN)[0]


def test_an_empty_block_changes_nothing() -> None:
    messages = (message("user", " hi "),)
    assert place(messages, "", CAN) == messages


@pytest.mark.parametrize("role", [role for role in get_args(Role) if role not in {"system", "developer"}])
def test_without_a_leading_system_message_there_is_a_new_one(role: Role) -> None:
    messages = (message(role, "hi"), message("system", "later"))
    assert place(messages, BLOCK, CAN) == (message("system", BLOCK), *messages)
    assert place((), BLOCK, CAN) == (message("system", BLOCK),)


@pytest.mark.parametrize("role", ["system", "developer"])
def test_the_block_joins_the_first_message(role: Role) -> None:
    extra = {"openai-chat": {"name": "boss"}}
    system = Message(role=role, parts=(Text(text=" Be brief.\n\n"),), extra=extra)  # pyright: ignore[reportArgumentType]
    user = message("user", "hi")
    assert place((system, user), BLOCK, CAN) == (
        Message(role=role, parts=(Text(text=f"Be brief.\n\n{BLOCK}"),), extra=extra),  # pyright: ignore[reportArgumentType]
        user,
    )


def test_an_empty_system_message_becomes_the_block() -> None:
    assert first(message("system", "  ")).parts == (Text(text=BLOCK),)
    assert first(Message(role="system", parts=())).text == BLOCK


def test_other_parts_and_their_order_stay() -> None:
    media = Media(kind="image", url="x")
    mixed = Message(role="system", parts=(Text(text="a"), media, Text(text="b ")))
    assert first(mixed).parts == (Text(text="a"), media, Text(text=f"b\n\n{BLOCK}"))
    ends_with_media = Message(role="system", parts=(Text(text="a"), media))
    assert first(ends_with_media).parts == (Text(text="a"), media, Text(text=f"\n\n{BLOCK}"))


def test_a_cache_mark_stays_at_the_end_of_the_callers_own_text() -> None:
    own = Text(text="Be brief.", extra=CACHED)  # pyright: ignore[reportArgumentType]
    assert first(Message(role="system", parts=(own,))).parts == (own, Text(text=f"\n\n{BLOCK}"))


def test_placing_is_the_same_every_time() -> None:
    messages = (message("system", "s"), message("user", "u"))
    assert place(messages, BLOCK, CAN) == place(messages, BLOCK, CAN)
    assert messages == (message("system", "s"), message("user", "u"))
