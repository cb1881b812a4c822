"""Instructions of skills that a user named: they join the message that names them.

The same conversation gets the same bytes turn after turn, whichever way it came, and later messages change nothing
before them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from satchel.chat.messages import Message, Text
from satchel.context.block import wrapped
from satchel.context.budget import body_cap, inline_budget, tokens
from satchel.skills.model import LoadedSkill

_LEAD = "[Instructions of the skill ${name}, which this message names; added by the host]"


def attach(
    messages: Sequence[Message], named: Mapping[int, Sequence[LoadedSkill]], *, context_tokens: int | None
) -> tuple[tuple[Message, ...], tuple[LoadedSkill, ...]]:
    """``(messages, attached)``: each skill of ``named`` at the end of the message with that index.

    A skill whose instructions do not fit the budgets for bodies in a block is left out.
    """
    budget = inline_budget(context_tokens)
    cap = body_cap(budget)
    result = list(messages)
    attached: list[LoadedSkill] = []
    for index in sorted(named):
        for loaded in named[index]:
            body = wrapped(loaded, loaded.body.strip("\r\n"))
            text = f"{_LEAD.format(name=loaded.name)}\n{body}"
            cost = tokens(text)
            if cost > min(cap, budget):
                continue
            budget -= cost
            said = result[index]
            result[index] = replace(said, parts=(*said.parts, Text(text=f"\n\n{text}")))
            attached.append(loaded)
    return tuple(result), tuple(attached)
