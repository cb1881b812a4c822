"""What the embedded model is shown to write the arguments of a call. Pure.

Where a script's arguments are declared, the schema has a property for each: the model goes from one to the next.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from satchel.chat.arguments import to_json
from satchel.chat.messages import Json, Message, message
from satchel.chat.request import ChatRequest, Sampling
from satchel.upstream.embedded.examples import FILL, FILL_NAMED, FILL_NAMED_TURNS, fill_turns
from satchel.upstream.embedded.prompts import Option, answer_request, body_of, open_request, turn_outputs

_OPEN_TOKENS = 512
_BEFORE = 120  # characters of a line in which an interpreter is looked for
_INTERPRETER = re.compile(r"(?:python|node|sh)[0-9.]* +\S*$")
_KINDS = {"boolean": "true or false", "integer": "whole number", "number": "number", "array": "list"}


def arguments_request(request: ChatRequest, option: Option, *, default_max_tokens: int) -> ChatRequest:
    """The generation of the arguments that a call leaves open, held to the tool's JSON Schema."""
    tool, schema = option.tool, _open_schema(option)
    extra: dict[str, Json] = {"response_format": {"type": "json_schema", "json_schema": {"schema": schema}}}
    if option.arguments is None:
        base = answer_request(request, default_max_tokens=default_max_tokens)
        ask = (
            f'Write the arguments of the tool "{tool.name}" for the last request as one JSON object.\n'
            f"{tool.description}\nSchema: {json.dumps(schema, ensure_ascii=False)}"
        )
        return replace(base, messages=(*base.messages, message("user", ask)), extra={"openai-chat": extra})
    read = "\n".join(body_of(part.text, set()) for part in turn_outputs(request.messages))
    named = _named(option)
    task, shown = (FILL_NAMED, named) if named else (FILL, _example(option))
    turns = FILL_NAMED_TURNS if named else fill_turns(shown)
    script = option.arguments.get("path", option.name)
    text = _without_values(read, script) if named else read
    given = f"Text:\n{text or option.label}\n\nScript: {script}{shown}"
    return ChatRequest(
        messages=_shown(task, turns, f"{given}\n{open_request(request.messages)}"),
        sampling=Sampling(temperature=0.0),
        max_tokens=_OPEN_TOKENS,
        extra={"openai-chat": extra},
    )


def _without_values(text: str, script: str) -> str:
    """Commands end with the script's name: the values that they show would be taken for those of the request."""
    return "\n".join(_command_alone(line, f"{script} ") for line in text.splitlines())


def _command_alone(line: str, script: str) -> str:
    kept = ""
    while script in line:
        before, _, rest = line.partition(script)
        kept += before + script.rstrip()
        if kept.count("`") % 2:
            line = rest[rest.find("`") :] if "`" in rest else ""
        elif _INTERPRETER.search(before[-_BEFORE:]):
            return kept
        else:
            line = f" {rest}"
    return kept + line


def _example(option: Option) -> str:
    """A line with what the instructions themselves write there, "" when they show nothing."""
    listed = {name: schema.get("examples") for name, schema in option.open.items() if isinstance(schema, dict)}
    shown = {name: examples[0] for name, examples in listed.items() if isinstance(examples, list) and examples}
    return f"\nExample: {to_json(shown)}" if shown else ""


def _named(option: Option) -> str:
    """A line for each argument that is declared by its name, "" when none is."""
    lines: list[str] = []
    for schema in option.open.values():
        properties = schema.get("properties") if isinstance(schema, dict) else None
        for name, about in properties.items() if isinstance(properties, dict) else ():
            lines.append(f"- {name}: {_meaning(about if isinstance(about, dict) else {})}")
    return "\n".join(("\nArguments:", *lines)) if lines else ""


def _meaning(about: Mapping[str, Json]) -> str:
    """The kind of value, as words, and what the author says of it."""
    listed, kinds = about.get("enum"), about.get("type")
    if isinstance(listed, list):
        kind = " or ".join(to_json(value) for value in listed if value is not None)
    else:
        kind = _KINDS.get(str(kinds[0] if isinstance(kinds, list) and kinds else kinds), "text")
    kind += " or null" if "default" in about else ""
    told = about.get("description")
    return f"{kind}; {told}" if isinstance(told, str) and told else kind


def _open_schema(option: Option) -> dict[str, Json]:
    """The schema of the arguments that the model writes: all of the tool's, or those that were left open."""
    if option.arguments is None:
        return {"type": "object"} | dict(option.tool.parameters)
    return {"type": "object", "properties": dict(option.open), "required": list(option.open)}


def _shown(system: str, turns: Sequence[tuple[str, str]], asked: str) -> tuple[Message, ...]:
    """The task, its example turns as they stand, and the real one."""
    built = [message(role, text) for turn in turns for role, text in zip(("user", "assistant"), turn, strict=True)]
    return (message("system", system), *built, message("user", asked))
