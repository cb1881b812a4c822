"""What a shell session keeps between its calls, each of which is a process of its own: the directory and the exports.

A call runs a wrapper script: it restores the exports, runs the text as it was written, and saves both when it exits.
The script lies where no confined program may write: a job in the background would else decide what the next call runs.
What it saved lies where they may, so it is read as a hostile file and taken apart; only what reads as an export is
ever given to a shell again.
"""

# ruff: noqa: PTH116, PTH117, PTH118 - plain strings and descriptors, as in the path guard.

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shlex
import stat
import sys
from collections import deque
from collections.abc import Generator, Mapping
from dataclasses import dataclass

from satchel.execution.workspace import Workspace
from satchel.pathguard import is_inside
from satchel.ports.execution import Shell

WRAPPERS_KEPT = 16
MAX_STATE_BYTES = 128 * 1024
_SAVED = ("env", "cwd", "reset")

_FLAGS: int = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)
_DIRECTORY: int = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)

_NEVER = frozenset(
    (
        "PATH", "HOME", "TMPDIR", "TEMP", "TMP", "PWD", "OLDPWD", "SHLVL", "IFS", "_", "LD_PRELOAD", "LD_LIBRARY_PATH",
        "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "PIP_CERT",
        "GIT_SSL_CAINFO", "AWS_CA_BUNDLE", "NIX_SSL_CERT_FILE",
        # A shell has these as constants of its own: restoring one would fail and take all others with it.
        "BASHOPTS", "SHELLOPTS", "EUID", "UID", "PPID", "BASH_VERSINFO",
    )
)  # fmt: skip
_NEVER_LIKE = re.compile(r"DYLD_|_*SATCHEL_|(?:\w+_)?proxy$", re.IGNORECASE)

