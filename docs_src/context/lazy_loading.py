"""The model chooses: a tool of the program's own activates a skill."""

import json

from satchel import SatchelError, format_skill_listing
from satchel.context import Assembler


def load_skill_tool(assembler):
    """The declaration of ``load_skill``, with every registered skill in it."""
    skills = assembler.get_registered_skills()
    listing = format_skill_listing(skills, format="plain").text
    name = {"type": "string", "enum": [skill.name for skill in skills]}
    return {
        "type": "function",
        "function": {
            "name": "load_skill",
            "description": f"Load a skill to specialize for a task. Available skills:\n{listing}",
            "parameters": {"type": "object", "properties": {"skill_name": name}, "required": ["skill_name"]},
        },
    }


def converse(llm, skills, tools, run, ask):
    """The answer to ``ask``; ``run`` executes every other call."""
    assembler = Assembler().register_skills(skills)
    assembler.register_tools([*tools, load_skill_tool(assembler)])
    history = [{"role": "user", "content": ask}]
    while True:
        request = assembler.set_history(history).compile()
        reply = llm(messages=request.messages, tools=request.tools)
        history.append(reply)
        if not reply.get("tool_calls"):
            return reply["content"]
        for call in reply["tool_calls"]:
            result = activate(assembler, call) if call["function"]["name"] == "load_skill" else run(call)
            history.append({"role": "tool", "tool_call_id": call["id"], "content": result})


def activate(assembler, call):
    """Activates what the call asks for; a model may ask for anything."""
    try:
        name = str(json.loads(call["function"]["arguments"])["skill_name"])
        assembler.activate_skill(name)
    except SatchelError as error:
        return f"{error.message} {error.hint}"
    except (ValueError, KeyError, TypeError):
        return 'The arguments must be an object: {"skill_name": "..."}.'
    return f'Skill "{name}" activated. Follow its instructions.'
