"""Tool patterns such as ``Read``, ``Bash(git log:*)`` and ``mcp__github__*``: lists of them, and what each matches.

A pattern matches a call only where that is certain. In ``Tool(...)`` the parentheses are understood for shells alone:

- ``Bash(git log:*)`` and ``Bash(git log *)`` are the words ``git log`` and any further ones; ``Bash(git status)`` is
  exactly these. A ``*`` elsewhere stands for anything inside one word.
- The command must be one program with plain words (``satchel.skills.shellwords``): ``git log; x``, ``git log $(x)`` and
  ``git log > x`` match nothing but a bare ``Bash`` or ``Bash(*)``.

``Bash`` and ``Shell`` mean tools of either name, in any letter case. Elsewhere a ``*`` in a name stands for letters,
digits and ``_ - .``; behind a server's name (``mcp__x__*``) not for two underscores, which begin the next part of a
name.

A pattern that forbids is read the other way round: in doubt it matches. Its ``*`` stands for anything, letter case does
not count, options may stand between its words (``git -C x push``), and behind a program that runs others nothing can
be told.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

from satchel.skills.globs import star_pattern
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
    (  # noqa: SIM905 - a list of these has a line for each
        ". ash at awk bash batch builtin busybox chroot chrt command csh dash doas env eval exec fakeroot find fish"
        " flock gawk ionice ksh linux32 linux64 ltrace mawk mksh nice nohup nsenter parallel pkexec pwsh rbash runuser"
        " script setarch setpriv setsid sh source ssh stdbuf strace su sudo systemd-run taskset tcsh time timeout"
        " toybox unbuffer unshare watch xargs zsh"
    ).split()
)
"""Programs that run what they are given: behind one, a forbidden program cannot be told."""

_INLINE = {
    "bun": "ep",
    "deno": "",
    "git": "c",
    "lua": "e",
    "node": "ep",
    "perl": "eE",
    "php": "rRBE",
    "python": "c",
    "ruby": "e",
}
"""Programs that take code in an option of these letters (for ``git``, settings that name programs)."""

_INLINE_WORDS = ("--eval", "--print", "--run", "--exec-path", "--config-env", "eval")
_VERSION = re.compile(r"[0-9.]+\Z")


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
    return match is None or _is_of(match[1], tool, when_unsure=False)


def _is_of(name: str, tool: str, *, when_unsure: bool) -> bool:
    pattern = _near_name_pattern(name) if when_unsure else _name_pattern(name)
    return _names_shell(name, tool) or pattern.fullmatch(tool) is not None


def _matches(pattern: str, tool: str, arguments: Mapping[str, object], *, when_unsure: bool) -> bool:
    match = _PATTERN.fullmatch(pattern.strip())
    if match is None:
        return when_unsure
    name, inside = match[1], match[2]
    if not _is_of(name, tool, when_unsure=when_unsure):
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
    """The names that are certainly meant."""
    if not name.startswith(_SERVER):
        return re.compile(star_pattern(name, "[A-Za-z0-9_.-]"), re.IGNORECASE | re.ASCII)
    is_whole_server = _is_whole_server(name)
    # One server's tools are all of one server: the name of another may begin like it.
    text = star_pattern(name, "[A-Za-z0-9_.-]" if is_whole_server else "(?!__)[A-Za-z0-9_.-]")
    return re.compile(text if "*" in name or not is_whole_server else f"{text}(?:__(?:(?!__)[A-Za-z0-9_.-])*)?")


@lru_cache(maxsize=1024)
def _near_name_pattern(name: str) -> re.Pattern[str]:
    """The names that may be meant."""
    text = star_pattern(name, ".")
    if name.lower().startswith(_SERVER) and _is_whole_server(name):
        text += "(?:__.*)?"
    return re.compile(text, re.IGNORECASE | re.DOTALL)


def _is_whole_server(name: str) -> bool:
    return "__" not in name[len(_SERVER) :]


def _words(arguments: Mapping[str, object]) -> tuple[str, ...] | None:
    """The words of the command that a shell is asked to run, None when they cannot be told."""
    command = arguments.get(_COMMAND)
    if any(key != _COMMAND and key not in _HARMLESS for key in arguments):
        return None
    return simple_command(command) if isinstance(command, str) else None


def _covers(inside: str, words: tuple[str, ...]) -> bool:
    """Whether the text in a pattern's parentheses describes these words."""
    wanted, is_prefix = _wanted(inside)
    if not wanted or len(words) < len(wanted) or (len(words) > len(wanted) and not is_prefix):
        return False
    return all(_word_pattern(one).fullmatch(word) for one, word in zip(wanted, words, strict=False))


