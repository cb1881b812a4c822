"""The doubles that show what a scenario's contract comes to: models without a mind that play by the rules.

They call only tools that the request declares, with parameters that it declares, and every value that they say is
found in the request. Where the library does not put it there, the contract is broken.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import partial

from satchel.chat.messages import Json, Message, ToolOutput
from satchel.chat.request import ChatRequest
from satchel.errors import UpstreamError
from satchel.evals.exam import Question, holds_value
from satchel.evals.scenario import Find, Step
from satchel.testing.scripted_model import Reply, ScriptedModel, call
from satchel.tools.access import READ_TOOL, RUN_TOOL

_PLACE = re.compile(r"\{(\w+)\}")
_POINTER = re.compile(r"\b(?:references|docs)/[\w./-]+\w")
_SHOWN_CALL = re.compile(r"^skills_run runs .*Arguments, for example: (\{.*\})$", re.MULTILINE)
_ROUNDS = 8
UNKNOWN = "I do not know."


def player(steps: Sequence[Step]) -> ScriptedModel:
    """A model that plays the steps of a scenario. A step that cannot be played is an ``UpstreamError``."""
    return ScriptedModel([partial(_play, step, number) for number, step in enumerate(steps)])


def reader(question: Question) -> ScriptedModel:
    """A model that reads the skill of the question where the request shows it, and follows what that points to.

    A script is run with the arguments that the result shows as an example.
    """
    return ScriptedModel([partial(_read_on, question)] * _ROUNDS)


def _play(step: Step, number: int, request: ChatRequest) -> Reply:
    found = {name: _found(find, request) for name, find in step.finds.items()}
    if step.answer:
        return Reply(text=(_filled(step.answer, found),))
    arguments = {name: _argument(value, found) for name, value in step.arguments.items()}
    return _calling(request, step.call, arguments, number)


def _calling(request: ChatRequest, tool: str, arguments: Mapping[str, Json], number: int) -> Reply:
    spec = next((spec for spec in request.tools if spec.name == tool), None)
    if spec is None:
        raise _broken(f"the request declares no tool {tool}")
    properties = spec.parameters.get("properties")
    unknown = [name for name in arguments if not isinstance(properties, Mapping) or name not in properties]
    if unknown:
        raise _broken(f"{tool} declares no parameter {', '.join(unknown)}")
    return Reply(calls=(call(tool, json.dumps(arguments, ensure_ascii=False), f"call_{number}"),))


def _found(find: Find, request: ChatRequest) -> str:
    text = _part(request.messages, find.part)
    matches = list(re.finditer(find.pattern, text, re.MULTILINE))
    if not matches:
        raise _broken(f"nothing in the request's {find.part} text matches {find.pattern}")
    last = matches[-1]
    return last[1] if last.re.groups else last[0]


def _part(messages: Sequence[Message], part: str) -> str:
    if part == "result":
        outputs = (item for said in messages for item in said.parts if isinstance(item, ToolOutput))
        return "\n\n".join(output.text for output in outputs)
    roles = {"system", "developer"} if part == "system" else {"user"}
    return "\n\n".join(said.text for said in messages if said.role in roles)


def _argument(value: Json, found: Mapping[str, str]) -> Json:
    if isinstance(value, Mapping):
        return {name: _argument(item, found) for name, item in value.items()}
    if not isinstance(value, str) or not _PLACE.search(value):
        raise _broken(f"the argument {json.dumps(value)} comes from nowhere in the request")
    return _filled(value, found)


def _filled(text: str, found: Mapping[str, str]) -> str:
    def put(match: re.Match[str]) -> str:
        if match[1] not in found:
            raise _broken(f"the step finds no {match[1]}")
        return found[match[1]]

    return _PLACE.sub(put, text)


def _read_on(question: Question, request: ChatRequest) -> Reply:
    if not question.skill:
        return Reply(text=(question.expected[0] if question.expected else "Gladly.",))
    read = _part(request.messages, "result")
    given = read or _part(request.messages, "system")
    has_tool = any(spec.name == READ_TOOL for spec in request.tools)
    if has_tool and not read:
        if question.skill not in given and not any(
            choice.arguments.get("skill") == question.skill for spec in request.tools for choice in spec.choices
        ):
            return Reply(text=(UNKNOWN,))
        return _calling(request, READ_TOOL, {"skill": question.skill}, 0)
    for value in question.expected:
        if holds_value(given, (value,)):
            return Reply(text=(f"It is {value}.",))
    made = [use.arguments for said in request.messages for use in said.tool_uses]
    pointer = next((path for path in _POINTER.findall(read) if not any(path in text for text in made)), "")
    if has_tool and pointer:
        return _calling(request, READ_TOOL, {"skill": question.skill, "path": pointer}, len(made))
    shown = _SHOWN_CALL.search(read)
    ran = any(use.name == RUN_TOOL for said in request.messages for use in said.tool_uses)
    if shown and not ran and any(spec.name == RUN_TOOL for spec in request.tools):
        return _calling(request, RUN_TOOL, json.loads(shown[1]), len(made))
    return Reply(text=(UNKNOWN,))


def _broken(message: str) -> UpstreamError:
    return UpstreamError("upstream-rejected", f"The contract is broken: {message}.")
