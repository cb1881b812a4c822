"""Runtimes and settings that a session left for the installer, in the sandbox of this machine.

Whatever a session put in place of a program, it never runs where the registry can be reached. Each of these asks the
registry for a page of its own, and would be seen there.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import nullcontext
from pathlib import Path

import pytest

from satchel.errors import SandboxError
from satchel.execution.install_tools import InstallTools, Pip, PythonTools
from satchel.execution.options import ExecutionOptions, InstallOptions
from satchel.execution.shell import CodeSession
from satchel.execution.targets import read_target
from satchel.execution.workbench import Execution
from satchel.execution.workspace import Workspace
from satchel.ports.execution import Executor, Launch, Outcome
from satchel.sandbox.unconfined import UnconfinedExecutor
from tests.execution.registry import Registry
from tests.execution.shells import printed, run
from tests.execution.test_installs import Narrowed, ask, fresh, installer

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the backends of Linux are used")
OPTIONS = ExecutionOptions(code=True, install=InstallOptions(enabled=True))
STOLEN = "/stolen"
needs_npm = pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed")


@pytest.fixture
async def session(confined: Executor, install_host: Mapping[str, str], tmp_path: Path) -> AsyncIterator[CodeSession]:
    bench = await Execution(confined, OPTIONS, host=install_host, base=str(tmp_path)).open("")
    assert bench.code is not None
    yield bench.code
    await bench.aclose()


def asking(registry: Registry) -> str:
    """Python that asks the registry for what nobody else asks for, and says nothing when it cannot."""
    return (
        "import urllib.request as r\n"
        f"try: r.urlopen('{registry.address}{STOLEN}', timeout=5)\n"
        "except (OSError, ValueError): pass\n"
    )


def plant(session: CodeSession, name: str, text: str, *, mode: int = 0o755) -> Path:
    """A file of the session, as one of its programs would leave it."""
    path = Path(session.workspace.work, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    return path


def plant_program(session: CodeSession, registry: Registry, name: str, then: str, *, first: str = "") -> None:
    """One that asks the registry, whenever it is called, and then does ``then``; its arguments are kept."""
    script = plant(session, f".local/{name}-asks.py", asking(registry))
    lines = ("#!/bin/sh", f"{sys.executable} -I {script} >/dev/null 2>&1", first, then)
    plant(session, f".local/bin/{name}", "\n".join(lines) + "\n")


def new_wheel(registry: Registry) -> str:
    name = fresh()
    registry.add_wheel(name, "1.0", {f"{name}.py": "V = 'there'\n"})
    return name


async def test_a_python_of_the_session_reaches_no_registry_and_has_its_packages(
    registry: Registry, session: CodeSession
) -> None:
    plant_program(session, registry, "python", f'exec {sys.executable} "$@"')
    name = new_wheel(registry)
    done = await run(session, f"pip install {name} && python -c 'import {name}; print({name}.V)'")
    assert printed(done).strip() == "there", done.text
    assert STOLEN not in registry.seen


async def test_a_python_whose_library_the_session_chose_reaches_no_registry(
    registry: Registry, session: CodeSession
) -> None:
    """The host's own program, behind a ``pyvenv.cfg`` that takes the standard library from the workspace."""
    library = Path(os.__file__).parent
    place = Path(session.workspace.work, "mine", "lib", library.name)
    place.mkdir(parents=True)  # noqa: ASYNC240 - of a test
    for path in library.iterdir():
        if path.name != "sysconfig.py":
            (place / path.name).symlink_to(path)
    place.joinpath("sysconfig.py").write_text(asking(registry) + library.joinpath("sysconfig.py").read_text())
    plant(session, ".local/pyvenv.cfg", f"home = {session.workspace.work}/mine/bin\n")
    plant(session, "mine/bin/python", "")
    Path(session.workspace.local_bin).mkdir()  # noqa: ASYNC240 - of a test
    Path(session.workspace.local_bin, "python").symlink_to(os.path.realpath(sys.executable))  # noqa: ASYNC240 - of a test
    name = new_wheel(registry)
    done = await run(session, f"pip install {name} && python -c 'import sysconfig, {name}; print(sysconfig.__file__)'")
    assert str(place) in printed(done) or "mine/lib" in printed(done), done.text
    assert STOLEN not in registry.seen


