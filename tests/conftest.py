"""What every test runs under."""

from __future__ import annotations

import signal
from collections.abc import Generator

import pytest
from blockbuster import blockbuster_ctx

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell starts background jobs so, and programs that tests interrupt would inherit it and never end.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def no_blocking_calls() -> Generator[None, None, None]:
    """A call of ours that blocks the event loop fails its test; only a test itself may scan a directory there."""
    with blockbuster_ctx("satchel") as watched:
        for function in watched.functions.values():
            function.can_block_in("satchel/library/__init__.py", {"discover"})
            function.can_block_in("satchel/library/library.py", {"discover", "reload", "__init__"})
        yield
