"""Seed 001, what an operator allows: the flags and variables of what may run, and what is said of them at the start."""

from __future__ import annotations

from tests.conformance.requirement import Requirement

_SETTINGS = "tests/settings/test_execution.py"

# One row a line, so that it is found by its id, its words and its test at once.
# fmt: off
ROWS: tuple[Requirement, ...] = (
    # Operator surface
    Requirement("001-allowed-1", "001", "Allow skills_run. Off by default.", f"{_SETTINGS}::test_everything_is_off_until_it_is_allowed"),
    Requirement("001-allowed-2", "001", "TS_SKILLS_ALLOW_EXEC (anything but 0)", f"{_SETTINGS}::test_a_switch_is_on_for_anything_that_does_not_say_off"),
    Requirement("001-allowed-3", "001", "off, preferred, or the default required.", f"{_SETTINGS}::test_every_flag_has_a_variable_that_means_the_same"),
    Requirement("001-allowed-4", "001", "Off by default; separate from code execution.", "tests/cli/test_allowed.py::test_each_network_is_said_by_itself"),
    Requirement("001-allowed-5", "001", "Default 8, or 24 with --code-exec", f"{_SETTINGS}::test_code_has_more_rounds_unless_the_operator_says_a_number"),
    # Running scripts
    Requirement("001-allowed-6", "001", "a host told to run scripts it cannot confine says so on its own line", "tests/cli/test_allowed.py::test_what_is_required_and_not_there_is_a_warning_with_a_way_out"),
    Requirement("001-allowed-7", "001", "neither that package list nor the install-domain list is a security boundary", f"{_SETTINGS}::test_lists_that_bound_nothing_are_named"),
    Requirement("001-allowed-8", "001", "do not imply isolation the selected backend does not provide", "tests/cli/test_allowed.py::test_gaps_are_said_in_the_words_of_the_record"),
    Requirement("001-allowed-9", "001", "where it openly leaves filesystem and network access unconfined", "tests/cli/test_allowed.py::test_unconfined_code_is_said_loudly_only_where_it_is"),
)
