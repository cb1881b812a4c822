from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from satchel.context.budget import (
    body_cap,
    format_bytes,
    inline_budget,
    metadata_budget,
    page_bytes,
    tokens,
    truncate,
)


@pytest.mark.parametrize(
    ("context", "metadata", "inline", "page"),
    [
        (None, 2000, 16000, 49152),
        (2048, 1024, 1024, 8192),
        (8192, 1024, 2048, 8192),
        (32768, 1024, 8192, 32768),
        (100_000, 2000, 25000, 49152),
        (1_000_000, 10000, 48000, 49152),
    ],
)
def test_budgets(context: int | None, metadata: int, inline: int, page: int) -> None:
    assert (metadata_budget(context), inline_budget(context), page_bytes(context)) == (metadata, inline, page)


def test_tokens_are_a_quarter_of_the_bytes_rounded_up() -> None:
    assert [tokens(text) for text in ("", "a", "abcd", "abcde", "é€")] == [0, 1, 1, 2, 2]
    assert (body_cap(16000), body_cap(100)) == (12000, 512)


@pytest.mark.parametrize(
    ("text", "limit", "cut"),
    [
        ("short", 5, "short"),
        ("one two three", 12, "one two..."),
        ("one two  three", 11, "one two..."),
        ("x" * 40, 10, "x" * 7 + "..."),
        ("ab " + "x" * 60, 40, "ab " + "x" * 34 + "..."),
        ("abcdef", 2, ".."),
    ],
)
def test_truncating(text: str, limit: int, cut: str) -> None:
    assert truncate(text, limit) == cut


@given(st.text(), st.integers(0, 50))
def test_truncated_text_keeps_to_its_limit(text: str, limit: int) -> None:
    assert len(truncate(text, limit)) <= limit or truncate(text, limit) == text == ""


@pytest.mark.parametrize(
    ("size", "shown"),
    [
        (0, "0 B"),
        (512, "512 B"),
        (1023, "1023 B"),
        (1024, "1 KB"),
        (8072, "7.9 KB"),
        (1024 * 1024 - 1, "1 MB"),
        (5 * 1024**3, "5 GB"),
        (2**60, "1048576 TB"),
    ],
)
def test_sizes_for_people(size: int, shown: str) -> None:
    assert format_bytes(size) == shown
