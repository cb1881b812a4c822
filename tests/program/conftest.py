from __future__ import annotations

from collections.abc import AsyncGenerator

import pytest
import pytest_asyncio

from tests.program.standing import Gateway, standing


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def gateway(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Gateway]:
    """One gateway for all tests that need no settings of their own, in the session's loop as they are."""
    async with standing(tmp_path_factory.mktemp("gateway")) as started:
        yield started
