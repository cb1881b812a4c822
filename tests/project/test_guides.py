"""Every example on a guide page is a file below docs_src, and runs."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from satchel.skills import inline
from tests.conformance.reading import text, write
from tests.project.test_docs import fenced
from tests.project.tree import ROOT

SOURCES = sorted((ROOT / "docs_src").rglob("*.py"))
GUIDES = sorted((ROOT / "docs" / "guides").glob("*.md"))


def test_code_on_the_guide_pages_is_the_code_that_is_run() -> None:
    shown = [code for page in GUIDES for code in fenced(page, "python")]
    assert sorted(shown) == sorted(path.read_text(encoding="utf-8") for path in SOURCES)


def load(name: str) -> Any:
    """A fresh copy of the example."""
    path = ROOT / "docs_src" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module: ModuleType = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def call(name: str, **arguments: str) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"role": "assistant", "content": None, "tool_calls": [{"id": f"call-{name}", "function": function}]}


def say(words: str) -> dict[str, Any]:
    return {"role": "assistant", "content": words}


def tools(*names: str) -> list[dict[str, Any]]:
    return [{"type": "function", "function": {"name": name}} for name in names]


class Llm:
    """Gives its replies one after another, and keeps what it was asked."""

    def __init__(self, *replies: dict[str, Any]) -> None:
        self.replies = list(replies)
        self.asked: list[dict[str, Any]] = []

    def __call__(self, **request: Any) -> dict[str, Any]:
        self.asked.append(request)
        return self.replies.pop(0)

    def contents(self, role: str) -> list[str]:
        """What stood in the messages of that role at last."""
        return [item["content"] for item in self.asked[-1]["messages"] if item["role"] == role]


def ran(done: list[str]) -> Callable[[Any], str]:
    def run(made: Any) -> str:
        done.append(made["function"]["name"])
        return "done"

    return run


@pytest.mark.parametrize("can_write", [True, False])
def test_blocking_tools(can_write: bool) -> None:
    llm, done = Llm(call("write_file"), call("read_file"), say("Over.")), list[str]()
    offered = tools("read_file", "write_file")
    answer = load("context/blocklist_only").converse(llm, offered, ran(done), "Write!", can_write=can_write)
    assert answer == "Over."
    assert done == (["write_file", "read_file"] if can_write else ["read_file"])
    assert llm.contents("tool") == ["done" if can_write else 'Tool "write_file" is blocked.', "done"]
    assert [asked["tools"] for asked in llm.asked] == [offered] * 3


def test_a_skill_without_a_restriction() -> None:
    compiled = load("context/skill_only").request([{"role": "user", "content": "Hi"}])
    assert [item["role"] for item in compiled.messages] == ["system", "system", "user"]
    assert compiled.messages[1]["content"].startswith("Write without contractions.")
    assert (compiled.tools, compiled.meta.active_skill_name) == ([], "formal")


def test_modes() -> None:
    names = ("read_file", "grep", "list_dir", "edit_file", "run_tests")
    agent, done = load("context/modes").ModalAgent(tools(*names)), list[str]()
    llm = Llm(call("edit_file"), call("edit_file"))
    history = [{"role": "user", "content": "Change it."}]
    history += agent.step(llm, ran(done), history, "planning")
    assert (history[-1]["content"], done) == ('Tool "edit_file" is blocked.', [])
    history += agent.step(llm, ran(done), history, "editing")
    assert (history[-1]["content"], done) == ("done", ["edit_file"])
    assert [asked["messages"][0]["content"][:9] for asked in llm.asked] == ["Read the ", "Carry out"]
    assert agent.blocklist.get_blocked_tools() == ["grep", "list_dir"]


def test_the_model_chooses() -> None:
    skills = [inline(name=name, description=f"Does {name}.", instructions=f"Do {name}.") for name in ("plan", "edit")]
    wrong = {"role": "assistant", "tool_calls": [{"id": "x", "function": {"name": "load_skill", "arguments": "["}}]}
    llm = Llm(call("load_skill", skill_name="nope"), wrong, call("load_skill", skill_name="plan"), say("Done."))
    assert load("context/lazy_loading").converse(llm, skills, tools("grep"), ran([]), "Plan it.") == "Done."
    declared = llm.asked[0]["tools"][1]["function"]
    assert declared["parameters"]["properties"]["skill_name"]["enum"] == ["plan", "edit"]
    assert declared["description"].endswith("- plan: Does plan.\n- edit: Does edit.")
    unknown, garbled, loaded = llm.contents("tool")
    assert unknown == 'There is no registered skill called "nope". Registered are plan, edit.'
    assert garbled.startswith("The arguments must be an object")
    assert loaded == 'Skill "plan" activated. Follow its instructions.'
    assert llm.contents("system") == ["Do plan."]


def test_files_beside_a_skill(tmp_path: Path) -> None:
    manifest = text("name: db-debug", "description: Finds slow SQL.", body="Read ./docs/db-schema.md first.\n")
    folder = write(tmp_path, "db-debug", manifest)
    (folder / "docs").mkdir()
    (folder / "docs" / "db-schema.md").write_text("SCHEMA")
    references = load("context/references")
    (system, skill) = references.eager(tmp_path, "You help.").compile().messages
    assert system["content"] == "You help.\n\n## DB schema\nSCHEMA"
    assert skill["content"] == "Read ./docs/db-schema.md first.\n"
    assembler, read_file = references.lazy(tmp_path, "You help.")
    assert "SCHEMA" not in str(assembler.compile())
    assert read_file("./docs/db-schema.md") == "SCHEMA"
    assert "escapes" in read_file("../../etc/passwd")