def _wanted(inside: str) -> tuple[list[str], bool]:
    """The words that a pattern wants, and whether any others may follow."""
    if inside.endswith(":*"):
        return inside[:-2].split(), True
    wanted = inside.split()
    is_prefix = wanted[-1:] == ["*"]
    return (wanted[:-1] if is_prefix else wanted), is_prefix


def _may_cover(inside: str, words: tuple[str, ...]) -> bool:
    """Whether somebody who wrote the text may have meant these words, read as words or as one glob over all of them."""
    program = words[0].rpartition("/")[2]
    plain = (program, *words[1:])
    if not inside.removesuffix(":*").strip() or _runs_others(program, words[1:]):
        return True
    if _covers(inside, words) or _word_pattern(inside).fullmatch(" ".join(plain)) is not None:
        return True
    wanted, is_prefix = _wanted(inside)
    options = [one for one in wanted if one.startswith("-")]
    if not all(_has_option(one, words[1:]) for one in options):
        return False
    others = [one for one in wanted if one not in options]
    return _leads_through(others, plain, is_prefix=is_prefix or bool(options))


def _runs_others(program: str, words: tuple[str, ...]) -> bool:
    if program in _RUNNERS:
        return True
    letters = _INLINE.get(program, _INLINE.get(_VERSION.sub("", program)))
    if letters is None:
        return False
    # Behind git's command a letter means something else.
    lead = words[: _lead(words)] if program == "git" else words
    return any(word.startswith(_INLINE_WORDS) or bool(_letters(word) & set(letters)) for word in lead)


def _letters(word: str) -> set[str]:
    """The letters of an option such as ``-rf``."""
    return set(word[1:]) if word.startswith("-") and not word.startswith("--") else set()


def _has_option(one: str, words: tuple[str, ...]) -> bool:
    """Whether an option may be among the words: anywhere, shortened, or in one with others."""
    if "*" in one:
        return any(_word_pattern(one).fullmatch(word) for word in words)
    names = [word.partition("=")[0] for word in words if word.startswith("--") and word != "--"]
    if one.startswith("--"):
        return any(name.startswith(one) or one.startswith(name) for name in names)
    # A long option may be the other name of any letter.
    return bool(names) or _letters(one) <= set[str]().union(*map(_letters, words))


def _lead(words: tuple[str, ...]) -> int:
    """How many words at the beginning are options, or may be the value of the option before them."""
    count = 0
    while count < len(words) and (words[count].startswith("-") or (count and words[count - 1].startswith("-"))):
        count += 1
    return count


def _leads_through(wanted: list[str], words: tuple[str, ...], *, is_prefix: bool) -> bool:
    """Whether the words begin with those of the pattern, with options between them."""
    at = 0
    for one in wanted:
        end = at + 1 + (_lead(words[at:]) if at else 0)
        pattern = _word_pattern(one)
        at = next((index + 1 for index in range(at, min(end, len(words))) if pattern.fullmatch(words[index])), 0)
        if not at:
            return False
    return bool(wanted) and (is_prefix or at == len(words))


@lru_cache(maxsize=1024)
def _word_pattern(word: str) -> re.Pattern[str]:
    return re.compile(star_pattern(word, "."), re.DOTALL)
