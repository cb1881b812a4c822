"""What is said when the packages of an extra are not installed."""

from __future__ import annotations

from satchel.errors import SetupError


def extra_missing(extra: str, error: ModuleNotFoundError) -> SetupError:
    """The error for a part of the program that needs ``satchel[extra]``."""
    return SetupError(
        "extra-missing",
        f"The package {error.name} is needed for this and is not installed.",
        hint=f"pip install 'satchel[{extra}]'",
        data={"extra": extra, "package": error.name or ""},
    )