@needs_npm
@pytest.mark.parametrize("name", ["node", "npm"])
async def test_a_node_or_npm_of_the_session_reaches_no_registry(
    registry: Registry, session: CodeSession, name: str
) -> None:
    plant_program(session, registry, name, f'exec {shutil.which(name)} "$@"')
    module = fresh()
    registry.add_module(module, "1.0.0", {"index.js": "module.exports = 'there'\n"})
    done = await run(session, f"npm install {module} && node -e 'console.log(require(\"{module}\"))'")
    assert printed(done).strip() == "there", done.text
    assert STOLEN not in registry.seen


@needs_npm
async def test_a_git_of_the_session_is_not_called_for_a_dependency(registry: Registry, session: CodeSession) -> None:
    plant_program(session, registry, "git", "exit 1")
    module = fresh()
    source = f"git+{registry.address}/{fresh()}.git"
    registry.add_module(module, "1.0.0", {"index.js": ""}, requires={fresh(): source})
    done = await run(session, f"npm install {module}")
    assert not done.ok
    assert STOLEN not in registry.seen


@needs_npm
async def test_settings_that_a_runtime_left_among_the_packages_start_nothing(
    registry: Registry, session: CodeSession
) -> None:
    """A python of the session runs without a network first, and could have prepared what npm reads later."""
    git = plant(session, "git", f"#!/bin/sh\n{sys.executable} -I {session.workspace.work}/asks.py\nexit 1\n")
    plant(session, "asks.py", asking(registry))
    packages = session.workspace.packages
    settings = f"printf 'git={git}\\n' > $place/.npmrc"
    source = f"git+{registry.address}/{fresh()}.git"
    manifest = f'printf \'{{"private": true, "dependencies": {{"x": "{source}"}}}}\' > $place/package.json'
    first = f"for place in {packages} {packages}/node; do {settings}; {manifest}; done 2>/dev/null"
    plant_program(session, registry, "python", f'exec {sys.executable} "$@"', first=first)
    name, module = new_wheel(registry), fresh()
    registry.add_module(module, "1.0.0", {"index.js": ""})
    done = await run(session, f"pip install {name} && npm install {module}")
    assert done.ok, done.text
    assert not Path(packages, "node", ".npmrc").exists()  # noqa: ASYNC240 - of a test
    assert STOLEN not in registry.seen


async def test_what_a_session_exports_and_leaves_at_home_is_not_read_by_an_install(
    registry: Registry, session: CodeSession
) -> None:
    work = session.workspace.work
    for name in ("sitecustomize.py", "usercustomize.py", "sysconfig.py", "pip.py", ".local/lib/sitecustomize.py"):
        plant(session, name, asking(registry))
    plant(session, "evil.js", f"require('child_process').spawnSync({sys.executable!r}, ['-I', '{work}/pip.py'])\n")
    for name in (".npmrc", "node_modules/.npmrc"):
        plant(session, name, f"node-options=--require {work}/evil.js\ngit={work}/evil.js\n")
    for name in ("env", "sh", "keyring", "python3", "ssh"):
        plant_program(session, registry, name, f'exec {shutil.which(name) or "/bin/false"} "$@"')
    exports = (
        f"export PYTHONPATH={work} PYTHONHOME= PYTHONSTARTUP={work}/pip.py PYTHONUSERBASE={work}/.local "
        f"NODE_OPTIONS='--require {work}/evil.js' NODE_PATH={work}/node_modules LD_LIBRARY_PATH={work}"
    )
    await run(session, exports)
    name, module = new_wheel(registry), fresh()
    registry.add_module(module, "1.0.0", {"index.js": ""})
    wanted = f"pip install {name}" + (f" && npm install {module}" if shutil.which("npm") else "")
    done = await run(session, wanted)
    assert done.ok, done.text
    assert STOLEN not in registry.seen


