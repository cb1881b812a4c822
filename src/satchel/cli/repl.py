"""A conversation at the terminal: what ``satchel chat`` does."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, field
from types import FrameType

from satchel.cli.allowed import tell
from satchel.cli.console import has_styles, line, print_error, say
from satchel.cli.conversation import ChatView, Conversation
from satchel.cli.editor import Editor, no_history, open_history
from satchel.cli.produced import listed, prepare_folder, tell_saved
from satchel.cli.progress import DownloadProgress
from satchel.engine.prompt import reach
from satchel.engine.request import SkillSelection
from satchel.errors import SatchelError
from satchel.library.roots import state_dir
from satchel.settings import Settings
from satchel.skills.catalog import Catalog
from satchel.skills.names import near_names
from satchel.wiring.models import default_model, describe, embedded_models, ensure_weights
from satchel.wiring.runtime import open_runtime

_INTERRUPTED = 130
_SILENCE_S = 1.0


@dataclass(frozen=True, slots=True)
class Opening:
    """How a conversation begins."""

    skill: tuple[str, ...]
    system: str
    max_tokens: int | None
    shows_cost: bool = field(kw_only=True)
    keeps_history: bool = field(kw_only=True)


async def converse(settings: Settings, opening: Opening) -> int:
    """Talks until the person ends it; the exit code."""
    if embedded_models(settings):
        progress = DownloadProgress()
        await ensure_weights(settings, progress)
        progress.finish()
    async with open_runtime(settings) as runtime:
        catalog = await runtime.catalog()
        selected = reach(catalog, SkillSelection(names=opening.skill, discovery=False)).selected
        conversation = Conversation(
            runtime=runtime,
            model=await default_model(settings, runtime.models),
            discovery=settings.skills.discovery and settings.skills.enabled,
            max_tokens=opening.max_tokens,
            system=opening.system,
            selected=[item.name for item in selected],
        )
        repl = _Repl(conversation, catalog, shows_cost=opening.shows_cost)
        _greet(settings, conversation, catalog)
        await tell(settings)
        say("/help lists what you can do here; Ctrl-C stops an answer, Ctrl-D ends.")
        async with aclosing(conversation):
            code = await repl.run(_editor(repl.words, keeps_history=opening.keeps_history))
            await repl.tell_lost()
            return code


def _greet(settings: Settings, conversation: Conversation, catalog: Catalog) -> None:
    where = ", ".join(describe(options) for options in settings.upstreams or embedded_models(settings))
    say(f"model    {line(f'{conversation.model} at {where}' if conversation.model else where)}")
    names = [skill.name for skill in catalog.skills]
    if not settings.skills.enabled:
        say("skills   off")
    elif not names:
        say("skills   none found; name a directory with --skills-dir DIR")
    else:
        more = f" and {len(names) - 8} more" if len(names) > 8 else ""  # noqa: PLR2004
        say(f"skills   {line(', '.join(names[:8]))}{more}")


def _editor(words: Callable[[str], Sequence[str]], *, keeps_history: bool) -> Editor:
    if keeps_history:
        folder = state_dir(os.environ)
        try:
            return Editor(open_history(folder), words)
        except OSError as error:
            say(f"note: no history is kept: {line(folder)}: {error.strerror}.")
    return Editor(no_history(), words)


class _Repl:
    """Reads lines, and does what they say until one of them ends it."""

    def __init__(self, conversation: Conversation, catalog: Catalog, *, shows_cost: bool) -> None:
        self._talk = conversation
        self._catalog = catalog
        self._shows_cost = shows_cost
        self._is_over = False
        self._commands: dict[str, tuple[str, str, Callable[[str], Awaitable[None]]]] = {
            "/help": ("", "this list", self._help),
            "/skills": ("", "the skills: which are selected, which were read", self._skills),
            "/skill": ("NAME", "selects a skill, or no longer; the conversation starts afresh", self._skill),
            "/system": ("[TEXT]", "shows or sets the system message; /system - removes it", self._system),
            "/model": ("[NAME]", "shows the models, or changes to one", self._model),
            "/usage": ("", "says after each answer what it cost, or no longer", self._usage),
            "/save": ("DIR", "copies the files that programs made into a directory", self._save),
            "/clear": ("", "forgets the conversation, with the files that it made", self._clear),
            "/quit": ("", "ends, as Ctrl-D does", self._quit),
        }

    async def run(self, editor: Editor) -> int:
        """Until the end; the exit code."""
        was_interrupted = False
        while not self._is_over:
            try:
                typed = await editor.read()
            except EOFError:
                return 0
            except KeyboardInterrupt:
                if was_interrupted:
                    return _INTERRUPTED
                was_interrupted = True
                self._say("Ctrl-C again, or Ctrl-D, ends.")
                continue
            was_interrupted = False
            try:
                if typed.startswith("/"):
                    await self._command(typed)
                elif typed.strip():
                    was_interrupted = await self._ask(typed)
            except SatchelError as error:
                print_error(error, wants_json=False)
        return 0

    def words(self, typed: str) -> Sequence[str]:
        """What may come next of a command."""
        if not typed.startswith("/"):
            return ()
        if typed.startswith("/skill "):
            return [skill.name for skill in self._catalog.skills]
        return () if " " in typed else list(self._commands)

    async def tell_lost(self) -> None:
        """Names the files that go with the conversation, so that the next ones are saved in time."""
        await self._talk.collect()
        if unsaved := self._talk.produced.unsaved:
            self._say(f"note: files were made and are gone: {listed(unsaved)}; /save DIR keeps them.")

    async def _ask(self, text: str) -> bool:
        """Whether the answer was stopped."""
        view = ChatView(has_styles=has_styles(sys.stdout) and has_styles(sys.stderr), shows_cost=self._shows_cost)
        task = asyncio.create_task(self._talk.turn(text, view))
        with _stopping(task):
            try:
                while not (await asyncio.wait((task,), timeout=_SILENCE_S))[0]:
                    view.hint()
            except asyncio.CancelledError:
                # The whole program ends: what the answer runs has to end before its working directory is removed.
                task.cancel()
                await asyncio.wait((task,))
                raise
        if task.cancelled():
            self._say("stopped; Ctrl-C again ends.")
            return True
        task.result()
        sys.stdout.write("\n")
        sys.stdout.flush()
        return False

    async def _command(self, typed: str) -> None:
        name, _, rest = typed.strip().partition(" ")
        name = "/quit" if name == "/exit" else name
        if name in self._commands:
            await self._commands[name][2](rest.strip())
            return
        near = near_names(name, self._commands, 1)
        meant = f"Did you mean {near[0]}? " if near else ""
        self._say(f"There is no {name}. {meant}/help lists the commands; a space before / sends it as text.")

    async def _help(self, rest: str) -> None:
        del rest
        for name, (takes, what, _) in self._commands.items():
            sys.stdout.write(f"{f'{name} {takes}':<16} {what}\n")
        sys.stdout.write("\nAlt-Enter begins a new line, Tab completes commands and names of skills.\n")
        sys.stdout.write("A space before / sends the line as text.\n")

    async def _skills(self, rest: str) -> None:
        del rest
        if not self._catalog.skills:
            self._say("There are no skills here; satchel chat --skills-dir DIR names a directory of them.")
            return
        width = max(len(line(skill.name)) for skill in self._catalog.skills)
        room = max(20, os.get_terminal_size(sys.stdout.fileno()).columns - width - 14)
        for skill in self._catalog.skills:
            words = line(skill.summary)
            words = words if len(words) <= room else words[: room - 3] + "..."
            sys.stdout.write(f"{self._state(skill.name):<9} {line(skill.name):<{width}}  {words}\n")
        others = "the others are offered too" if self._talk.discovery else "the others are not offered"
        self._say(f"/skill NAME selects one; {others}.")

    def _state(self, name: str) -> str:
        if name in self._talk.selected:
            return "selected"
        return "read" if name in self._talk.read else ""

    async def _skill(self, rest: str) -> None:
        if not rest:
            self._say("/skill NAME selects a skill; /skills lists them.")
            return
        (skill,) = reach(self._catalog, SkillSelection(names=(rest,), discovery=False)).selected
        if skill.name in self._talk.selected:
            self._talk.selected.remove(skill.name)
            what = "is no longer selected"
        else:
            self._talk.selected.append(skill.name)
            what = "is selected"
        await self.tell_lost()
        await self._talk.clear()
        self._say(f"{skill.name} {what}; the conversation starts afresh.")

    async def _system(self, rest: str) -> None:
        if rest:
            self._talk.system = "" if rest == "-" else rest
        said = self._talk.system
        self._say(f"The system message: {said}" if said else "There is no system message; /system TEXT sets one.")

    async def _model(self, rest: str) -> None:
        offered = [info.id for info in await self._talk.runtime.models.models()]
        if not rest:
            for name in offered:
                sys.stdout.write(f"{'*' if name == self._talk.model else ' '} {line(name)}\n")
            sys.stdout.flush()
        elif offered and rest not in offered:
            near = near_names(rest, offered, 1)
            self._say(f"There is no model {rest} here." + (f" Did you mean {near[0]}?" if near else ""))
        else:
            self._talk.model = rest
            self._say(f"{rest} answers from now on.")

    async def _usage(self, rest: str) -> None:
        del rest
        self._shows_cost = not self._shows_cost
        self._say(f"What answers cost is {'said' if self._shows_cost else 'not said'} from now on.")

    async def _save(self, rest: str) -> None:
        await self._talk.collect()
        made, execution = self._talk.produced, self._talk.runtime.execution
        if not made.paths:
            self._say("No files were made in this conversation.")
        elif not rest:
            self._say(f"/save DIR copies what was made: {listed(made.paths)}")
        else:
            is_quoted = len(rest) > 2 and rest[0] == rest[-1] and rest[0] in "\"'"  # noqa: PLR2004 - more than the quotes
            folder = prepare_folder(rest[1:-1] if is_quoted else rest)
            tell_saved(made.save(execution.artifacts if execution else None, folder), folder)

    async def _clear(self, rest: str) -> None:
        del rest
        await self.tell_lost()
        await self._talk.clear()
        self._say("The conversation is forgotten.")

    async def _quit(self, rest: str) -> None:
        del rest
        self._is_over = True

    def _say(self, text: str) -> None:
        say(f"\x1b[2m{line(text)}\x1b[0m" if has_styles(sys.stderr) else line(text))


@contextmanager
def _stopping(task: asyncio.Task[None]) -> Generator[None]:
    """Ctrl-C cancels the task; a second one, should the first take long, ends the program."""
    loop = asyncio.get_running_loop()
    is_first = True

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal is_first
        if not is_first:
            signal.default_int_handler(number, frame)
        is_first = False
        loop.call_soon_threadsafe(task.cancel)

    before = signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
