"""What a call brings: its keys, the name and the arguments, judged before anything is looked up or read.

Nothing is mapped or dropped silently. A key that means something elsewhere is answered with what to write instead, so
that the model's next call is right (seed 000, section 2.1).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from satchel.activation.reply import RefusedError, refused, shown
from satchel.chat.arguments import writable
from satchel.chat.messages import Json
from satchel.skills.arguments import split_arguments
from satchel.skills.dialect import Dialect
from satchel.skills.fields import WORDS, Argument
from satchel.skills.model import Skill
from satchel.skills.names import is_legal_name

MAX_NAME = 64
_MOST_BITS = 1024  # more digits than anybody writes, fewer than Python refuses to write
_FEW = 20

_NAME = "use 'name'"
_ARGUMENTS = "use 'arguments'"
_IMPLICIT = "leave it out, activation is implicit"
_CONTEXT = "Skill context is session-scoped; no per-call override"
_RELOAD = "Skills load once per session; edit the skill file and restart the session to refresh"
_FORK = "subagent-forked skills deferred to v1.1"
_PATHS = "activation by paths deferred to v1.1"
_MODEL = "deferred to v1.1, model / effort overrides are a harness concern, not tool parameters"
_FILE = "Skills dispatch by 'name', not path; the harness owns discovery"
ALIASES: Mapping[str, str] = {
    **dict.fromkeys(("skill", "skill_name", "name_of_skill", "slug"), _NAME),
    **dict.fromkeys(("invoke", "activate", "run"), _IMPLICIT),
    **dict.fromkeys(("args", "args_string", "input", "params", "parameters"), _ARGUMENTS),
    **dict.fromkeys(("context", "session"), _CONTEXT),
    **dict.fromkeys(("reload", "fresh", "force_reload", "refresh"), _RELOAD),
    **dict.fromkeys(("fork", "subagent", "isolated"), _FORK),
    **dict.fromkeys(("paths", "scope_paths"), _PATHS),
    **dict.fromkeys(("model", "effort"), _MODEL),
    **dict.fromkeys(("file", "file_path", "skill_path", "dir"), _FILE),
}
"""Every key that models write in place of ``name`` and ``arguments``, and what they are told."""

_KNOWN = frozenset({"name", "arguments"})
_COMMAND = re.compile(r"/([^\s/]+)(?:\s+(.*))?\Z", re.DOTALL)
_INTEGER = re.compile(r"[+-]?[0-9]{1,100}")
_NUMBER = re.compile(r"[+-]?(?:[0-9]{1,100}(?:\.[0-9]{0,100})?|\.[0-9]{1,100})(?:[eE][+-]?[0-9]{1,3})?")

Given = str | dict[str, Json] | None
"""Arguments as a caller gives them: one text, named values, or none."""


@dataclass(frozen=True, slots=True)
class Input:
    """A call whose shape is right."""

    name: str
    arguments: Given


def parse_input(raw: object) -> Input:
    """The input of the tool. Raises ``RefusedError`` INVALID_PARAM."""
    if not isinstance(raw, Mapping):
        raise _invalid("", "the input must be one JSON object with 'name' and optionally 'arguments'.")
    values: dict[str, object] = {str(key): value for key, value in raw.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    name = values.get("name")
    said = name if isinstance(name, str) else ""
    aliases = [f"'{key}': {ALIASES[key]}" for key in values if key in ALIASES]
    unknown = [f"unknown parameter '{shown(key)}'" for key in values if key not in ALIASES and key not in _KNOWN]
    if aliases or unknown:
        hint = "The parameters are 'name' and optionally 'arguments'."
        raise _invalid(said, _few((*aliases, *unknown), "; ") + ".", hint=hint)
    return Input(parse_name(name), parse_given(said, values.get("arguments")))


def parse_name(name: object) -> str:
    """A name that is text and not empty. Raises ``RefusedError`` INVALID_PARAM."""
    if not isinstance(name, str):
        raise _invalid("", "'name' is required and must be a string.")
    if not name.strip():
        raise _invalid(name, "'name' must not be empty.")
    return name


def require_name(name: str, *, is_kebab: bool) -> None:
    """Raises ``RefusedError`` INVALID_PARAM for a name that no skill of the standard can have.

    Skills of other harnesses have such names, so this is for those that lead to no skill.
    """
    if len(name) > MAX_NAME:
        raise _invalid(name, f"'name' has {len(name)} characters; at most {MAX_NAME} are allowed.")
    if is_kebab and not is_legal_name(name):
        raise _invalid(name, f'skill name must be lowercase-kebab-case, and "{shown(name)}" is not.')


def parse_given(name: str, arguments: object) -> Given:
    """Arguments that are text, an object of plain values, or absent. Raises ``RefusedError`` INVALID_PARAM."""
    if arguments is None or isinstance(arguments, str):
        return None if arguments is None else writable(arguments)
    if not isinstance(arguments, Mapping):
        raise _invalid(name, "'arguments' must be a string or an object of named values.")
    given: dict[str, Json] = {}
    for key, value in arguments.items():  # pyright: ignore[reportUnknownVariableType]
        if not isinstance(key, str) or not isinstance(value, (str, int, float, bool)):
            raise _invalid(name, f"the argument '{shown(str(key))}' must be a string, number or boolean.")  # pyright: ignore[reportUnknownArgumentType]
        if isinstance(value, int) and value.bit_length() > _MOST_BITS:
            raise _invalid(name, f"the argument '{shown(key)}' is too large a number.")
        given[writable(key)] = writable(value) if isinstance(value, str) else value
    return given


def parse_command(text: str) -> tuple[str, str] | None:
    """``(name, rest)`` of a user's ``/name rest``, None for text that is no command. The rest is "" when absent."""
    match = _COMMAND.match(text.strip())
    return (match[1], (match[2] or "").strip()) if match else None


