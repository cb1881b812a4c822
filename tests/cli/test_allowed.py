"""What is said of what may run: each line reads the record of the backend."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from satchel.cli.allowed import allowed, confined_by, confines, held_by, shape, told
from satchel.execution.options import ExecutionOptions, InstallOptions, refusal
from satchel.ports.execution import GAP_NETWORK, GAP_WRITES, Confinement
from satchel.testing.fake_executor import FakeExecutor

FULL = Confinement(
    backend="bubblewrap", version="0.12.0", writes=True, network=True, home=True, process_tree=True, hosts=True
)
PART = Confinement(backend="landlock", version="7", home=True, gaps=(GAP_WRITES, GAP_NETWORK))
ALL = ExecutionOptions(scripts=True, code=True, install=InstallOptions(enabled=True))


class _Backend(FakeExecutor):
    def __init__(self, confinement: Confinement, unavailable_reason: str = "") -> None:
        super().__init__()
        self._confinement = confinement
        self._reason = unavailable_reason

    @property
    def confinement(self) -> Confinement:
        return self._confinement

    @property
    def unavailable_reason(self) -> str:
        return self._reason


def lines(options: ExecutionOptions, confinement: Confinement) -> str:
    return "\n".join(told(options, _Backend(confinement)))


def test_nothing_is_said_of_what_is_off():
    assert told(ExecutionOptions(), _Backend(FULL)) == ()
    assert [(row.is_on, row.refusal) for row in allowed(ExecutionOptions(), _Backend(PART))] == [(False, "")] * 3


def test_a_full_sandbox_is_named_with_its_version_and_the_network():
    said = told(ALL, _Backend(FULL))
    assert said == (
        "scripts    of skills run without a network, confined by bubblewrap 0.12.0",
        "code       of models runs without a network, confined by bubblewrap 0.12.0",
        "installs   of any package, from where pip and npm of this host get theirs",
    )
    assert told(ALL, _Backend(FULL), only_trouble=True) == ()


def test_each_network_is_said_by_itself():
    scripts, code = told(ExecutionOptions(scripts=True, code=True, code_network=True), _Backend(FULL))
    assert (" without a network," in scripts, " with the network," in code) == (True, True)


def test_what_is_required_and_not_there_is_a_warning_with_a_way_out():
    said = lines(ExecutionOptions(scripts=True, code=True), PART)
    assert said.count("WARNING: ") == 2
    assert "WARNING: scripts: allowed, and not run here: " in said
    assert "--skills-sandbox preferred" in said
    assert "--code-exec-unconfined does without" in said
    assert told(ExecutionOptions(scripts=True), _Backend(PART), only_trouble=True) == told(
        ExecutionOptions(scripts=True), _Backend(PART)
    )


def test_gaps_are_said_in_the_words_of_the_record():
    said = lines(ExecutionOptions(scripts=True, sandbox="preferred"), PART)
    assert f"confined by landlock 7. Not confined on this host: {GAP_WRITES}; {GAP_NETWORK}" in said
    assert "with the network, which nothing holds back" in said


@pytest.mark.parametrize("confinement", [PART, Confinement(backend="none", gaps=(GAP_WRITES, GAP_NETWORK))])
def test_scripts_that_little_holds_are_said_even_where_only_trouble_is(confinement: Confinement):
    (said,) = told(ExecutionOptions(scripts=True, sandbox="preferred"), _Backend(confinement), only_trouble=True)
    assert said.startswith("WARNING: scripts of skills run with the network, which nothing holds back, ")
    assert said.endswith(f"Not confined on this host: {GAP_WRITES}; {GAP_NETWORK}")


def test_unconfined_code_is_said_loudly_only_where_it_is():
    options = ExecutionOptions(code=True, unconfined=True)
    assert "WARNING: --code-exec-unconfined: what a model writes is not fully confined" in lines(options, PART)
    assert "may do all that this program may" in lines(options, Confinement(backend="none", gaps=(GAP_WRITES,)))
    assert "WARNING: --code-exec-unconfined" in "".join(told(options, _Backend(PART), only_trouble=True))
    assert "WARNING" not in lines(options, FULL)


def test_scripts_are_not_let_out_by_the_word_for_code():
    scripts, code, _ = allowed(ExecutionOptions(scripts=True, code=True, unconfined=True), _Backend(PART))
    assert (bool(scripts.refusal), bool(code.refusal)) == (True, False)


def test_a_backend_that_cannot_run_says_why():
    scripts, _, _ = allowed(ALL, _Backend(FULL, "User namespaces are turned off."))
    assert scripts.refusal == "User namespaces are turned off."
    assert held_by(_Backend(FULL, "User namespaces are turned off.")) is None
    assert held_by(_Backend(PART)) == shape(PART)


@pytest.mark.parametrize(("confinement", "is_bound"), [(FULL, True), (PART, False)])
def test_installs_name_what_bounds_them(confinement: Confinement, is_bound: bool):
    install = InstallOptions(enabled=True, hosts=("index.example",), packages=("humanize", "six"))
    *_, row = allowed(ExecutionOptions(code=True, install=install), _Backend(confinement))
    assert row.detail.startswith("of humanize, six, from index.example")
    assert ("nothing here holds an install" not in row.detail) == is_bound


HALF = Confinement(backend="landlock", version="7", network=True, home=True, gaps=(GAP_WRITES,))


@pytest.mark.parametrize(
    ("options", "flag"),
    [
        (ExecutionOptions(code=True, unconfined=True), "--code-exec-allow-network"),
        (ExecutionOptions(scripts=True, sandbox="preferred"), "--skills-allow-network"),
    ],
)
def test_installs_that_nothing_would_hold_are_refused_and_the_way_out_is_named(options: ExecutionOptions, flag: str):
    options = replace(options, install=InstallOptions(enabled=True))
    *_, row = allowed(options, _Backend(HALF))
    assert row.refusal.startswith("Installing packages is not possible here: landlock cannot hold an install")
    assert flag in row.hint
    assert "WARNING: installs: allowed, and not run here: " in lines(options, HALF)
    opened = replace(options, code_network=options.code, scripts_network=options.scripts)
    assert not allowed(opened, _Backend(HALF))[-1].refusal


def test_a_backend_in_words():
    assert confined_by(Confinement(backend="none", gaps=("a", "b"))) == (
        "without a sandbox. Not confined on this host: a; b"
    )
    assert confines(FULL) == "confines writes, network, home, process tree"
    assert confines(Confinement(backend="none", gaps=("a",))) == "confines nothing; open: a"


def test_what_is_given_to_a_skill_is_said():
    options = ExecutionOptions(scripts=True, grants={"pdf": ("DEMO_TOKEN", "OTHER"), "maps": ("MAPS_TOKEN",)})
    (line,) = told(options, _Backend(FULL))
    given = "DEMO_TOKEN and OTHER given to pdf, MAPS_TOKEN given to maps"
    assert line == f"scripts    of skills run, {given}, without a network, confined by bubblewrap 0.12.0"


@pytest.mark.parametrize("mode", ["Required", "", "of"])
def test_a_word_that_is_no_mode_lets_nothing_out(mode: Any):
    """A program of someone's own may have any word here; the command line refuses it."""
    assert refusal(_Backend(PART), mode)
