"""A script's text and usage line -> its arguments -> a schema -> the list that the script is given."""

from __future__ import annotations

import argparse
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from satchel.chat.messages import Json
from satchel.execution.arguments import MAX_ARGUMENTS, ScriptArgument, arguments_schema, command_words
from satchel.execution.python_arguments import MAX_SOURCE_CHARS
from satchel.execution.script_arguments import script_arguments

PARSER = '''
"""Plans."""
import argparse
from datetime import date

MODES = {"fast": 1, "slow": 2}
LEVELS = (1, 2, 3)
raise SystemExit("nothing of this is run")


def build():
    parser = argparse.ArgumentParser()
    parser.add_argument("--distance", "-d", type=float, required=True, metavar="KM", help="whole %(prog)s route")
    parser.add_argument("-m", "--mode", choices=sorted(MODES), default="fast")
    group = parser.add_argument_group("more")
    group.add_argument("--level", type=int, choices=LEVELS, help="100%% sure (default: %(default)s)")
    group.add_argument("--day", type=date.fromisoformat)
    group.add_argument("--quick", action="store_true")
    group.add_argument("--no-log", dest="log", action="store_false")
    group.add_argument("--tag", action="append")
    group.add_argument("--wind", action=argparse.BooleanOptionalAction)
    parser.add_argument("--version", action="version", version="1")
    parser.add_argument("town", help="where " "to")
    parser.add_argument("files", nargs="*")
    return parser
'''


def found(source: str = "", usage: str = "", path: str = "scripts/a.py") -> list[str]:
    return [argument.name for argument in script_arguments(path, source, usage)]


def test_what_argparse_is_told_becomes_arguments_places_first() -> None:
    assert script_arguments("scripts/a.py", PARSER, "640 --distance 4") == (
        ScriptArgument(name="town", help="where to"),
        ScriptArgument(name="files", many="together", is_optional=True),
        ScriptArgument(name="--distance", aliases=("-d",), type="number", help="whole route"),
        ScriptArgument(name="--mode", aliases=("-m",), choices=("fast", "slow"), is_optional=True),
        ScriptArgument(name="--level", type="integer", choices=(1, 2, 3), is_optional=True, help="100% sure"),
        ScriptArgument(name="--day", is_optional=True),
        ScriptArgument(name="--quick", is_flag=True),
        ScriptArgument(name="--no-log", is_flag=True),
        ScriptArgument(name="--tag", many="each", is_optional=True),
        ScriptArgument(name="--wind", is_flag=True),
        ScriptArgument(name="--no-wind", is_flag=True),
    )


def test_the_schema_asks_for_every_argument_and_null_for_what_is_left_out() -> None:
    schema = arguments_schema(script_arguments("a.py", PARSER, ""))
    properties = schema["properties"]
    assert isinstance(properties, dict)
    assert schema["required"] == list(properties)
    assert properties["--distance"] == {"type": ["number", "null"], "description": "whole route"}
    assert properties["--mode"] == {"enum": ["fast", "slow", None], "default": None}
    assert properties["--quick"] == {"type": "boolean"}
    assert properties["files"] == {"type": ["array", "null"], "items": {"type": "string"}, "default": None}


def test_values_become_the_list_that_argparse_reads_back() -> None:
    arguments = script_arguments("a.py", PARSER, "")
    values: dict[str, Json] = {
        "distance": -18.0,
        "--mode": "slow",
        "level": None,
        "quick": True,
        "no_log": "false",
        "tag": ["a b", "-c"],
        "town": "Upper Brae",
        "files": ["x", 3],
    }
    assert command_words(arguments, values) == (
        *("Upper Brae", "x", "3", "--distance", "-18", "--mode", "slow", "--quick", "--tag", "a b", "--tag=-c"),
    )


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("-x", ("--out=-x",)),
        ("-4.5", ("--out", "-4.5")),
        (True, ("--out", "true")),
        (2.50, ("--out", "2.5")),
        ("", ("--out", "")),
        (10**20, ("--out", "100000000000000000000")),
    ],
)
def test_each_value_is_written_so_that_it_arrives(value: Json, words: tuple[str, ...]) -> None:
    assert command_words((ScriptArgument(name="--out"),), {"out": value}) == words
    parser = argparse.ArgumentParser()
    parser.add_argument("--out")
    assert parser.parse_args(words).out == words[-1].removeprefix("--out=")


def test_what_cannot_be_told_apart_is_said() -> None:
    arguments = (ScriptArgument(name="FROM"), ScriptArgument(name="TO"), ScriptArgument(name="--stops"))
    unknown = command_words(arguments, {"via\n": "Tern"})
    assert unknown == 'The script has no argument "via". It takes: FROM, TO, --stops.'
    behind = command_words(arguments, {"FROM": None, "TO": "Tern"})
    assert isinstance(behind, str)
    assert '"TO" comes behind "FROM"' in behind
    assert command_words(arguments, {"FROM": "Nor", "TO": None, "stops": "2"}) == ("Nor", "--stops", "2")


