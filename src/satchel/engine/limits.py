"""The bounds of one turn."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopLimits:
    """``max_rounds`` generations may call our tools; one more without them may follow.

    ``max_calls_per_round`` of our calls are answered in a round. A tool that failed ``max_failures_per_tool`` times
    in a turn is no longer offered.
    """

    max_rounds: int = 8
    max_calls_per_round: int = 8
    max_failures_per_tool: int = 3


_CODE_ROUNDS = 24
"""One repair of a program is a write, a run, a look at what went wrong and a patch: four rounds."""


def usual_rounds(*, has_code: bool) -> int:
    """``max_rounds`` where nobody says a number; ``has_code``: models may write and run code."""
    return _CODE_ROUNDS if has_code else LoopLimits().max_rounds
