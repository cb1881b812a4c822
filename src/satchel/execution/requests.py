"""The installs that a command line asks for, read out of it before it runs. Pure: files come through a function.

The host performs what was read with words of its own, and ``true`` stands in the line where the request was. What would
install something else than it seems to is refused by name, and then nothing of the line runs.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from satchel.execution import installers as say
from satchel.execution.calls import Call, read_call, written_files
from satchel.execution.commandline import SimpleCommand, Word, simple_commands
from satchel.execution.manifests import ManifestError, node_manifest, requirements
from satchel.execution.options import ExecutionOptions
from satchel.execution.packages import Ecosystem, Package, not_allowed, read_package, shorten

ReadFile = Callable[[str], str | None]
"""A file's text by its path as typed, relative to where the line starts; None when there is none that may be read."""

_DEEPEST = 4
_MOST_PACKAGES = 100
_LONGEST_FILE = 256 * 1024
_SHELLS = frozenset(("bash", "sh", "dash", "zsh", "ash", "ksh"))
_APPLIERS = frozenset(("xargs", "find", "parallel", "watch", "entr"))
_STEERING = re.compile(r"(?:PIP_|NPM_CONFIG_|YARN_|UV_)\w*|(?:HTTPS?|ALL|FTP)_PROXY", re.IGNORECASE)
_NAME_OF_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*")
_NOTHING_RAN = "Nothing of this command ran."


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallRequest:
    """Packages of one registry, and the command as it was written."""

    ecosystem: Ecosystem
    packages: tuple[Package, ...]
    asked: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandPlan:
    """``command`` is the line to run after ``requests`` were performed. With a ``refusal`` nothing is performed or run.

    ``notes`` belong in front of the result.
    """

    command: str
    requests: tuple[InstallRequest, ...] = ()
    notes: tuple[str, ...] = ()
    refusal: str = ""


def plan_command(text: str, *, options: ExecutionOptions, read_file: ReadFile) -> CommandPlan:
    """What has to be installed before ``text`` runs, and what then runs. Never raises."""
    try:
        return _Reader(options, read_file).plan(text, depth=0)
    except (_Refused, ManifestError) as refused:
        return CommandPlan(command=text, refusal=f"{refused} {_NOTHING_RAN}")


class _Refused(Exception):  # noqa: N818 - never leaves this module
    """Its text is the sentence for the model."""


