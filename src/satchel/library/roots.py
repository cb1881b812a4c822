"""Where skills conventionally lie, for those who ask. The library itself implies no roots."""

# ruff: noqa: PTH100, PTH111, PTH112, PTH117, PTH118, PTH120 - paths go straight to the walk, which takes strings.

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

_PROJECT = os.path.join(".agents", "skills")
_CLAUDE = os.path.join(".claude", "skills")

StrPath = str | os.PathLike[str]


def conventional_roots(cwd: StrPath, home: StrPath) -> tuple[str, ...]:
    """Every existing ``.agents/skills`` and ``.claude/skills`` from ``cwd`` up to the repository root, then at home."""
    upwards = [os.path.join(folder, kind) for folder in _upwards(cwd) for kind in (_PROJECT, _CLAUDE)]
    return _existing([*upwards, os.path.join(home, _PROJECT), os.path.join(home, _CLAUDE)])


def default_roots(cwd: StrPath, install: StrPath) -> tuple[str, ...]:
    """What the command line and the gateway use unless told otherwise.

    The directory of installed skills when it exists, then every existing ``.agents/skills`` from ``cwd`` up to the
    repository root, nearest first.
    """
    return _existing([os.fspath(install), *(os.path.join(folder, _PROJECT) for folder in _upwards(cwd))])


def install_dir(environ: Mapping[str, str], *, platform: str = sys.platform, home: StrPath = "") -> str:
    """Where installed skills lie: ``satchel/skills`` in the user data directory of the platform."""
    return os.path.join(_user_dir(environ, "XDG_DATA_HOME", (".local", "share"), platform, home), "satchel", "skills")


def state_dir(environ: Mapping[str, str], *, platform: str = sys.platform, home: StrPath = "") -> str:
    """What a program remembers between two runs: ``satchel`` in the user state directory of the platform."""
    return os.path.join(_user_dir(environ, "XDG_STATE_HOME", (".local", "state"), platform, home), "satchel")


def _user_dir(
    environ: Mapping[str, str], variable: str, elsewhere: tuple[str, str], platform: str, home: StrPath
) -> str:
    own = os.fspath(home) or os.path.expanduser("~")
    if platform == "win32":
        base = environ.get("LOCALAPPDATA") or os.path.join(own, "AppData", "Local")
    elif platform == "darwin":
        base = os.path.join(own, "Library", "Application Support")
    else:
        base = os.path.join(own, *elsewhere)
    given = environ.get(variable, "")
    # A relative value is to be ignored, says the XDG specification.
    return given if os.path.isabs(given) else base


def _upwards(cwd: StrPath) -> list[str]:
    """``cwd`` and its parents up to the repository root; only ``cwd`` when there is no repository.

    Outside a repository the parents may belong to anybody, a shared temporary directory for one.
    """
    start = os.path.abspath(cwd)
    folders = [start]
    while not os.path.lexists(os.path.join(folders[-1], ".git")):
        parent = os.path.dirname(folders[-1])
        if parent == folders[-1]:
            return [start]
        folders.append(parent)
    return folders


def _existing(paths: list[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(path for path in paths if os.path.isdir(path)))