@pytest.mark.parametrize(
    "link", ["ln -s ../../.venv/bin/python", "printf '#!/bin/sh\\nexec ~/.venv/bin/python \"$@\"\\n' >"]
)
async def test_an_environment_that_the_session_made_has_its_packages(
    registry: Registry, session: CodeSession, link: str
) -> None:
    name, needed, newer = new_wheel(registry), new_wheel(registry), fresh()
    registry.add_wheel(newer, "1.0", {f"{newer}.py": ""}, requires=[needed, f"{name}; python_version < '3'"])
    made = f"python -m venv --without-pip .venv && mkdir -p .local/bin && {link} .local/bin/python"
    assert (await run(session, f"{made} && (chmod +x .local/bin/python 2>/dev/null || true)")).ok
    done = await run(session, f"pip install {newer} && python -c 'import {needed}, sys; print(sys.prefix)'")
    assert done.ok, done.text
    assert f"The host installed {newer} (" in done.text
    assert f"{needed}-1.0" in done.text
    assert f"/files/{name}-1.0-py3-none-any.whl" not in registry.seen
    again = await run(session, f"pip install {newer}")
    assert f"{newer} was installed already." in again.text
    left = await run(session, f"pip install '{name}; python_version<\"3\"'")
    assert f"Not installed, by the condition behind its name: {name}" in left.text


async def test_the_answer_of_a_python_goes_into_no_option(registry: Registry, session: CodeSession) -> None:
    elsewhere = "3.11.7\\ncp\\ncp311\\nlinux_x86_64 --index-url=http://evil.example/"
    first = f"case \"$*\" in *sys_tags*) printf '{elsewhere}\\n'; exit;; esac"
    plant_program(session, registry, "python", f'exec {sys.executable} "$@"', first=first)
    name = new_wheel(registry)
    done = await run(session, f"pip install {name}")
    assert not done.ok
    assert "The python in .local/bin does not say which packages it can use" in done.text
    assert registry.seen == []


@pytest.mark.parametrize(
    "answer",
    [
        "", "3.11.7", "3.11.7\ncp\n\nlinux_x86_64\n", "2.7.18\ncp\ncp27\nlinux_x86_64\n", "3.11.7\njy\ncp311\nany\n",
        "3.11.7\ncp\ncp311\nlinux_x86_64\nmore\n", "3.11.7\ncp\n--pre\nlinux_x86_64\n", "3.١١.7\ncp\ncp311\nlinux\n",
        "3.11.7\ncp\ncp311\n" + " ".join(["linux"] * 201), "3.11.7\ncp\ncp311\nLINUX\n", "3.11.7\ncp\ncp311  cp310\nlinux\n",
    ],
)  # fmt: skip
def test_what_is_no_answer_of_a_python_is_none(answer: str) -> None:
    assert read_target(answer) is None


