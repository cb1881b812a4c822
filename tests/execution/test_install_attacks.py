"""What packages and programs of a session try with the installer: to run in it, to choose its hosts, to be believed."""

from __future__ import annotations

import json
import os
import shutil
import ssl
import subprocess
import sys
from pathlib import Path

import pytest

from satchel.execution import installs
from satchel.execution.options import InstallOptions
from satchel.execution.workspace import Workspace
from satchel.sandbox.unconfined import UnconfinedExecutor
from tests.backends import not_here
from tests.execution.registry import Registry
from tests.execution.test_installs import Narrowed, ask, fresh, installer, put, shell

needs_npm = pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed")


def program(workspace: Workspace, name: str, text: str) -> None:
    """A runtime that a program of the session left for the installer."""
    put(workspace, f".local/bin/{name}", text)
    Path(workspace.local_bin, name).chmod(0o755)


@pytest.mark.parametrize("place", ["{}.pth", "sitecustomize.py"])
async def test_no_code_of_a_package_runs_in_a_later_install(
    registry: Registry, workspace: Workspace, tmp_path: Path, place: str
) -> None:
    hostile, other, mark = fresh(), fresh(), tmp_path / "ran"
    registry.add_wheel(hostile, "1.0", {place.format(hostile): f"import os; open({str(mark)!r}, 'w')\n"})
    registry.add_wheel(other, "1.0", {f"{other}.py": "V = 5\n"})
    made = installer(UnconfinedExecutor(), registry)
    for name in (hostile, other):
        ok, note = await ask(made, f"pip install {name}", workspace)
        assert ok, note
    assert not os.path.lexists(mark)  # noqa: ASYNC240 - of a test
    assert (await shell(f"python -c 'import {other}; print({other}.V)'", workspace)).output.strip() == "5"


async def test_a_package_with_an_interpreter_of_its_own_replaces_none(
    registry: Registry, workspace: Workspace, tmp_path: Path
) -> None:
    hostile, other, called, mark = fresh(), fresh(), fresh("tool"), tmp_path / "ran"
    body = f"def main():\n    open({str(mark)!r}, 'w')\n"
    names = ("python", "python3", f"python3.{sys.version_info[1]}")
    registry.add_wheel(hostile, "1.0", {f"{hostile}.py": body}, programs=dict.fromkeys(names, f"{hostile}:main"))
    body = "def main():\n    print('called')\n"
    registry.add_wheel(other, "1.0", {f"{other}.py": body}, programs={called: f"{other}:main"})
    made = installer(UnconfinedExecutor(), registry)
    for name in (hostile, other):
        ok, note = await ask(made, f"pip install {name}", workspace)
        assert ok, note
    assert (await shell(called, workspace)).output.strip() == "called"
    assert not os.path.lexists(mark)  # noqa: ASYNC240 - of a test


async def test_a_wheel_that_asks_for_a_source_archive_by_address_builds_nothing(
    registry: Registry, workspace: Workspace, tmp_path: Path
) -> None:
    name, source, mark = fresh(), fresh(), tmp_path / "ran"
    backend = f"open({str(mark)!r}, 'w')\n"
    project = "[build-system]\nrequires = []\nbuild-backend = 'backend'\nbackend-path = ['.']\n"
    registry.add_source(source, "1.0", "", more={"pyproject.toml": project, "backend.py": backend})
    address = f"{registry.address}/files/{source}-1.0.tar.gz"
    registry.add_wheel(name, "1.0", {f"{name}.py": ""}, requires=[f"{source} @ {address}"])
    ok, note = await ask(installer(UnconfinedExecutor(), registry), f"pip install {name}", workspace)
    assert not ok
    assert "the host builds nothing. Use another package." in note
    assert not os.path.lexists(mark)  # noqa: ASYNC240 - of a test


