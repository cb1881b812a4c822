"""Small makers that several tests share."""

from __future__ import annotations

from pathlib import Path

from satchel.chat.messages import message
from satchel.chat.request import ChatRequest, ToolSpec
from satchel.engine.events import TextDelta, TurnDone, TurnEvent
from satchel.engine.limits import LoopLimits
from satchel.engine.request import SkillSelection, TurnRequest
from satchel.engine.runtime import Runtime
from satchel.library import discover
from satchel.ports.models import ModelClient
from satchel.sources.directory import DirectorySource
from satchel.wiring.sources import skill_hosts


def write_skill(
    root: Path,
    name: str,
    *,
    description: str = "",
    body: str = "Follow the steps.\n",
    files: dict[str, str] | None = None,
) -> Path:
    """A skill folder with a SKILL.md and further files."""
    folder = root / name
    folder.mkdir(parents=True)
    described = description or f"Knows all about {name}. Use when the user asks for {name}."
    (folder / "SKILL.md").write_text(f"---\nname: {name}\ndescription: {described}\n---\n{body}", encoding="utf-8")
    for path, text in (files or {}).items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    return folder


def runtime_over(models: ModelClient, root: Path | None, *, limits: LoopLimits | None = None) -> Runtime:
    """A real runtime over a directory of skills, with the real skill tools."""
    source = DirectorySource(discover([root])) if root else None
    return Runtime(models=models, source=source, hosts=skill_hosts, limits=limits or LoopLimits())


def ask(
    text: str = "Hello",
    *,
    skills: tuple[str, ...] = (),
    discovery: bool = True,
    tools: tuple[str, ...] = (),
    **chat: object,
) -> TurnRequest:
    """A turn request of one user message; ``tools`` are names of the client's tools."""
    specs = tuple(ToolSpec(name=name, parameters={"type": "object", "properties": {}}) for name in tools)
    request = ChatRequest(model="scripted", messages=(message("user", text),), tools=specs, **chat)  # pyright: ignore[reportArgumentType]
    return TurnRequest(chat=request, skills=SkillSelection(names=skills, discovery=discovery))


async def collect(runtime: Runtime, request: TurnRequest) -> tuple[list[TurnEvent], TurnDone]:
    """Every event of a turn, and its end."""
    async with runtime.turn(request) as turn:
        events = [event async for event in turn]
    done = events[-1]
    assert isinstance(done, TurnDone)
    return events, done


def text_of(events: list[TurnEvent]) -> str:
    """All text deltas, joined without anything between."""
    return "".join(event.text for event in events if isinstance(event, TextDelta))