def test_an_answer_becomes_options_of_the_right_form() -> None:
    target = read_target("3.13.0\ncp\ncp313t\nmanylinux_2_36_x86_64 linux_x86_64\n")
    assert target is not None
    assert target.options == (
        "--python-version=3.13.0", "--implementation=cp", "--abi=cp313t",
        "--platform=manylinux_2_36_x86_64", "--platform=linux_x86_64",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("said", "wanted"),
    [("3.9.18\\ncp\\ncp39", "old"), ("3.12.1\\ncp\\ncp312", "new"), ("3.10.14\\npp\\npypy310_pp73", "other")],
)
async def test_dependencies_are_those_of_the_python_that_packages_are_for(
    registry: Registry, workspace: Workspace, tmp_path: Path, said: str, wanted: str
) -> None:
    """Conditions as well, which pip judges by the Python that runs it."""
    top = fresh()
    packages = {word: new_wheel(registry) for word in ("old", "new", "other")}
    conditions = {
        "old": "python_version < '3.10'",
        "new": "python_full_version >= '3.12' and implementation_name == 'cpython'",
        "other": "platform_python_implementation == 'PyPy' and implementation_name == 'pypy'",
    }
    requires = [f"{packages[word]}; {condition}" for word, condition in conditions.items()]
    registry.add_wheel(top, "1.0", {f"{top}.py": ""}, requires=requires)
    answer = f"case \"$*\" in *sys_tags*) printf '{said}\\nlinux_x86_64\\n'; exit;; esac"
    place = Path(workspace.local_bin, "python")
    place.parent.mkdir(parents=True)
    place.write_text(f'#!/bin/sh\n{answer}\nexec {sys.executable} "$@"\n')  # noqa: ASYNC240 - of a test
    place.chmod(0o755)  # noqa: ASYNC240 - of a test
    await ask(installer(Narrowed(tmp_path), registry), f"pip install {top}", workspace)
    fetched = [word for word, name in packages.items() if f"/files/{name}-1.0-py3-none-any.whl" in registry.seen]
    assert fetched == [wanted]


@pytest.mark.parametrize("is_of_session", [False, True])
@pytest.mark.parametrize("command", ["pip install {}", pytest.param("npm install {}", marks=needs_npm)])
async def test_what_a_session_can_write_is_no_part_of_a_launch_with_a_network(
    registry: Registry, workspace: Workspace, tmp_path: Path, command: str, *, is_of_session: bool
) -> None:
    for name in ("python", "npm", "node") if is_of_session else ():
        place = Path(workspace.local_bin, name)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(f'#!/bin/sh\nexec {shutil.which(name)} "$@"\n')  # noqa: ASYNC240 - of a test
        place.chmod(0o755)  # noqa: ASYNC240 - of a test
    executor, name = Narrowed(tmp_path), new_wheel(registry)
    registry.add_module(name, "1.0.0", {"index.js": ""})
    ok, note = await ask(installer(executor, registry), command.format(name), workspace)
    assert ok, note
    reaching = [launch for launch in executor.launches if launch.network.mode != "none"]
    assert len(reaching) == 1
    for launch in reaching:
        told = repr((launch.command, launch.cwd, launch.env, launch.readable, launch.writable))
        assert not [place for place in (workspace.work, workspace.tmp, workspace.state) if place in told]


async def test_a_program_of_the_session_is_refused_where_a_network_could_be(workspace: Workspace) -> None:
    tools = InstallTools(UnconfinedExecutor(), {"PATH": os.environ["PATH"]})
    with pytest.raises(SandboxError, match="not run with a network"):
        await tools.on_host((f"{workspace.local_bin}/python", "-V"), workspace, (), hosts=("a.example",))


@pytest.mark.parametrize("error", [None, SandboxError("launch-failed", "Not now.")])
async def test_an_environment_that_could_not_be_made_is_not_taken_for_one_later(
    workspace: Workspace, error: SandboxError | None
) -> None:
    class Failing(UnconfinedExecutor):
        async def run(self, launch: Launch) -> Outcome:
            assert await asyncio.to_thread(os.path.isdir, launch.command[-1])
            if error:
                raise error
            return Outcome(exit_code=1)

    pip = Pip(python="/host/python", program="/host/pip")
    tools = PythonTools(python=f"{workspace.local_bin}/python", program=pip.program, needs=(), fetcher=pip)
    with pytest.raises(SandboxError) if error else nullcontext():
        assert await InstallTools(Failing(), {}).environment_for(tools, workspace) == ""
    left = await asyncio.to_thread(os.listdir, workspace.packages)
    assert not [name for name in left if name.startswith("env-")]
