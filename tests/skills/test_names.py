from __future__ import annotations

import pytest

from satchel.skills.names import near_names

NAMES = ("kiln-firing", "invoice-number", "canary-deploy", "Fuel-Budget")


@pytest.mark.parametrize(
    ("wanted", "near"),
    [
        ("kiln", ("kiln-firing",)),
        ("KILN-FIRNG", ("kiln-firing",)),
        ("deploy", ("canary-deploy",)),
        ("fuel-budgt", ("Fuel-Budget",)),
        ("", ()),
        ("zzz", ()),
    ],
)
def test_the_name_that_was_meant(wanted: str, near: tuple[str, ...]) -> None:
    assert near_names(wanted, NAMES) == near
