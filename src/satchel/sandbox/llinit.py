"""What runs in the child of the Landlock backend: gives up rights, then becomes the program. Run by ``bare``."""

from __future__ import annotations

import os

from satchel.sandbox import syscalls as sys_

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn, TypedDict

    class Plan(TypedDict):
        """Everything the child is told; plain values alone, since it is handed over by ``marshal``."""

        argv: list[str]
        env: dict[bytes, bytes]
        cwd: str
        parent: int
        files: int
        network: int
        scopes: int
        rules: list[tuple[str, int]]
        limits: list[tuple[int, int]]
        filter: bytes


_SETUP_FAILED, _NOT_STARTED = 125, 127


def main(plan: Plan, status: int) -> NoReturn:
    """Never returns. ``status`` gets a line with what failed, if anything."""
    try:
        sys_.drop_capabilities()
        sys_.die_with_parent()
        if os.getppid() != plan["parent"]:
            os._exit(_SETUP_FAILED)
        for number in sys_.CHANGED_BY_PYTHON:
            sys_.default_signal(number)
        os.chdir(plan["cwd"])
        ruleset = sys_.landlock_ruleset(plan["files"], plan["network"], plan["scopes"])
        for path, rights in plan["rules"]:
            sys_.landlock_allow(ruleset, path, rights)
        sys_.landlock_restrict(ruleset)
        sys_.set_limits(plan["limits"])
        sys_.load_filter(plan["filter"])
    except OSError as error:
        os.write(status, f"setup: {error}\n".encode())
        os._exit(_SETUP_FAILED)
    try:
        sys_.become_program(plan["argv"], plan["env"])
    except (OSError, ValueError) as error:
        os.write(status, f"program: {error}\n".encode())
        os._exit(_NOT_STARTED)
