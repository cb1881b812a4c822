"""Installs by the real pip and npm from a registry on the loopback."""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from satchel.execution.environment import session_environment
from satchel.execution.installs import Installer
from satchel.execution.options import ExecutionOptions, InstallOptions
from satchel.execution.requests import plan_command
from satchel.execution.scripts import ScriptPackages, ScriptRequest, ScriptRunner
from satchel.execution.workspace import Workspace
from satchel.ports.execution import Confinement, Executor, Job, Launch, Outcome, Shell
from satchel.sandbox.egress import EgressProxy, relay_command
from satchel.sandbox.unconfined import UnconfinedExecutor
from tests.execution.registry import Registry

needs_npm = pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed")


class Narrowed:
    """Runs programs as they are, and those of an install through the proxy that a sandbox gives them."""

    shell = Shell()
    can_run = True
    unavailable_reason = ""
    confinement = Confinement(backend="test", hosts=True)

    def __init__(self, base: Path) -> None:
        self._inner = UnconfinedExecutor()
        self._base = base
        self.launches: list[Launch] = []

    async def start(self, launch: Launch) -> Job:
        return await self._inner.start(launch)

    async def run(self, launch: Launch) -> Outcome:
        self.launches.append(launch)
        if launch.network.mode != "hosts":
            return await self._inner.run(launch)
        path = str(self._base / f"{secrets.token_hex(4)}.sock")
        async with EgressProxy(path, launch.network.hosts):
            assert isinstance(launch.command, tuple)
            return await self._inner.run(replace(launch, command=relay_command(path, launch.command)))


class Recorded(UnconfinedExecutor):
    """Remembers what was started."""

    def __init__(self) -> None:
        super().__init__()
        self.launches: list[Launch] = []

    async def run(self, launch: Launch) -> Outcome:
        self.launches.append(launch)
        return await super().run(launch)


def host(registry: Registry, **more: str) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": "/nowhere", **registry.configured, **more}


def installer(executor: Executor, registry: Registry, options: InstallOptions | None = None, **more: str) -> Installer:
    allowed = ExecutionOptions(code=True, install=options or InstallOptions(enabled=True))
    return Installer(executor, allowed, host(registry, **more))


async def ask(made: Installer, command: str, workspace: Workspace) -> tuple[bool, str]:
    options = ExecutionOptions(code=True, install=InstallOptions(enabled=True))
    plan = plan_command(command, options=options, read_file=lambda _: None)
    assert plan.requests, plan.refusal
    result = await made.perform(plan, workspace, deadline_s=100)
    return result.ok, result.note


async def shell(command: str, workspace: Workspace, deadline_s: float = 60) -> Outcome:
    environment = await asyncio.to_thread(session_environment, workspace, {"PATH": os.environ["PATH"]})
    launch = Launch(
        command=("bash", "-c", command), purpose="shell", cwd=workspace.work, env=environment, deadline_s=deadline_s
    )
    return await UnconfinedExecutor().run(launch)


def put(workspace: Workspace, place: str, text: str) -> None:
    path = Path(workspace.work, place)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def compiled(workspace: Workspace, module: str) -> list[Path]:
    return list(Path(workspace.root).rglob(f"{module}.*.pyc"))


def fresh(prefix: str = "pkg") -> str:
    return f"{prefix}{secrets.token_hex(5)}"


async def test_what_was_installed_is_imported_by_the_next_command(registry: Registry, workspace: Workspace) -> None:
    name, needed, value = fresh(), fresh(), secrets.token_hex(8)
    registry.add_wheel(needed, "1.0", {f"{needed}.py": f"VALUE = {value!r}\n"})
    registry.add_wheel(name, "2.1", {f"{name}.py": f"from {needed} import VALUE\n"}, requires=[needed])

    ok, note = await ask(installer(UnconfinedExecutor(), registry), f"pip -q install {name}", workspace)

    assert ok, note
    assert f"{name}-2.1" in note
    assert compiled(workspace, name) == []
    outcome = await shell(f"python -c 'import {name}; print({name}.VALUE)'", workspace)
    assert outcome.output.strip() == value
    assert len(compiled(workspace, name)) == 1


