"""Seed 001, the table of what goes wrong and what the host does then: for each row a test, and one of when it must not."""

from __future__ import annotations

from tests.conformance.requirement import Requirement

_CALLS = "tests/execution/test_recovered_calls.py"

# One row a line, so that it is found by its id, its words and its test at once.
# fmt: off
ROWS: tuple[Requirement, ...] = (
    Requirement("001-recovery-1", "001", "First run dies on a missing import", f"{_CALLS}::test_a_missing_import_is_put_right_within_the_call", f"{_CALLS}::test_a_missing_import_that_no_registry_has_stays_a_failure"),
    Requirement("001-recovery-2", "001", "The model guessed a library's API", "tests/execution/test_api_probe.py::test_a_guessed_name_is_answered_with_the_real_ones", "tests/execution/test_api_probe.py::test_the_same_mistake_in_a_program_of_ones_own_is_not_probed"),
    Requirement("001-recovery-3", "001", "A whole file re-typed to change one line", f"{_CALLS}::test_one_line_is_changed_by_a_patch_and_never_by_writing_the_file", f"{_CALLS}::test_a_file_of_a_new_name_is_written"),
    Requirement("001-recovery-4", "001", "Says so, with the count (AppendRepeatWarning).", "tests/execution/test_shell.py::test_a_failing_command_sent_again_is_counted", "tests/execution/test_shell.py::test_what_is_no_repeated_failure_is_not_counted"),
    Requirement("001-recovery-5", "001", "Absolute host paths in every traceback", "tests/execution/test_shell.py::test_paths_of_the_host_are_relative_in_results", "tests/execution/test_output_paths.py::test_what_is_no_path_below_the_workspace_is_left_alone"),
    Requirement("001-recovery-6", "001", "A patch that applied but broke the file", f"{_CALLS}::test_a_change_that_breaks_a_program_is_said", f"{_CALLS}::test_a_change_that_breaks_nothing_warns_of_nothing"),
    Requirement("001-recovery-7", "001", "A hunk that did not match", f"{_CALLS}::test_a_hunk_that_misses_is_shown_what_stands_there", f"{_CALLS}::test_a_hunk_that_fits_is_told_no_more_than_that"),
    Requirement("001-recovery-8", "001", "nl/grep -n line numbers, that is named as the cause", f"{_CALLS}::test_line_numbers_in_a_hunk_are_named_as_the_cause", f"{_CALLS}::test_numbers_that_stand_in_the_file_are_matched_like_any_text"),
    Requirement("001-recovery-9", "001", "A hunk that fits in several places", f"{_CALLS}::test_a_hunk_that_fits_twice_is_said_with_the_other_line", f"{_CALLS}::test_a_hunk_that_is_led_to_its_place_fits_once"),
    Requirement("001-recovery-10", "001", "python: command not found", f"{_CALLS}::test_python_is_there_under_either_name", f"{_CALLS}::test_a_program_that_is_not_there_is_still_not_there"),
    Requirement("001-recovery-11", "001", "Out of rounds mid-work", "tests/engine/test_turn.py::test_round_limit_ends_with_a_note_and_without_own_tools", "tests/engine/test_turn.py::test_a_turn_that_ends_in_its_last_round_did_not_run_out"),
    # Below the table: the two that reported success for something not done, and the two that were taken over
    Requirement("001-recovery-12", "001", "the host reported success for something it had not done", f"{_CALLS}::test_a_refused_install_runs_nothing_behind_it", f"{_CALLS}::test_an_install_that_worked_lets_the_rest_run"),
    Requirement("001-recovery-13", "001", "and a redirection (2>&1)", f"{_CALLS}::test_a_redirection_is_no_package", f"{_CALLS}::test_a_command_that_speaks_of_an_install_performs_none"),
    Requirement("001-recovery-14", "001", "A benign exit code is not a failure.", "tests/execution/test_benign.py::test_an_answer_is_no_failure", "tests/execution/test_benign.py::test_a_failure_is_never_called_an_answer"),
    Requirement("001-recovery-15", "001", "no need to read it back.", "tests/execution/test_file_session.py::test_a_new_file_need_not_be_read_back", f"{_CALLS}::test_what_was_not_written_is_never_said_to_be_there"),
)
# fmt: on
