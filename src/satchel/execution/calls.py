"""Which program a simple command calls: behind ``sudo`` and its like, without its folder, ``python -m`` unwrapped."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from satchel.execution.commandline import SimpleCommand, Word

_PIP = re.compile(r"pip(?:3(?:\.\d{1,2})?)?")
_PYTHON = re.compile(r"(?:python(?:3(?:\.\d{1,2})?)?|py)")
_WRAPPERS = frozenset(
    (
        "sudo", "doas", "command", "builtin", "exec", "nohup", "nice", "ionice", "env", "time", "timeout", "stdbuf",
        "setsid",
    )
)  # fmt: skip
_WITH_SETTINGS = frozenset(("env", "sudo"))
_DURATION = re.compile(r"\d+(?:\.\d+)?[smhd]?")
_WITH_VALUE = frozenset(("-u", "-g", "-n", "-k", "-s", "--user", "--signal"))  # of the wrappers
_PYTHON_FLAGS = re.compile(r"-[IEsuBOSqdvbPx]+|-[WX]\S+|-3(?:\.\d{1,2})?")
_WRITING = frozenset((">", ">>", ">|", "&>", "&>>", ">&"))
_PYTHON_SETTINGS = frozenset(("-W", "-X"))


@dataclass(frozen=True, slots=True)
class Call:
    """A program and its arguments. Every spelling of pip is "pip"."""

    tool: str
    rest: tuple[Word, ...]

    @property
    def texts(self) -> tuple[str, ...]:
        """The arguments without their quotes."""
        return tuple(word.text for word in self.rest)


def read_call(words: Sequence[Word]) -> Call | None:
    """What the words of a simple command call; None when nothing is left behind the wrappers."""
    left = list(words)
    while left and program_name(left[0]) in _WRAPPERS:
        wrapper = program_name(left.pop(0))
        while left and (left[0].text.startswith("-") or (wrapper in _WITH_SETTINGS and "=" in left[0].text)):
            option = left.pop(0)
            if option.text in _WITH_VALUE and left:
                left.pop(0)
        if left and _DURATION.fullmatch(left[0].text):
            left.pop(0)
    if not left:
        return None
    tool, rest = program_name(left[0]), left[1:]
    is_python = _PYTHON.fullmatch(tool) or not left[0].is_plain
    while is_python and rest and (rest[0].text in _PYTHON_SETTINGS or _PYTHON_FLAGS.fullmatch(rest[0].text)):
        rest = rest[2:] if rest[0].text in _PYTHON_SETTINGS else rest[1:]
    if is_python and len(rest) > 1 and rest[0].text == "-m":
        tool, rest = rest[1].text, rest[2:]
    elif is_python and rest and re.fullmatch(r"-m\w+", rest[0].text):
        tool, rest = rest[0].text[2:], rest[1:]
    return Call("pip" if _PIP.fullmatch(tool) else tool, tuple(rest))


def program_name(word: Word) -> str:
    """The name of a program without its folder, and without what Windows puts behind it."""
    return re.sub(r"\.(?:exe|cmd|bat)\Z", "", re.split(r"[/\\]", word.text)[-1], flags=re.IGNORECASE)


def written_files(command: SimpleCommand, call: Call | None) -> Iterator[str]:
    """The files that a command is seen to write, as they are typed. ``call`` is what it calls."""
    yield from (target.text for operator, target in command.redirections if operator in _WRITING)
    texts = call.texts if call else ()
    if call and (call.tool == "tee" or (call.tool == "sed" and any(text.startswith("-i") for text in texts))):
        yield from texts
    elif call and call.tool in ("cp", "mv"):
        yield from texts[-1:]
