from __future__ import annotations

import re
import shlex
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from satchel.errors import SkillError
from satchel.skills.arguments import Declared, declared_arguments, split_arguments
from satchel.skills.dialect import Dialect
from satchel.skills.dialects import DIALECTS, PORTABLE
from satchel.skills.manifest import parse_manifest
from satchel.skills.model import LoadedSkill
from satchel.skills.substitute import (
    MAX_INSERTED,
    Rendered,
    dollar_sample,
    find_commands,
    place_variables,
    substitute,
    substitute_skill,
)

ALWAYS = replace(PORTABLE, bare="always")
EMPTYING = replace(PORTABLE, bare="always", named=frozenset(), missing="empty", unknown="empty", append_unused=False)
FROM_TO = Declared(names=("from", "to"))
HINT = Declared(has_hint=True)


def skill(body: str, fields: str = "") -> LoadedSkill:
    data = f"---\nname: s\ndescription: Does it.\n{fields}\n---\n{body}".encode()
    record = parse_manifest(data, directory="s", dialect=PORTABLE)
    assert record.skill is not None
    return LoadedSkill(skill=record.skill, body=record.body, manifest_bytes=len(data))


def text(body: str, arguments: object = None, **options: object) -> str:
    return substitute(body, arguments, **options).text  # pyright: ignore[reportArgumentType]


def test_everything_that_portable_knows_stands_in_one_text() -> None:
    rendered = substitute(
        "all: $ARGUMENTS; second: $ARGUMENTS[1]; first: $0; $from to ${to}; here: ${SKILL_DIR}; env: ${TAG}; $$0 \\$1 $9",
        '"a b" c',
        declared=FROM_TO,
        variables={"SKILL_DIR": "/s", "OTHER": "x"},
        environ={"TAG": "v1", "SKILL_DIR": "not this"},
    )
    assert rendered.text == 'all: "a b" c; second: c; first: a b; a b to c; here: /s; env: v1; $0 $1 $9'
    assert rendered.placed == ("$ARGUMENTS", "$ARGUMENTS[1]", "$0", "$from", "${to}", "${SKILL_DIR}", "${TAG}")
    assert rendered.unfilled == ("$9",)
    assert rendered.unused_arguments == ()
    assert [item.rule for item in rendered.diagnostics] == ["placeholder-unfilled"]


def test_awk_fields_and_prices_stay_unless_the_skill_declares_arguments() -> None:
    body = "Run `awk '{print $1}' f`; price $0.10; user wrote: $ARGUMENTS\n"
    assert text(body, "alpha beta") == "Run `awk '{print $1}' f`; price $0.10; user wrote: alpha beta\n"
    # The public case expects numbers from 1; this row counts from 0, a row that counts from 1 gives what it expects.
    move = "Move $1 to $2, keep \\$1 literal, $3 stays."
    assert text(move, '"a b" c', declared=HINT) == "Move c to $2, keep $1 literal, $3 stays."
    from_one = replace(PORTABLE, positional=1)
    assert text(move, '"a b" c', declared=HINT, dialect=from_one) == "Move a b to c, keep $1 literal, $3 stays."


def test_shell_text_keeps_its_dollars_where_nothing_is_declared() -> None:
    body = "kill $$; grep '\\$' f; echo ${HOME} $HOME \\$HOME $$HOME; awk '{print $NF, $(NF-1)}'; cost $$5 \\$5"
    rendered = substitute(body, "x", environ={"TAG": "v1"})
    assert rendered.text == f"{body}\n\nARGUMENTS: x"
    assert rendered.unused_arguments == ("x",)
    assert text("kill $$; $$5 \\$5 \\$x", "x", declared=HINT) == "kill $$; $5 $5 \\$x\n\nARGUMENTS: x"


