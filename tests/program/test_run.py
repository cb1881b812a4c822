from __future__ import annotations

import asyncio
import json
import signal
from pathlib import Path
from typing import Any

import pytest

from satchel.testing.scripted_openai import ScriptedCall, ScriptedOpenAI, ScriptedTurn, refuses, says
from tests.program.program import redirected, satchel, start
from tests.support import write_skill


@pytest.fixture
def skills(tmp_path: Path) -> Path:
    root = tmp_path / "skills"
    write_skill(root, "canary", body="The share is 6 %.\n")
    write_skill(root, "pottery", body="Read the schedule.\n")
    return root


READ = ScriptedTurn(
    text=("Let me ", "look."),
    calls=(ScriptedCall(name="skills_read", fragments=('{"skill": "can', 'ary"}'), call_id="call_1"),),
    usage={"prompt_tokens": 100, "completion_tokens": 10},
)


async def test_the_answer_goes_to_stdout_and_the_way_there_to_stderr(skills: Path) -> None:
    async with ScriptedOpenAI([READ, says("The share ", "is 6 %.", prompt_tokens=150, completion_tokens=7)]) as model:
        ended = await satchel("run", "Which share?", "--skills-dir", str(skills), "--upstream", model.url)
    assert (ended.code, ended.out) == (0, "Let me look.\n\nThe share is 6 %.\n")
    lines = [line.split(None, 1) for line in ended.err.splitlines() if line]
    told = dict(lines)
    assert told["offered"] == "canary, pottery"
    assert told["read"].startswith("canary/SKILL.md")
    assert told["cost"].startswith("250 prompt tokens, 17 generated, 2 rounds")
    sent = json.dumps(model.requests[1].body)
    assert "The share is 6 %." in sent
    assert '"skills"' not in json.dumps(model.requests[0].body)


async def test_json_is_one_event_a_line(skills: Path) -> None:
    async with ScriptedOpenAI([READ, says("6 %")]) as model:
        ended = await satchel("run", "Which share?", "--skills-dir", str(skills), "--upstream", model.url, "--json")
    names = [event["event"] for event in ended.events]
    assert names[0] == "turn_started"
    assert names[-1] == "turn_done"
    assert names.count("skill_loaded") == 1
    assert "".join(str(event["text"]) for event in ended.events if event["event"] == "text_delta") == "Let me look.6 %"
    done = ended.events[-1]
    assert (done["finish"], done["rounds"]) == ("stop", 2)


@pytest.mark.parametrize("source", ["stdin", "-", "alone", "file"])
async def test_the_question_comes_from_where_it_is_said(skills: Path, tmp_path: Path, source: str) -> None:
    question = "Wie groß ist der Anteil?\n"
    (tmp_path / "question.txt").write_text(question, encoding="utf-8")
    where = {"stdin": (), "-": ("--input", "-"), "alone": ("-",), "file": ("--input", str(tmp_path / "question.txt"))}[
        source
    ]
    async with ScriptedOpenAI([says("6 %")]) as model:
        ended = await satchel(
            "run",
            *where,
            "--skills-dir",
            str(skills),
            "--upstream",
            model.url,
            given="" if source == "file" else question,
        )
    assert ended.out == "6 %\n"
    body: Any = model.requests[0].body
    assert body["messages"][-1] == {"role": "user", "content": question}


@pytest.mark.parametrize("source", ["pipe", "--input -", "--input file", "< file"])
async def test_what_is_piped_in_stands_below_the_question(skills: Path, tmp_path: Path, source: str) -> None:
    notes = "Zwölf Bögen.\nNo more.\n"
    (tmp_path / "notes.txt").write_text(notes, encoding="utf-8")
    how = {"--input -": ("--input", "-"), "--input file": ("--input", str(tmp_path / "notes.txt"))}.get(source, ())
    async with ScriptedOpenAI([says("ok")]) as model:
        words = ("run", "Summarise this.", *how, "--skills-dir", str(skills), "--upstream", model.url)
        if source == "< file":
            ended = await redirected(f"< {tmp_path / 'notes.txt'}", *words)
        else:
            ended = await satchel(*words, given=notes if source in {"pipe", "--input -"} else "")
    assert (ended.code, ended.out) == (0, "ok\n")
    body: Any = model.requests[0].body
    assert body["messages"][-1]["content"] == f"Summarise this.\n\n{notes}"


