"""Tool patterns such as ``Read``, ``Bash(git log:*)`` and ``mcp__github__*``: lists of them, and what each matches.

A pattern matches a call only where that is certain. In ``Tool(...)`` the parentheses are understood for shells alone:

- ``Bash(git log:*)`` and ``Bash(git log *)`` are the words ``git log`` and any further ones; ``Bash(git status)`` is
  exactly these. A ``*`` elsewhere stands for anything inside one word.
- The command must be one program with plain words (``satchel.skills.shellwords``): ``git log; x``, ``git log $(x)`` and
  ``git log > x`` match nothing but a bare ``Bash`` or ``Bash(*)``.

``Bash`` and ``Shell`` mean any tool that runs a shell, in any letter case. Elsewhere a ``*`` in a name stands for
letters, digits and ``_ - .``; behind a server's name (``mcp__x__*``) not for two underscores, which begin the next part
of a name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

from satchel.skills.shellwords import simple_command

_CLOSING = {"(": ")", "{": "}"}
_PATTERN = re.compile(r"([^()\s]+?)(?:\((.*)\))?", re.DOTALL)
SHELLS = frozenset({"bash", "shell"})
"""Tools that run a command line, which is what ``Bash(...)`` is about."""

_SERVER = "mcp__"
_COMMAND = "command"
_HARMLESS = frozenset(
    {
        "description",
        "timeout",
        "timeout_ms",
        "timeout_s",
        "run_in_background",
        "background",
        "workdir",
        "cwd",
    }
)
"""What else a call to a shell may say without changing what its command means."""

_RUNNERS = frozenset(
    {
        ".",
        "ash",
        "bash",
        "builtin",
        "busybox",
        "command",
        "csh",
        "dash",
        "doas",
        "env",
        "eval",
        "exec",
        "find",
        "fish",
        "ionice",
        "ksh",
        "nice",
        "nohup",
        "parallel",
        "setsid",
        "sh",
        "source",
        "stdbuf",
        "sudo",
        "su",
        "timeout",
        "watch",
        "xargs",
        "zsh",
    }
)
"""Programs that run what they are given: behind one, a forbidden program cannot be told."""


def split_patterns(text: str, *, commas: bool = True, bracket: str = "(") -> tuple[str, ...]:
    """Patterns separated by blanks and, unless ``commas`` is False, commas; nothing inside ``bracket``s separates."""
    patterns: list[str] = []
    start, depth = 0, 0
    closing = _CLOSING[bracket]
    for index, char in enumerate(text):
        if char == bracket:
            depth += 1
        elif char == closing:
            depth = max(0, depth - 1)
        elif depth == 0 and ((commas and char == ",") or char.isspace()):
            patterns.append(text[start:index])
            start = index + 1
    patterns.append(text[start:])
    return tuple(pattern.strip() for pattern in patterns if pattern.strip())


def allows_call(patterns: Iterable[str], tool: str, arguments: Mapping[str, object]) -> bool:
    """Whether some pattern certainly matches the call."""
    return any(_matches(pattern, tool, arguments, when_unsure=False) for pattern in patterns)


def forbids_call(patterns: Iterable[str], tool: str, arguments: Mapping[str, object]) -> bool:
    """Whether some pattern matches the call, or it cannot be told that none does."""
    return any(_matches(pattern, tool, arguments, when_unsure=True) for pattern in patterns)


def pattern_name(pattern: str) -> str:
    """The pattern without what stands in its parentheses."""
    return pattern.partition("(")[0].strip()


def pattern_names(pattern: str, tool: str) -> bool:
    """Whether some call to the tool may be meant; so it is where the pattern cannot be read."""
    match = _PATTERN.fullmatch(pattern.strip())
    return match is None or _is_of(match[1], tool)


def _is_of(name: str, tool: str) -> bool:
    return _names_shell(name, tool) or _name_pattern(name).fullmatch(tool) is not None


def _matches(pattern: str, tool: str, arguments: Mapping[str, object], *, when_unsure: bool) -> bool:
    match = _PATTERN.fullmatch(pattern.strip())
    if match is None:
        return when_unsure
    name, inside = match[1], match[2]
    if not _is_of(name, tool):
        return False
    if inside is None or inside.strip() == "*":
        return True
    if tool.lower() not in SHELLS:
        return when_unsure
    words = _words(arguments)
    if words is None:
        return when_unsure
    return _may_cover(inside, words) if when_unsure else _covers(inside, words)


def _names_shell(name: str, tool: str) -> bool:
    return name.lower() in SHELLS and tool.lower() in SHELLS


@lru_cache(maxsize=1024)
def _name_pattern(name: str) -> re.Pattern[str]:
    if not name.startswith(_SERVER):
        return re.compile("[A-Za-z0-9_.-]*".join(map(re.escape, name.split("*"))), re.IGNORECASE)
    is_whole_server = "__" not in name[len(_SERVER) :]
    # One server's tools are all of one server: the name of another may begin like it.
    star = "[A-Za-z0-9_.-]*" if is_whole_server else "(?:(?!__)[A-Za-z0-9_.-])*"
    text = star.join(map(re.escape, name.split("*")))
    return re.compile(text if "*" in name or not is_whole_server else f"{text}(?:__(?:(?!__)[A-Za-z0-9_.-])*)?")


def _words(arguments: Mapping[str, object]) -> tuple[str, ...] | None:
    """The words of the command that a shell is asked to run, None when they cannot be told."""
    command = arguments.get(_COMMAND)
    if any(key != _COMMAND and key not in _HARMLESS for key in arguments):
        return None
    return simple_command(command) if isinstance(command, str) else None


def _covers(inside: str, words: tuple[str, ...]) -> bool:
    """Whether the text in a pattern's parentheses describes these words."""
    is_prefix = inside.endswith(":*")
    wanted = inside[:-2].split() if is_prefix else inside.split()
    if not is_prefix and wanted[-1:] == ["*"]:
        is_prefix = True
        wanted = wanted[:-1]
    if not wanted or len(words) < len(wanted) or (len(words) > len(wanted) and not is_prefix):
        return False
    return all(_word_pattern(one).fullmatch(word) for one, word in zip(wanted, words, strict=False))


def _may_cover(inside: str, words: tuple[str, ...]) -> bool:
    """Whether somebody who wrote the text may have meant these words, read as words or as one glob over all of them."""
    program = words[0].rpartition("/")[2]
    plain = (program, *words[1:])
    says_nothing = not inside.removesuffix(":*").strip()
    is_known = says_nothing or program in _RUNNERS or _covers(inside, words) or _covers(inside, plain)
    return is_known or _word_pattern(inside).fullmatch(" ".join(plain)) is not None


@lru_cache(maxsize=1024)
def _word_pattern(word: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, word.split("*"))), re.DOTALL)