class _Reader:
    def __init__(self, options: ExecutionOptions, read_file: ReadFile) -> None:
        self._install = options.install
        self._read_file = read_file
        self._may_fetch = options.code_network and options.install.enabled and not options.install.packages
        self._folder = ""
        self._written: set[str] = set()
        self._notes: list[str] = []

    def plan(self, text: str, *, depth: int) -> CommandPlan:
        requests: list[InstallRequest] = []
        edits: list[tuple[int, int, str]] = []
        steered: str = ""
        for command in simple_commands(text):
            self._look_inside(command, depth)
            call = read_call(command.words)
            self._written.update(self._place(text) for text in written_files(command, call))
            if call is None:
                continue
            steered = steered or _exported_steering(call)
            request = self._request(call, command, text)
            if request is None:
                self._follow(call)
                continue
            steered = steered or _first(_steering(word) for word in _in_front(command, call))
            if steered:
                raise _Refused(
                    f"{steered} is not a setting this host can honour: it installs from its own registry. "
                    f"Write the install without it."
                )
            requests.append(request)
            edits += _replaced(command, text)
        return CommandPlan(
            command=_edited(text, edits),
            requests=tuple(request for request in requests if request.packages),
            notes=tuple(self._notes),
        )

    def _look_inside(self, command: SimpleCommand, depth: int) -> None:
        """Refuses an install that stands where its result is text or its words come from elsewhere."""
        inner = list(command.substitutions)
        call = read_call(command.words)
        if call and (call.tool in _SHELLS or call.tool == "eval"):
            inner += _given_text(call)
        for text in inner:
            if depth >= _DEEPEST:
                if re.search(r"\b(?:pip3?|npm|pnpm|yarn|npx|uvx)\b", text):
                    raise _Refused("The command is nested too deeply. Write the install as a command of its own.")
                continue
            folder = self._folder
            plan = self.plan(text, depth=depth + 1)
            self._folder = folder
            if plan.requests:
                asked = plan.requests[0].asked
                raise _Refused(
                    f"The install inside `{shorten(text)}` cannot be performed there. "
                    f"Write `{asked}` as a command of its own, in front of the rest."
                )
        if call and call.tool in _APPLIERS:
            self._refuse_applied(call)

    def _refuse_applied(self, call: Call) -> None:
        texts = call.texts
        for index, text in enumerate(texts):
            name = posixpath.basename(text)
            is_tool = say.PIP.fullmatch(name) or name in say.NODE_TOOLS
            if is_tool and any(word in say.INSTALL_WORDS for word in texts[index + 1 :]):
                self._need_enabled()
                file = " -r requirements.txt" if say.PIP.fullmatch(name) else " NAME"
                raise _Refused(
                    f"The packages that {call.tool} gives to {name} cannot be read before the command runs. "
                    f"Write `{name} install{file}` as a command of its own."
                )

    def _follow(self, call: Call) -> None:
        if call.tool == "cd" and len(call.rest) == 1:
            self._folder = posixpath.join(self._folder, call.rest[0].text)

    def _need_enabled(self) -> None:
        if not self._install.enabled:
            raise _Refused(say.OFF)

    def _request(self, call: Call, command: SimpleCommand, line: str) -> InstallRequest | None:
        """What is to be installed; None for a command that installs nothing. Raises ``_Refused``."""
        texts = call.texts
        if texts and all(text in say.PROBES for text in texts):
            return None
        if call.tool == "pip":
            return self._of_pip(call, command, line)
        if call.tool in say.NODE_TOOLS:
            return self._of_node(call, command, line)
        if call.tool in say.RUNNERS:
            if not texts or self._may_fetch:
                return None
            self._need_enabled()
            raise _Refused(say.refused_runner(call.tool, texts))
        words = say.OTHERS.get(call.tool)
        if words is None:
            return None
        fetches = not words or any(text in words for text in texts[:1]) or _first_word(texts) in words
        if fetches and not (len(texts) > 1 and texts[-1] in ("--help", "-h", "--version")):
            self._need_enabled()
            raise _Refused(say.refused_other(call.tool, texts))
        return None

    def _of_pip(self, call: Call, command: SimpleCommand, line: str) -> InstallRequest | None:
        verb, before, after = _parts("pip", call.rest)
        if verb in say.ARCHIVE_WORDS | say.UPDATE_WORDS:
            self._need_enabled()
            raise _Refused(
                say.refused_archive("pip", verb) if verb in say.ARCHIVE_WORDS else say.refused_update("pip", verb)
            )
        if verb not in say.INSTALL_WORDS or _is_probe(after):
            return None
        self._need_enabled()
        _refuse_glued("pip", command)
        texts, files = self._arguments("pip", before, after)
        packages = [self._package("python", text, "") for text in texts]
        for file in files:
            packages += requirements(self._text_of(file, "`pip install NAME`"), file)
        if not packages:
            raise _Refused("pip install names no package. Write `pip install NAME` or `pip install -r FILE`.")
        return self._checked("python", packages, _shown(command, line))

    def _of_node(self, call: Call, command: SimpleCommand, line: str) -> InstallRequest | None:
        tool = call.tool
        verb, before, after = _parts("npm", call.rest)
        if verb in say.FETCH_AND_RUN[tool] or (verb == "init" and _first_word([word.text for word in after])):
            if self._may_fetch or _is_probe(after):
                return None
            self._need_enabled()
            raise _Refused(say.refused_fetch_and_run(tool, verb, [] if verb in _MAKERS else [w.text for w in after]))
        if verb in say.UPDATE_WORDS:
            self._need_enabled()
            raise _Refused(say.refused_update(tool, verb))
        if tool == "yarn" and verb == "global":
            self._need_enabled()
            raise _Refused(say.refused_option(tool, "global", [word.text for word in after[1:]]))
        is_bare_yarn = tool == "yarn" and not verb
        if (verb not in say.INSTALL_WORDS and not is_bare_yarn) or _is_probe(after):
            return None
        self._need_enabled()
        _refuse_glued(tool, command)
        texts, _ = self._arguments(tool, before, after)
        if texts and verb not in ("ci", "clean-install"):
            packages = [self._package("node", text, "") for text in texts]
            return self._checked("node", packages, _shown(command, line))
        if verb in ("ci", "clean-install"):
            self._notes.append("Installed by the ranges of package.json; the lock file was not read.")
        text = self._text_of("package.json", say.form(tool))
        return self._checked("node", node_manifest(text, say.form(tool)), _shown(command, line))

    def _arguments(self, tool: str, before: Sequence[Word], after: Sequence[Word]) -> tuple[list[str], list[str]]:
        """``(packages, requirements files)``. Raises ``_Refused`` for any option that is not on the list."""
        family = "pip" if tool == "pip" else "npm"
        names: list[str] = []
        files: list[str] = []
        options: list[str] = []
        words = [*before, *after]
        for word in words:
            if not word.is_plain:
                raise _Refused(
                    f"{shorten(word.text)} is not known before the command runs. "
                    f"Write the names of the packages themselves: {say.form(tool)}."
                )
        texts = iter([word.text for word in words])
        for text in texts:
            file = _requirements_file(text, texts) if family == "pip" else None
            if file is not None:
                files.append(file)
            elif text in say.HARMLESS_WITH_VALUE[family]:
                next(texts, "")
            elif _is_harmless(family, text) or text == "--":
                continue
            elif text.startswith("-"):
                options.append(text)
            else:
                names.append(text)
        if options:
            readable = [name for name in names if isinstance(read_package(_ECOSYSTEMS[family], name), Package)]
            raise _Refused(say.refused_option(tool, options[0], readable))
        return names, files

    def _package(self, ecosystem: Ecosystem, text: str, where: str) -> Package:
        package = read_package(ecosystem, text)
        if isinstance(package, str):
            raise _Refused(f"{where}{package}")
        return package

    def _text_of(self, path: str, instead: str) -> str:
        place = self._place(path)
        # What stands in the file now is not what the line would have installed.
        text = None if place in self._written else self._read_file(place)
        if text is None:
            raise _Refused(
                f"{shorten(path)} cannot be read in the workspace before this command runs. "
                f"Write the file in an earlier call, or name the packages: {instead}."
            )
        if len(text) > _LONGEST_FILE:
            raise _Refused(f"{shorten(path)} is too long to be read. Name the packages: {instead}.")
        return text

    def _place(self, path: str) -> str:
        return posixpath.normpath(posixpath.join(self._folder, path))

    def _checked(self, ecosystem: Ecosystem, packages: Sequence[Package], asked: str) -> InstallRequest:
        if len(packages) > _MOST_PACKAGES:
            raise _Refused(f"{len(packages)} packages at once are too many: name at most {_MOST_PACKAGES}.")
        sentence = not_allowed(packages, self._install.packages)
        if sentence:
            raise _Refused(sentence)
        unique = {package.spec: package for package in packages}
        return InstallRequest(ecosystem=ecosystem, packages=tuple(unique.values()), asked=asked)