def test_a_body_is_read_once_and_what_was_inserted_never() -> None:
    assert text("$ARGUMENTS", "see $1", dialect=ALWAYS) == "see $1"
    assert text("[$ARGUMENTS]", "cost $& up \\1 \\g<0>") == "[cost $& up \\1 \\g<0>]"
    assert text("$0$1", ["$1", "$0"], dialect=ALWAYS) == "$1$0"
    assert text("$0ARGUMENTS", ["$"], dialect=ALWAYS) == "$0ARGUMENTS\n\nARGUMENTS: $"
    assert text("${a} ${b}", {"a": "${b}", "b": "2"}, dialect=ALWAYS, declared=["a", "b"]) == "${b} 2"
    assert text("$0{b}", {"b": "2"}, dialect=ALWAYS) == "$0{b}\n\nARGUMENTS: b=2"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("$0x", "$0x"),
        ("$0_", "$0_"),
        ("$0.example.com/$0/", "A.example.com/A/"),
        ("处理$0文件", "处理A文件"),
        ("$00 $01", "A B"),
        ("$10 $1000000", "$10 $1000000"),
        (f"$ARGUMENTS[{'9' * 5000}] $ARGUMENTS[{'0' * 5000}]", f"$ARGUMENTS[{'9' * 5000}] A"),
        ("$ARGUMENTSx $ARGUMENTS_ $ARGUMENTS1", "$ARGUMENTSx $ARGUMENTS_ $ARGUMENTS1"),
        ("$ARGUMENTS[x] $ARGUMENTS[ $ARGUMENTS[-1]", "A B[x] A B[ A B[-1]"),
        ("$ARGUMENTS[1]st $ARGUMENTS[7]", "Bst $ARGUMENTS[7]"),
        ("$arguments ${ARGUMENTS} $ARGUMENT", "$arguments ${ARGUMENTS} $ARGUMENT"),
        ("$ $ 0 ${} ${ ${0} ${a b} $", "$ $ 0 ${} ${ ${0} ${a b} $"),
        ("$from-here $from[0] $fromage ${from}age", "A-here $from[0] $fromage Aage"),
        ("$dry-run $dry-runs $dry", "B $dry-runs $dry"),
        ("$$0 $$$0 $$$$0 $$$$$0", "$0 $A $$0 $$A"),
        ("\\$0 \\\\$0 $0\\$0", "$0 \\$0 A$0"),
    ],
)
def test_where_a_placeholder_begins_and_ends(body: str, expected: str) -> None:
    rendered = substitute(body, "A B", declared=Declared(names=("from", "dry-run")))
    assert rendered.text.removesuffix("\n\nARGUMENTS: A B") == expected


def test_every_dollar_is_the_harness_s_in_a_row_that_always_reads_them() -> None:
    assert (
        text("kill $$; $$ARGUMENTS; $$$0; \\$1; \\$HOME", "a", dialect=ALWAYS) == "kill $; $ARGUMENTS; $a; $1; \\$HOME"
    )
    plain = replace(ALWAYS, escapes=frozenset())
    assert text("$$0 \\$0", "a", dialect=plain) == "$a \\a"


def test_no_arguments_are_not_empty_arguments() -> None:
    body = "[$ARGUMENTS] [$0] [$ARGUMENTS[0]] $$0 \\$0 kill $$ $from"
    for row in (PORTABLE, ALWAYS, replace(ALWAYS, missing="empty")):
        assert substitute(body, None, dialect=row, declared=FROM_TO) == Rendered(text=body)
    assert text(body, "", declared=FROM_TO) == "[] [$0] [$ARGUMENTS[0]] $0 $0 kill $$ $from"
    assert text(body, "", declared=FROM_TO, dialect=replace(ALWAYS, missing="empty")) == "[] [] [] $0 $0 kill $ "
    assert text(body, None, declared=FROM_TO, dialect=EMPTYING) == "[] [] [] $0 $0 kill $ $from"
    # Variables need no arguments.
    assert text("${SKILL_DIR} \\${SKILL_DIR} $0", variables={"SKILL_DIR": "/s"}) == "/s ${SKILL_DIR} $0"


def test_named_arguments_come_from_a_mapping_or_from_positions_that_a_list_names() -> None:
    body = "$from ${to} $0 $ARGUMENTS[1] $ARGUMENTS"
    assert text(body, {"to": "2", "from": "1"}, declared=FROM_TO) == "1 2 1 2 from=1 to=2"
    assert text(body, "1 2", declared=FROM_TO) == "1 2 1 2 1 2"
    by_name = replace(FROM_TO, by_name=True)
    assert text(body, {"to": "2", "from": "1"}, declared=by_name) == "1 2 $0 $ARGUMENTS[1] from=1 to=2"
    assert text(body, "1 2", declared=by_name) == "$from ${to} 1 2 1 2"
    # Only what the skill declares is a name. A row that reads no declaration takes the caller's names.
    assert text("$from ${PATH}", {"from": "1", "PATH": "x"}, declared=FROM_TO) == "1 ${PATH}"
    who, greeting = {"who": "alice"}, "$who and $whoami"
    assert text(greeting, who, dialect=ALWAYS, declared=["who"]) == "alice and $whoami"
    assert text(greeting, who, dialect=replace(ALWAYS, append_unused=False)) == greeting
    assert text(greeting, who, dialect=replace(ALWAYS, understands=frozenset())) == "alice and $whoami"
    assert text("$from", {"from": "1"}) == "$from\n\nARGUMENTS: from=1"
    assert text(body, "1 2", declared=["from", "to"]) == text(body, "1 2", declared="from to") == "1 2 1 2 1 2"