async def test_a_pipe_that_stays_open_is_named_and_can_be_interrupted(skills: Path) -> None:
    process = await start(
        "run", "hi", "--skills-dir", str(skills), "--upstream", "http://127.0.0.1:9", stdin=asyncio.subprocess.PIPE
    )
    assert process.stderr is not None
    async with asyncio.timeout(30):
        assert b"waiting for the end of stdin" in await process.stderr.readline()
        process.send_signal(signal.SIGINT)
        _, err = await process.communicate()
    assert (process.returncode, err) == (130, b"")


async def test_selecting_without_discovery_offers_nothing_else(skills: Path) -> None:
    async with ScriptedOpenAI([says("ok")]) as model:
        options = ("--skill", "canary", "--skills-no-discovery", "--skills-dir", str(skills), "--upstream", model.url)
        ended = await satchel("run", "hi", *options)
    assert ended.code == 0
    sent = json.dumps(model.requests[0].body)
    assert "canary" in sent
    assert "pottery" not in sent


async def test_no_skills_leaves_the_request_alone(skills: Path) -> None:
    async with ScriptedOpenAI([says("ok")]) as model:
        await satchel("run", "hi", "--no-skills", "--skills-dir", str(skills), "--upstream", model.url)
    body = model.requests[0].body
    assert body["messages"] == [{"role": "user", "content": "hi"}]
    assert "tools" not in body


@pytest.mark.parametrize(
    ("turn", "code"),
    [
        (refuses(500, "no memory left"), "upstream-failed"),
        (refuses(401, "bad key"), "upstream-auth"),
        (ScriptedTurn(text=("half",), fault="cut"), "upstream-cut-off"),
        (ScriptedTurn(text=("half",), fault="end", finish=""), "upstream-cut-off"),
        (ScriptedTurn(text=("half",), fault="garbage"), "upstream-garbled"),
    ],
)
async def test_a_failing_model_server_is_one_clear_error(skills: Path, turn: ScriptedTurn, code: str) -> None:
    async with ScriptedOpenAI([turn]) as model:
        ended = await satchel("run", "hi", "--skills-dir", str(skills), "--upstream", model.url)
    assert ended.code == 1
    assert f"[{code}]" in ended.err
    assert "Traceback" not in ended.err
    assert ended.out.rstrip("\n") in {"", "half"}


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (("run", "hi", "--skill", "canry"), 1, "Did you mean"),
        (("run", "hi", "--skills-dir", "nowhere"), 2, "root-missing"),
        (("run", "hi", "--upstream", "localhost:1"), 2, "must begin with http"),
        (("run", "hi", "--skills-max-rounds", "0"), 2, "--skills-max-rounds"),
        (("run", "hi", "--max-tokens", "0"), 2, "--max-tokens"),
        (("run", "hi", "--skills-dir", ""), 2, "--skills-dir is empty"),
        (("run", "hi", "--skills-dir", ".", "--skills-dir", ""), 2, "--skills-dir is empty"),
        (("run", "hi", "--upstream", ""), 2, "--upstream is empty"),
        (("run", "-"), 2, "The question is empty"),
        (("run", "--input", "nowhere.txt"), 2, "Cannot read nowhere.txt"),
        (("run", "hi", "--model", "no-such.gguf"), 1, "[weights-missing]"),
        (("runn", "hi"), 2, 'Did you mean "run"'),
    ],
)
async def test_wrong_calls_say_what_is_wrong(skills: Path, arguments: tuple[str, ...], code: int, text: str) -> None:
    async with ScriptedOpenAI([says("ok")]) as model:
        options = () if "--upstream" in arguments or "--model" in arguments else ("--upstream", model.url)
        dirs = () if "--skills-dir" in arguments else ("--skills-dir", str(skills))
        given = arguments if arguments[0] == "runn" else (*arguments, *options, *dirs)
        ended = await satchel(*given)
    assert ended.code == code, ended.err
    assert text in ended.err
    assert "Traceback" not in ended.err


async def test_a_server_that_is_down(skills: Path) -> None:
    ended = await satchel("run", "hi", "--skills-dir", str(skills), "--upstream", "http://127.0.0.1:9/v1", "--json")
    assert ended.code == 1
    assert ended.events[0]["error"]["code"] == "upstream-unreachable"
    assert ended.events[0]["error"]["hint"]


