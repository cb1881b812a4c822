"""``satchel eval``: targets, exit codes, the table and the JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from satchel.testing.scripted_openai import ScriptedCall, ScriptedOpenAI, ScriptedTurn, says
from tests.cli.calling import Caller, caller
from tests.evals.runs import ferry
from tests.program.program import satchel as program
from tests.support import write_skill

SCENARIO = {
    "id": "FERRY",
    "title": "The fare",
    "values": {"fare": "code"},
    "folder": ".",
    "skills": ["ferry"],
    "checks": [{"kind": "called", "times": 1}],
    "contract": [
        {
            "call": "skill",
            "arguments": {"name": "{name}"},
            "finds": {"name": {"part": "system", "pattern": "^- (ferry)"}},
        },
        {"answer": "Done."},
    ],
    "cases": [{"id": "one", "say": ["What is the fare?"]}, {"id": "two", "say": ["And back?"]}],
}


@pytest.fixture
def satchel(capsys: pytest.CaptureFixture[str]) -> Caller:
    return caller(capsys)


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = ferry(tmp_path) / "ferry.json"
    path.write_text(json.dumps(SCENARIO), encoding="utf-8")
    return str(path)


def test_the_contract_of_the_built_in_scenarios_is_a_table(satchel: Caller) -> None:
    said = satchel("eval", "--contract", "--scenario", "SK1", "--scenario", "SK8")
    assert (said.code, said.err) == (0, "")
    head, *rows = said.out.splitlines()
    assert head.split() == ["scenario", "arm", "contract", "model", "what"]
    assert [row.split()[:4] for row in rows] == [["SK1", "-", "4/4", "-"], ["SK8", "-", "3/3", "-"]]


def test_a_broken_contract_is_exit_code_one_and_says_where(satchel: Caller, file: str) -> None:
    broken = SCENARIO | {"contract": [{"answer": "Done."}]}
    Path(file).write_text(json.dumps(broken), encoding="utf-8")
    said = satchel("eval", file, "--contract")
    assert said.code == 1
    assert "FERRY one [contract] fail" in said.err
    assert "The contract is broken" in said.err


def test_json_has_rows_and_results(satchel: Caller, file: str) -> None:
    said = satchel("eval", file, "--contract", "--json", "--seed", "3")
    report = said.json
    assert set(report) == {"model", "seed", "ok", "contract_holds", "unmet", "rows", "results"}
    assert (report["model"], report["seed"], report["ok"]) == ("", 3, True)
    assert report["rows"][0] == {
        "scenario": "FERRY",
        "arm": "",
        "title": "The fare",
        "contract": "2/2",
        "contract_share": 1.0,
        "model": "-",
        "model_share": None,
        "model_pass_at_k": None,
        "note": "",
    }
    first = report["results"][0]
    assert first["calls"] == [{"tool": "skill", "arguments": {"name": "ferry"}, "code": ""}]
    assert (first["case"], first["column"], first["verdict"], first["answers"]) == (
        "one",
        "contract",
        "pass",
        ["Done."],
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nowhere"], "no file or directory"),
        (["--arm", "chaos"], "no arm"),
        (["--min", "2"], "no threshold"),
        (["--min", "SK1=much"], "no threshold"),
        (["--scenario", "SK99"], "no scenario"),
        (["--repeat", "0"], "--repeat"),
    ],
)
def test_a_call_that_is_wrong_is_exit_code_two(satchel: Caller, words: list[str], said: str) -> None:
    ended = satchel("eval", "--contract", *words)
    assert ended.code == 2
    assert said in ended.err


def test_a_directory_without_scenarios_is_said(satchel: Caller, tmp_path: Path) -> None:
    assert satchel("eval", str(tmp_path), "--contract").code == 2


def test_evals_of_a_skill_folder_are_not_passed_over_without_a_model(satchel: Caller, tmp_path: Path) -> None:
    write_skill(tmp_path, "toll", files={"evals/evals.json": '{"evals": [{"id": 1, "prompt": "How much?"}]}'})
    for targets in ([str(tmp_path / "toll")], ["builtin", str(tmp_path / "toll")]):
        said = satchel("eval", *targets, "--contract")
        assert (said.code, said.out) == (2, "")
        assert "the skill toll have no contract" in said.err


def test_only_the_arms_that_were_asked_for_are_run(satchel: Caller) -> None:
    rows = satchel("eval", "exam", "--contract", "--arm", "control,discovery", "--limit", "2", "--json").json["rows"]
    assert {row["contract"] for row in rows} == {"2/2"}
    assert [row["arm"] for row in rows] == ["control", "control, unrelated", "discovery", "discovery, unrelated"]


async def test_a_model_server_is_asked_and_its_share_is_held_to_the_threshold(file: str) -> None:
    activates = ScriptedTurn(calls=(ScriptedCall(name="skill", fragments=('{"name": "ferry"}',), call_id="c1"),))
    turns = [activates, says("Cheap."), says("Dear.")]
    for least, code in (("0.5", 0), ("FERRY=0.9", 1)):
        async with ScriptedOpenAI(turns) as server:
            ended = await program("eval", file, "--upstream", server.url, "--min", least)
        assert ended.code == code, ended.err
        assert ended.out.splitlines()[1].split()[:4] == ["FERRY", "-", "2/2", "1/2"]
        assert "FERRY two [model] fail" in ended.err
        assert ("below --min" in ended.err) is bool(code)
        assert server.requests[0].body["tools"]


async def test_a_server_that_is_not_there_ends_the_run(file: str) -> None:
    ended = await program("eval", file, "--upstream", "http://127.0.0.1:9/v1", "--model", "m")
    assert ended.code == 1
    assert "upstream-unreachable" in ended.err
