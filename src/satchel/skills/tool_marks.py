"""HTML comments that are marks for tools: for formatters, linters, and generators that fill in a part of a file.

Every other comment is worth a finding, be it a single word: a model reads it, and people do not see it.
"""

from __future__ import annotations

import re

_LONGEST = 160
# What a linter calls its rules, such as MD013 or no-bare-urls: words of a sentence look different.
_RULES = r"(?:[ ,]+(?:[A-Za-z]{1,8}[0-9]{1,5}|[a-z0-9]{1,20}(?:-[a-z0-9]{1,20}){1,5})){0,6}"
_MARKS = (
    r"SPDX-[\w-]{1,60}:[ \t]*[\w.-]{1,60}",
    rf"(?:markdownlint|rumdl)-(?:disable|enable|capture|restore)(?:-line|-next-line|-file)?{_RULES}",
    rf"(?:eslint|textlint|pyml|markdown-link-check|lint)[- ](?:disable|enable)(?:-line|-next-line)?{_RULES}",
    r"(?:prettier|dprint|remark|mdformat|alex|deno-fmt|biome)-ignore(?:-start|-end|-file)?",
    r"(?:mdformat|vale|fmt|spellcheck(?:er)?)[ :-]+(?:off|on|disable|enable)",
    r"cspell:[ ]?(?:disable|enable)(?:-line|-next-line)?",
    # Tables of contents.
    r"/?(?:no[ _-]?)?toc(?:[ :-]?(?:start|stop|begin|end))?",
    r"(?:omit|ignore|exclude)[ _-](?:in|from)[ _-]toc",
    r"(?:START|END) doctoc(?: generated TOC please keep comment here to allow auto update)?",
    r"DON'T EDIT THIS SECTION, INSTEAD RE-RUN doctoc TO UPDATE",
    # Where a page, or what is shown of it, ends.
    r"more|truncate|end-?excerpt|excerpt|page-?break|new-?page",
    # Both ends of a part that a generator writes.
    r"/?[\w.-]{0,60}(?::[\w.-]{1,60}){0,2}[:_-](?:start|stop|begin|end)",
    r"/?(?:start|stop|begin|end|(?:auto-?)?gen(?:erated)?)[:_][\w.:-]{1,60}",
)
_MARK = re.compile("|".join(_MARKS), re.IGNORECASE)


def is_tool_mark(comment: str) -> bool:
    """Whether the text of a comment is such a mark, or empty."""
    text = comment.strip()
    return not text or (len(text) <= _LONGEST and _MARK.fullmatch(text) is not None)
