"""How the setup gets bubblewrap: on a host of programs that are made up, since a real one is changed by it."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from scripts.setup import look_for_bubblewrap

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap is for Linux")
INSTALL = "apt-get install --yes --no-install-recommends bubblewrap (noninteractive)"
UPDATE = "apt-get update (noninteractive)"


class Machine:
    """Programs are scripts that write down how they were called; ``fails`` is how often the installer does."""

    def __init__(self, base: Path) -> None:
        self.programs, self.log = base / "bin", base / "log"
        self.programs.mkdir()
        for name in ("sh", "env", "cat", "expr", "true"):
            (self.programs / name).symlink_to(shutil.which(name) or "")

    def has(self, name: str, script: str = "") -> None:
        path = self.programs / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def has_apt(self, *, fails: int = 0) -> None:
        left = self.log.with_name("left")
        left.write_text(str(fails))
        says = f'echo "apt-get $* ($DEBIAN_FRONTEND)" >>{self.log}'
        self.has("apt-get", f'{says}\n[ "$1" = update ] && exit 0\nn=$(cat {left}); expr $n - 1 >{left}; [ $n -lt 1 ]')

    def has_sudo(self, *, asks: bool) -> None:
        self.has("sudo", f'echo "sudo $1" >>{self.log}\n{"exit 1" if asks else ""}\nshift; exec "$@"')

    @property
    def calls(self) -> list[str]:
        return self.log.read_text().splitlines() if self.log.exists() else []


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine(tmp_path)
    monkeypatch.setenv("PATH", str(made.programs))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    return made


def said(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return capsys.readouterr().err.splitlines()


def test_what_is_there_is_not_installed(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    machine.has_apt()
    machine.has("bwrap")
    look_for_bubblewrap()
    assert (machine.calls, said(capsys)) == ([], [])


@pytest.mark.parametrize(("fails", "calls"), [(0, [INSTALL]), (1, [INSTALL, UPDATE, INSTALL])])
def test_root_installs_it_with_the_lists_of_the_host_or_new_ones(
    machine: Machine, capsys: pytest.CaptureFixture[str], fails: int, calls: list[str]
) -> None:
    machine.has_apt(fails=fails)
    look_for_bubblewrap()
    assert (machine.calls, said(capsys)) == (calls, ["setup: bubblewrap, by apt-get"])


def test_an_install_that_fails_is_said_and_stops_nothing(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    machine.has_apt(fails=9)
    look_for_bubblewrap()
    assert machine.calls == [INSTALL, UPDATE, INSTALL]
    lines = said(capsys)
    assert lines[:2] == ["setup: bubblewrap, by apt-get", "setup: apt-get could not install it"]
    assert "is missing" in lines[2]
    assert "To install it: " in lines[3]


@pytest.mark.parametrize("sudo", ["none", "asks"])
def test_nobody_is_asked_for_a_password(
    machine: Machine, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, sudo: str
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    machine.has_apt()
    if sudo == "asks":
        machine.has_sudo(asks=True)
    look_for_bubblewrap()
    assert not [call for call in machine.calls if call.startswith("apt-get")]
    assert "is missing" in said(capsys)[0]


def test_who_need_not_be_asked_installs_it(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    machine.has_apt()
    machine.has_sudo(asks=False)
    look_for_bubblewrap()
    assert machine.calls == ["sudo -n", "sudo -n", INSTALL]


def test_a_host_without_apt_is_told_what_to_install(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    look_for_bubblewrap()
    assert (machine.calls, len(said(capsys))) == ([], 2)
