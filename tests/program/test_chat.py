from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from satchel.testing.scripted_openai import ScriptedCall, ScriptedOpenAI, ScriptedTurn, refuses, says
from tests.gateway.serving import soon
from tests.program.program import satchel
from tests.program.terminal import Terminal, at_a_terminal
from tests.support import write_skill

READ = ScriptedTurn(
    text=("Let me ", "look."),
    calls=(ScriptedCall(name="skills_read", fragments=('{"skill": "canary"}',), call_id="call_1"),),
    usage={"prompt_tokens": 100, "completion_tokens": 10},
)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    write_skill(tmp_path / "skills", "canary", body="The share is 6 %.\n")
    write_skill(tmp_path / "skills", "pottery", description="Fires clay. " * 30)
    return tmp_path


def chat(home: Path, model: ScriptedOpenAI, *words: str, **more: Any) -> Any:
    options = ("--skills-dir", str(home / "skills"), "--upstream", model.url)
    return at_a_terminal("chat", *options, *words, XDG_STATE_HOME=str(home / "state"), **more)


async def leave(terminal: Terminal) -> int:
    await terminal.prompt()
    terminal.type("\x04")
    return await terminal.end()


def sent(model: ScriptedOpenAI, number: int) -> list[Any]:
    body: Any = model.requests[number].body
    return body["messages"]


async def test_a_conversation_keeps_what_was_read(home: Path) -> None:
    async with ScriptedOpenAI([READ, says("It is ", "6 %."), says("Yes.")]) as model:
        async with chat(home, model) as terminal:
            greeting = await terminal.see("Ctrl-D ends.")
            assert "scripted at openai http://" in greeting
            assert "canary, pottery" in greeting
            await terminal.ask("Which share?")
            assert await terminal.see("It is 6 %.") == (
                "Let me look.\nread     canary/SKILL.md (round 1)\n\nIt is 6 %."
            )
            await terminal.ask("Sure?")
            await terminal.see("Yes.")
            await terminal.ask("/skills")
            assert "read      canary" in await terminal.see("pottery")
            assert await leave(terminal) == 0
    assert [said["role"] for said in sent(model, 2)] == [
        *("system", "user", "assistant", "tool", "assistant", "user"),
    ]
    assert "The share is 6 %." in sent(model, 2)[3]["content"]


async def test_ctrl_c_stops_the_answer_and_keeps_the_session(home: Path) -> None:
    async with ScriptedOpenAI([ScriptedTurn(text=("half **st",), fault="stall"), says("Again.")]) as model:
        async with chat(home, model) as terminal:
            await terminal.ask("Go")
            await terminal.see("half **st")
            terminal.type("\x03")
            await soon(model.requests[0].hung_up)
            await terminal.see("stopped")
            await terminal.ask("And now?")
            await terminal.see("Again.")
            assert await leave(terminal) == 0
    assert [said["content"] for said in sent(model, 1)[1:]] == ["Go", "half **st", "And now?"]


async def test_ctrl_c_before_the_first_word_and_once_more_to_end(home: Path) -> None:
    async with ScriptedOpenAI([ScriptedTurn(fault="stall")]) as model:
        async with chat(home, model) as terminal:
            await terminal.ask("Go")
            seen = await model.wait_for_request()
            terminal.type("\x03")
            await soon(seen.hung_up)
            await terminal.prompt()
            terminal.type("\x03")
            assert await terminal.end() == 130


async def test_a_long_silence_is_filled_and_leaves_nothing_behind(home: Path) -> None:
    async with ScriptedOpenAI([READ, ScriptedTurn(fault="stall")]) as model:
        async with chat(home, model) as terminal:
            await terminal.ask("Go")
            await terminal.see("read     canary/SKILL.md")
            await terminal.see("working ...")
            terminal.type("\x03")
            await terminal.see("stopped")
            assert "\r\x1b[K" in terminal.shown.rpartition("working ...")[2]
            assert await leave(terminal) == 0