@pytest.mark.parametrize("is_of_session", [False, True])
async def test_a_later_install_replaces_a_version_and_keeps_the_others(
    registry: Registry, workspace: Workspace, *, is_of_session: bool
) -> None:
    if is_of_session:
        put(workspace, ".local/bin/python", f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
        Path(workspace.local_bin, "python").chmod(0o755)  # noqa: ASYNC240 - of a test
    first, other, needing = fresh(), fresh(), fresh()
    registry.add_wheel(needing, "1.0", {f"{needing}.py": ""}, requires=[f"{first}<3", other])
    for version in ("1.0", "2.0"):
        registry.add_wheel(first, version, {f"{first}.py": f"V = {version!r}\n"})
    registry.add_wheel(other, "1.0", {f"{other}.py": "V = 'other'\n"})
    made = installer(UnconfinedExecutor(), registry)

    for command in (f"pip install {first}==1.0", f"pip install {other}", f"pip install '{first}>=2'"):
        ok, note = await ask(made, command, workspace)
        assert ok, note

    for version, name in (("3.0", first), ("2.5", first), ("2.0", other)):
        registry.add_wheel(name, version, {f"{name}.py": f"V = {version!r}\n"})
    ok, note = await ask(made, f"pip install {needing}", workspace)
    assert ok, note
    # What is there and fits is left as it is.
    outcome = await shell(f"python -c 'import {first}, {other}; print({first}.V, {other}.V)'", workspace)
    assert outcome.output.split() == ["2.0", "other"]


async def test_two_packages_of_one_namespace_live_together(registry: Registry, workspace: Workspace) -> None:
    space, one, two = fresh("ns"), fresh(), fresh()
    for name in (one, two):
        registry.add_wheel(name, "1.0", {f"{space}/{name}.py": "X = 1\n"})
    made = installer(UnconfinedExecutor(), registry)
    for name in (one, two):
        ok, note = await ask(made, f"pip install {name}", workspace)
        assert ok, note
    outcome = await shell(f"python -c 'import {space}.{one}, {space}.{two}; print(1)'", workspace)
    assert outcome.exit_code == 0, outcome.output


async def test_programs_of_packages_are_on_the_path_and_never_replace_an_interpreter(
    registry: Registry, workspace: Workspace
) -> None:
    name, program = fresh(), fresh("tool")
    body = "def main():\n    print('called')\n"
    registry.add_wheel(
        name,
        "1.0",
        {f"{name}.py": body},
        programs={program: f"{name}:main", "bash": f"{name}:main", "node": f"{name}:main"},
    )
    ok, note = await ask(installer(UnconfinedExecutor(), registry), f"pip install {name}", workspace)
    assert ok, note
    outcome = await shell(program, workspace)
    assert outcome.output.strip() == "called"
    assert (await shell(f"ls {workspace.packages_bin}", workspace)).output.split() == [program]


async def test_nothing_is_built_from_source(registry: Registry, workspace: Workspace, tmp_path: Path) -> None:
    name, mark = fresh(), tmp_path / "ran"
    registry.add_source(name, "1.0", f"open({str(mark)!r}, 'w')\n")
    ok, note = await ask(installer(UnconfinedExecutor(), registry), f"pip install {name}", workspace)
    assert not ok
    assert "no wheel of" in note
    assert "Check the name, or use another package." in note
    assert note.endswith("Nothing of this command ran.")
    assert not mark.exists()


async def test_a_version_that_is_not_there_is_answered_with_those_that_are(
    registry: Registry, workspace: Workspace
) -> None:
    name = fresh()
    for version in ("1.0", "1.5"):
        registry.add_wheel(name, version, {f"{name}.py": ""})
    ok, note = await ask(installer(UnconfinedExecutor(), registry), f"pip install {name}==9", workspace)
    assert not ok
    assert "there are 1.0, 1.5. Ask for one of these." in note


async def test_the_first_failure_ends_the_line(registry: Registry, workspace: Workspace) -> None:
    there, absent, later = fresh(), fresh(), fresh()
    for name in (there, later):
        registry.add_wheel(name, "1.0", {f"{name}.py": ""})
    command = f"pip install {there} && pip install {absent} && pip install {later}"
    ok, note = await ask(installer(UnconfinedExecutor(), registry), command, workspace)
    assert not ok
    assert absent in note
    assert not any(later in path for path in registry.seen)


async def test_files_in_the_workspace_configure_no_installer(registry: Registry, workspace: Workspace) -> None:
    name = fresh()
    registry.add_wheel(name, "1.0", {f"{name}.py": ""})
    elsewhere = "[global]\nindex-url = http://127.0.0.1:9/simple\n"
    for place in (".config/pip/pip.conf", ".pip/pip.conf", "pip.conf"):
        put(workspace, place, elsewhere)
    put(workspace, "sitecustomize.py", "raise SystemExit(9)\n")
    ok, note = await ask(installer(UnconfinedExecutor(), registry), f"pip install {name}", workspace)
    assert ok, note


@pytest.mark.parametrize("is_public", [False, True])
async def test_the_operator_decides_whether_private_networks_are_reached(
    registry: Registry, workspace: Workspace, tmp_path: Path, is_public: bool
) -> None:
    name = fresh()
    registry.add_wheel(name, "1.0", {f"{name}.py": ""})
    executor = Narrowed(tmp_path)
    options = InstallOptions(enabled=True, public_only=is_public)
    ok, note = await ask(installer(executor, registry, options), f"pip install {name}", workspace)
    assert ok, note
    reaching = [launch.network.is_public for launch in executor.launches if launch.network.mode == "hosts"]
    assert reaching
    assert set(reaching) == {is_public}


async def test_an_install_reaches_only_its_hosts(registry: Registry, workspace: Workspace, tmp_path: Path) -> None:
    name = fresh()
    registry.add_wheel(name, "1.0", {f"{name}.py": ""})
    executor = Narrowed(tmp_path)
    made = installer(executor, registry, InstallOptions(enabled=True, hosts=("elsewhere.example",)))
    ok, note = await ask(made, f"pip install {name}", workspace)
    assert not ok
    assert "127.0.0.1 may not be reached from here (allowed: elsewhere.example)" in note
    assert registry.seen == []

    ok, note = await ask(installer(executor, registry), f"pip install {name}", workspace)
    assert ok, note
    install = next(launch for launch in reversed(executor.launches) if "install" in launch.command)
    assert install.network.hosts == (registry.address,)
    assert install.writable == (workspace.packages,)


async def test_no_secret_of_the_host_goes_into_an_install(
    registry: Registry, workspace: Workspace, tmp_path: Path
) -> None:
    name = fresh()
    registry.add_wheel(name, "1.0", {f"{name}.py": ""})
    executor = Narrowed(tmp_path)
    address = registry.address.replace("http://", "http://user:hunter2hunter2@")
    made = installer(executor, registry, PIP_INDEX_URL=f"{address}/simple/", AWS_SECRET_ACCESS_KEY="hunter2hunter2")
    ok, note = await ask(made, f"pip install {name}", workspace)
    assert ok, note
    assert "hunter2" not in repr(executor.launches)


async def test_packages_outside_the_list_are_not_installed_however_they_are_asked_for(
    registry: Registry, workspace: Workspace
) -> None:
    allowed, other = fresh(), fresh()
    registry.add_wheel(allowed, "1.0", {f"{allowed}.py": ""})
    registry.add_wheel(other, "1.0", {f"{other}.py": ""})
    made = installer(UnconfinedExecutor(), registry, InstallOptions(enabled=True, packages=(allowed.upper(),)))
    ok, note = await ask(made, f"pip install {other}", workspace)
    assert not ok
    assert f"{other} is not among the packages that may be installed here" in note
    assert await made.provide([other], workspace) == (note.removesuffix(" Nothing of this command ran."),)
    assert registry.seen == []
    ok, note = await ask(made, f"pip install {allowed}", workspace)
    assert ok, note


async def test_a_script_gets_what_is_on_the_list_and_is_told_what_is_not(
    registry: Registry, workspace: Workspace, tmp_path: Path
) -> None:
    allowed, also, other, third = (fresh() for _ in range(4))
    for name in (allowed, also, other, third):
        registry.add_wheel(name, "1.0", {f"{name}.py": ""})
    skill = tmp_path / "skill"
    skill.mkdir()
    (skill / "requirements.txt").write_text(f"{allowed}==1.0\n{third}\n")
    (skill / "run.py").write_text(
        f"# /// script\n# dependencies = ['{other}>=1', '{also}']\n# ///\nimport {allowed}, {also}\nprint('ran')\n"
    )
    install = InstallOptions(enabled=True, packages=(allowed, also))
    options = ExecutionOptions(scripts=True, sandbox="off", install=install)
    packages: ScriptPackages = installer(UnconfinedExecutor(), registry, install)
    runner = ScriptRunner(UnconfinedExecutor(), options, workspace=workspace, packages=packages, host=host(registry))

    ran = await runner.run(ScriptRequest(skill="s", directory=str(skill), path="run.py"))

    assert ran.ok, ran.text
    assert (
        f"{other}, {third} are not among the packages that may be installed here. Allowed: {allowed}, {also}."
        in ran.text
    )
    assert f"The host installed {also}, {allowed}==1.0 (" in ran.text
    assert not [path for path in registry.seen if other in path or third in path]


async def test_what_a_skill_names_is_installed_and_what_is_no_package_is_told(
    registry: Registry, workspace: Workspace
) -> None:
    name = fresh()
    registry.add_wheel(name, "1.0", {f"{name}.py": ""})
    notes = await installer(UnconfinedExecutor(), registry).provide([f"{name}>=1", "../x"], workspace)
    assert "is a path or a repository" in notes[0]
    assert notes[1].startswith(f"The host installed {name}>=1")


async def test_a_missing_import_is_installed_and_the_same_call_runs_again(
    registry: Registry, workspace: Workspace
) -> None:
    name, value = fresh(), secrets.token_hex(8)
    registry.add_wheel(name, "1.0", {f"{name}.py": f"VALUE = {value!r}\n"})
    made = installer(UnconfinedExecutor(), registry)
    outcome, notes = await made.run(
        lambda left: shell(f"python -c 'import {name}; print({name}.VALUE)'", workspace, left), workspace, deadline_s=90
    )
    assert (outcome.exit_code, outcome.output.strip()) == (0, value)
    assert notes == (f"{name} was missing: the host installed it and ran this again.",)


async def test_a_missing_import_that_is_a_file_of_the_workspace_is_not_looked_for_in_a_registry(
    registry: Registry, workspace: Workspace
) -> None:
    name = fresh()
    registry.add_wheel(name, "1.0", {f"{name}.py": "raise SystemExit('the wrong one')\n"})
    put(workspace, f"inner/{name}.py", "")
    made = installer(UnconfinedExecutor(), registry)
    outcome, notes = await made.run(
        lambda left: shell(f"python -c 'import {name}'", workspace, left), workspace, deadline_s=90
    )
    assert outcome.exit_code == 1
    assert notes == ()
    assert registry.seen == []


@needs_npm
async def test_modules_of_npm_are_found_by_both_kinds_of_programs(registry: Registry, workspace: Workspace) -> None:
    name, program, value = f"@scope/{fresh()}", fresh("tool"), secrets.token_hex(8)
    files = {"index.js": f"module.exports = {value!r}\n", "cli.js": "#!/usr/bin/env node\nconsole.log('called')\n"}
    registry.add_module(name, "1.2.3", files, programs={program: "cli.js"})
    ok, note = await ask(installer(UnconfinedExecutor(), registry), f"npm --silent install {name}@1.2.3", workspace)
    assert ok, note
    required = await shell(f"node -e 'console.log(require(\"{name}\"))'", workspace)
    assert required.output.strip() == value
    imported = await shell(f"node --input-type=module -e 'import x from \"{name}\"; console.log(x)'", workspace)
    assert imported.output.strip() == value
    for command in (program, f"node_modules/.bin/{program}"):
        assert (await shell(command, workspace)).output.strip() == "called"


@needs_npm
async def test_scripts_of_npm_packages_do_not_run(registry: Registry, workspace: Workspace, tmp_path: Path) -> None:
    name, mark = fresh(), tmp_path / "ran"
    registry.add_module(
        name, "1.0.0", {"index.js": ""}, scripts={"postinstall": f"touch {mark}", "install": f"touch {mark}"}
    )
    ok, note = await ask(installer(UnconfinedExecutor(), registry), f"npm i {name}", workspace)
    assert ok, note
    assert not mark.exists()


@needs_npm
async def test_a_module_that_is_not_there_is_told(registry: Registry, workspace: Workspace) -> None:
    ok, note = await ask(installer(UnconfinedExecutor(), registry), f"npm i {fresh()}", workspace)
    assert not ok
    assert "the registry has no such package or version. Check the name, or leave the version out." in note


@needs_npm
async def test_an_npm_install_reaches_only_its_hosts(registry: Registry, workspace: Workspace, tmp_path: Path) -> None:
    name = fresh()
    registry.add_module(name, "1.0.0", {"index.js": ""})
    executor = Narrowed(tmp_path)
    ok, note = await ask(installer(executor, registry), f"npm i {name}", workspace)
    assert ok, note
    made = installer(executor, registry, InstallOptions(enabled=True, hosts=("elsewhere.example",)))
    ok, note = await ask(made, f"npm i {name}@1.0.0", workspace)
    assert not ok
    assert "127.0.0.1 may not be reached from here (allowed: elsewhere.example)" in note


async def test_off_means_that_nothing_is_started(registry: Registry, workspace: Workspace, tmp_path: Path) -> None:
    executor = Narrowed(tmp_path)
    made = installer(executor, registry, InstallOptions())
    ok, note = await ask(made, "pip install six", workspace)
    assert not ok
    assert note.startswith("Installing packages is not enabled here.")
    assert executor.launches == []


async def test_without_time_nothing_is_started(registry: Registry, workspace: Workspace, tmp_path: Path) -> None:
    executor = Narrowed(tmp_path)
    options = ExecutionOptions(code=True, install=InstallOptions(enabled=True))
    plan = plan_command("pip install six", options=options, read_file=lambda _: None)
    result = await installer(executor, registry).perform(plan, workspace, deadline_s=0)
    assert not result.ok
    assert "ask for them in a call of their own" in result.note
    assert executor.launches == []


@pytest.mark.parametrize("place", ["bin", "node"])
async def test_the_host_follows_no_link_that_an_install_left(
    registry: Registry, workspace: Workspace, tmp_path: Path, place: str
) -> None:
    """A runtime that a model unpacked into the session runs as the installer, and may write where packages lie."""
    outside = tmp_path / "outside"
    outside.mkdir()
    name = fresh()
    registry.add_wheel(name, "1.0", {f"{name}.py": "def main(): ...\n"}, programs={fresh("tool"): f"{name}:main"})
    target = Path(workspace.packages, place)
    fake = f'#!/bin/sh\n[ -L {target} ] || {{ rmdir {target}; ln -s {outside} {target}; }}\nexec "{shutil.which("python3")}" "$@"\n'
    put(workspace, ".local/bin/python", fake)
    Path(workspace.local_bin, "python").chmod(0o755)  # noqa: ASYNC240 - of a test
    ok, note = await ask(installer(UnconfinedExecutor(), registry), f"pip install {name}", workspace)
    if place == "bin":
        assert not ok
        assert "could not be prepared" in note
    elif shutil.which("npm"):
        ok, note = await ask(installer(UnconfinedExecutor(), registry), f"npm i {fresh()}", workspace)
        assert not ok
    assert (await shell(f"ls -A {outside}", workspace)).output == ""


async def test_a_python_of_the_session_is_the_one_that_packages_are_installed_for(
    registry: Registry, workspace: Workspace
) -> None:
    name = fresh()
    registry.add_wheel(name, "1.0", {f"{name}.py": "import os; WHO = os.environ.get('MINE')\n"})
    put(workspace, ".local/bin/python", f'#!/bin/sh\nMINE=yes exec "{Path(sys.executable)}" "$@"\n')
    Path(workspace.local_bin, "python").chmod(0o755)  # noqa: ASYNC240 - of a test
    executor = Recorded()
    ok, note = await ask(installer(executor, registry), f"pip install {name}", workspace)
    assert ok, note
    own = os.path.join(workspace.local_bin, "python")  # noqa: PTH118
    offline = [launch for launch in executor.launches if launch.network.mode == "none"]
    assert own in {launch.command[0] for launch in offline if "install" in launch.command}
    assert own not in {launch.command[0] for launch in executor.launches if launch.network.mode != "none"}
    outcome = await shell(f"python -c 'import {name}; print({name}.WHO)'", workspace)
    assert outcome.output.strip() == "yes"


async def test_a_script_gets_what_its_header_names_and_what_its_imports_miss(
    registry: Registry, workspace: Workspace, tmp_path: Path
) -> None:
    declared, missing = fresh(), fresh()
    registry.add_wheel(declared, "1.0", {f"{declared}.py": "A = 40\n"})
    registry.add_wheel(missing, "1.0", {f"{missing}.py": "B = 2\n"})
    script = (
        f"# /// script\n# dependencies = ['{declared}']\n# ///\n"
        f"import {declared}, {missing}\nprint({declared}.A + {missing}.B)\n"
    )
    skill = tmp_path / "skill"
    skill.mkdir()
    (skill / "sum.py").write_text(script)
    options = ExecutionOptions(scripts=True, sandbox="off", install=InstallOptions(enabled=True))
    packages: ScriptPackages = installer(UnconfinedExecutor(), registry)
    runner = ScriptRunner(UnconfinedExecutor(), options, workspace=workspace, packages=packages, host=host(registry))

    ran = await runner.run(ScriptRequest(skill="s", directory=str(skill), path="sum.py"))

    assert ran.ok, ran.text
    assert "\n42" in ran.text
    assert f"The host installed {declared}" in ran.text
    assert f"{missing} was missing: the host installed it and ran this again." in ran.text


async def test_an_install_that_hangs_ends_with_its_time(registry: Registry, workspace: Workspace) -> None:
    put(workspace, ".local/bin/python", "#!/bin/sh\nsleep 60\n")
    Path(workspace.local_bin, "python").chmod(0o755)  # noqa: ASYNC240 - of a test
    options = ExecutionOptions(code=True, install=InstallOptions(enabled=True))
    plan = plan_command("pip install six", options=options, read_file=lambda _: None)
    result = await installer(UnconfinedExecutor(), registry).perform(plan, workspace, deadline_s=0.3)
    assert not result.ok
    assert "Installing six took longer than 0 s. Ask for fewer or smaller packages." in result.note


class Held(Recorded):
    """A backend that shuts the network off for programs, and cannot leave named hosts open."""

    @property
    def confinement(self) -> Confinement:
        return Confinement(backend="halfway", network=True)


@pytest.mark.parametrize(
    "options",
    [
        ExecutionOptions(code=True),
        ExecutionOptions(code=True, scripts=True, scripts_network=True),
        ExecutionOptions(scripts=True, code_network=True),
    ],
    ids=["code", "code beside scripts with a network", "scripts"],
)
async def test_an_install_that_cannot_be_held_to_its_hosts_is_refused_with_the_way_out(
    registry: Registry, workspace: Workspace, options: ExecutionOptions
) -> None:
    name = fresh()
    registry.add_wheel(name, "1.0", {f"{name}.py": ""})
    executor = Held()
    made = Installer(executor, replace(options, install=InstallOptions(enabled=True)), host(registry))

    ok, note = await ask(made, f"pip install {name}", workspace)

    assert not ok
    assert "halfway cannot hold an install to the hosts of its registry" in note
    assert "The operator can let programs reach the network" in note
    assert note.endswith("Nothing of this command ran.")
    assert await made.provide([name], workspace) == (note.removesuffix(" Nothing of this command ran."),)
    assert executor.launches == []


@pytest.mark.parametrize(
    "options",
    [ExecutionOptions(code=True, code_network=True), ExecutionOptions(scripts=True, scripts_network=True)],
    ids=["code", "scripts"],
)
async def test_an_install_may_reach_what_the_programs_that_it_is_for_reach(
    registry: Registry, workspace: Workspace, options: ExecutionOptions
) -> None:
    name = fresh()
    registry.add_wheel(name, "1.0", {f"{name}.py": ""})
    executor = Held()
    made = Installer(executor, replace(options, install=InstallOptions(enabled=True)), host(registry))
    ok, note = await ask(made, f"pip install {name}", workspace)
    assert ok, note
    assert {launch.network.mode for launch in executor.launches if launch.purpose == "install"} == {"none", "open"}