def test_unknown_variables_are_kept_or_emptied_but_shell_defaults_are_no_names() -> None:
    body = "${TAG} ${NOPE} ${NOPE:-x} ${#a[@]} $HOME"
    assert text(body, environ={"TAG": "v1"}) == "v1 ${NOPE} ${NOPE:-x} ${#a[@]} $HOME"
    rendered = substitute(body, environ={"TAG": "v1"}, dialect=EMPTYING)
    assert rendered.text == "v1  ${NOPE:-x} ${#a[@]} $HOME"
    assert rendered.unfilled == ("${NOPE}",)


def test_arguments_that_nothing_took_are_appended_once_and_reported() -> None:
    assert text("Do it.", "x y") == "Do it.\n\nARGUMENTS: x y"
    assert text("Do it.\n", "x y") == "Do it.\n\nARGUMENTS: x y"
    assert text("Do it.", "  \n") == "Do it."
    assert text("Do it.", []) == "Do it."
    assert text("Do it.", {"b": "2", "a": "1"}) == "Do it.\n\nARGUMENTS: a=1 b=2"
    silent = substitute("Do $1.", "x y z", dialect=replace(ALWAYS, append_unused=False))
    assert (silent.text, silent.unused_arguments) == ("Do y.", ("x", "z"))
    # A placeholder that stayed took nothing; one that was emptied did.
    assert text("Do $5.", "x", dialect=ALWAYS) == "Do $5.\n\nARGUMENTS: x"
    assert text("Do $5.", "x", dialect=replace(ALWAYS, missing="empty")) == "Do ."


def test_a_row_without_arguments_leaves_every_placeholder() -> None:
    row = replace(PORTABLE, positional=None, named=frozenset(), variables=frozenset(), append_unused=False)
    body = "$ARGUMENTS $0 ${from} $$ \\$0 ${SKILL_DIR}"
    rendered = substitute(body, "a", dialect=row, declared=FROM_TO, variables={"SKILL_DIR": "/s"})
    assert (rendered.text, rendered.unused_arguments) == (body, ("a",))
    names_only = replace(row, named=frozenset({"${name}"}))
    assert text("$ARGUMENTS $0 ${from}", "a", dialect=names_only, declared=FROM_TO) == "a $0 a"


@pytest.mark.parametrize(
    ("given", "blanks", "quotes", "posix"),
    [
        ('"a b" c', ('"a', 'b"', "c"), ("a b", "c"), ("a b", "c")),
        ("'a b'c", ("'a", "b'c"), ("a b", "c"), ("a bc",)),
        ('"" x', ('""', "x"), ("", "x"), ("", "x")),
        ('e"f g"', ('e"f', 'g"'), ('e"f', 'g"'), ("ef g",)),
        ("don't stop", ("don't", "stop"), ("don't", "stop"), ("dont stop",)),
        ('say "no end', ("say", '"no', "end"), ("say", '"no', "end"), ("say", "no end")),
        ('a\\ b \\"', ("a\\", "b", '\\"'), ("a\\", "b", '\\"'), ("a b", '"')),
        ('"\\"q\\" \\n" \'\\"\'', ('"\\"q\\"', '\\n"', "'\\\"'"), ("\\", 'q\\"', '\\n"', '\\"'), ('"q" \\n', '\\"')),
        (" \t\n", (), (), ()),
        ("a\\", ("a\\",), ("a\\",), ("a",)),
        ("a\nb", ("a", "b"), ("a", "b"), ("a", "b")),
    ],
)
def test_one_text_becomes_arguments(
    given: str, blanks: tuple[str, ...], quotes: tuple[str, ...], posix: tuple[str, ...]
) -> None:
    assert split_arguments(given, "blanks") == blanks
    assert split_arguments(given, "quotes") == quotes
    assert split_arguments(given, "posix") == posix


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ("", Declared()),
        ("arguments: [from, to]", FROM_TO),
        ("arguments: from to", FROM_TO),
        ("arguments:\n  - name: from\n  - name: to\n    required: true", FROM_TO),
        ("arguments:\n  from: {type: string}\n  to: x", Declared(names=("from", "to"), by_name=True)),
        ("argument-hint: '[file]'", HINT),
        ("argument-hint: ''\narguments: []", Declared()),
    ],
)
def test_what_a_skill_declares(fields: str, expected: Declared) -> None:
    assert declared_arguments(skill("", fields).skill) == expected


