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
