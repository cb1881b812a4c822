"""Commands that set traps of their own: they run as in any shell, and the state is kept behind their back."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from satchel.execution.shell_state import SessionState
from satchel.execution.workspace import Workspace
from satchel.ports.execution import Shell

BASH = Shell()
COMMANDS = [
    "trap 'echo bye $?' EXIT; false",
    "trap 'echo bye $?; exit 4' EXIT; exit 3",
    "trap \"echo 'it'\" 0; true",
    "trap 'echo one; echo two' EXIT; set -euo pipefail; false; echo never",
    "trap 'echo first' EXIT; trap 'echo second' EXIT; exit 2",
    "trap 'echo bye' EXIT; trap - EXIT; exit 6",
    "trap '' EXIT; exit 6",
    "(trap 'echo inner' EXIT; exit 3); echo $?",
    "trap 'echo outer' EXIT; x=$(trap 'echo inner' EXIT; echo in); echo \"$x\"",
    "trap 'echo err' ERR; false; echo on",
    "trap 'echo debug >/dev/null' DEBUG; true; exit 1",
    "trap 'echo usr; exit 9' USR1; kill -USR1 $$; sleep 1; echo never",
    "trap 'echo a' NOSUCH 2>/dev/null || echo refused",
    "f() { trap 'echo of f' EXIT; }; f; exit 8",
    "trap 'cd /; export LOST=1' EXIT; exit 0",
    "trap; trap -l >/dev/null; exit 0",
    "set -u; trap 'echo u' EXIT; exit 3",
    'trap "trap - EXIT; echo once" EXIT; exit 3',
    "exit 3; fi",
    "trap 'echo x' EXIT; echo $((1 +",
    "set -a; ALL=1; exit 0",
]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_trap_of_ones_own_runs_as_in_any_shell(workspace: Workspace, command: str) -> None:
    state = SessionState(workspace)
    wrapper = state.write_wrapper(f"mkdir here && cd here && export KEPT=1\n{command}\n", BASH)
    plain = subprocess.run(["/bin/bash", "-c", command], check=False, timeout=30, capture_output=True, text=True)
    done = subprocess.run(
        ["/bin/bash", wrapper.path], cwd=wrapper.cwd, check=False, timeout=30, capture_output=True, text=True
    )
    assert state.keep(wrapper) == []
    shown = [line for line in done.stdout.splitlines(keepends=True) if "__satchel" not in line]
    assert (done.returncode, "".join(shown)) == (plain.returncode, plain.stdout)
    cwd, exports = state.load()
    assert (cwd, exports["KEPT"]) == (f"{workspace.work}/here", "1")
    assert "LOST" not in exports
    assert not [name for name in exports if "satchel" in name]


def test_a_command_cannot_point_the_next_one_elsewhere(workspace: Workspace) -> None:
    state = SessionState(workspace)
    for text in ("export __satchel_at=/nowhere __SATCHEL_AT=1", "mkdir here && cd here && export KEPT=1"):
        wrapper = state.write_wrapper(text, BASH)
        subprocess.run(["/bin/bash", wrapper.path], cwd=wrapper.cwd, check=True, timeout=30)
        notes = state.keep(wrapper)
    assert notes == []
    assert state.load()[0] == f"{workspace.work}/here"


def test_a_job_has_only_its_own_traps(workspace: Workspace) -> None:
    state = SessionState(workspace)
    wrapper = state.write_wrapper("trap 'echo bye' EXIT; exit 3", BASH, keeps_state=False)
    done = subprocess.run(["/bin/bash", wrapper.path], check=False, timeout=30, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (3, "bye\n")
    assert sorted(path.suffix for path in Path(workspace.calls).iterdir()) == [".restore", ".sh"]