@needs_npm
@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
@pytest.mark.parametrize("dropped", ["", "--allow-git=none"])
async def test_a_repository_among_what_a_module_needs_runs_nothing(
    registry: Registry, workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dropped: str
) -> None:
    """npm prepares it with another npm, which believes the settings in it. ``dropped``: as older versions do."""
    monkeypatch.setattr(installs, "_NPM_INSTALL", tuple(o for o in installs._NPM_INSTALL if o != dropped))
    mark, repository, bare = tmp_path / "ran", tmp_path / "repository", tmp_path / "bare"
    repository.mkdir()
    evil = tmp_path / "evil"
    evil.write_text(f"#!/bin/sh\necho > {mark}\n")
    evil.chmod(0o755)
    (repository / ".npmrc").write_text(f"git={evil}\n")
    needs = {"other": "git+file:///nowhere"}
    manifest = {"name": "needed", "version": "1.0.0", "scripts": {"prepare": "true"}, "devDependencies": needs}
    (repository / "package.json").write_text(json.dumps(manifest))
    git = ("git", "-c", "user.name=x", "-c", "user.email=x@y.invalid")
    for command in (("init", "-q"), ("add", "."), ("commit", "-qm", "x"), ("clone", "-q", "--bare", ".", str(bare))):
        subprocess.run((*git, *command), cwd=repository, check=True)  # noqa: ASYNC221
    subprocess.run((*git, "update-server-info"), cwd=bare, check=True)  # noqa: ASYNC221
    registry.add_tree("/needed.git", bare)
    name = fresh()
    registry.add_module(name, "1.0.0", {"index.js": ""}, requires={"needed": f"git+{registry.address}/needed.git"})
    ok, note = await ask(installer(UnconfinedExecutor(), registry), f"npm install {name}", workspace)
    assert not os.path.lexists(mark)  # noqa: ASYNC240 - of a test
    assert not ok
    assert "it wants something from a repository, and only packages of the registry are installed." in note


@pytest.mark.parametrize("command", ["pip install six", pytest.param("npm install x", marks=needs_npm)])
async def test_no_program_of_the_session_says_which_hosts_are_reached(
    registry: Registry, workspace: Workspace, tmp_path: Path, command: str
) -> None:
    real = shutil.which("python3")
    answers = (
        'case "$*" in *file_storage_domain*|*"config get registry"*) echo evil.example evil2.example; exit;; esac\n'
    )
    program(workspace, "python", f'#!/bin/sh\n{answers}exec {real} "$@"\n')
    program(workspace, "npm", f"#!/bin/sh\n{answers}exit 1\n")
    program(workspace, "node", "#!/bin/sh\necho evil.example\n")
    executor = Narrowed(tmp_path)
    # Nothing is configured, so that the installer's own defaults hold; they are not reached from here.
    made = installer(executor, registry, PIP_INDEX_URL="", NPM_CONFIG_REGISTRY="")
    await ask(made, command, workspace)
    hosts = {host for launch in executor.launches for host in launch.network.hosts}
    assert not [host for host in hosts if "evil" in host]


async def test_the_operators_hosts_hold_where_nothing_is_configured(
    registry: Registry, workspace: Workspace, tmp_path: Path
) -> None:
    executor = Narrowed(tmp_path)
    made = installer(executor, registry, InstallOptions(enabled=True, hosts=("packages.invalid",)), PIP_INDEX_URL="")
    ok, _ = await ask(made, "pip install six", workspace)
    assert not ok
    assert {launch.network.hosts for launch in executor.launches} == {(), ("packages.invalid",)}