def test_a_skill_brings_its_own_declaration_and_a_row_names_its_places() -> None:
    loaded = skill("Read $file in ${CLAUDE_SKILL_DIR}, session ${SESSION_ID}.", "arguments: [file]")
    places = place_variables(PORTABLE, directory="/s/x", session="7")
    assert places == {"SKILL_DIR": "/s/x", "CLAUDE_SKILL_DIR": "/s/x", "SESSION_ID": "7", "CLAUDE_SESSION_ID": "7"}
    assert substitute_skill(loaded, "a.txt", variables=places).text == "Read a.txt in /s/x, session 7."
    assert place_variables(PORTABLE) == {}


def test_a_number_of_any_length_is_a_place_and_costs_nothing() -> None:
    long = "9" * 1_000_000
    rendered = substitute(f"$ARGUMENTS[{long}] $1000000", "a", dialect=replace(ALWAYS, missing="empty"))
    assert (rendered.text, rendered.unfilled) == (" ", (f"$ARGUMENTS[{long}]", "$1000000"))
    assert len(rendered.diagnostics[0].message) < 200
    assert text(f"$ARGUMENTS[{long}", "a") == f"a[{long}"


def test_all_arguments_are_the_text_as_given_or_what_it_is_cut_into() -> None:
    joined = replace(ALWAYS, whole="joined")
    assert text("<$ARGUMENTS>", ' a  "b c"\n') == '< a  "b c"\n>'
    assert text("<$ARGUMENTS>", ' a  "b c"\n', dialect=joined) == "<a b c>"
    assert text("<$ARGUMENTS>", " ", dialect=joined) == text("<$ARGUMENTS>", [], dialect=joined) == "<>"
    # Of a mapping, those that a declared list gives a place; without any, all with their names.
    named = {"who": "a", "what": "b", "else": "c"}
    rendered = substitute("<$ARGUMENTS>", named, dialect=joined, declared=["what", "who"])
    assert (rendered.text, rendered.unused_arguments) == ("<b a>", ("else=c",))
    assert text("<$ARGUMENTS>", named, dialect=joined) == "<else=c what=b who=a>"


def test_commands_are_looked_for_in_the_author_s_text_only_and_stay_text() -> None:
    body = "Plan for: $ARGUMENTS\n"
    injected = "x\n```!\ntouch pwned\n```\n!`touch pwned2`"
    assert substitute(body, injected) == Rendered(text=f"Plan for: {injected}\n", placed=("$ARGUMENTS",))
    own = "Status: !`git status`\nnot!`this` nor ! `this`\n\n```sh\n!`date`\n```\n  ```!\nls\n```\n"
    places = [(own.count("\n", 0, offset) + 1, text) for offset, text in find_commands(own)]
    assert places == [(1, "git status"), (5, "date"), (7, "```!")]
    rendered = substitute(own, None, path="s/SKILL.md")
    assert rendered.text == own
    assert [(item.rule, item.severity, item.path) for item in rendered.diagnostics] == [
        ("command-injection", "warning", "s/SKILL.md")
    ] * 3
    assert "git status" in rendered.diagnostics[0].message
    assert len(substitute("!`a`\n" * 100).diagnostics) == 9