_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_QUOTED = r"""(?:\$'(?:[^'\\]|\\.)*'|'[^']*'|"(?:[^"\\$`]|\\.)*"|[\w./:=@%+,-]|\\.)"""
_ARRAY = rf"\((?:\[\d+\]={_QUOTED}*(?: |(?=\))))*\)"
_MAP = rf"\((?:\[{_QUOTED}+\]={_QUOTED}*(?: |(?=\))))*\)"
_EXPORT = re.compile(
    r"(?:export|declare -(?P<flags>[A-Za-z]+)) (?P<name>[A-Za-z_]\w*)"
    rf"(?:=(?P<value>{_ARRAY}|{_QUOTED}*|(?P<map>{_MAP})))?(?:\n|\Z)",
    re.DOTALL,
)
_PIECE = re.compile(_QUOTED, re.DOTALL)
_ESCAPED = re.compile(r"\\(?:x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|([0-7]{1,3})|(.))", re.DOTALL)
_NAMED = {"a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}

_UNSAVED = (
    "The shell of this command was gone before it could be asked, or the disk was full, so its directory and "
    "exports were not kept: the next command begins as this one did."
)
_OUTSIDE = (
    "It ended outside the working directory or in a directory that cannot be entered, and neither is kept: "
    "the next command begins in the working directory."
)
_RESET = "The shell's exported variables could not be restored and were reset; export them again."

_WRAPPER = """\
__satchel_at={at}
{own_trap}if [ "$(. {restore} >/dev/null 2>&1 && echo whole)" = whole ]; then
  . {restore} 2>/dev/null
else
  : >|"$__satchel_at.reset"
fi
__satchel_keep() {{
  __satchel_code=$?
  set +eux
  {builtin}pwd -P >|"$__satchel_at.cwd"
  {builtin}export -p >|"$__satchel_at.env"
  return $__satchel_code
}}
trap '{{ __satchel_keep; }} 2>/dev/null' EXIT
# ---- the command ----
"""

# A trap of the command's own on EXIT comes behind ours and does not take its place; ours leaves it the exit code, for
# which it has to turn `set -e` off. In a subshell the command's is the only one.
_OWN_TRAP = """\
trap() {
  builtin trap "$@" || return
  [ "$BASHPID" = "$$" ] || return 0
  __satchel_trap=$(builtin trap -p EXIT)
  case $__satchel_trap in
    *__satchel_keep*) return 0 ;;
    ?*) eval "set -- ${__satchel_trap#trap -- }" ;;
    *) set -- ;;
  esac
  builtin trap -- '{ __satchel_keep; } 2>/dev/null
'"${1-}" EXIT
}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrapper:
    """A call's script: its absolute ``path``, and how many lines stand before the first of the command."""

    path: str
    lines_before: int
    stem: str
    cwd: str


class SessionState:
    """The state of one workspace's shell, and a ``ShellState`` for backends without a process. Every method blocks.

    The directory is always one inside the workspace that exists, else its working directory.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._cwd = workspace.work
        self._exports: dict[str, str] = {}
        self._was_reset = False
        self._wrappers: deque[str] = deque()

    def load(self) -> tuple[str, dict[str, str]]:
        """``(working directory, exported variables)`` as the last call left them; arrays are left out."""
        values = {name: _value(line) for name, line in self._exports.items()}
        return self.directory(), {name: value for name, value in values.items() if value is not None}

    def save(self, cwd: str, env: Mapping[str, str]) -> None:
        """Keeps both; a directory outside the workspace and variables that never last are left out."""
        self._keep_directory(cwd)
        named = {name: value for name, value in env.items() if _NAME.fullmatch(name) and "\0" not in value}
        self._exports = parse_exports("".join(f"export {name}={shlex.quote(named[name])}\n" for name in named)) or {}

    def mark_reset(self) -> None:
        """Forgets the exports; the next ``reset_notes`` say so."""
        self._exports = {}
        self._was_reset = True

    def reset_notes(self) -> list[str]:
        """A sentence for the model when the exports were lost since this was last asked."""
        was, self._was_reset = self._was_reset, False
        return [_RESET] if was else []

    def directory(self) -> str:
        """Where the next call begins."""
        self._keep_directory(self._cwd)
        return self._cwd

    def write_wrapper(self, command: str, shell: Shell, *, keeps_state: bool = True, cwd: str = "") -> Wrapper:
        """Writes the script of a call that begins in ``cwd``. Without ``keeps_state`` nothing of it lasts.

        Raises:
            OSError: the directory of calls cannot be written.
        """
        stem = secrets.token_hex(8)
        at = os.path.join(self._workspace.state, stem)
        call = os.path.join(self._workspace.calls, stem)
        is_bash = shell.dialect == "bash"
        own_trap = _OWN_TRAP if is_bash and keeps_state else ""
        head = _WRAPPER.format(
            at=shlex.quote(at),
            restore=shlex.quote(f"{call}.restore"),
            builtin="builtin " if is_bash else "",
            own_trap=own_trap,
        )
        if not keeps_state:
            head = "".join(line for line in head.splitlines(keepends=True) if not line.startswith("trap "))
        with _opened(self._workspace.calls) as folder:
            _write(folder, f"{stem}.restore", "".join(self._exports.values()))
            _write(folder, f"{stem}.sh", head + command + ("" if command.endswith("\n") else "\n"))
            self._wrappers.append(f"{stem}.sh")
            while len(self._wrappers) > WRAPPERS_KEPT:
                _unlink(folder, self._wrappers.popleft())
        return Wrapper(path=f"{call}.sh", lines_before=head.count("\n"), stem=stem, cwd=cwd or self.directory())

    def discard(self, wrapper: Wrapper) -> None:
        """Removes what a call needed to start, and what it saved."""
        with contextlib.suppress(OSError), _opened(self._workspace.calls) as folder:
            _unlink(folder, f"{wrapper.stem}.restore")
        with contextlib.suppress(OSError), _opened(self._workspace.state) as folder:
            for ending in _SAVED:
                _unlink(folder, f"{wrapper.stem}.{ending}")

    def keep(self, wrapper: Wrapper) -> list[str]:
        """Takes over what a call saved, and removes its files. Returns what could not be kept, for the model.

        Never raises for what it left there.
        """
        notes: list[str] = []
        try:
            with _opened(self._workspace.state) as folder:
                cwd = _read(folder, f"{wrapper.stem}.cwd")
                env = _read(folder, f"{wrapper.stem}.env")
                was_reset = _exists(folder, f"{wrapper.stem}.reset")
        except OSError:
            cwd, env, was_reset = None, None, True
        self.discard(wrapper)
        exports = parse_exports(env) if env is not None else None
        if was_reset:
            self.mark_reset()
        # Where the disk is full, there is a file and nothing in it, or a part.
        if cwd is None or not cwd.endswith("\n"):
            notes.append(_UNSAVED)
        else:
            at = cwd.removesuffix("\n")
            if at != wrapper.cwd and not self._keep_directory(at):
                notes.append(_OUTSIDE)
            if exports is None:
                self.mark_reset()
            else:
                self._exports = exports
        return notes + self.reset_notes()

    def _keep_directory(self, path: str) -> bool:
        """Whether the next call may begin there; if not, it begins in the working directory."""
        found = inside_directory(self._workspace, path) if os.path.isabs(path) else ""
        self._cwd = found or self._workspace.work
        return bool(found)


def inside_directory(workspace: Workspace, path: str) -> str:
    """The canonical form of a directory below the workspace's ``work`` or ``tmp``, "" for anything else."""
    try:
        real = os.path.realpath(os.path.join(workspace.work, path), strict=True)
    except (OSError, ValueError):
        return ""
    is_inside_one = is_inside(real, workspace.work) or is_inside(real, workspace.tmp)
    return real if is_inside_one and _is_enterable(real) else ""


def _is_enterable(path: str) -> bool:
    """Whether a program can be started in a directory; what its owner may do is what counts inside, also for root."""
    try:
        mode = os.stat(path, follow_symlinks=False).st_mode
    except OSError:
        return False
    return stat.S_ISDIR(mode) and bool(mode & stat.S_IXUSR)


def lasts(name: str) -> bool:
    """Whether an exported variable of that name is kept for the next call."""
    return name not in _NEVER and _NEVER_LIKE.match(name) is None


def parse_exports(text: str) -> dict[str, str] | None:
    """The lines of ``export -p`` by variable, as a shell can read them again; None when something else stands there.

    Variables that never last are left out, in whatever form they were declared.
    """
    found: dict[str, str] = {}
    at = 0
    while at < len(text):
        match = _EXPORT.match(text, at)
        if match is None:
            return None
        at = match.end()
        flags = match["flags"] or "x"
        if match["map"] and "A" not in flags:
            return None  # the index of an array would be worked out as code
        if lasts(match["name"]) and "A" not in flags and "f" not in flags and "n" not in flags:
            line = match[0]
            found[match["name"]] = line if line.endswith("\n") else line + "\n"
    return found


def shift_lines(text: str, wrapper: Wrapper, name: str = "bash") -> str:
    """A shell's messages about the wrapper as messages about the command: its name, and the lines counted from one."""
    place = re.escape(wrapper.path)

    def message(match: re.Match[str]) -> str:
        rest = re.sub(r"(\bat line )(\d{1,9})\b", lambda at: at[1] + _shifted(at[2], wrapper), match["rest"])
        return f"{name}: {match['what']}{_shifted(match['line'], wrapper)}:{rest}"

    return re.sub(rf"(?m)^{place}: (?P<what>(?:[a-z ]+: )?(?:line )?)(?P<line>\d{{1,9}}):(?P<rest>.*)$", message, text)


def _shifted(line: str, wrapper: Wrapper) -> str:
    return str(max(1, int(line) - wrapper.lines_before))


def _value(line: str) -> str | None:
    """The value of an export as a shell reads it, None for an array and for a variable without a value."""
    match = _EXPORT.match(line)
    if match is None or match["value"] is None or "a" in (match["flags"] or ""):
        return None
    value = "".join(_unquoted(piece) for piece in _PIECE.findall(match["value"]))
    # A shell may have written one character as several bytes.
    return value.encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape")


def _unquoted(piece: str) -> str:
    if piece.startswith("$'"):
        return _ESCAPED.sub(_escaped, piece[2:-1])
    if piece.startswith("'"):
        return piece[1:-1]
    if piece.startswith('"'):
        return re.sub(r"\\([$`\"\\])", r"\1", piece[1:-1])
    return piece[-1]


def _escaped(match: re.Match[str]) -> str:
    if match[5]:
        return _NAMED.get(match[5], match[5])
    code = int(match[4], 8) if match[4] else int(match[1] or match[2] or match[3], 16)
    if match[2] or match[3]:
        char = chr(code) if code <= sys.maxunicode else "\ufffd"
        return "\ufffd" if "\ud800" <= char <= "\udfff" else char
    return bytes([code & 0xFF]).decode("utf-8", "surrogateescape")


@contextlib.contextmanager
def _opened(folder: str) -> Generator[int]:
    descriptor = os.open(folder, _DIRECTORY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _write(folder: int, name: str, text: str) -> None:
    descriptor = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FLAGS, 0o600, dir_fd=folder)
    with os.fdopen(descriptor, "w", encoding="utf-8", errors="surrogateescape", newline="") as file:
        file.write(text)


def _read(folder: int, name: str) -> str | None:
    """A regular file of bounded size, never through a link and never waiting for a writer; None for anything else."""
    try:
        descriptor = os.open(name, os.O_RDONLY | _FLAGS, dir_fd=folder)
    except OSError:
        return None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            data = file.read(MAX_STATE_BYTES + 1)
    finally:
        os.close(descriptor)
    return data.decode("utf-8", "surrogateescape") if len(data) <= MAX_STATE_BYTES else None


def _exists(folder: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return False
    return True


def _unlink(folder: int, name: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(name, dir_fd=folder)
