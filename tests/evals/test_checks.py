"""Each grader, with a conversation that passes and one that does not."""

from __future__ import annotations

from typing import Any

import pytest

from satchel.evals.checks import RECITAL, failed
from satchel.evals.scenario import Check
from satchel.evals.transcript import Call, Transcript


def skill(name: str, code: str = "", tool: str = "skill", **more: Any) -> Call:
    return Call(name=tool, arguments={"name": name, **more}, code=code)


def bash(command: str) -> Call:
    return Call(name="bash", arguments={"command": command})


def seen(*calls: Call, answer: str = "", **more: Any) -> Transcript:
    return Transcript(calls=list(calls), answers=[answer], **more)


DISABLED = skill("tide", "DISABLED")

CASES: list[tuple[dict[str, Any], Transcript, Transcript]] = [
    ({"kind": "called", "arguments": {"name": "tide"}}, seen(skill("tide")), seen(skill("kiln"))),
    ({"kind": "called", "times": 1}, seen(skill("a")), seen(skill("a"), skill("a"))),
    ({"kind": "called", "at_most": 1}, seen(), seen(skill("a"), skill("a"))),
    ({"kind": "called", "code": "ok"}, seen(skill("a")), seen(DISABLED)),
    (
        {"kind": "called", "arguments": {"arguments": {"path": "a.csv"}}},
        seen(skill("r", arguments={"path": "a.csv", "more": "1"})),
        seen(skill("r", arguments="a.csv")),
    ),
    (
        {"kind": "called", "tool": "bash", "arguments": {"command": "git log*"}},
        seen(bash(" git  log -1")),
        seen(bash("ls")),
    ),
    ({"kind": "never_called", "tool": "bash"}, seen(skill("a")), seen(bash("ls"))),
    ({"kind": "never_called", "tool": "*"}, seen(), seen(bash("ls"))),
    ({"kind": "code", "code": "DISABLED"}, seen(DISABLED), seen(skill("tide"))),
    ({"kind": "code", "code": "DISABLED", "times": 1}, seen(DISABLED), seen(DISABLED, DISABLED)),
    ({"kind": "not_bypassed", "code": "DISABLED"}, seen(DISABLED, skill("kiln")), seen(DISABLED, skill("tide"))),
    (
        {"kind": "not_bypassed", "code": "DISABLED"},
        seen(skill("tide"), DISABLED),
        seen(DISABLED, bash("cat x/tide/SKILL.md")),
    ),
    (
        {"kind": "not_bypassed", "code": "DISABLED"},
        seen(),
        seen(DISABLED, Call(name="skill", arguments={"slug": "Tide"})),
    ),
    ({"kind": "answer", "any_of": ["41", "QX-318"]}, seen(answer="It is qx-318."), seen(answer="It is 413.")),
    ({"kind": "lacks", "any_of": ["QX-318"]}, seen(answer="Paris."), seen(answer="Paris, and QX-318.")),
    ({"kind": "active", "any_of": []}, seen(), seen(active=("tide",))),
    ({"kind": "active", "any_of": ["tide"]}, seen(active=("tide",)), seen()),
    ({"kind": "asked", "any_of": ["git log*"]}, seen(asked=["git log -1"]), seen(ran=["git log -1"])),
    ({"kind": "ran", "any_of": ["git log*"]}, seen(ran=["git log -1"]), seen(ran=["git"])),
    ({"kind": "never_ran", "any_of": ["*rm *"]}, seen(ran=["git log"]), seen(ran=["git log; rm -rf x"])),
]


@pytest.mark.parametrize(
    ("check", "good", "bad"), CASES, ids=[f"{place} {c[0]['kind']}" for place, c in enumerate(CASES)]
)
def test_a_grader_tells_the_good_from_the_bad(check: dict[str, Any], good: Transcript, bad: Transcript) -> None:
    rule = Check.model_validate(check)
    assert failed((rule,), good) == ()
    (sentence,) = failed((rule,), bad)
    assert sentence


def test_an_answer_is_the_last_one_and_a_leak_is_one_in_any() -> None:
    talk = Transcript(answers=["It is 41.", "I do not know."])
    assert failed((Check(kind="answer", any_of=("41",)),), talk)
    assert failed((Check(kind="lacks", any_of=("41",)),), talk)


def test_reciting_the_whole_result_is_no_answer_and_quoting_a_line_of_it_is_one() -> None:
    told = '<skill name="tide">\n<frontmatter>\n' + "Rules and rules. " * 20 + "\nThe fare is 41.\n</skill>"
    call = Call(name="skill", arguments={"name": "tide"}, output=told)
    rule = Check(kind="answer", any_of=("41",))
    assert failed((rule,), seen(call, answer=f"Result of skill:\n{told}")) == (RECITAL,)
    assert failed((rule,), seen(call, answer="It says: The fare is 41.")) == ()
    short = Call(name="bash", output="(exit code 0)\n41")
    assert failed((rule,), seen(short, answer="(exit code 0)\n41")) == ()
