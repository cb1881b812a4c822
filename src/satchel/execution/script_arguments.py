"""What a script takes, read out of its text and its usage line without running it. Pure.

A model that fills in declared arguments one by one cannot misname, glue or misplace them; here they become the list
that the script is given.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, cast

from satchel.chat.messages import Json
from satchel.skills.oneline import one_line

MAX_SOURCE_CHARS = 32 * 1024
"""Longest script that is parsed. The parser holds the interpreter while it works."""
MAX_ARGUMENTS = 32
MAX_CHOICES = 64
_HELP_LENGTH = 160
_LARGEST_WHOLE = 1e15

_OPTION = re.compile(r"--?[A-Za-z0-9][\w-]{0,48}")
_PLACE = re.compile(r"[A-Za-z][\w-]{0,48}")
_FLAGS = frozenset({"store_true", "store_false", "store_const", "append_const", "count"})
_SILENT = frozenset({"help", "version"})
ValueType = Literal["text", "integer", "number"]
_Choice = str | int | float
_NUMBERS: Mapping[str, ValueType] = {"int": "integer", "float": "number", "Decimal": "number"}
_JSON_TYPES: Mapping[ValueType, str] = {"text": "string", "integer": "integer", "number": "number"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptArgument:
    """One argument of a script, under the name that its own texts give it: ``--month``, or ``file`` for a place.

    ``is_flag``: it stands alone, without a value. ``is_list``: it takes several. ``choices`` are all that it takes.
    """

    name: str
    aliases: tuple[str, ...] = ()
    type: ValueType = "text"
    choices: tuple[_Choice, ...] = ()
    is_flag: bool = False
    is_list: bool = False
    help: str = ""

    @property
    def is_option(self) -> bool:
        """Whether its name is written on the command line."""
        return self.name.startswith("-")


def script_arguments(path: str, source: str, usage: str) -> tuple[ScriptArgument, ...]:
    """The arguments of the script ``path`` in their order, () when its texts do not tell all of them.

    ``usage`` is what its instructions write behind its name, "" for nothing.
    """
    module = _parsed(source) if path.endswith(".py") else None
    if module is not None:
        declared = _from_argparse(module)
        if declared is not None:
            return _usable(declared)
    for line in (usage, *_usage_lines(path, source)):
        shown = _from_usage(line)
        if shown:
            return _usable(shown)
    return _usable(_from_argv(module)) if module is not None else ()


def arguments_schema(arguments: Sequence[ScriptArgument]) -> dict[str, Json]:
    """A JSON Schema object with a property for each argument; null is for what is left out."""
    properties: dict[str, Json] = {argument.name: _property(argument) for argument in arguments}
    required: list[Json] = [argument.name for argument in arguments]
    return {"type": "object", "properties": properties, "required": required}


def command_words(arguments: Sequence[ScriptArgument], given: Mapping[str, Json]) -> tuple[str, ...] | str:
    """What a script is given for values by name, or a sentence that says why that cannot be told."""
    known = {_plain(name): argument.name for argument in arguments for name in (argument.name, *argument.aliases)}
    values: dict[str, Json] = {}
    for name, value in given.items():
        if _plain(name) not in known:
            taken = ", ".join(argument.name for argument in arguments)
            return f'The script has no argument "{one_line(name)[:48]}". It takes: {taken}.'
        values[known[_plain(name)]] = value
    words: list[str] = []
    skipped = ""
    for argument in arguments:
        value = values.get(argument.name)
        if value is None or value is False or value == []:
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
    if len(texts) == 1 and argument.name.startswith("--") and re.match(r"-(?![\d.])", texts[0]):
        return (f"{argument.name}={texts[0]}",)
    return (argument.name, *texts)


def _texts(value: Json) -> tuple[str, ...]:
    if isinstance(value, list):
        return tuple(text for item in value if item is not None for text in _texts(item))
    if isinstance(value, str):
        return (value,)
    if isinstance(value, float) and value.is_integer() and abs(value) < _LARGEST_WHOLE:
        return (str(int(value)),)
    return ("true" if value is True else str(value),)


def _plain(name: str) -> str:
    return name.lstrip("-").replace("-", "_").casefold()


def _property(argument: ScriptArgument) -> dict[str, Json]:
    about: dict[str, Json] = {"description": argument.help} if argument.help else {}
    if argument.is_flag:
        return {"type": "boolean", **about}
    if argument.is_list:
        return {"type": ["array", "null"], "items": _value(argument), **about}
    if argument.choices:
        return {"enum": [*argument.choices, None], **about}
    return {"type": [_JSON_TYPES[argument.type], "null"], **about}


def _value(argument: ScriptArgument) -> dict[str, Json]:
    return {"enum": [*argument.choices]} if argument.choices else {"type": _JSON_TYPES[argument.type]}


def _usable(found: Sequence[ScriptArgument]) -> tuple[ScriptArgument, ...]:
    """All of them or none: a call with half of its arguments is no better than one that a model wrote freely."""
    names = {_plain(name) for argument in found for name in (argument.name, *argument.aliases)}
    is_clear = len(names) == sum(1 + len(argument.aliases) for argument in found)
    return tuple(found) if is_clear and len(found) <= MAX_ARGUMENTS else ()


def _parsed(source: str) -> ast.Module | None:
    if len(source) > MAX_SOURCE_CHARS or not ("add_argument" in source or "sys.argv" in source):
        return None
    try:
        with warnings.catch_warnings(action="ignore"):
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _from_argparse(module: ast.Module) -> list[ScriptArgument] | None:
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
    if not all(_OPTION.fullmatch(name) if is_option else _PLACE.fullmatch(name) for name in texts):
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
    count = nargs.value if isinstance(nargs, ast.Constant) else None
    choices = _choices(about.get("choices"), bound)
    return [
        ScriptArgument(
            name=name,
            aliases=aliases,
            type=_NUMBERS.get(_last_name(about.get("type")), "text"),
            choices=choices,
            is_list=action in {"append", "extend"} or count in {"*", "+"} or (isinstance(count, int) and count > 1),
            help=told,
        )
    ]


def _help(text: str) -> str:
    return one_line(re.sub(r"[\[(]?(?:default:?\s*)?%\(\w+\)\w[\])]?", "", text).replace("%%", "%"))[:_HELP_LENGTH]


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


def _choices(node: ast.expr | None, bound: Mapping[str, ast.expr]) -> tuple[_Choice, ...]:
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
    plain = [value for value in values if isinstance(value, str | int | float) and not isinstance(value, bool)]
    is_whole = len(plain) == len(listed) <= MAX_CHOICES
    short = all(len(str(value)) <= _HELP_LENGTH for value in plain) if is_whole else False
    return tuple(dict.fromkeys(plain)) if short else ()


def _from_argv(module: ast.Module) -> list[ScriptArgument]:
    """The names that ``sys.argv`` is unpacked into, [] for a script that looks for options in it."""
    converted = _converted(module)
    places: dict[int, ScriptArgument] = {}
    aliases = {"argv", "args"}
    for node in ast.walk(module):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and _OPTION.fullmatch(node.value):
            return []
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if _is_rest(value, set()):
                aliases.add(name)
            case ast.Assign(targets=[ast.Tuple(elts=targets)], value=value) if _is_rest(value, aliases):
                if not all(isinstance(target, ast.Name) for target in targets):
                    return []
                kind = _conversion(value)
                for place, target in enumerate(cast("list[ast.Name]", targets), 1):
                    places[place] = ScriptArgument(name=target.id, type=kind or converted.get(target.id, "text"))
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                place = _place(value)
                if place:
                    kind = _conversion(value) or converted.get(name, "text")
                    places[place] = ScriptArgument(name=name, type=kind)
            case _:
                continue
    found = [places[place] for place in sorted(places) if _PLACE.fullmatch(places[place].name)]
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


_WORD = re.compile(r"<[^<>\n]{1,48}>|\[|\]|\.\.\.|--?[A-Za-z][\w-]*=?|\{[^{}\s]{1,160}\}|[^\s\[\]<>=.]+")
_PLACEHOLDER = re.compile(r"<([^<>]+)>|([A-Z][A-Z0-9_-]*)")
_OF_USAGE = 300


def _usage_lines(path: str, source: str) -> Iterator[str]:
    """What the script itself writes behind its name in lines that begin with "usage"."""
    name = re.escape(path.rpartition("/")[2])
    for found in re.finditer(
        rf"(?i)\busage:?[^\n]{{0,80}}?(?:{name}|\$0|\$\{{0\}}|\$\(basename[^\n)]*\)|argv\[0\]\}}?)", source
    ):
        line = source[found.end() : found.end() + _OF_USAGE].partition("\n")[0]
        yield re.split(r"[\"'`](?:\s*[),;>&]|\s*$)|\\n", line.lstrip("\"'"), maxsplit=1)[0]


def _from_usage(line: str) -> list[ScriptArgument]:
    """The arguments of a usage line, [] when a word of it is an example and no placeholder."""
    found: list[ScriptArgument] = []
    depth, waiting = 0, ""
    for word in _WORD.findall(line[:_OF_USAGE]):
        place = _PLACEHOLDER.fullmatch(word)
        if word in "[]":
            found += [ScriptArgument(name=waiting, is_flag=True)] if waiting else []
            waiting, depth = "", depth + (1 if word == "[" else -1)
        elif word == "..." and found:
            found[-1] = ScriptArgument(name=found[-1].name, is_list=True)
        elif _OPTION.fullmatch(word.rstrip("=")):
            found += [ScriptArgument(name=waiting, is_flag=True)] if waiting else []
            waiting = word.rstrip("=")
        elif place or word.startswith("{"):
            name = waiting or re.sub(r"\W+", "-", (place[1] or place[2]) if place else word).strip("-")
            choices = tuple(word[1:-1].split(",")) if not place else ()
            found.append(ScriptArgument(name=name, choices=choices))
            waiting = ""
        else:
            return []
    found += [ScriptArgument(name=waiting, is_flag=True)] if waiting else []
    return found if all(_OPTION.fullmatch(item.name) or _PLACE.fullmatch(item.name) for item in found) else []
