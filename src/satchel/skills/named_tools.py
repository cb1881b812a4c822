"""Which tools a skill's text counts on that are not there."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from satchel.skills.oneline import one_line
from satchel.skills.tool_patterns import pattern_name, pattern_names

_MOST = 10
_LONGEST = 80
_WORD = r"[A-Za-z][A-Za-z0-9]{0,60}(?:_{1,2}[A-Za-z0-9]{1,60}){1,8}"
# Only names with an underscore: "the jq tool" is a program, and "the right tool" is prose.
_SAID = re.compile(
    rf"\btools?[ ](?:called[ ]|named[ ])?[`'\"]?(?P<behind>{_WORD})\b(?![/.(])"
    rf"|(?<![\w/.])(?P<before>{_WORD})[`'\"]?[ ]tool\b",
    re.IGNORECASE,
)


def missing_tools(declared: Iterable[str], body: str, there: Collection[str]) -> tuple[str, ...]:
    """Names that no tool of ``there`` has, each once and at most ten: first those of ``declared`` patterns.

    Of the body, ``tool some_name`` and ``some_name tool`` count, where the name has an underscore.
    """
    missing = {
        one_line(pattern_name(one))[:_LONGEST]: None
        for one in declared
        if not any(pattern_names(one, it) for it in there)
    }
    folded = {name.casefold() for name in there}
    for match in _SAID.finditer(body):
        name = match["behind"] or match["before"]
        if name.casefold() not in folded:
            missing[name] = None
    return tuple(missing)[:_MOST]