@pytest.mark.parametrize(
    "line",
    [
        'for name in NAMES: p.add_argument("--" + name)',
        "p.add_argument(*FLAGS)",
        'p.add_argument("--x", **OPTIONS)',
        'p.add_subparsers(); p.add_argument("--x")',
        'p.add_argument("--x"); p.add_argument("--x")',
        'p.add_argument("x y")',
        'p.add_argument("--x", "y")',
        "p.add_argument(",
        *(f"\0{text}" for text in ('p.add_argument("--x")',)),
        "\n".join(f'p.add_argument("--x{number}")' for number in range(MAX_ARGUMENTS + 1)),
        'p.add_argument("--x")' + "#" * MAX_SOURCE_CHARS,
        "add_argument" + "-" * (MAX_SOURCE_CHARS - 20) + "1",
        "add_argument = a" + ".b" * (MAX_SOURCE_CHARS // 4),
        "add_argument" + "(" * (MAX_SOURCE_CHARS - 20),
    ],
)
def test_a_parser_that_cannot_be_followed_tells_nothing(line: str) -> None:
    assert found(line) == []


def test_choices_that_are_made_up_at_run_time_are_any_value() -> None:
    lists = ("N", "[str(i) for i in N]", "['a', N]", "[1e999]", "['\\ud800']", f"[0x{'f' * 9000}]", "['']", "[True]")
    calls = (f'p.add_argument("--a{number}", choices={text})' for number, text in enumerate(lists))
    source = "\n".join(("N = load()", *calls))
    assert [argument.choices for argument in script_arguments("a.py", source, "")] == [()] * len(lists)


@pytest.mark.parametrize(
    ("usage", "names"),
    [
        ("GUESTS TIERS", ["GUESTS", "TIERS"]),
        ("<from town> <to> [--prams N] [--fast]", ["from-town", "to", "--prams", "--fast"]),
        ("--size=SIZE [FILE...]", ["--size", "FILE"]),
        ("{on,off} LEVEL", ["on-off", "LEVEL"]),
        ('"Long Reed" 2019', []),
        ("--width-cm 70 --sett 9", []),
        ("2400 --reserve 5", []),
        ("FROM and then TO", []),
        ("A A", []),
        ("", []),
        ("[" * 5000, []),
    ],
)
def test_placeholders_of_a_usage_line_are_arguments_and_examples_are_not(usage: str, names: list[str]) -> None:
    assert found("x = 1", usage) == names
    assert found("echo", usage, "scripts/a.sh") == names


@pytest.mark.parametrize(
    "source",
    [
        'usage() { echo "usage: a.sh FROM TO [--stops N]" >&2; exit 2; }',
        "# Usage: bash scripts/a.sh FROM TO [--stops N]\n",
        'echo "Usage: $0 <FROM> <TO> [--stops N]"\n',
        "console.error('usage: a.sh FROM TO [--stops N]');",
    ],
)
def test_a_script_tells_its_own_usage(source: str) -> None:
    assert found(source, 'Nor "Port Ela"', "scripts/a.sh") == ["FROM", "TO", "--stops"]


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("import sys\nstone, depth = sys.argv[1:]\nprint(int(depth))", ["stone:text", "depth:integer"]),
        ("import sys\na, b = map(float, sys.argv[1:3])", ["a:number", "b:number"]),
        ("import sys\na, b = [int(x) for x in sys.argv[1:]]", ["a:integer", "b:integer"]),
        ("import sys\nb = float(sys.argv[2])\na = sys.argv[1]", ["a:text", "b:number"]),
        ("def main(argv):\n    a, b = argv\nmain(sys.argv[1:])", ["a:text", "b:text"]),
        ("b = sys.argv[2]", []),
        ("a, b = sys.argv[1:]\nb, a = args", []),
        ("a = sys.argv[1]\nb = sys.argv[1]", []),
        ("a, *rest = sys.argv[1:]", []),
        ("a, b = sys.argv[1:]\nif a == '--x': pass", []),
        ("print(sys.argv)", []),
    ],
)
def test_names_that_the_command_line_is_unpacked_into_are_places(source: str, names: list[str]) -> None:
    told = [f"{argument.name}:{argument.type}" for argument in script_arguments("a.py", source, "7 x")]
    assert told == names


@given(st.text(alphabet="[]<>{}=.-ABab \n'\"|$", max_size=120), st.text(max_size=200))
def test_any_text_is_read_without_an_error(usage: str, source: str) -> None:
    for text in (source, f"add_argument({source}", f"sys.argv{source}", f"usage: a.py {usage}"):
        arguments = script_arguments("a.py", text, usage)
        json.dumps(arguments_schema(arguments))
        words = command_words(arguments, {argument.name: True for argument in arguments})
        assert isinstance(words, tuple)
