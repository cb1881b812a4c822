"""``satchel chat``: its words."""

from __future__ import annotations

import sys
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from satchel.cli.options import ExecOptions, ModelOptions, SkillOptions, settings_from
from satchel.errors import SetupError


async def chat(
    *,
    skill: Annotated[
        tuple[str, ...], Parameter(name="--skill", help="Select a skill by name; repeat for several.")
    ] = (),
    system: Annotated[str, Parameter(name="--system", help="The system message of the conversation.")] = "",
    max_tokens: Annotated[
        int | None, Parameter(name="--max-tokens", validator=Number(gte=1), help="Bound on the tokens of each answer.")
    ] = None,
    usage: Annotated[bool, Parameter(name="--usage", help="Say after each answer what it cost.")] = False,
    no_history: Annotated[
        bool, Parameter(name="--no-history", help="Keep no history of what you type; else it is kept for next time.")
    ] = False,
    skills: SkillOptions = SkillOptions(),
    options: ModelOptions = ModelOptions(),
    execution: ExecOptions = ExecOptions(),
) -> int:
    """Talk with a model at the terminal, with your skills at hand.

    What begins with / is a command: /help lists them. Ctrl-C stops an answer, Ctrl-D ends.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise SetupError(
            "setting-invalid",
            "satchel chat needs a terminal to talk at.",
            hint="satchel run asks one question, also out of a pipe.",
        )
    settings = settings_from(skills, options, execution)
    from satchel.cli.repl import Opening, converse
    from satchel.cli.signals import until_signalled

    opening = Opening(skill, system, max_tokens, shows_cost=usage, keeps_history=not no_history)
    return await until_signalled(converse(settings, opening))
