"""The arguments of Python scripts, read out of their syntax trees without running them. Pure."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Mapping, Sequence
from typing import cast

from satchel.execution.arguments import (
    HELP_LENGTH,
    MAX_ARGUMENTS,
    OPTION,
    PLACE,
    Choice,
    ScriptArgument,
    ValueType,
    can_be_shown,
)
from satchel.skills.oneline import one_line

MAX_SOURCE_CHARS = 32 * 1024
"""Longest script that is parsed. The parser holds the interpreter while it works."""
MAX_CHOICES = 64

_FLAGS = frozenset({"store_true", "store_false", "store_const", "append_const", "count"})
_SILENT = frozenset({"help", "version"})
_NUMBERS: Mapping[str, ValueType] = {"int": "integer", "float": "number", "Decimal": "number"}


def parsed(source: str) -> ast.Module | None:
    """The script's syntax tree, None where it cannot tell of arguments or is no Python of this version."""
    if len(source) > MAX_SOURCE_CHARS or not ("add_argument" in source or "sys.argv" in source):
        return None
    try:
        with warnings.catch_warnings(action="ignore"):
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def from_argparse(module: ast.Module) -> list[ScriptArgument] | None:
    """What ``add_argument`` is called with, places first; None when it is not called, [] when it cannot be followed."""
    calls = [node for node in ast.walk(module) if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)]
    methods = {cast("ast.Attribute", call.func).attr for call in calls}
    declaring = [call for call in calls if cast("ast.Attribute", call.func).attr == "add_argument"]
    if not declaring:
        return None
    if "add_subparsers" in methods or len(declaring) > MAX_ARGUMENTS * 2:
        return []
    bound = _constants(module)
    found: list[ScriptArgument] = []
    for call in sorted(declaring, key=lambda call: (call.lineno, call.col_offset)):
        declared = _declared(call, bound)
        if declared is None:
            return []
        found += declared
    return sorted(found, key=lambda argument: argument.is_option)


def _declared(call: ast.Call, bound: Mapping[str, ast.expr]) -> list[ScriptArgument] | None:
    """The arguments that one call declares, None when its names cannot be read."""
    names = [node.value if isinstance(node, ast.Constant) else None for node in call.args]
    about = {keyword.arg: keyword.value for keyword in call.keywords}
    if None in about or not names or not all(isinstance(name, str) for name in names):
        return None
    texts = sorted((str(name) for name in names), key=lambda name: not name.startswith("--"))
    is_option = texts[0].startswith("-")
    if not all(OPTION.fullmatch(name) if is_option else PLACE.fullmatch(name) for name in texts):
        return None
    action = _text(about.get("action")) or _last_name(about.get("action"))
    if action in _SILENT:
        return []
    told = _help(_text(about.get("help")))
    name, aliases = texts[0], tuple(texts[1:])
    if action == "BooleanOptionalAction":
        no = ScriptArgument(name=f"--no-{name.removeprefix('--')}", is_flag=True)
        return [ScriptArgument(name=name, aliases=aliases, is_flag=True, help=told), no]
    if action in _FLAGS:
        return [ScriptArgument(name=name, aliases=aliases, is_flag=True, help=told)]
    nargs = about.get("nargs")
    count = nargs.value if isinstance(nargs, ast.Constant) else _last_name(nargs)
    takes_many = count in {"*", "+", "...", "REMAINDER"} or (isinstance(count, int) and count > 1)
    return [
        ScriptArgument(
            name=name,
            aliases=aliases,
            type=_NUMBERS.get(_last_name(about.get("type")), "text"),
            choices=_choices(about.get("choices"), bound),
            is_optional=count in {"?", "*"} or (is_option and not _is_true(about.get("required"))),
            many="together" if takes_many else "each" if action in {"append", "extend"} else "",
            help=told,
        )
    ]


def _help(text: str) -> str:
    return one_line(re.sub(r"[\[(]?(?:default:?\s*)?%\(\w+\)\w[\])]?", "", text).replace("%%", "%"))[:HELP_LENGTH]