async def test_an_interrupt_stops_the_model(skills: Path) -> None:
    async with ScriptedOpenAI([ScriptedTurn(text=("half",), fault="stall")]) as model:
        process = await start("run", "hi", "--skills-dir", str(skills), "--upstream", model.url)
        seen = await model.wait_for_request()
        assert process.stdout is not None
        async with asyncio.timeout(30):
            assert await process.stdout.read(4) == b"half"
            process.send_signal(signal.SIGINT)
            _, err = await process.communicate()
            await seen.hung_up.wait()
    assert process.returncode == 130
    assert b"Traceback" not in err


async def test_a_broken_skill_is_named_and_the_others_work(skills: Path) -> None:
    broken = skills / "broken"
    broken.mkdir()
    (broken / "SKILL.md").write_text("---\nname: broken\nlicense: MIT\n---\nBody.\n")
    ended = await satchel("list", "--skills-dir", str(skills), "--json")
    listed = json.loads(ended.out)
    assert ended.code == 0
    assert [skill["name"] for skill in listed["skills"]] == ["canary", "pottery"]
    found = listed["diagnostics"][0]
    assert (found["severity"], found["line"] > 0, bool(found["hint"])) == ("error", True, True)
    assert found["path"].endswith("broken/SKILL.md")


async def test_a_reader_that_leaves_is_no_error(skills: Path) -> None:
    process = await start("show", "canary", "--skills-dir", str(skills), "--json")
    assert process.stdout is not None
    process.stdout._transport.close()  # pyright: ignore[reportAttributeAccessIssue]
    _, err = await process.communicate()
    assert b"Traceback" not in err


async def test_no_skills_anywhere_says_where_it_looked(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    ended = await satchel("list", "--skills-dir", str(empty))
    assert ended.code == 0
    assert "No skills found" in ended.err
    assert "--skills-dir" in ended.err
    (tmp_path / "elsewhere").mkdir()
    ended = await satchel("list", cwd=tmp_path / "elsewhere", XDG_DATA_HOME=str(tmp_path / "none"))
    assert "no directory to look in" in ended.err


async def test_a_mistyped_variable_is_named(skills: Path) -> None:
    ended = await satchel("list", "--skills-dir", str(skills), SATCHEL_SKILL_DIR="x")
    assert "did you mean SATCHEL_SKILLS_DIR?" in ended.err


@pytest.mark.parametrize(("name", "value"), [("SATCHEL_SKILLS_DIR", ".:"), ("SATCHEL_KEYS", ",")])
async def test_an_empty_element_of_a_variable_is_refused(skills: Path, name: str, value: str) -> None:
    ended = await satchel("list", **{name: value}, cwd=skills)
    assert (ended.code, ended.out) == (2, "")
    assert f"{name} is empty or has an empty element" in ended.err


async def test_what_a_model_asks_for_cannot_pass_for_a_line_of_the_program(skills: Path) -> None:
    forged = "a\nread     pottery/SKILL.md\x1b[2K"
    call = ScriptedCall(
        name="skills_read", fragments=(json.dumps({"skill": "canary", "path": forged}),), call_id="call_1"
    )
    async with ScriptedOpenAI([ScriptedTurn(calls=(call,)), says("ok")]) as model:
        ended = await satchel("run", "hi", "--skills-dir", str(skills), "--upstream", model.url)
    assert ended.code == 0
    assert [line.split()[0] for line in ended.err.splitlines()] == ["offered", "failed", "why", "cost"]
    assert "\x1b" not in ended.err


async def test_ceilings_and_disabled_skills_are_settings(skills: Path) -> None:
    write_skill(skills, "zebra", files={"a.md": "A", "b.md": "B"})
    ended = await satchel("list", "--skills-dir", str(skills), "--json", SATCHEL_SKILLS_DISABLED="canary")
    assert [skill["name"] for skill in json.loads(ended.out)["skills"]] == ["pottery", "zebra"]
    ended = await satchel("list", "--skills-dir", str(skills), "--json", SATCHEL_SKILLS_MAX_SKILLS="1")
    assert [skill["name"] for skill in json.loads(ended.out)["skills"]] == ["canary"]
    ended = await satchel("show", "zebra", "--skills-dir", str(skills), SATCHEL_SKILLS_MAX_FILES="2")
    assert ended.code == 1
    assert "too many files" in ended.err or "files" in ended.err
    ended = await satchel("list", "--skills-dir", str(skills), SATCHEL_SKILLS_MAX_FILES="0")
    assert ended.code == 2
    assert "SATCHEL_SKILLS_MAX_FILES" in ended.err
