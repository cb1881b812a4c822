"""One requirement of a seed, as a row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Seed = Literal["000", "001", "002", "003", "004", "checks", "streaming"]
"""A seed's number, or a list of ours: the acceptance checks that follow from all of them, and what streams must do."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """``quote`` is part of one line of the seed (of a list of ours: our own words), ``test`` a pytest id below the root.

    ``id`` is the seed, its section and a number: ``000-4.5-3``. Sections without a number have a word.
    ``twin`` is the test of what must not happen where nothing is wrong, for a requirement about what the host says or does
    of its own accord.
    """

    id: str
    seed: Seed
    quote: str
    test: str
    twin: str = ""