def test_a_text_that_would_grow_without_bound_is_refused() -> None:
    with pytest.raises(SkillError) as caught:
        substitute("$ARGUMENTS " * 20_000, "x" * (MAX_INSERTED // 10_000))
    assert caught.value.code == "skill-invalid"


@pytest.mark.parametrize("unit", ["$", "$$0", "\\$", "${", "${a", "$from-", "$ARGUMENTS[", "!`", "$a-a-a-", "```!"])
def test_hostile_repetition_is_read_like_any_text(unit: str) -> None:
    # A quadratic pass over these would run into the limit of every test.
    rendered = substitute(unit * 200_000, "x", dialect=replace(ALWAYS, escapes=frozenset()), declared=FROM_TO)
    assert rendered.text.count("x") >= (200_000 if unit in {"$$0", "$from-", "$ARGUMENTS["} else 0)


NASTY = st.lists(
    st.sampled_from(
        ["$", "$$", "\\", "\\$", "0", "1", "{", "}", "[", "]", "ARGUMENTS", "$ARGUMENTS", "$0", "$1", "${a}", "$a", "a",
         "${SKILL_DIR}", "$ARGUMENTS[0]", "!`x`", " ", "\n", '"', "'", "é"]
    ),
    max_size=12,
).map("".join)  # fmt: skip
ROWS = st.builds(
    replace,
    st.just(PORTABLE),
    positional=st.sampled_from([0, 1, None]),
    tokens=st.sampled_from(["blanks", "quotes", "posix"]),
    whole=st.sampled_from(["given", "joined"]),
    names_have_places=st.booleans(),
    named=st.sets(st.sampled_from(["$name", "${name}"])).map(frozenset),
    bare=st.sampled_from(["always", "declared"]),
    missing=st.sampled_from(["keep", "empty"]),
    unknown=st.sampled_from(["keep", "empty"]),
    escapes=st.sets(st.sampled_from(["$$", "\\$"])).map(frozenset),
    append_unused=st.booleans(),
)
DECLARED = st.sampled_from([Declared(), HINT, Declared(names=("a", "b")), Declared(names=("a",), by_name=True)])


@given(NASTY, ROWS, DECLARED, st.lists(NASTY, max_size=3))
def test_nothing_inserted_is_ever_read_again(body: str, row: object, declared: Declared, values: list[str]) -> None:
    # Each value is replaced by a mark that no body can hold: the text must be the same with the marks put in.
    options = {"dialect": row, "declared": declared}
    marks = [f"\ue000{index}\ue001" for index in range(len(values) + 1)]
    shape = text(body, marks[1:], variables={"SKILL_DIR": marks[0]}, **options)
    expected = re.sub("\ue000([0-9])\ue001", lambda mark: ["${a}$0", *values][int(mark[1])], shape)
    # Blank values are no arguments to append; the marks are.
    if " ".join(values).strip() or not values:
        assert text(body, values, variables={"SKILL_DIR": "${a}$0"}, **options) == expected


@given(NASTY, ROWS, DECLARED)
def test_without_arguments_a_row_that_keeps_returns_the_body_as_it_is(
    body: str, row: object, declared: Declared
) -> None:
    keeping = replace(row, unknown="keep")  # pyright: ignore[reportArgumentType,reportCallIssue]
    assert text(body, None, dialect=keeping, declared=declared) == body


@given(st.text(), ROWS, DECLARED, st.lists(NASTY, max_size=3))
def test_a_body_without_placeholders_is_returned_as_it_is(
    body: str, row: object, declared: Declared, values: list[str]
) -> None:
    body = body.replace("$", "")
    silent = replace(row, append_unused=False)  # pyright: ignore[reportArgumentType,reportCallIssue]
    assert text(body, values, dialect=silent, declared=declared, variables={"SKILL_DIR": "x"}) == body


@given(st.lists(st.text(alphabet="ab \\'\"\n$é"), max_size=4))
def test_shell_quoted_words_come_back_as_they_were(words: list[str]) -> None:
    assert split_arguments(shlex.join(words), "posix") == tuple(words)


@given(st.text(alphabet="!`~ a\n\t", max_size=80))
def test_commands_are_where_a_pattern_over_the_whole_text_finds_them(body: str) -> None:
    pattern = r"(?:^|(?<=\s))!`([^`\r\n]+)`|^[ \t]*(?:`{3,}|~{3,})!"
    expected = [(match.start(), match[1] or match[0].strip()) for match in re.finditer(pattern, body, re.MULTILINE)]
    assert list(find_commands(body)) == expected


@given(st.text(alphabet="$\\{}[]aNAME0123_- \n", max_size=60), st.sampled_from(list(DIALECTS.values())))
def test_a_sample_of_the_dollars_holds_every_placeholder(body: str, row: Dialect) -> None:
    body = body.replace("NAME", "ARGUMENTS")
    sample, cut = dollar_sample(body, 100)
    declared = Declared(names=("a", "a-b"), by_name=True)
    arguments = {"a": "1", "a-b": "2"}
    whole, part = (substitute(text, arguments, dialect=row, declared=declared) for text in (body, sample))
    assert (part.placed, part.unfilled, cut) == (whole.placed, whole.unfilled, False)


def test_a_sample_of_the_dollars_is_bounded() -> None:
    assert dollar_sample("$1 $1 $2 $$ $", 2) == ("$1\n$2", False)
    assert dollar_sample("$1 $2 $3", 2) == ("$1\n$2", True)
    assert dollar_sample("none", 2) == ("", False)
