"""The tool's declaration for every make of model: one description, one schema, three shapes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from satchel.activation.reply import Bodies
from satchel.chat.messages import Json
from satchel.context.listings import format_skill_listing
from satchel.errors import SetupError
from satchel.skills.dialect import Dialect
from satchel.skills.model import Skill

TOOL = "skill"

Shape = Literal["openai", "anthropic", "mcp"]

DESCRIPTION = (
    "Activate an installed skill by its name. A skill is a package of instructions, with optional scripts and "
    "reference documents, that somebody wrote as a folder with a SKILL.md. Activating puts its instructions into this "
    "conversation for the rest of the session.\n\n"
    "When to use: as soon as a request matches a skill's description in the list of skills that you were given. If "
    "several fit, take the one whose description fits best.\n\n"
    "Once is enough: a second call with the same name changes nothing and answers already_loaded, which means that "
    "the instructions are still in this conversation.\n\n"
    "Arguments: a string for skills that take $ARGUMENTS or numbered places, an object for skills that declare named "
    "arguments; leave them out when the skill needs none.\n\n"
    "Permission: the host decides about every activation. A skill's allowed-tools say what it expects to use; they "
    "allow nothing, and each later tool call is decided on its own."
)

LISTING_CHARS = 40_000
"""Characters that the list of skills may have."""


def instructions(skills: Sequence[Skill], *, dialect: Dialect, bodies: Bodies = "result") -> str:
    """What a system message says of the skills that a model may activate; "" without any."""
    listing = format_skill_listing(skills, max_chars=LISTING_CHARS, dialect=dialect)
    if not listing.text:
        return ""
    where = "that it returns" if bodies == "result" else "that then stand in this prompt"
    head = (
        "## Skills\n"
        f"Each line is a skill: instructions for one kind of task. When a request matches one, call the {TOOL} tool "
        f"with its name before you begin, and follow the instructions {where}.\n\n"
    )
    more = f"\n({len(listing.omitted)} more skills are not listed.)" if listing.omitted else ""
    return head + listing.text + more


def tool_parameters(names: Sequence[str] = ()) -> dict[str, Json]:
    """The JSON Schema of the tool's input; ``names``, when given, are the only ones that a call may use."""
    name: dict[str, Json] = {"type": "string", "description": "The skill's name, as listed."}
    if names:
        name["enum"] = list(names)
    return {
        "type": "object",
        "properties": {
            "name": name,
            "arguments": {
                "description": "A string, or an object for a skill that declares named arguments.",
                "anyOf": [{"type": "string"}, {"type": "object", "additionalProperties": {"type": "string"}}],
            },
        },
        "required": ["name"],
        "additionalProperties": False,
    }


def tool_schema(shape: Shape, names: Sequence[str] = ()) -> dict[str, Json]:
    """The declaration as one vendor takes it, over ``tool_parameters(names)``.

    Raises:
        SetupError: "setting-invalid" for another shape.
    """
    schema = tool_parameters(names)
    shapes: dict[str, dict[str, Json]] = {
        "openai": {
            "type": "function",
            "function": {"name": TOOL, "description": DESCRIPTION, "parameters": schema},
        },
        "anthropic": {"name": TOOL, "description": DESCRIPTION, "input_schema": schema},
        "mcp": {"name": TOOL, "description": DESCRIPTION, "inputSchema": schema},
    }
    if shape not in shapes:
        hint = f"Known are {', '.join(shapes)}."
        raise SetupError("setting-invalid", f'There is no tool of the shape "{shape}".', hint=hint)
    return shapes[shape]
