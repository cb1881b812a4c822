"""A runtime's turns activate skills through a session."""

from __future__ import annotations

from pathlib import Path

import pytest

from satchel.activation.registry import FilesystemSkillRegistry
from satchel.activation.session import SkillSession
from satchel.chat.messages import ToolOutput, message
from satchel.chat.request import ChatRequest
from satchel.engine.events import SkillLoaded, ToolFinished
from satchel.engine.request import TurnRequest
from satchel.engine.runtime import Runtime
from satchel.errors import SetupError
from satchel.library import discover
from satchel.sources.directory import DirectorySource
from satchel.testing.scripted_model import Reply, ScriptedModel, call
from satchel.tools.base import ToolCall, ToolContext
from satchel.tools.skill import SkillActivate
from satchel.wiring.sources import session_hosts
from tests.activation.shelves import allow, put
from tests.support import collect


async def test_a_turn_activates_a_skill_and_the_next_turn_knows_it(tmp_path: Path) -> None:
    put(tmp_path, "glazing", body="Weigh the glaze twice.\n")
    library = discover([tmp_path])
    session = SkillSession(library, permission=allow)
    await session.discover()
    loads = Reply(calls=(call("skill", '{"name": "glazing"}'),))
    model = ScriptedModel([loads, Reply(text=("Done.",)), loads, Reply(text=("Done.",))])
    runtime = Runtime(models=model, source=DirectorySource(library), hosts=session_hosts(session))
    said = (message("system", str(session.system_message()["content"])), message("user", "Glaze this bowl."))
    request = TurnRequest(chat=ChatRequest(model="scripted", messages=said))

    events, done = await collect(runtime, request)
    assert done.finish == "stop"
    (spec,) = model.requests[0].tools
    assert spec.name == "skill"
    (loaded,) = (event for event in events if isinstance(event, SkillLoaded))
    assert (loaded.ref.name, loaded.how, loaded.bytes) == ("glazing", "activated", len("Weigh the glaze twice.\n"))
    assert loaded.ref == session.active[0].ref
    (output,) = (part for item in model.requests[1].messages for part in item.parts if isinstance(part, ToolOutput))
    assert "Weigh the glaze twice." in str(output)
    assert model.requests[1].messages[: len(model.requests[0].messages)] == model.requests[0].messages

    events, _ = await collect(runtime, request)
    assert not [event for event in events if isinstance(event, SkillLoaded)]
    (finished,) = (event for event in events if isinstance(event, ToolFinished))
    assert (finished.ok, finished.skill) == (True, "glazing")


async def test_a_refusal_is_a_failed_call_with_the_session_s_code(tmp_path: Path) -> None:
    put(tmp_path, "glazing")
    tool = SkillActivate(SkillSession(tmp_path))
    result = await tool.run(ToolCall(call_id="a", name="skill", arguments={"name": "glazing"}), ToolContext())
    assert (result.ok, result.code, result.skill, result.loaded) == (False, "NOT_TRUSTED", "glazing", None)
    assert result.text.startswith("Error [NOT_TRUSTED]")


async def test_a_guided_model_chooses_among_what_is_offered_and_not_active(tmp_path: Path) -> None:
    put(tmp_path, "glazing")
    put(tmp_path, "firing")
    put(tmp_path, "hidden", "disable-model-invocation: true")
    session = SkillSession(tmp_path, permission=allow)
    tool = SkillActivate(session)
    assert [dict(choice.arguments) for choice in tool.spec.choices] == [{"name": "firing"}, {"name": "glazing"}]
    await tool.run(ToolCall(call_id="a", name="skill", arguments={"name": "firing"}), ToolContext())
    assert [dict(choice.arguments) for choice in tool.spec.choices] == [{"name": "glazing"}]


def test_a_registry_is_discovered_first(tmp_path: Path) -> None:
    class Registry:
        discover = FilesystemSkillRegistry(tmp_path).discover
        load = FilesystemSkillRegistry(tmp_path).load

    with pytest.raises(SetupError, match="not known yet"):
        SkillActivate(SkillSession(Registry()))


async def test_named_arguments_of_a_skill_are_left_open_for_a_guided_model(tmp_path: Path) -> None:
    head = "arguments:\n  file:\n    type: string\n    description: What to read.\n  mode:\n    enum: [fast, slow]\n"
    put(tmp_path, "glazing", head.rstrip(), body="Glaze $file.\n")
    put(tmp_path, "firing", body="Fire it.\n")
    session = SkillSession(discover([tmp_path]), permission=allow)
    await session.discover()
    firing, glazing = SkillActivate(session).spec.choices
    assert firing.open == {}
    assert glazing.open == {
        "arguments": {
            "type": "object",
            "properties": {
                "file": {"type": ["string", "null"], "description": "What to read."},
                "mode": {"enum": ["fast", "slow", None]},
            },
            "required": ["file", "mode"],
        }
    }
