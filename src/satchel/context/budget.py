"""How much of a prompt skills may take. Tokens are estimated, at four bytes each, only to decide what to include."""

from __future__ import annotations

DESCRIPTION_CAP = 1024
DESCRIPTION_STEPS = (DESCRIPTION_CAP, 512, 320, 240, 160)
CATALOG_ENTRIES = 96
INDEX_FILES = 40

_BYTES_A_TOKEN = 4
_ELLIPSIS = "..."
_BLANK_WITHIN = 24
_PAGE_RANGE = (8 * 1024, 48 * 1024)


def tokens(text: str) -> int:
    """The estimated number of tokens: a quarter of the UTF-8 bytes, rounded up."""
    return -(-len(text.encode("utf-8", "replace")) // _BYTES_A_TOKEN)


def metadata_budget(context_tokens: int | None) -> int:
    """Tokens for names and descriptions: two percent of the context, 1,024 to 10,000; 2,000 when it is unknown."""
    return 2000 if context_tokens is None else max(1024, min(context_tokens * 2 // 100, 10_000))


def inline_budget(context_tokens: int | None) -> int:
    """Tokens for a block with bodies: a quarter of the context, 1,024 to 48,000; 16,000 when it is unknown."""
    return 16_000 if context_tokens is None else max(1024, min(context_tokens // 4, 48_000))


def body_cap(block_tokens: int) -> int:
    """Tokens that one body may take of a block with bodies."""
    return max(512, block_tokens * 3 // 4)


def page_bytes(context_tokens: int | None) -> int:
    """Bytes that one page of a file may have: a quarter of the context, 8 to 48 KiB; 48 KiB when it is unknown."""
    low, high = _PAGE_RANGE
    return high if context_tokens is None else max(low, min(context_tokens // 4 * _BYTES_A_TOKEN, high))


def truncate(text: str, limit: int) -> str:
    """At most ``limit`` characters, cut at a blank when one is near, with "..." where something was cut."""
    if len(text) <= limit:
        return text
    kept = text[: max(0, limit - len(_ELLIPSIS))]
    blank = kept.rfind(" ")
    if blank > 0 and len(kept) - blank <= _BLANK_WITHIN:
        kept = kept[:blank]
    return (kept.rstrip() + _ELLIPSIS)[: max(0, limit)]


def format_bytes(size: int) -> str:
    """``512 B``, ``7.9 KB``, ``3 MB``: at most one decimal, in steps of 1,024."""
    if size < 1024:  # noqa: PLR2004 - the step
        return f"{size} B"
    amount = float(size)
    for unit in ("KB", "MB", "GB", "TB"):
        amount /= 1024
        if round(amount, 1) < 1024 or unit == "TB":  # noqa: PLR2004 - the step
            return f"{round(amount, 1):.1f}".removesuffix(".0") + f" {unit}"
    raise AssertionError(size)
