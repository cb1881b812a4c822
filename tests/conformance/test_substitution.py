"""Arguments in a body, as each row reads them: the table of the seeds' own semantics, row by row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from satchel.skills.arguments import Declared
from satchel.skills.dialects import DIALECTS
from satchel.skills.substitute import place_variables, substitute

Arguments = str | Sequence[str] | Mapping[str, str] | None

NAMED = Declared(names=("a", "b"), by_name=True)
LISTED = Declared(names=("who", "what"))


@pytest.mark.parametrize(
    ("body", "arguments", "expected"),
    [
        # Section 9, and what both implementations do.
        ("$1-$2-$3", "a b", "a-b-$3"),
        ("$0", "a b", "$0"),
        ("$ARGUMENTS[0] $ARGUMENTS[1]", "a b", "a b"),
        ("$ARGUMENTS[5]", "a b", "$ARGUMENTS[5]"),
        ("$ARGUMENTS", "see $1", "see $1"),
        ("[$ARGUMENTS]", "cost $& up", "[cost $& up]"),
        ("$$1", "a", "$a"),
        ("\\$1", "a", "\\a"),
        ("$ARGUMENTSy", "", "$ARGUMENTSy"),
        ("$ARGUMENTS", "", ""),
        ("$10", "a b c d e f g h i j", "j"),
        ("$1|$2", '"a b" c', '"a|b"'),
        ("${name}", "x", "${name}"),
        ("a=$1 b=$2", "one two", "a=one b=two"),
        ("no place", "a b", "no place"),
        ("${SKILL_DIR}/scripts", "a", "${SKILL_DIR}/scripts"),
        ("$1 $ARGUMENTS ${a} $$", None, "$1 $ARGUMENTS ${a} $$"),
        # The word boundary that the reference leaves open.
        ("$1x $1.", "a", "$1x a."),
        # Named ones.
        ("$ARGUMENTS", {"b": "2", "a": "1"}, "a=1 b=2"),
        ("$1", {"a": "1"}, "$1"),
        ("$ARGUMENTS[0]", {"a": "1"}, "$ARGUMENTS[0]"),
        ("${a} ${c} $a", {"a": "${b}", "b": "2"}, "${b} ${c} $a"),
    ],
)
def test_agent_sh(body: str, arguments: Arguments, expected: str) -> None:
    declared = NAMED if isinstance(arguments, Mapping) else Declared()
    assert substitute(body, arguments, dialect="agent-sh", declared=declared).text == expected


@pytest.mark.parametrize(
    ("body", "arguments", "expected"),
    [
        ("all $ARGUMENTS, first $0, second $1.", ["x y", "z"], "all x y z, first x y, second z."),
        ("[$2] [$ARGUMENTS[9]]", ["x"], "[] []"),
        ("$ARGUMENTS|$0", ["$ARGUMENTS"], "$ARGUMENTS|$ARGUMENTS"),
        ("$$0 costs $$5, pid $$", ["x"], "$0 costs $5, pid $"),
        ("$$ARGUMENTS", ["x"], "$ARGUMENTS"),
        ("tag `${BUILD_TAG}` and ${NOPE}.", ["x"], "tag `v1.4.2` and ."),
        ("https://$0.example.com/healthz", ["staging"], "https://staging.example.com/healthz"),
        ("no place", ["x"], "no place"),
        ("${environment}", ["staging"], ""),
        # No arguments at all read like none given here: every place is out of range.
        ("[$ARGUMENTS] [$0] $$ ${BUILD_TAG}", None, "[] [] $ v1.4.2"),
        ("${ and ${BUILD_TAG:-x}", [], "${ and ${BUILD_TAG:-x}"),
    ],
)
def test_tnsai(body: str, arguments: Arguments, expected: str) -> None:
    rendered = substitute(
        body,
        arguments,
        dialect="tnsai",
        declared=Declared(names=("environment",)),
        environ={"BUILD_TAG": "v1.4.2"},
    )
    assert rendered.text == expected


@pytest.mark.parametrize(
    ("body", "arguments", "expected"),
    [
        ("first=$0 second=$1 third=$ARGUMENTS[2]", "a b", "first=a second=b third="),
        ("$0|$1", '"hello world" x', "hello world|x"),
        ("$0|$1|$2", "\"\" e'f g'", "|e'f|g'"),
        ("$who and $whoami and $who[0]", {"who": "alice"}, "alice and $whoami and $who[0]"),
        ("$ARGUMENTS", "cost $& up", "cost $& up"),
        ("Body.", "x y", "Body.\n\nARGUMENTS: x y"),
        ("Body.", "   ", "Body."),
        ("$0 $ARGUMENTS", None, "$0 $ARGUMENTS"),
        ("[$0] [$ARGUMENTS]", "", "[] []"),
        ("$$0 \\$0", "x", "$x \\x"),
        ("$0x", "a", "$0x\n\nARGUMENTS: a"),
        ("${DIR} ${NOPE}", None, "/d ${NOPE}"),
    ],
)
def test_contextchef(body: str, arguments: Arguments, expected: str) -> None:
    assert substitute(body, arguments, dialect="contextchef", environ={"DIR": "/d"}).text == expected


@pytest.mark.parametrize(
    ("body", "arguments", "expected"),
    [
        ("$0|$1|$ARGUMENTS", "a\" \"b 'c d'", "a b|c d|a\" \"b 'c d'"),
        ("$who said $what", "alice hi", "alice said hi"),
        ("\\$1.00 or $1", "a b", "$1.00 or b"),
        ("\\$HOME $$", "a", "\\$HOME $$\n\nARGUMENTS: a"),
        ("${CLAUDE_SKILL_DIR}/x ${SKILL_DIR} ${HOME}", None, "/s/x ${SKILL_DIR} ${HOME}"),
        ("Body.\n", "x y", "Body.\n\nARGUMENTS: x y"),
    ],
)
def test_claude_code(body: str, arguments: Arguments, expected: str) -> None:
    row = DIALECTS["claude-code"]
    places = place_variables(row, directory="/s")
    assert substitute(body, arguments, dialect=row, declared=LISTED, variables=places).text == expected


@pytest.mark.parametrize(
    ("body", "arguments", "declared", "expected"),
    [
        ("$0 $who ${what} $ARGUMENTS[1] $ARGUMENTS", "alice 'x y'", LISTED, "alice alice x y x y alice 'x y'"),
        ("$0 $who ${what}", "alice", Declared(), "$0 $who ${what}\n\nARGUMENTS: alice"),
        # Using $ARGUMENTS does not make the other dollars ours.
        ("awk '{print $1}' for $ARGUMENTS", "x y", Declared(), "awk '{print $1}' for x y"),
        ("$1 of $ARGUMENTS", "x y", Declared(has_hint=True), "y of x y"),
        ("$$0 \\$0 $9", "x", LISTED, "$0 $0 $9\n\nARGUMENTS: x"),
        ("${SKILL_DIR} ${CLAUDE_SKILL_DIR} ${SESSION_ID} ${X}", None, LISTED, "/s /s 7 ${X}"),
    ],
)
def test_portable(body: str, arguments: Arguments, declared: Declared, expected: str) -> None:
    row = DIALECTS["portable"]
    places = place_variables(row, directory="/s", session="7")
    assert substitute(body, arguments, dialect=row, declared=declared, variables=places).text == expected


@pytest.mark.parametrize("row", [row.id for row in DIALECTS.values() if row.positional is None and not row.named])
def test_rows_that_place_nothing(row: str) -> None:
    body = "$ARGUMENTS $0 $1 ${a} $a $$ \\$1 ${SKILL_DIR}"
    rendered = substitute(body, "x y", dialect=row, declared=LISTED)
    assert (rendered.text, rendered.unused_arguments) == (body, ("x", "y"))


@pytest.mark.parametrize("row", DIALECTS)
def test_in_every_row_nothing_inserted_is_read_again_and_no_arguments_are_not_empty_ones(row: str) -> None:
    value = "$1 ${b} $ARGUMENTS $0 !`date`"
    rendered = substitute("<$ARGUMENTS>", [value], dialect=row)
    assert rendered.text in {f"<{value}>", "<$ARGUMENTS>"}
    assert [item.rule for item in rendered.diagnostics] == []
    if DIALECTS[row].unknown == "keep":
        body = "$ARGUMENTS $0 $1 ${a} $$ \\$1"
        assert substitute(body, None, dialect=row, declared=LISTED).text == body