_ECOSYSTEMS: dict[str, Ecosystem] = {"pip": "python", "npm": "node"}


def _parts(family: str, rest: Sequence[Word]) -> tuple[str, list[Word], list[Word]]:
    """``(verb, options in front of it, everything behind it)``; the verb is "" when there is none."""
    before: list[Word] = []
    words = iter(rest)
    for word in words:
        if word.text.startswith("-"):
            before.append(word)
            if word.text in say.HARMLESS_WITH_VALUE[family]:
                before += [value for value in (next(words, None),) if value]
            continue
        is_value = bool(before) and not _is_harmless(family, before[-1].text) and word.text not in _VERBS
        if not is_value:
            return word.text, before, list(words)
        before.append(word)  # of an option that is not known: refused by name when a verb follows
    return "", before, []


_MAKERS = frozenset(("init", "create"))  # what they name is not the package's own name
_VERBS = say.INSTALL_WORDS | say.ARCHIVE_WORDS | say.UPDATE_WORDS | frozenset[str]().union(*say.FETCH_AND_RUN.values())


def _is_harmless(family: str, text: str) -> bool:
    name, equals, _ = text.partition("=")
    return (
        text in say.HARMLESS[family]
        or (bool(equals) and name in say.HARMLESS_WITH_VALUE[family])
        or say.HARMLESS_SHORT[family].fullmatch(text) is not None
    )