def _is_true(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is True


def _text(node: ast.expr | None) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _last_name(node: ast.expr | None) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _constants(module: ast.Module) -> dict[str, ast.expr]:
    """What the module binds once at its top, by name."""
    bound: dict[str, ast.expr] = {}
    for node in module.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                bound[name] = value
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                bound[name] = value
            case _:
                continue
    return bound


def _choices(node: ast.expr | None, bound: Mapping[str, ast.expr]) -> tuple[Choice, ...]:
    """The values of ``choices=``, written there or at the top of the module; () when they cannot be told."""
    for _ in range(4):
        match node:
            case ast.Call(func=ast.Name(id="sorted" | "list" | "tuple" | "set"), args=[inner]):
                node = inner
            case ast.Call(func=ast.Attribute(value=inner, attr="keys"), args=[]):
                node = inner
            case ast.Name(id=name):
                node = bound.get(name)
            case _:
                break
    listed: Sequence[ast.expr | None] = ()
    if isinstance(node, ast.List | ast.Tuple | ast.Set):
        listed = node.elts
    elif isinstance(node, ast.Dict):
        listed = node.keys
    values = [item.value for item in listed if isinstance(item, ast.Constant)]
    plain = [value for value in values if isinstance(value, str | int | float) and can_be_shown(value)]
    return tuple(dict.fromkeys(plain)) if len(plain) == len(listed) <= MAX_CHOICES else ()


def from_argv(module: ast.Module) -> list[ScriptArgument]:
    """The names that ``sys.argv`` is unpacked into, [] for a script that looks for options in it."""
    converted = _converted(module)
    places: dict[int, ScriptArgument] = {}
    aliases = {"argv", "args"}
    for node in ast.walk(module):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and OPTION.fullmatch(node.value):
            return []
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if _is_rest(value, set()):
                aliases.add(name)
            case ast.Assign(targets=[ast.Tuple(elts=targets)], value=value) if _is_rest(value, aliases):
                if not all(isinstance(target, ast.Name) for target in targets):
                    return []
                kind = _conversion(value)
                for place, target in enumerate(cast("list[ast.Name]", targets), 1):
                    told = ScriptArgument(name=target.id, type=kind or converted.get(target.id, "text"))
                    if places.setdefault(place, told) != told:
                        return []
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                place = _place(value)
                told = ScriptArgument(name=name, type=_conversion(value) or converted.get(name, "text"))
                if place and places.setdefault(place, told) != told:
                    return []
            case _:
                continue
    found = [places[place] for place in sorted(places) if PLACE.fullmatch(places[place].name)]
    return found if sorted(places) == list(range(1, len(found) + 1)) else []


def _is_rest(node: ast.expr, aliases: set[str]) -> bool:
    """Whether it is all of a script's arguments, perhaps each converted."""
    match node:
        case ast.Call(func=ast.Name(id="map"), args=[_, inner]):
            return _is_rest(inner, aliases)
        case (
            ast.ListComp(generators=[ast.comprehension(iter=inner)])
            | ast.GeneratorExp(generators=[ast.comprehension(iter=inner)])
        ):
            return _is_rest(inner, aliases)
        case ast.Subscript(value=ast.Attribute(attr="argv"), slice=ast.Slice(lower=ast.Constant(value=1))):
            return True
        case ast.Name(id=name):
            return name in aliases
        case _:
            return False


def _place(node: ast.expr) -> int:
    """The place in ``sys.argv`` that is read, 0 for anything else."""
    match node:
        case ast.Call(func=ast.Name(), args=[inner]):
            return _place(inner)
        case ast.Subscript(value=ast.Attribute(attr="argv"), slice=ast.Constant(value=int() as place)):
            return place
        case _:
            return 0


def _conversion(node: ast.expr) -> ValueType | None:
    match node:
        case ast.Call(func=ast.Name(id="map"), args=[ast.Name(id=name), _]):
            return _NUMBERS.get(name)
        case ast.Call(func=ast.Name(id=name), args=[_]):
            return _NUMBERS.get(name)
        case (
            ast.ListComp(elt=ast.Call(func=ast.Name(id=name))) | ast.GeneratorExp(elt=ast.Call(func=ast.Name(id=name)))
        ):
            return _NUMBERS.get(name)
        case _:
            return None


def _converted(module: ast.Module) -> dict[str, ValueType]:
    """The names that are made numbers somewhere."""
    found: dict[str, ValueType] = {}
    for node in ast.walk(module):
        match node:
            case ast.Call(func=ast.Name(id=kind), args=[ast.Name(id=name)]) if kind in _NUMBERS:
                found[name] = _NUMBERS[kind]
            case _:
                continue
    return found
