"""Which arguments a script takes, told by its own text or by the usage line of its instructions. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from satchel.execution.arguments import MAX_ARGUMENTS, OPTION, PLACE, ScriptArgument, can_be_shown, plain_name
from satchel.execution.python_arguments import from_argparse, from_argv, parsed

_WORD = re.compile(r"<[^<>\n]{1,48}>|\[|\]|\.\.\.|--?[A-Za-z][\w-]*=?|\{[^{}\s]{1,160}\}|[^\s\[\]<>=.]+")
_PLACEHOLDER = re.compile(r"<([^<>]+)>|([A-Z][A-Z0-9_-]*)")
_OF_USAGE = 300


def script_arguments(path: str, source: str, usage: str) -> tuple[ScriptArgument, ...]:
    """The arguments of the script ``path`` in their order, () when its texts do not tell all of them.

    ``usage`` is what its instructions write behind its name, "" for nothing.
    """
    module = parsed(source) if path.endswith(".py") else None
    if module is not None:
        declared = from_argparse(module)
        if declared is not None:
            return _usable(declared)
    for line in (usage, *_usage_lines(path, source)):
        shown = _from_usage(line)
        if shown:
            return _usable(shown)
    return _usable(from_argv(module)) if module is not None else ()


def _usable(found: Sequence[ScriptArgument]) -> tuple[ScriptArgument, ...]:
    """All of them or none: a call with half of its arguments is no better than one that a model wrote freely."""
    names = {plain_name(name) for argument in found for name in (argument.name, *argument.aliases)}
    is_clear = len(names) == sum(1 + len(argument.aliases) for argument in found)
    return tuple(found) if is_clear and len(found) <= MAX_ARGUMENTS else ()


def _usage_lines(path: str, source: str) -> Iterator[str]:
    """What the script itself writes behind its name in lines that begin with "usage"."""
    name = re.escape(path.rpartition("/")[2])
    for found in re.finditer(
        rf"(?i)\busage:?[^\n]{{0,80}}?(?:{name}|\$0|\$\{{0\}}|\$\(basename[^\n)]{{0,40}}\)|argv\[0\]\}}?)", source
    ):
        line = source[found.end() : found.end() + _OF_USAGE].partition("\n")[0]
        yield re.split(r"[\"'`](?:\s*[),;>&]|\s*$)|\\n", line.lstrip("\"'"), maxsplit=1)[0]


def _from_usage(line: str) -> list[ScriptArgument]:
    """The arguments of a usage line, [] when a word of it is an example and no placeholder."""
    found: list[ScriptArgument] = []
    waiting, depth = "", 0
    for word in _WORD.findall(line[:_OF_USAGE]):
        place = _PLACEHOLDER.fullmatch(word)
        if word in "[]":
            found += [ScriptArgument(name=waiting, is_flag=True)] if waiting else []
            waiting, depth = "", max(0, depth + (1 if word == "[" else -1))
        elif word == "..." and found:
            found[-1] = replace(found[-1], many="together")
        elif OPTION.fullmatch(word.rstrip("=")):
            found += [ScriptArgument(name=waiting, is_flag=True)] if waiting else []
            waiting = word.rstrip("=")
        elif place or word.startswith("{"):
            name = waiting or re.sub(r"\W+", "-", (place[1] or place[2]) if place else word).strip("-")
            choices = tuple(word[1:-1].split(",")) if not place else ()
            found.append(ScriptArgument(name=name, choices=choices, is_optional=depth > 0))
            waiting = ""
        else:
            return []
    found += [ScriptArgument(name=waiting, is_flag=True)] if waiting else []
    is_clear = all(OPTION.fullmatch(item.name) or PLACE.fullmatch(item.name) for item in found)
    return found if is_clear and all(can_be_shown(value) for item in found for value in item.choices) else []
