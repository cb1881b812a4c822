"""What one setting is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One setting: its dotted key, the type it must have, and the flag and variable that set it.

    A variable of a ``bool`` means yes, unless it is 0. ``inverted`` rows are set by a "no" flag or variable;
    ``separator`` splits a variable into several values, a blank one at any white space. A variable that is set and
    empty counts as left out, unless ``is_never_empty``: without keys a server is open, and without a list of packages
    all may be installed, which nobody means by setting the variable.
    """

    key: str
    type: Any
    default: object
    flag: str = ""
    variable: str = ""
    inverted: bool = False
    separator: str = ""
    is_secret: bool = False
    is_never_empty: bool = False
