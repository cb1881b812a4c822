from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from satchel.execution.workspace import Workspace, create_workspace, remove_workspace
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
