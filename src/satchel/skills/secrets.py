"""Texts that have the shape of a well-known kind of key."""

from __future__ import annotations

import re
from collections.abc import Iterator

_SHAPES = {
    "an AWS access key": r"(?:AKIA|ASIA)[A-Z2-7]{16}",
    "a GitHub token": r"gh[pousr]_[A-Za-z0-9]{36}|github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59}",
    "a GitLab token": r"glpat-[A-Za-z0-9_-]{20}",
    "a model service's key": r"sk-(?:ant-|proj-|or-v1-|svcacct-)[A-Za-z0-9_-]{32,}|sk-[A-Za-z0-9]{40,}",
    "a Google key": r"AIza[A-Za-z0-9_-]{35}",
    "a Slack token": r"xox[abprs]-[0-9]{8,}-[A-Za-z0-9-]{16,}",
    "a Stripe key": r"[sr]k_live_[A-Za-z0-9]{24,}",
    "a Hugging Face token": r"hf_[A-Za-z]{34}",
    "a registry token": r"npm_[A-Za-z0-9]{36}|pypi-AgE[A-Za-z0-9_-]{50,}",
    "a private key": r"-----BEGIN (?:[A-Z]{2,9} )?PRIVATE KEY-----\s+[A-Za-z0-9+/]{40}",
}
_ANY = re.compile("|".join(f"(?:(?<![A-Za-z0-9_-])(?:{shape}))" for shape in _SHAPES.values()))
# No key is without one of these, and looking for them is far quicker than looking for a key.
_MARKS = (
    *("AKIA", "ASIA", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "sk-", "AIza", "xox"),
    *("k_live_", "hf_", "npm_", "pypi-AgE", "PRIVATE KEY-----"),
)
_EACH = tuple((what, re.compile(shape)) for what, shape in _SHAPES.items())
_MADE_UP = re.compile(
    r"example|sample|your|dummy|fake|placeholder|redacted|x{4}|0{6}|1234567|abcdef|a1b2c3|(.)\1{5}", re.IGNORECASE
)
_FEWEST_CHARACTERS = 10


def secret_shapes(text: str) -> Iterator[tuple[int, str]]:
    """``(offset, what it looks like)`` of each text with the shape of a key, without those that are plainly made up."""
    if not any(mark in text for mark in _MARKS):
        return
    for match in _ANY.finditer(text):
        key = match.group()
        if not _MADE_UP.search(key) and len(set(key)) >= _FEWEST_CHARACTERS:
            yield match.start(), next(what for what, shape in _EACH if shape.match(key))
