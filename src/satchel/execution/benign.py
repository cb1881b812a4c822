"""Exit codes that are answers, not failures: a closed table, at status 1 only.

It is asked of the command that gave the line its status. Where another one may have given it, nothing is said: a
failure that is called an answer costs more than an answer that is called a failure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from satchel.execution.commandline import SimpleCommand, simple_commands

_NO_MATCH = "nothing matched"
_DIFFERENT = "there are differences"
_FALSE = "the condition is false"
_NOT_FOUND = "there is no such command"

_TABLE: dict[str, str] = {
    "grep": _NO_MATCH,
    "egrep": _NO_MATCH,
    "fgrep": _NO_MATCH,
    "zgrep": _NO_MATCH,
    "rg": _NO_MATCH,
    "ag": _NO_MATCH,
    "ack": _NO_MATCH,
    "pgrep": _NO_MATCH,
    "diff": _DIFFERENT,
    "colordiff": _DIFFERENT,
    "cmp": _DIFFERENT,
    "test": _FALSE,
    "[": _FALSE,
    "[[": _FALSE,
    "which": _NOT_FOUND,
}
_GIT_DIFF = frozenset(("--quiet", "--exit-code", "--no-index"))
# These say on stderr why they failed, so a silent stderr means that they did not.
_LOUD = frozenset(("cd", "mkdir", "echo", "printf", "pwd", "ls", "cat", "export", "touch", "cp", "mv", "sleep"))
_SILENCED = re.compile(r"2[ \t]*>|&>|>&")
_OTHER_STATUS = re.compile(r"\bpipefail\b|\berrexit\b|\bset\s+-\w*e|\btrap\b|\bexit\b|\breturn\b|\bfunction\b")


def benign_reason(command: str, exit_code: int | None, *, stderr: str = "") -> str:
    """What exit code 1 of ``command`` means when it is an answer, as a sentence; "" when it is a failure.

    ``stderr`` is what was printed there: with several commands in the line, a word of it may be another one's failure.
    """
    if exit_code != 1:
        return ""
    commands = simple_commands(command)
    if not commands:
        return ""
    last = commands[-1]
    reason = _reason(last)
    if not reason or not _decides(command, commands) or _is_negated(command, last):
        return ""
    # git gives 1 for a file that it cannot read, too; grep and the others have a code of its own for that.
    if stderr.strip() and (len(commands) > 1 or last.words[0].text == "git"):
        return ""
    return f"{_shown(last)} gives 1 when {reason}: this is an answer, not a failure."


def _reason(command: SimpleCommand) -> str:
    words = [word.text for word in command.words]
    if not words or not command.words[0].is_plain or command.ended_by == "&":
        return ""
    if words[0] == "git":
        return _reason_of_git(words[1:])
    if words[:2] in (["command", "-v"], ["command", "-V"]):
        return _NOT_FOUND
    return _TABLE.get(words[0].removeprefix("/usr").removeprefix("/bin/"), "")


def _reason_of_git(words: Sequence[str]) -> str:
    rest = list(words)
    while rest[:1] == ["-C"] or rest[:1] == ["--no-pager"]:
        rest = rest[2:] if rest[0] == "-C" else rest[1:]
    if rest[:1] == ["grep"]:
        return _NO_MATCH
    if rest[:1] == ["diff"] and _GIT_DIFF & set(rest[1:]):
        return _DIFFERENT
    return ""


def _decides(command: str, commands: Sequence[SimpleCommand]) -> bool:
    """Whether the last command's status is the line's, whatever the others did."""
    if len(commands) == 1:
        return True
    # A bracket behind a word begins a function, which may be called like any program.
    if _OTHER_STATUS.search(command) or any(one.ended_by == "(" for one in commands):
        return False
    return all(_is_loud(command, one) for one in _joined_by_and(commands))


def _is_loud(line: str, command: SimpleCommand) -> bool:
    if not command.words or command.substitutions or command.words[0].text not in _LOUD:
        return False
    end = max(word.end for word in (*command.words, *(target for _, target in command.redirections)))
    return _SILENCED.search(line[command.words[0].start : end]) is None


def _joined_by_and(commands: Sequence[SimpleCommand]) -> list[SimpleCommand]:
    """The commands before the last one whose failure would have kept it from running."""
    found: list[SimpleCommand] = []
    is_and = False
    for one in reversed(commands[:-1]):
        if one.ended_by in {";", "\n"}:
            break
        # What stands behind the bracket that ends a subshell is not seen from here.
        is_and = is_and or one.ended_by in {"&&", ")"}
        if is_and:
            found.append(one)
    return found


def _is_negated(command: str, last: SimpleCommand) -> bool:
    return command[: last.words[0].start].rstrip().endswith("!")


def _shown(command: SimpleCommand) -> str:
    words = [word.text for word in command.words]
    return " ".join(words[:2]) if words[0] in {"git", "command"} else words[0].rpartition("/")[2]
