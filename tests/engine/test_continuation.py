from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from satchel.chat.messages import Media, Message, Opaque, Reasoning, Text, ToolOutput, ToolUse, message
from satchel.engine.continuation import Shelf, estimate_bytes


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def said(text: str) -> tuple[Message, ...]:
    return (message("assistant", text),)


Kept = Shelf[tuple[Message, ...]]


def keep(shelf: Kept, owner: str, token: str, text: str) -> bool:
    return shelf.put(owner, token, said(text), messages=said(text))


def shelf_of(*, max_bytes: int = 1_000_000, ttl_s: float = 60, clock: Clock | None = None) -> Kept:
    return Shelf(max_bytes=max_bytes, ttl_s=ttl_s, clock=clock or Clock())


def test_what_was_kept_comes_back_under_its_token_until_it_is_replaced() -> None:
    shelf = shelf_of()
    assert keep(shelf, "local", "t", "first")
    assert shelf.get("local", "t") == shelf.get("local", "t") == said("first")
    assert keep(shelf, "local", "t", "second")
    assert shelf.get("local", "t") == said("second")


def test_another_owner_finds_nothing_and_changes_nothing() -> None:
    shelf = shelf_of()
    keep(shelf, "alice", "t", "secret")
    assert shelf.get("bob", "t") is None
    keep(shelf, "bob", "t", "other")
    assert shelf.get("alice", "t") == said("secret")


def test_what_nobody_asked_for_in_time_is_gone() -> None:
    clock = Clock()
    shelf = shelf_of(ttl_s=60, clock=clock)
    keep(shelf, "local", "t", "x")
    clock.now += 59
    assert shelf.get("local", "t") is not None
    clock.now += 59
    assert shelf.get("local", "t") is not None, "asking renews it"
    clock.now += 60
    assert shelf.get("local", "t") is None


def test_the_least_recently_used_goes_first() -> None:
    shelf = shelf_of(max_bytes=int(estimate_bytes(said("x" * 10_000)[0]) * 2.5))
    keep(shelf, "o", "first", "x" * 10_000)
    keep(shelf, "o", "second", "y" * 10_000)
    assert shelf.get("o", "first") is not None
    keep(shelf, "o", "third", "z" * 10_000)
    assert shelf.get("o", "second") is None
    assert shelf.get("o", "first") is not None
    assert shelf.get("o", "third") is not None


def test_what_is_larger_than_all_the_room_is_refused_and_evicts_nobody() -> None:
    shelf = shelf_of(max_bytes=20_000)
    keep(shelf, "o", "small", "small")
    assert not keep(shelf, "o", "large", "x" * 30_000)
    assert shelf.get("o", "small") == said("small")


def test_a_message_that_several_entries_share_counts_once() -> None:
    shelf: Shelf[str] = Shelf(max_bytes=25_000, ttl_s=60)
    long = message("user", "x" * 20_000)
    assert all(shelf.put("o", f"t{number}", "v", messages=(long, *said("more"))) for number in range(5))
    assert len(shelf) == 5
    for number in range(5):
        assert shelf.drop("o", f"t{number}")
    assert shelf.size_bytes == 0


def test_forgetting_says_whether_there_was_something() -> None:
    shelf: Shelf[str] = Shelf(max_bytes=10_000, ttl_s=60)
    shelf.put("o", "t", "v")
    assert not shelf.drop("other", "t")
    assert shelf.drop("o", "t")
    assert not shelf.drop("o", "t")


def test_every_kind_of_part_weighs_what_it_carries() -> None:
    big = "x" * 5_000
    parts = (
        Text(text=big),
        Text(text="", extra={"openai-chat": {"a": [big]}}),
        Reasoning(text=big),
        Reasoning(opaque={"encrypted_content": big}),
        ToolUse(call_id="c", name="n", arguments=big),
        ToolOutput(call_id="c", text=big),
        Media(kind="image", data=big),
        Media(kind="image", url=big),
        Opaque(format="anthropic", raw={"deep": [{"er": big}]}),
        Opaque(format="anthropic", raw={big: None}),
    )
    assert all(estimate_bytes(Message(role="assistant", parts=(part,))) > 5_000 for part in parts)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["put", "get", "drop", "wait"]),
            st.sampled_from("ab"),
            st.integers(0, 4),
            st.lists(st.integers(0, 5), max_size=4),
        ),
        max_size=40,
    )
)
def test_the_size_is_never_more_than_the_limit_and_never_wrong(steps: list[tuple[str, str, int, list[int]]]) -> None:
    clock = Clock()
    shelf: Shelf[tuple[Message, ...]] = Shelf(max_bytes=6_000, ttl_s=5, clock=clock)
    pool = [message("user", "x" * (number * 400)) for number in range(6)]
    for step, owner, number, picked in steps:
        token = f"t{number}"
        match step:
            case "put":
                messages = tuple(pool[index] for index in picked)
                shelf.put(owner, token, messages, messages=messages)
            case "get":
                shelf.get(owner, token)
            case "drop":
                shelf.drop(owner, token)
            case _:
                clock.now += number
        assert 0 <= shelf.size_bytes <= 6_000
    clock.now += 5
    assert shelf.get("a", "t0") is None
    assert (len(shelf), shelf.size_bytes) == (0, 0)


def test_nobody_loses_what_is_kept_to_what_somebody_else_puts() -> None:
    shelf: Shelf[str] = Shelf(max_bytes=10_000, ttl_s=60)
    assert shelf.put("a", "mine", "kept", extra_bytes=1_000)
    for number in range(9):
        assert shelf.put("b", f"t{number}", "other", extra_bytes=2_000)
    assert shelf.get("a", "mine") == "kept"
    assert shelf.get("b", "t0") is None
    assert shelf.get("b", "t8") == "other"
    assert shelf.size_bytes <= 10_000


def test_what_has_to_go_at_once_is_not_said_to_be_kept() -> None:
    shelf: Shelf[str] = Shelf(max_bytes=10_000, ttl_s=60)
    for number in range(3):
        assert shelf.put("a", f"t{number}", "small", extra_bytes=1_000)
    assert not shelf.put("b", "large", "large", extra_bytes=8_000)
    assert shelf.get("b", "large") is None
    assert shelf.get("a", "t0") == "small"
