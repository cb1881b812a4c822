from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from satchel.execution.workspace import Workspace, create_workspace, remove_workspace
from satchel.ports.execution import Executor
from tests.backends import FULL, executor_of
from tests.execution.registry import Registry


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    """A real one, below the test's own directory."""
    made = create_workspace(str(tmp_path))
    yield made
    assert remove_workspace(made)


@pytest.fixture
def registry() -> Iterator[Registry]:
    with Registry() as server:
        yield server


@pytest.fixture(params=FULL)
async def confined(request: pytest.FixtureRequest) -> Executor:
    """The sandboxes of this machine that can narrow a network to hosts."""
    made = await executor_of(request.param)
    assert made.confinement.hosts
    return made


@pytest.fixture
def install_host(registry: Registry) -> Mapping[str, str]:
    """The environment of a host whose installers use ``registry``."""
    return {"PATH": os.environ["PATH"], **registry.configured}
