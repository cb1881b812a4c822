"""Texts that have the shape of a well-known kind of key, and literals that are assigned to a name such as password."""

from __future__ import annotations

import heapq
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

# A quoted literal after "=", ":" or "=>". The text before it is looked at afterwards, which is far quicker.
_LITERAL = re.compile(r"""[=:]>?[ \t]{0,8}(?P<quote>["'])(?P<text>[!-~]{6,128}?)(?P=quote)""")
_PASSWORDS = ("password", "passwd", "passphrase")
_KEYS = (
    "secret",
    "token",
    *(
        f"{kind}{mark}key"
        for kind in ("secret", "api", "access", "auth", "private", "signing")
        for mark in ("", "_", "-")
    ),
)
_AFTER_NAME = "\"'] \t:"
_LONGEST_NAME = 32
_FEWEST_LITERAL = {"password": 6, "key": 8}
# What stands for a value: a path, a format, an expression, or words and digits that nobody means. A value without a
# digit nearly always does so too, as "client_secret" and "readonly_password" do; it is left out.
_STANDS_FOR = re.compile(
    r"[<>{}\[\]()$%*/\\|,;]|\.\.|env|change|replace|insert|enter|todo|here\b|test|demo|mock|stub|example|sample|your"
    r"|my[_-]|dummy|fake|placeholder|redact|mask|hidden|x{3}|0{4}|123|321|456|abcd|qwerty|default|valid|wrong|base64"
    r"|sha\d|p[a@]ss|s[e3]cur|s3cret|[_-]key\b|apikey|secretkey|(.)\1{3}"
)
_HAS_DIGIT = re.compile(r"[0-9]")
_HAS_LETTER = re.compile(r"[A-Za-z]")


def secret_shapes(text: str) -> Iterator[tuple[int, str]]:
    """``(offset, what it looks like)`` of what looks like a key or a password, in the order of the text.

    What is plainly made up, or stands for something else, is left out.
    """
    return heapq.merge(_keys(text), _literals(text))


def _keys(text: str) -> Iterator[tuple[int, str]]:
    if not any(mark in text for mark in _MARKS):
        return
    for match in _ANY.finditer(text):
        key = match.group()
        if not _MADE_UP.search(key) and len(set(key)) >= _FEWEST_CHARACTERS:
            yield match.start(), next(what for what, shape in _EACH if shape.match(key))


def _literals(text: str) -> Iterator[tuple[int, str]]:
    for match in _LITERAL.finditer(text):
        start, value = match.start(), match["text"]
        name = text[max(0, start - _LONGEST_NAME) : start].rstrip(_AFTER_NAME).lower()
        kind = "password" if name.endswith(_PASSWORDS) else "key"
        if (kind == "key" and not name.endswith(_KEYS)) or len(value) < _FEWEST_LITERAL[kind]:
            continue
        if not _HAS_DIGIT.search(value) or not _HAS_LETTER.search(value):
            continue
        if not _STANDS_FOR.search(value.lower()) and not _ANY.match(value):
            yield match.start("text"), f"a {kind} that is written out"
