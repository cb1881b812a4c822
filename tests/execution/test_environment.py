from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from satchel.execution.environment import (
    find_program,
    host_path,
    is_provider_key,
    launch_paths,
    masked,
    readable_paths,
    secret_values,
    session_environment,
)
from satchel.execution.workspace import Workspace, create_workspace


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return create_workspace(str(tmp_path))


def test_only_an_allow_list_passes(workspace: Workspace) -> None:
    host = {"PATH": "/usr/bin", "LANG": "de_DE.UTF-8", "OPENAI_API_KEY": "x", "LD_PRELOAD": "x", "http_proxy": "x"}
    environment = session_environment(workspace, host)
    assert set(environment) == {
        *("LANG", "PATH", "HOME", "PWD", "TMPDIR", "TEMP", "TMP", "PYTHONPATH", "NODE_PATH"),
        *("PYTHONUNBUFFERED", "PYTHONPYCACHEPREFIX"),
    }
    assert environment["HOME"] == environment["PWD"] == workspace.work
    assert environment["TMPDIR"] == environment["TEMP"] == environment["TMP"] == workspace.tmp


def test_the_session_s_programs_come_before_the_host_s(workspace: Workspace) -> None:
    path = session_environment(workspace, {"PATH": "/usr/bin:/bin"})["PATH"].split(":")
    own = [workspace.packages_bin, workspace.local_bin, workspace.shims]
    assert path[:5] == [*own, "/usr/bin", "/bin"]
    assert Path(sys.executable).parent.resolve() in [Path(entry).resolve() for entry in path[5:]]


def test_relative_entries_and_version_switchers_are_left_out() -> None:
    given = ":bin:.:/home/a/.pyenv/shims:/home/a/.asdf/shims/:/home/a/.volta/bin:/usr/bin"
    assert host_path({"PATH": given})[0] == "/usr/bin"
    assert "/usr/bin" in host_path({})


def test_python_is_the_one_that_runs_us_under_both_names(workspace: Workspace) -> None:
    environment = session_environment(workspace, os.environ)
    for name in ("python", "python3"):
        ended = subprocess.run(
            [name, "-c", "import sys; print(sys.prefix)"],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
            cwd=workspace.work,
        )
        assert Path(ended.stdout.strip()).resolve() == Path(sys.prefix).resolve()
        program, needs = find_program(name, workspace, environment)
        assert Path(program).parent.resolve() == Path(sys.executable).parent.resolve()
        assert needs == ()


def test_a_program_of_the_workspace_wins_and_is_never_followed(workspace: Workspace, tmp_path: Path) -> None:
    (tmp_path / "elsewhere" / "bin").mkdir(parents=True)
    (tmp_path / "elsewhere" / "lib").mkdir()
    target = tmp_path / "elsewhere" / "bin" / "node"
    target.write_text("#!/bin/sh\n")
    target.chmod(0o755)
    local = Path(workspace.local_bin)
    local.mkdir(parents=True)
    (local / "node").symlink_to(target)
    environment = session_environment(workspace, {"PATH": "/usr/bin"})
    assert find_program("node", workspace, environment) == (str(local / "node"), ())
    assert find_program("no-such-program", workspace, environment) == ("", ())


def test_a_program_outside_the_system_brings_where_it_was_installed_to(workspace: Workspace, tmp_path: Path) -> None:
    (tmp_path / "ruby" / "bin").mkdir(parents=True)
    (tmp_path / "ruby" / "lib").mkdir()
    program = tmp_path / "ruby" / "bin" / "ruby"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    environment = session_environment(workspace, {"PATH": str(program.parent)})
    assert find_program("ruby", workspace, environment) == (str(program), (str(tmp_path / "ruby"),))
    (tmp_path / "ruby" / "lib").rmdir()
    assert find_program("ruby", workspace, environment) == (str(program), (str(program),))


def test_a_home_directory_is_never_readable_as_a_whole(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    (home / "bin").mkdir(parents=True)
    (home / "lib").mkdir()
    (home / "bin" / "ruby").write_text("#!/bin/sh\n")
    (home / "bin" / "ruby").chmod(0o755)
    monkeypatch.setenv("HOME", str(home))
    environment = session_environment(workspace, {"PATH": str(home / "bin")})
    assert find_program("ruby", workspace, environment)[1] == ()
    monkeypatch.setattr(sys, "prefix", str(home))
    assert str(home) not in readable_paths()


def test_only_an_install_may_write_packages_and_nothing_is_readable_below_something_writable(
    workspace: Workspace,
) -> None:
    for purpose in ("script", "shell", "check", "probe", "install"):
        readable, writable = launch_paths(workspace, purpose)
        assert (workspace.packages in writable) == (purpose == "install")
        assert (workspace.packages in readable) == (purpose != "install")
        assert workspace.shims in readable
        assert not [path for path in readable for other in writable if path == other or path.startswith(f"{other}/")]


@pytest.mark.parametrize("name", ["OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY", "HF_TOKEN", "SATCHEL_API_KEY"])
def test_provider_keys_are_known_by_name(name: str) -> None:
    assert is_provider_key(name)
    assert not is_provider_key("DEMO_TOKEN")


def test_known_secrets_are_masked_the_longest_first() -> None:
    host = {
        "A_TOKEN": "abcdefgh",
        "B_KEY": "abcdefghij",
        "SHORT_KEY": "abc",
        "MONKEY": "notasecret",
        "DEMO": "granted-1",
    }
    secrets = secret_values(host, also=("DEMO",))
    assert masked("abcdefghij abcdefgh abc notasecret granted-1", secrets) == (
        "[masked] [masked] abc notasecret [masked]"
    )
    assert "granted-1" not in secret_values(host)
