"""One style instead of another: a skill that restricts nothing."""

from satchel import inline
from satchel.context import Assembler

formal = inline(
    name="formal",
    description="Uses formal, precise language",
    instructions="Write without contractions. Choose exact technical terms. Describe procedures in the passive voice.",
)

assembler = Assembler().set_system_prompt("You write documentation.").register_skills([formal])


def request(history):
    """What to send to a model that is to write formally."""
    return assembler.activate_skill("formal").set_history(history).compile()
