from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from satchel.skills import oneline
from satchel.skills.oneline import hidden_characters, may_hide, one_line

_ODD = st.sampled_from(
    ["\u200b", "\u200d", "\u202e", "\ufeff", "\U000e0041", "\U000e0100", "\u2065", "\x1b", "\x85", "\u2028", "\t", "  "]
)
_TEXTS = st.lists(st.one_of(_ODD, st.sampled_from(["a", " ", "é", "数", "👩", "\n"]), st.text(max_size=3))).map("".join)


@given(_TEXTS)
def test_the_quick_ways_give_what_the_plain_definition_gives(text: str) -> None:
    visible = text if text.isascii() else oneline._HIDDEN.sub("", text)
    assert one_line(text) == re.sub(r"\s+", " ", oneline._CONTROL.sub("", visible)).strip()


@given(_TEXTS.filter(lambda text: text.isprintable() or text.isascii() or not re.search("[\ud800-\udfff]", text)))
def test_nothing_hidden_is_missed_by_the_look_at_the_bytes(text: str) -> None:
    found = hidden_characters(text, max_lines=99)
    hits = [match.group() for match in oneline._HIDDEN.finditer(text)] if not text.isascii() else []
    assert sum(count for count, _ in found.values()) == len(hits)
    assert {code for _, codes in found.values() for code in codes} == {f"U+{ord(hit):04X}" for hit in hits}
    assert may_hide(text.encode()) or not found


def test_ordinary_texts_need_no_closer_look() -> None:
    assert not may_hide(b"ASCII \x1b\n")
    assert not may_hide("“Quotes” — 数据, naïve ¡sí! 😀\ufe0f".encode())
    assert may_hide("a\u200db".encode())