async def test_ctrl_c_at_the_prompt_asks_once(home: Path) -> None:
    async with ScriptedOpenAI([]) as model:
        async with chat(home, model) as terminal:
            await terminal.prompt()
            terminal.type("half a thought\x03")
            await terminal.see("Ctrl-C again")
            await terminal.ask("/usage")
            await terminal.prompt()
            terminal.type("\x03")
            await terminal.see("Ctrl-C again")
            await terminal.prompt()
            terminal.type("\x03")
            assert await terminal.end() == 130
    assert model.requests == []


@pytest.mark.parametrize(
    "turn", [refuses(500, "no memory"), ScriptedTurn(text=("half",), fault="cut"), refuses(401, "bad key")]
)
async def test_a_failure_is_shown_and_the_session_goes_on(home: Path, turn: ScriptedTurn) -> None:
    async with ScriptedOpenAI([turn, says("Better.")]) as model:
        async with chat(home, model) as terminal:
            await terminal.ask("Go")
            await terminal.see("[upstream-")
            await terminal.ask("Again")
            await terminal.see("Better.")
            assert await leave(terminal) == 0
    assert [said["content"] for said in sent(model, 1)[1:]] == ["Again"], "what failed is not part of it"


async def test_selecting_a_skill_begins_afresh(home: Path) -> None:
    async with ScriptedOpenAI([says("One."), says("Two."), says("Three.")]) as model:
        async with chat(home, model, "--skills-no-discovery", "--system", "Be brief.") as terminal:
            await terminal.ask("First")
            await terminal.see("One.")
            await terminal.ask("/skill Canary")
            await terminal.see("canary is selected")
            await terminal.ask("/skills")
            assert "selected  canary" in await terminal.see("not offered")
            await terminal.ask("Second")
            await terminal.see("Two.")
            await terminal.ask("/skill canary")
            await terminal.see("no longer selected")
            await terminal.ask("Third")
            await terminal.see("Three.")
            await terminal.ask("/skill canry")
            await terminal.see('Did you mean "canary"?')
            assert await leave(terminal) == 0
    assert "tools" not in model.requests[0].body
    assert [said["role"] for said in sent(model, 1)] == ["system", "user"]
    assert "canary" in sent(model, 1)[0]["content"]
    assert "pottery" not in json.dumps(model.requests[1].body)
    assert sent(model, 2) == [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Third"}]


async def test_the_other_commands(home: Path) -> None:
    async with ScriptedOpenAI(
        [says("One.", prompt_tokens=7, completion_tokens=2), says("Two.")], models=({"id": "a"}, {"id": "b"})
    ) as model:
        async with chat(home, model, "--model", "a", "--no-skills") as terminal:
            await terminal.see("off")
            await terminal.ask("/help")
            shown = await terminal.see("as text.")
            assert all(name in shown for name in ("/skills", "/skill NAME", "/system", "/clear", "/quit", "Alt-Enter"))
            await terminal.ask("/usage")
            await terminal.ask("/system Be brief.")
            await terminal.ask("First")
            await terminal.see("7 prompt tokens, 2 generated, 1 round")
            await terminal.ask("/clear")
            await terminal.ask("/system -")
            await terminal.ask("/model")
            await terminal.see("* a\n  b\n")
            await terminal.ask("/model c")
            await terminal.see("There is no model c")
            await terminal.ask("/model b")
            await terminal.see("b answers")
            await terminal.ask("/sytem x")
            await terminal.see("Did you mean /system?")
            await terminal.ask("/exit now please")
            assert await terminal.end() == 0
    assert [said["content"] for said in sent(model, 0)] == ["Be brief.", "First"]
    assert len(model.requests) == 1


async def test_a_line_that_begins_with_a_space_and_one_of_several_lines_are_text(home: Path) -> None:
    async with ScriptedOpenAI([says("One."), says("Two.")]) as model:
        async with chat(home, model, "--no-skills") as terminal:
            await terminal.ask(" /etc/passwd, what is it?")
            await terminal.see("One.")
            await terminal.ask("\x1b[200~two\nlines\x1b[201~")
            await terminal.see("Two.")
            assert await leave(terminal) == 0
    assert sent(model, 0)[-1]["content"] == " /etc/passwd, what is it?"
    assert sent(model, 1)[-1]["content"] == "two\nlines"


async def test_tab_completes_commands_and_skills(home: Path) -> None:
    async with ScriptedOpenAI([]) as model:
        async with chat(home, model) as terminal:
            await terminal.prompt()
            terminal.type("/skill p\t")
            await terminal.see("ottery")
            terminal.type("\r")
            await terminal.see("pottery is selected")
            assert await leave(terminal) == 0


async def test_styles_for_a_terminal_and_none_for_who_wants_none(home: Path) -> None:
    text = ("# Ti", "tle\n\nA **wo", "rd**, \x1b[31mred\x1b[0m\r\x1b]0;owned\x07.")
    plain = "# Title\n\nA **word**, \ufffd[31mred\ufffd[0m\ufffd\ufffd]0;owned\ufffd."
    for more, is_styled in ({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False):
        async with ScriptedOpenAI([READ, says(*text)]) as model:
            async with chat(home, model, columns=30, **more) as terminal:
                if "TERM" in more:
                    await terminal.see("> ")
                    terminal.type("Go\r")
                else:
                    await terminal.ask("Go")
                seen = await terminal.see("owned\ufffd.")
        assert seen.endswith(f"\n\n{plain}")
        assert ("\x1b[1m# Title" in terminal.shown, "\x1b[2mread" in terminal.shown) == (is_styled, is_styled)
        assert "\x1b[31m" not in terminal.shown
        assert "\x1b]0;" not in terminal.shown


async def test_a_call_that_nobody_can_answer_does_not_spoil_the_conversation(home: Path) -> None:
    made_up = ScriptedTurn(text=("Hm.",), calls=(ScriptedCall(name="browse\x1b[2J", call_id="c1"),))
    async with ScriptedOpenAI([made_up, says("Fine.")]) as model:
        async with chat(home, model, "--no-skills") as terminal:
            await terminal.ask("Go")
            await terminal.see("a tool that nobody has here")
            await terminal.ask("On")
            await terminal.see("Fine.")
    assert [said.get("tool_calls") for said in sent(model, 1)] == [None, None, None]


async def test_the_history_is_kept_for_its_owner_and_only_when_wanted(home: Path) -> None:
    kept = home / "state" / "satchel" / "chat_history"
    async with ScriptedOpenAI([says("One."), says("Two."), says("Three.")]) as model:
        async with chat(home, model, "--no-history") as terminal:
            await terminal.ask("secret")
            await terminal.see("One.")
            await leave(terminal)
        assert not kept.exists()
        async with chat(home, model) as terminal:
            await terminal.ask("remembered")
            await terminal.see("Two.")
            await leave(terminal)
        assert stat.S_IMODE(kept.stat().st_mode) == 0o600
        assert stat.S_IMODE(kept.parent.stat().st_mode) == 0o700
        kept.chmod(0o644)
        async with chat(home, model) as terminal:
            await terminal.ask("\x1b[A")
            await terminal.see("Three.")
            await leave(terminal)
        assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert sent(model, 2)[-1]["content"] == "remembered"


async def test_a_history_that_cannot_be_kept_is_said(home: Path) -> None:
    (home / "state").write_text("in the way", encoding="utf-8")
    async with ScriptedOpenAI([]) as model:
        async with chat(home, model) as terminal:
            await terminal.see("no history is kept")
            assert await leave(terminal) == 0


async def test_without_a_terminal_it_says_what_to_use(home: Path) -> None:
    ended = await satchel("chat", "--upstream", "http://127.0.0.1:9", given="hi\n")
    assert (ended.code, ended.out) == (2, "")
    assert "needs a terminal" in ended.err
    assert "satchel run" in ended.err


async def test_a_wrong_skill_ends_it_before_it_begins(home: Path) -> None:
    async with ScriptedOpenAI([]) as model:
        async with chat(home, model, "--skill", "canry") as terminal:
            await terminal.see('Did you mean "canary"?')
            assert await terminal.end() == 1
