"""One question, one streamed answer, and what it took: what ``satchel run`` does."""

from __future__ import annotations

import asyncio
import dataclasses
import re

from satchel.chat.messages import message
from satchel.chat.request import ChatRequest
from satchel.cli.allowed import tell
from satchel.cli.console import print_line_json, say
from satchel.cli.produced import Produced, listed, prepare_folder, saved_shape, tell_saved
from satchel.cli.progress import DownloadProgress
from satchel.cli.signals import until_signalled
from satchel.cli.turn_view import TurnView
from satchel.engine.events import TurnEvent, TurnStarted
from satchel.engine.request import SkillSelection, TurnRequest
from satchel.execution.workbench import Execution
from satchel.settings import Settings
from satchel.wiring.models import default_model, embedded_models, ensure_weights
from satchel.wiring.runtime import open_runtime


def ask(question: str, settings: Settings, names: tuple[str, ...], output: Output, *, max_tokens: int | None) -> int:
    """Asks it with the skills of these names selected; the exit code."""
    view = _JsonView() if output.as_json else _TerminalView(settings)
    asking = ChatRequest(messages=(message("user", question),), max_tokens=max_tokens)
    return asyncio.run(until_signalled(_run(asking, settings, names, view, output)))


async def _run(
    asking: ChatRequest, settings: Settings, names: tuple[str, ...], view: _JsonView | _TerminalView, output: Output
) -> int:
    if embedded_models(settings):
        progress = DownloadProgress()
        await ensure_weights(settings, progress)
        progress.finish()
    await tell(settings, only_trouble=True)
    async with open_runtime(settings) as runtime:
        request = TurnRequest(
            chat=dataclasses.replace(asking, model=await default_model(settings, runtime.models)),
            skills=SkillSelection(names=names, discovery=settings.skills.discovery and settings.skills.enabled),
        )
        produced = Produced()
        is_saved = False
        try:
            async with runtime.turn(request) as turn:
                async for event in turn:
                    produced.note(event)
                    view.show(event)
        finally:
            is_saved = output.finish(produced, runtime.execution)
    return 0 if is_saved else 1


class Output:
    """What becomes of the files that were made, however the turn ended."""

    def __init__(self, folder: str | None, *, overwrite: bool, as_json: bool) -> None:
        """``folder`` is made where it is not there. Raises ``SetupError`` when that cannot be done."""
        self._folder = None if folder is None else prepare_folder(folder)
        self._overwrite = overwrite
        self._as_json = as_json

    @property
    def as_json(self) -> bool:
        """Whether stdout is for JSON."""
        return self._as_json

    def finish(self, produced: Produced, execution: Execution | None) -> bool:
        """Whether all of them are where they were wanted."""
        if execution and execution.artifacts:
            produced.catch_up(execution.artifacts)
        if self._folder is None:
            if produced.unsaved:
                say(f"note: files were made and not kept: {listed(produced.unsaved)}; --output-dir DIR keeps them.")
            return True
        saved = produced.save(execution.artifacts if execution else None, self._folder, overwrite=self._overwrite)
        tell_saved(saved, self._folder)
        if self._as_json:
            print_line_json(saved_shape(saved, self._folder))
        return not any(item.problem for item in saved)


class _JsonView:
    """One event a line: ``{"event": "text_delta", ...}``."""

    def show(self, event: TurnEvent) -> None:
        name = re.sub(r"(?<!^)(?=[A-Z])", "_", type(event).__name__).lower()
        print_line_json({"event": name, **dataclasses.asdict(event)})


class _TerminalView(TurnView):
    """Says before the answer which skills the model was told of."""

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self._settings = settings

    def start(self, event: TurnStarted) -> None:
        if not self._settings.skills.enabled:
            self.line("skills", "off")
        elif not event.offered:
            self.line("skills", "none found; name a directory with --skills-dir DIR")
        else:
            listed = ", ".join(event.offered[:8])
            more = f" and {len(event.offered) - 8} more" if len(event.offered) > 8 else ""  # noqa: PLR2004
            self.line("offered", f"{listed}{more}")
        if event.selected:
            self.line("selected", ", ".join(event.selected))
