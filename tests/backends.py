"""The sandboxes that tests run under, and the one rule about what a host may be without."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NoReturn

import pytest

from satchel.ports.execution import Executor
from satchel.sandbox.bubblewrap import PLACES, BubblewrapExecutor
from satchel.sandbox.detect import detect
from satchel.sandbox.hosts import HostsExecutor
from satchel.sandbox.landlock import LandlockExecutor
from satchel.sandbox.namespaces import NamespaceExecutor
from satchel.sandbox.unconfined import UnconfinedExecutor

REQUIRED = "REQUIRE_SANDBOX"
FULL = ("bubblewrap", "namespaces")
PARTS = ("landlock",)
EVERY = (*FULL, *PARTS, "unconfined")

_MAKE: Mapping[str, Callable[[], Executor]] = MappingProxyType(
    {
        "bubblewrap": lambda: BubblewrapExecutor(next((path for path in PLACES if os.access(path, os.X_OK)), "")),
        "namespaces": NamespaceExecutor,
        "landlock": LandlockExecutor,
    }
)


def not_here(words: str, *, may_be_missing: bool = False) -> NoReturn:
    """Skips the test; fails it where what holds programs back has to be shown, unless a host may be without it."""
    if os.environ.get(REQUIRED) and not may_be_missing:
        pytest.fail(words)
    pytest.skip(words)


def needs_root() -> None:
    """For a test that becomes another user, or does what only root may."""
    if os.geteuid() != 0:
        not_here("only root can do this")


async def require(backend: str) -> None:
    """Ends the test where the backend is not there or lets something through; only a part may be missing."""
    for report in (await detect("preferred")).report:
        if report.backend == backend and not report.reason:
            return
        if report.backend == backend:
            not_here(f"{backend} is not used here: {report.reason}", may_be_missing=backend in PARTS)
    not_here(f"there is no {backend} on this system", may_be_missing=backend in PARTS)


async def executor_of(backend: str) -> Executor:
    """One of ``EVERY`` as ``detect`` would hand it out; see ``require``."""
    if backend == "unconfined":
        return UnconfinedExecutor()
    await require(backend)
    made = _MAKE[backend]()
    return HostsExecutor(made) if made.confinement.hosts else made