@pytest.mark.parametrize("marker", ['python_version<"3"', "(python_version < '3') and os_name=='posix'"])
async def test_what_a_condition_leaves_out_is_not_said_to_be_installed(
    registry: Registry, workspace: Workspace, marker: str
) -> None:
    left_out, other = fresh(), fresh()
    for name in (left_out, other):
        registry.add_wheel(name, "1.0", {f"{name}.py": ""})
    made = installer(UnconfinedExecutor(), registry)
    quoted = f'"{left_out}; {marker}"' if "'" in marker else f"'{left_out}; {marker}'"
    ok, note = await ask(made, f"pip install {quoted}", workspace)
    assert ok
    assert note == f"Not installed, by the condition behind its name: {left_out}; {marker}."
    _, note = await ask(made, f"pip install {quoted} '{other}; python_version>\"3\"'", workspace)
    assert note.startswith(f'The host installed {other}; python_version>"3" ({other}-1.0). Not installed')
    third = fresh()
    registry.add_wheel(third, "1.0", {f"{third}.py": ""})
    quoted = f"\"{third}; python_version>'3'\" \"{third}; python_version<'3'\""
    _, note = await ask(made, f"pip install {quoted}", workspace)
    assert note == (
        f"The host installed {third}; python_version>'3' ({third}-1.0). "
        f"Not installed, by the condition behind its name: {third}; python_version<'3'."
    )


async def test_what_is_there_already_is_not_said_to_be_installed_anew(registry: Registry, workspace: Workspace) -> None:
    name = fresh()
    registry.add_wheel(name, "1.0", {f"{name}.py": ""})
    made = installer(UnconfinedExecutor(), registry)
    assert (await ask(made, f"pip install {name}", workspace))[1] == f"The host installed {name} ({name}-1.0)."
    assert (await ask(made, f"pip install {name}", workspace))[1] == f"{name} was installed already."


@pytest.mark.parametrize(
    ("command", "variables"),
    [
        ("pip install six", {"PIP_INDEX_URL": "file:///srv/simple"}),
        pytest.param("npm install x", {"NPM_CONFIG_REGISTRY": "https://[bad"}, marks=needs_npm),
    ],
)
async def test_a_registry_that_cannot_be_asked_is_not_replaced_by_a_public_one(
    registry: Registry, workspace: Workspace, tmp_path: Path, command: str, variables: dict[str, str]
) -> None:
    executor = Narrowed(tmp_path)
    ok, note = await ask(installer(executor, registry, None, **variables), command, workspace)
    assert not ok
    assert "with a registry that is no http address" in note
    assert {launch.network.mode for launch in executor.launches} <= {"none"}


async def test_without_an_index_wheels_come_from_folders_alone(
    registry: Registry, workspace: Workspace, tmp_path: Path
) -> None:
    name, online = fresh(), fresh()
    registry.add_wheel(name, "1.0", {f"{name}.py": ""})
    registry.add_wheel(online, "1.0", {f"{online}.py": ""})
    body, _ = registry.answer(f"/files/{name}-1.0-py3-none-any.whl")
    assert body is not None
    (tmp_path / f"{name}-1.0-py3-none-any.whl").write_bytes(body)
    executor = Narrowed(tmp_path)
    made = installer(executor, registry, PIP_NO_INDEX="1", PIP_FIND_LINKS=str(tmp_path))
    ok, note = await ask(made, f"pip install {name}", workspace)
    assert ok, note
    assert not (await ask(made, f"pip install {online}", workspace))[0]
    assert (registry.seen, {launch.network.mode for launch in executor.launches}) == ([], {"none"})


@needs_npm
async def test_the_certificates_of_npms_own_setting_are_shown_to_npm(
    registry: Registry, workspace: Workspace, tmp_path: Path
) -> None:
    own = Path(ssl.get_default_verify_paths().cafile or "/nowhere")
    if not own.is_file():  # noqa: ASYNC240 - of a test
        not_here("this host has no bundle", may_be_missing=True)
    executor = Narrowed(tmp_path)
    await ask(installer(executor, registry, npm_config_cafile=str(own)), "npm install x", workspace)
    assert executor.launches[-1].env["NODE_EXTRA_CA_CERTS"].startswith(f"{workspace.root}/certificates/")


async def test_an_explanation_names_no_path_of_the_host(registry: Registry, workspace: Workspace) -> None:
    name = fresh()
    registry.add_wheel(name, "1.0", {f"{name}.py": "", "../../../../escaped": "x"})
    ok, note = await ask(installer(UnconfinedExecutor(), registry), f"pip install {name}", workspace)
    assert not ok
    assert "has a file" in note or "../packages/" in note
    assert workspace.root not in note
