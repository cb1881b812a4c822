"""Every requirement of the seeds about reading, finding, files, paths, arguments, listings, checking, the block and activation.

``scripts/seed_coverage.py`` compares the quotes with the texts of the seeds, in a folder that its caller names.
"""

from __future__ import annotations

from tests.conformance import (
    requirements_000,
    requirements_000_models,
    requirements_000_session,
    requirements_001,
    requirements_001_client,
    requirements_001_running,
    requirements_001_serving,
    requirements_002,
    requirements_003,
    requirements_004,
    requirements_allowed,
    requirements_checks,
    requirements_files,
    requirements_installs,
    requirements_loop,
    requirements_recoveries,
    requirements_sandbox,
    requirements_shell,
    requirements_streaming,
)
from tests.conformance.requirement import Requirement

__all__ = ["REQUIREMENTS", "Requirement"]

REQUIREMENTS: tuple[Requirement, ...] = (
    *requirements_000.ROWS,
    *requirements_000_session.ROWS,
    *requirements_000_models.ROWS,
    *requirements_001.ROWS,
    *requirements_001_client.ROWS,
    *requirements_001_running.ROWS,
    *requirements_001_serving.ROWS,
    *requirements_002.ROWS,
    *requirements_003.ROWS,
    *requirements_004.ROWS,
    *requirements_allowed.ROWS,
    *requirements_checks.ROWS,
    *requirements_files.ROWS,
    *requirements_installs.ROWS,
    *requirements_loop.ROWS,
    *requirements_recoveries.ROWS,
    *requirements_sandbox.ROWS,
    *requirements_shell.ROWS,
    *requirements_streaming.ROWS,
)