def _is_probe(after: Sequence[Word]) -> bool:
    return any(word.text in ("--help", "-h") for word in after)


def _first(texts: Iterable[str]) -> str:
    return next((text for text in texts if text), "")


def _first_word(texts: Sequence[str]) -> str:
    return next((text for text in texts if not text.startswith("-")), "")


def _requirements_file(text: str, following: Iterator[str]) -> str | None:
    if text in ("-r", "--requirement"):
        file = next(following, "")
        if not file:
            raise _Refused(f"{text} names no file. Write `pip install -r requirements.txt`.")
        return file
    if text.startswith("--requirement="):
        return text.partition("=")[2]
    return text[2:] if text.startswith("-r") and not text.startswith("--") else None


def _refuse_glued(tool: str, command: SimpleCommand) -> None:
    """``name>=2`` without quotes is a redirection for every shell, and never meant as one."""
    ends = {word.end: word.text for word in command.words}
    for operator, target in command.redirections:
        name = ends.get(target.start - len(operator))
        if name and re.match(r"=|\d+(?:\.\d+)*\Z", target.text):
            raise _Refused(
                f"A shell reads {operator}{target.text} behind {name} as a redirection into a file. "
                f"Put the requirement in quotes: {say.form(tool, [f'{name}{operator}{target.text}'])}."
            )


def _given_text(call: Call) -> list[str]:
    if call.tool == "eval":
        return [" ".join(call.texts)]
    texts = call.texts
    return [texts[index + 1] for index, text in enumerate(texts[:-1]) if re.fullmatch(r"-[a-z]*c", text)]


def _steering(word: Word) -> str:
    match = _NAME_OF_ASSIGNMENT.match(word.text)
    return match[0] if match and _STEERING.fullmatch(match[0]) else ""


def _in_front(command: SimpleCommand, call: Call) -> tuple[Word, ...]:
    """Assignments, those behind ``env`` too."""
    wrappers = command.words[: len(command.words) - len(call.rest)]
    return (*command.assignments, *(word for word in wrappers if "=" in word.text))


def _exported_steering(call: Call) -> str:
    if call.tool not in ("export", "declare", "typeset"):
        return ""
    return _first(_steering(word) for word in call.rest)


def _shown(command: SimpleCommand, line: str) -> str:
    return shorten(line[command.words[0].start : command.words[-1].end])


def _replaced(command: SimpleCommand, text: str) -> Iterator[tuple[int, int, str]]:
    """``true`` for the program; its arguments go, with the blanks in front of them. Redirections stay."""
    first, *others = command.words
    yield first.start, first.end, "true"
    end = first.end
    for word in others:
        blanks = re.fullmatch(r"(?:[ \t]|\\\n)*", text[end : word.start])
        yield (end if blanks else word.start), word.end, ""
        end = word.end


def _edited(text: str, edits: Sequence[tuple[int, int, str]]) -> str:
    for start, end, replacement in sorted(edits, reverse=True):
        text = f"{text[:start]}{replacement}{text[end:]}"
    return text
