"""What a script takes, as a schema that a model fills in, and the list of texts that the script is given then. Pure.

A model that fills in declared arguments one by one cannot misname, glue or misplace them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from satchel.chat.messages import Json
from satchel.skills.oneline import one_line

MAX_ARGUMENTS = 32
HELP_LENGTH = 160
OPTION = re.compile(r"--?[A-Za-z0-9][\w-]{0,48}")
PLACE = re.compile(r"[A-Za-z][\w-]{0,48}")

ValueType = Literal["text", "integer", "number"]
Choice = str | int | float

_OFF = frozenset({"", "0", "false", "no"})
_LARGEST_WHOLE = 10**15
_JSON_TYPES: Mapping[ValueType, str] = {"text": "string", "integer": "integer", "number": "number"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptArgument:
    """One argument of a script, under the name that its own texts give it: ``--month``, or ``file`` for a place.

    ``is_flag``: it stands alone, without a value. ``many``: it takes several, "together" behind its name or "each"
    behind it again. ``choices`` are all that it takes. ``is_optional``: the script goes on without it.
    """

    name: str
    aliases: tuple[str, ...] = ()
    type: ValueType = "text"
    choices: tuple[Choice, ...] = ()
    is_flag: bool = False
    many: Literal["", "together", "each"] = ""
    is_optional: bool = False
    help: str = ""

    @property
    def is_option(self) -> bool:
        """Whether its name is written on the command line."""
        return self.name.startswith("-")


def can_be_shown(value: Choice) -> bool:
    """Whether a value can stand in a schema and in a prompt as it is."""
    if isinstance(value, str):
        return 0 < len(value) <= HELP_LENGTH and one_line(value) == value
    return not isinstance(value, bool) and abs(value) < _LARGEST_WHOLE


def arguments_schema(arguments: Sequence[ScriptArgument]) -> dict[str, Json]:
    """A JSON Schema object with a property for each argument; null is for what is left out."""
    properties: dict[str, Json] = {argument.name: _property(argument) for argument in arguments}
    required: list[Json] = [argument.name for argument in arguments]
    return {"type": "object", "properties": properties, "required": required}


def command_words(arguments: Sequence[ScriptArgument], given: Mapping[str, Json]) -> tuple[str, ...] | str:
    """What a script is given for values by name, or a sentence that says why that cannot be told."""
    known = {plain_name(name): argument.name for argument in arguments for name in (argument.name, *argument.aliases)}
    values: dict[str, Json] = {}
    for name, value in given.items():
        if plain_name(name) not in known:
            taken = ", ".join(argument.name for argument in arguments)
            return f'The script has no argument "{one_line(name)[:48]}". It takes: {taken}.'
        values[known[plain_name(name)]] = value
    words: list[str] = []
    skipped = ""
    for argument in arguments:
        value = values.get(argument.name)
        if value is None or value is False or value == [] or (argument.is_flag and str(value).casefold() in _OFF):
            skipped = skipped or ("" if argument.is_option else argument.name)
            continue
        if skipped and not argument.is_option:
            return f'"{argument.name}" comes behind "{skipped}" on the command line, which has no value. Give both.'
        if argument.is_flag:
            words.append(argument.name)
        elif argument.is_option:
            words += _option_words(argument, _texts(value))
        else:
            words += _texts(value)
    return tuple(words)


def _option_words(argument: ScriptArgument, texts: Sequence[str]) -> Iterable[str]:
    """A text that looks like an option is tied to its name."""
    if argument.many == "together":
        return (argument.name, *texts)
    return (word for text in texts for word in _named(argument.name, text))


def _named(name: str, text: str) -> tuple[str, ...]:
    return (f"{name}={text}",) if name.startswith("--") and re.match(r"-(?![\d.])", text) else (name, text)


def _texts(value: Json) -> tuple[str, ...]:
    if isinstance(value, list):
        return tuple(text for item in value if item is not None for text in _texts(item))
    if isinstance(value, str):
        return (value,)
    if isinstance(value, float) and value.is_integer() and abs(value) < _LARGEST_WHOLE:
        return (str(int(value)),)
    return ("true" if value is True else str(value),)


def plain_name(name: str) -> str:
    """A name without what tells options from places, as models spell it too."""
    return name.lstrip("-").replace("-", "_")


def _property(argument: ScriptArgument) -> dict[str, Json]:
    about: dict[str, Json] = {"description": argument.help} if argument.help else {}
    if argument.is_flag:
        return {"type": "boolean", **about}
    about |= {"default": None} if argument.is_optional else {}
    if argument.many:
        return {"type": ["array", "null"], "items": _value(argument), **about}
    if argument.choices:
        return {"enum": [*argument.choices, None], **about}
    return {"type": [_JSON_TYPES[argument.type], "null"], **about}


def _value(argument: ScriptArgument) -> dict[str, Json]:
    return {"enum": [*argument.choices]} if argument.choices else {"type": _JSON_TYPES[argument.type]}