def command_arguments(rest: str, skill: Skill, row: Dialect) -> Given:
    """What a user wrote after ``/name``, as the skill takes it: ``key=value`` words where arguments have names.

    Text that does not fit stays text, and is then refused with what the skill expects.
    """
    if not rest:
        return None
    if not _takes_names_only(skill, row):
        return rest
    named: dict[str, Json] = {}
    names = [argument.name for argument in skill.arguments]
    for word in split_arguments(rest, "posix"):
        name, equals, value = word.partition("=")
        if not equals or name not in names or name in named:
            return {names[0]: rest} if len(names) == 1 else rest
        named[name] = value
    return named


def check_arguments(skill: Skill, given: Given, row: Dialect) -> str | dict[str, str] | None:
    """The arguments as text for substitution, with defaults filled in.

    Raises:
        RefusedError: INVALID_PARAM for the wrong form, a missing, unknown or ill-typed argument.
    """
    declared = skill.arguments
    if given is None or (given == {} and not declared):
        absent = [argument.name for argument in declared if argument.required and argument.default is None]
        if absent:
            raise _invalid(skill.name, f'skill "{skill.name}" requires {_listed(absent)}.', hint=_usage(skill, row))
        defaults = {argument.name: argument.default for argument in declared if argument.default is not None}
        return defaults or None
    if isinstance(given, str):
        if _takes_names_only(skill, row):
            message = f'skill "{skill.name}" expects named arguments: {_listed(_names(skill))}.'
            raise _invalid(skill.name, message, hint=_usage(skill, row))
        if declared:
            _check_positions(skill, given, row)
        return given
    if not declared:
        if row.named and "arguments" not in row.understands:
            return {name: _text(value) for name, value in given.items()}
        raise _invalid(skill.name, f'skill "{skill.name}" does not accept named arguments.', hint=_usage(skill, row))
    unknown = [name for name in given if name not in _names(skill)]
    if unknown:
        message = f'skill "{skill.name}" has no argument {_listed(unknown)}; it takes {_listed(_names(skill))}.'
        raise _invalid(skill.name, message, hint=_usage(skill, row))
    values: dict[str, str] = {}
    missing: list[str] = []
    for argument in declared:
        if argument.name in given:
            values[argument.name] = _coerced(skill, argument, given[argument.name])
        elif argument.default is not None:
            values[argument.name] = argument.default
        elif argument.required:
            missing.append(argument.name)
    if missing:
        raise _invalid(skill.name, f'skill "{skill.name}" requires {_listed(missing)}.', hint=_usage(skill, row))
    return values


def _takes_names_only(skill: Skill, row: Dialect) -> bool:
    """Whether the skill's arguments have names and no places."""
    return bool(skill.arguments) and (skill.arguments_by_name or not row.names_have_places)


def _check_positions(skill: Skill, text: str, row: Dialect) -> None:
    words = split_arguments(text, row.tokens)
    for index, argument in enumerate(skill.arguments):
        if index < len(words):
            _coerced(skill, argument, words[index])
        elif argument.required and argument.default is None:
            message = f'skill "{skill.name}" requires {_listed([argument.name])} as its argument {index + 1}.'
            raise _invalid(skill.name, message, hint=_usage(skill, row))


def _coerced(skill: Skill, argument: Argument, value: Json) -> str:
    """The value as the text that is put in. Raises ``RefusedError`` when it is none of the declared type."""
    text = _typed(argument, value)
    if text is None:
        wanted = f"one of {', '.join(argument.choices)}" if argument.type == "enum" else f"of type {argument.type}"
        message = f"the argument '{argument.name}' of skill \"{skill.name}\" must be {wanted}."
        raise _invalid(skill.name, message, hint=argument.description)
    return text


def _typed(argument: Argument, value: Json) -> str | None:
    if argument.type == "boolean":
        word = WORDS.get(value.strip().lower()) if isinstance(value, str) else value
        return str(word).lower() if isinstance(word, bool) else None
    if isinstance(value, bool):
        return None
    if argument.type == "integer":
        if isinstance(value, float):
            return str(int(value)) if value.is_integer() else None
        text = _text(value).strip()
        return str(int(text)) if _INTEGER.fullmatch(text) else None
    if argument.type == "number":
        if isinstance(value, float):
            return _text(value) if math.isfinite(value) else None
        text = _text(value).strip()
        return text if _NUMBER.fullmatch(text) else None
    if argument.type == "enum":
        text = _text(value)
        return text if text in argument.choices else None
    return value if isinstance(value, str) else None


def _text(value: Json) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return value if isinstance(value, str) else repr(value)


def _names(skill: Skill) -> list[str]:
    return [argument.name for argument in skill.arguments]


def _listed(names: list[str]) -> str:
    return _few([f"'{shown(name)}'" for name in names], ", ")


def _few(texts: Sequence[str], between: str) -> str:
    """The first of them: what a model made up may be endless."""
    more = [f"and {len(texts) - _FEW} more"] if len(texts) > _FEW else []
    return between.join((*texts[:_FEW], *more))


def _usage(skill: Skill, row: Dialect) -> str:
    """How the skill is called, as far as it says."""
    if _takes_names_only(skill, row):
        parts = (f"{item.name} ({item.type}{', required' if item.required else ''})" for item in skill.arguments)
        return f"Pass an object: {', '.join(parts)}."
    if skill.argument_hint:
        return f"Pass a string: {skill.argument_hint}"
    return "Pass a string, or no arguments."


def _invalid(name: str, message: str, *, hint: str = "") -> RefusedError:
    return refused(name, "INVALID_PARAM", message, hint=hint)
