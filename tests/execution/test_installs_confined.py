"""Installs in the sandbox of this machine: pip and npm run without a network of their own, through the host's proxy."""

from __future__ import annotations

import secrets
import shutil
import sys
import threading
import time
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from satchel.execution.options import ExecutionOptions, InstallOptions
from satchel.execution.scripts import ScriptRequest
from satchel.execution.shell import CodeSession
from satchel.execution.workbench import Execution
from satchel.ports.execution import Executor
from tests.execution.registry import Registry
from tests.execution.shells import printed, run

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the backends of Linux are used")
ALLOWED = InstallOptions(enabled=True)


@pytest.fixture
async def session(confined: Executor, install_host: Mapping[str, str], tmp_path: Path) -> AsyncIterator[CodeSession]:
    async with opened(confined, install_host, tmp_path) as made:
        yield made


@asynccontextmanager
async def opened(
    executor: Executor, host: Mapping[str, str], base: Path, install: InstallOptions = ALLOWED
) -> AsyncGenerator[CodeSession]:
    options = ExecutionOptions(code=True, install=install)
    bench = await Execution(executor, options, host=host, base=str(base)).open("")
    assert bench.code is not None
    yield bench.code
    await bench.aclose()


def word() -> str:
    return f"w{secrets.token_hex(5)}"


async def test_pip_installs_what_is_named_and_what_it_needs(registry: Registry, session: CodeSession) -> None:
    name, needed, value = word(), word(), word()
    registry.add_wheel(needed, "1.0", {f"{needed}.py": f"VALUE = {value!r}\n"})
    registry.add_wheel(name, "2.1", {f"{name}.py": f"from {needed} import VALUE\n"}, requires=[needed])
    done = await run(session, f"pip install {name} 2>&1 && python -c 'import {name}; print({name}.VALUE)'")
    assert printed(done).strip() == value, done.text


async def test_a_missing_import_is_installed_within_the_call(registry: Registry, session: CodeSession) -> None:
    name, value = word(), word()
    registry.add_wheel(name, "1.0", {f"{name}.py": f"VALUE = {value!r}\n"})
    done = await run(session, f"python -c 'import {name}; print({name}.VALUE)'")
    assert printed(done).strip() == value, done.text
    assert f"{name} was missing: the host installed it and ran this again." in done.text


def wheels(registry: Registry, count: int) -> list[str]:
    """Packages that say when they are imported."""
    names = [word() for _ in range(count)]
    for name in names:
        registry.add_wheel(name, "1.0", {f"{name}.py": f"print('has', {name!r})\n"})
    return names


def fetched(registry: Registry, names: list[str]) -> list[str]:
    return [name for name in names if f"/files/{name}-1.0-py3-none-any.whl" in registry.seen]


async def timed(session: CodeSession, name: str) -> float:
    """Seconds that are enough here for one recovery; the place of packages is made meanwhile."""
    began = time.monotonic()
    done = await run(session, f"python -c 'import {name}'")
    assert done.ok, done.text
    return 3 + 4 * (time.monotonic() - began)


@pytest.mark.parametrize("kind", ["command", "script"])
async def test_five_missing_imports_are_installed_and_the_sixth_is_named(
    registry: Registry, confined: Executor, install_host: Mapping[str, str], tmp_path: Path, kind: str
) -> None:
    names = wheels(registry, 6)
    source = "".join(f"import {name}\n" for name in names) + "print('all of it')\n"
    options = ExecutionOptions(code=True, scripts=True, install=ALLOWED)
    bench = await Execution(confined, options, host=install_host, base=str(tmp_path)).open("")
    assert bench.code is not None
    assert bench.scripts is not None
    if kind == "script":
        skill = tmp_path / "skill"
        skill.mkdir()
        (skill / "six.py").write_text(source)
        done = await bench.scripts.run(ScriptRequest(skill="s", directory=str(skill), path="six.py"))
    else:
        done = await run(bench.code, f"python - <<'END'\n{source}END")
    await bench.aclose()
    text, outcome = done.text, done.outcome
    assert not done.ok
    assert outcome is not None
    assert outcome.exit_code == 1
    assert [name for name in names if f"{name} was missing: the host installed it" in text] == names[:5], text
    assert (
        f"5 missing packages were installed in this call and {names[5]} is missing, too: "
        f"install it with `pip install {names[5]}` and run again."
    ) in text
    assert fetched(registry, names) == names[:5]
    # What is told of the run is its last attempt alone.
    assert outcome.stdout.text.split() == [part for name in names[:5] for part in ("has", name)]


