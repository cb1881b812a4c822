from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from satchel.chat.messages import Media, Message, Opaque, Reasoning, Text, ToolOutput, ToolUse, message
from satchel.engine.continuation import Continuations, Shelf, estimate_bytes


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def said(text: str) -> tuple[Message, ...]:
    return (message("assistant", text),)


def test_what_was_kept_comes_back_under_its_token() -> None:
    store = Continuations()
    messages = (*said("Read it."), message("user", "And?"))
    token = store.keep("local", messages)
    assert store.get("local", token) == messages
    assert store.get("local", token) == messages


def test_tokens_are_new_each_time_and_long_enough_not_to_be_guessed() -> None:
    store = Continuations()
    tokens = {store.keep("local", said("x")) for _ in range(50)}
    assert len(tokens) == 50
    assert min(map(len, tokens)) > 30


def test_a_given_token_replaces_what_stood_under_it() -> None:
    store = Continuations()
    assert store.keep("local", said("first"), "mine") == "mine"
    assert store.keep("local", said("second"), "mine") == "mine"
    assert store.get("local", "mine") == said("second")


def test_another_owner_finds_nothing_and_changes_nothing() -> None:
    store = Continuations()
    token = store.keep("alice", said("secret"))
    assert store.get("bob", token) is None
    store.keep("bob", said("other"), token)
    assert store.get("alice", token) == said("secret")


def test_what_nobody_asked_for_in_time_is_gone() -> None:
    clock = Clock()
    store = Continuations(ttl_s=60, clock=clock)
    token = store.keep("local", said("x"))
    clock.now += 59
    assert store.get("local", token) is not None
    clock.now += 59
    assert store.get("local", token) is not None, "asking renews it"
    clock.now += 60
    assert store.get("local", token) is None


def test_the_least_recently_used_goes_first() -> None:
    size = estimate_bytes(said("x" * 10_000)[0])
    store = Continuations(max_bytes=int(size * 2.5))
    first, second = store.keep("o", said("x" * 10_000)), store.keep("o", said("y" * 10_000))
    assert store.get("o", first) is not None
    third = store.keep("o", said("z" * 10_000))
    assert store.get("o", second) is None
    assert store.get("o", first) is not None
    assert store.get("o", third) is not None


def test_what_is_larger_than_all_the_room_is_refused_and_evicts_nobody() -> None:
    store = Continuations(max_bytes=20_000)
    small = store.keep("o", said("small"))
    assert store.keep("o", said("x" * 30_000)) == ""
    assert store.get("o", small) == said("small")


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
