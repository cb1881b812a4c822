"""Installs in the sandbox of this machine: pip and npm run without a network of their own, through the host's proxy."""

from __future__ import annotations

import os
import secrets
import shutil
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest

from satchel.execution.options import ExecutionOptions, InstallOptions
from satchel.execution.shell import CodeSession
from satchel.execution.workbench import Execution
from satchel.ports.execution import Executor
from satchel.sandbox.bubblewrap import PLACES, BubblewrapExecutor
from satchel.sandbox.hosts import HostsExecutor
from satchel.sandbox.namespaces import NamespaceExecutor
from tests.execution.registry import Registry
from tests.execution.shells import printed, run

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the backends of Linux are used")
OPTIONS = ExecutionOptions(code=True, install=InstallOptions(enabled=True))


@pytest.fixture(params=[BubblewrapExecutor, NamespaceExecutor])
def executor(request: pytest.FixtureRequest) -> Executor:
    if request.param is BubblewrapExecutor and not any(Path(place).exists() for place in PLACES):
        pytest.skip("there is no bwrap")
    made = HostsExecutor(request.param())
    assert made.confinement.hosts  # it is found out here, on files
    return made


@pytest.fixture
def host(registry: Registry) -> Mapping[str, str]:
    return {"PATH": os.environ["PATH"], **registry.configured}


@pytest.fixture
async def session(executor: Executor, host: Mapping[str, str], tmp_path: Path) -> AsyncIterator[CodeSession]:
    bench = await Execution(executor, OPTIONS, host=host, base=str(tmp_path)).open("")
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