@pytest.mark.parametrize("confined", ["bubblewrap"], indirect=True)
async def test_a_recovery_that_runs_out_of_time_while_it_runs_says_what_is_there_now(
    registry: Registry, confined: Executor, install_host: Mapping[str, str], tmp_path: Path
) -> None:
    warm, name, never = wheels(registry, 3)
    async with opened(confined, install_host, tmp_path) as session:
        enough_s = await timed(session, warm)
        command = f"python -c 'import {name}, time; time.sleep(600); import {never}'"
        done = await run(session, command, timeout_s=enough_s)
    assert not done.ok
    assert done.outcome is not None
    assert (done.outcome.exit_code, done.outcome.stopped) == (None, "deadline"), done.text
    assert f"{name} was missing: the host installed it and ran this again." in done.text
    assert "stopped" in done.text
    assert "exit code 0" not in done.text
    assert fetched(registry, [name, never]) == [name]


@pytest.mark.parametrize("confined", ["namespaces"], indirect=True)
async def test_a_recovery_that_runs_out_of_time_while_it_installs_says_which_is_not_there(
    registry: Registry, confined: Executor, install_host: Mapping[str, str], tmp_path: Path
) -> None:
    warm, name, slow = wheels(registry, 3)
    released = threading.Event()
    registry.hold(f"/files/{slow}-1.0-py3-none-any.whl", released)
    async with opened(confined, install_host, tmp_path) as session:
        enough_s = await timed(session, warm)
        try:
            done = await run(session, f"python -c 'import {name}, {slow}'", timeout_s=enough_s)
        finally:
            released.set()
        find = f'import importlib.util as u; print(u.find_spec("{slow}"))'
        after = await run(session, f"python -c 'import {name}' && python -c '{find}'")
    assert not done.ok
    assert done.outcome is not None
    assert done.outcome.exit_code == 1, done.text
    assert f"{name} was missing: the host installed it and ran this again." in done.text
    assert f"The run needs {slow}, which could not be installed." in done.text
    assert f"{slow} was missing: the host installed" not in done.text
    assert printed(after).splitlines() == [f"has {name}", "None"]


async def test_a_file_of_the_skill_is_not_looked_for_in_a_registry(
    registry: Registry, confined: Executor, install_host: Mapping[str, str], tmp_path: Path
) -> None:
    (name,) = wheels(registry, 1)
    skill = tmp_path / "skill"
    (skill / "inner").mkdir(parents=True)
    (skill / "inner" / f"{name}.py").write_text("")
    (skill / "run.py").write_text(f"import {name}\n")
    options = ExecutionOptions(scripts=True, install=ALLOWED)
    bench = await Execution(confined, options, host=install_host, base=str(tmp_path)).open("")
    assert bench.scripts is not None
    ran = await bench.scripts.run(ScriptRequest(skill="s", directory=str(skill), path="run.py"))
    await bench.aclose()
    assert not ran.ok
    assert registry.seen == []


@pytest.mark.parametrize(
    "kind", ["relative", "own file", "too many files", "off the list", "disabled", "another error", "caught"]
)
async def test_other_failures_install_nothing(
    registry: Registry, confined: Executor, install_host: Mapping[str, str], tmp_path: Path, kind: str
) -> None:
    (name,) = wheels(registry, 1)
    options = {"off the list": InstallOptions(enabled=True, packages=(word(),)), "disabled": InstallOptions()}
    commands = {
        "relative": f"python -c 'from .{name} import x'",
        "own file": f"mkdir inner && touch inner/{name}.py && python -c 'import {name}'",
        "too many files": f"mkdir -p many/in && touch many/in/{name}.py && cd many && seq 20000 | xargs touch "
        f"&& python -c 'import {name}'",
        "another error": f"python -c 'raise RuntimeError(\"No module named {name}\")'",
        "caught": f"python -c 'try: import {name}\nexcept ImportError: print(1)'".replace("'try", "$'try"),
    }
    async with opened(confined, install_host, tmp_path, options.get(kind, ALLOWED)) as session:
        done = await run(session, commands.get(kind, f"python -c 'import {name}'"))
    assert done.ok == (kind == "caught"), done.text
    assert registry.seen == []
    assert "the host installed" not in done.text
    if kind == "off the list":
        assert f"The run needs {name}, which could not be installed. {name} is not among the packages" in done.text


@pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed")
async def test_npm_installs_without_running_a_script(registry: Registry, session: CodeSession) -> None:
    name, value = f"@{word()}/{word()}", word()
    registry.add_module(
        name, "1.2.3", {"index.js": f"module.exports = {value!r}\n"}, scripts={"postinstall": "touch $HOME/ran"}
    )
    done = await run(session, f"npm install {name}@1.2.3 && node -e 'console.log(require(\"{name}\"))'; ls ran")
    assert printed(done).strip() == value, done.text
    assert "'ran'" in done.text  # what ls says of a file that is not there


async def test_only_the_install_has_a_way_out(registry: Registry, session: CodeSession) -> None:
    name = word()
    registry.add_wheel(name, "1.0", {f"{name}.py": ""})
    asks = f"python -c 'import urllib.request as r; r.urlopen(\"{registry.address}/simple/{name}/\")'"
    done = await run(session, f"pip install {name} && {asks}")
    assert not done.ok
    assert "URLError" in done.text
    assert set(registry.seen) == {f"/simple/{name}/", f"/files/{name}-1.0-py3-none-any.whl"}
