"""What an installer said, as one sentence with the next step."""

from __future__ import annotations

import pytest

from satchel.execution.recovery import missing_package
from satchel.execution.trouble import explained
from satchel.ports.execution import Captured, Outcome


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ("Tunnel connection failed: 403 f.example:443 is not among the hosts that may be reached", "f.example:443 may not be reached from here (allowed: i.example). The operator can allow it"),
        ("403 The address of i.example:443 may not be reached", "i.example:443 may not be reached from here"),
        ("ERROR: ResolutionImpossible: for help visit", "the versions exclude each other. Ask for the packages together"),
        ("npm error code ERESOLVE\nnpm error ERESOLVE", "the versions exclude each other."),
        ("npm ERR! code E404", "the registry has no such package or version. Check the name"),
        ("npm error code ETARGET", "the registry has no such package or version."),
        ("ERROR: Could not find a version that satisfies the requirement x==9 (from versions: 1.0, 2.0)\nERROR: No matching distribution found for x==9", "no version of x==9 fits; there are 1.0, 2.0. Ask for one of these."),
        ("(from versions: none)\nERROR: No matching distribution found for x", "no wheel of x for this Python is in the registry"),
        ("NewConnectionError\nERROR: No matching distribution found for x", "the registry cannot be reached. Use what is installed"),
        ("after connection broken by 'OSError('Tunnel connection failed: 502 i.example:443 cannot be reached')'\nERROR: No matching distribution found for x", "the registry cannot be reached."),
        ("npm error code ENOTFOUND", "the registry cannot be reached."),
        ("noise\nERROR: something else\n", "ERROR: something else Check the name and the version"),
        ("", "it said nothing. Check the name and the version"),
    ],
)  # fmt: skip
def test_failures_are_explained(said: str, sentence: str) -> None:
    outcome = Outcome(exit_code=1, stderr=Captured(head=said.encode()))
    text = explained("pip", ["x"], outcome, ["i.example"], has_secret=False)
    assert text.startswith("`pip install x` failed: ")
    assert sentence in text


def test_a_registry_that_wants_a_password_is_named_as_one() -> None:
    outcome = Outcome(exit_code=1, stderr=Captured(head=b"ERROR: 401 Error, Credentials not correct"))
    assert "wants a password, and none is passed on" in explained("pip", ["x"], outcome, [], has_secret=True)
    assert "wants a password" not in explained("pip", ["x"], outcome, [], has_secret=False)


def test_an_install_that_was_stopped_says_why() -> None:
    outcome = Outcome(exit_code=None, stopped="deadline", duration_s=61.2)
    text = explained("npm", [f"p{n}" for n in range(9)], outcome, [], has_secret=False)
    assert (
        text
        == "`npm install p0 p1 p2 p3 p4 p5 ...` failed: it took too long (61 s). Ask for fewer or smaller packages."
    )


def test_endless_lines_are_read_quickly_too() -> None:
    for said in ("a" * 60_000, "python" * 10_000, "Error" * 12_000, "x requires " + "y, but you have " * 4_000):
        outcome = Outcome(exit_code=1, stderr=Captured(head=said.encode()))
        assert "Check the name and the version" in explained("pip", ["x"], outcome, [], has_secret=False)
        assert missing_package(outcome) is None
