"""The file tools of a coding turn in seed 001, and what seed 000 says of files that were not read."""

from __future__ import annotations

from tests.conformance.requirement import Requirement

# One row a line, so that it is found by its id, its words and its test at once.
# fmt: off
ROWS: tuple[Requirement, ...] = (
    Requirement("000-11-1", "000", "and their normal NOT_READ_THIS_SESSION / STALE_READ checks", "tests/execution/test_file_session.py::test_a_file_that_was_not_read_is_not_changed"),
    Requirement("000-11-2", "000", "No special ledger exemption for skill-triggered mutations.", "tests/execution/test_file_session.py::test_a_file_that_changed_since_is_not_changed"),
    # The tools
    Requirement("001-files-1", "001", "read_file, which shows a file's real bytes with line numbers", "tests/execution/test_file_session.py::test_lines_with_their_numbers"),
    Requirement("001-files-2", "001", "write_file, which creates a new file", "tests/execution/test_file_session.py::test_a_new_file_need_not_be_read_back"),
    Requirement("001-files-3", "001", "by anchored hunks, all or nothing", "tests/execution/test_file_session.py::test_one_bad_part_and_nothing_is_written"),
    Requirement("001-files-4", "001", "coordinated changes across multiple files", "tests/execution/test_file_session.py::test_many_files_at_once"),
    Requirement("001-files-5", "001", "It also supports creating, renaming, and deleting files.", "tests/execution/test_file_session.py::test_many_files_at_once"),
    Requirement("001-files-6", "001", "each existing file being modified has its own *** Update File: section", "tests/execution/test_envelope.py::test_every_kind_of_part_in_its_order"),
    Requirement("001-files-7", "001", "write_file refuses a path that already exists and points the model to apply_patch", "tests/execution/test_file_session.py::test_an_existing_file_is_not_written_but_by_the_word"),
    Requirement("001-files-8", "001", "or to a common alias such as str_replace, is accepted for compatibility", "tests/tools/test_file_tools.py::test_an_edit_by_habit_is_done"),
    Requirement("001-files-9", "001", "so is a legacy overwrite: true argument on write_file", "tests/tools/test_file_tools.py::test_an_existing_file_is_replaced_by_a_word_that_is_not_declared"),
    Requirement("001-files-10", "001", "Read the relevant contents first, then send the smallest anchored patch", "tests/tools/test_file_tools.py::test_the_block_is_a_fixed_text_of_the_declared_tools"),
    # When the model gets it wrong
    Requirement("001-repair-1", "001", "matching all-or-nothing is not the same as being right", "tests/execution/test_syntax.py::test_a_change_that_applies_and_breaks_the_file_says_so"),
    Requirement("001-repair-2", "001", "The file's real bytes at the closest anchor, numbered", "tests/execution/test_patch.py::test_a_miss_shows_the_nearest_place_and_what_differs_there"),
    Requirement("001-repair-3", "001", "if the context carries nl/grep -n line numbers, that is named as the cause", "tests/execution/test_patch.py::test_line_numbers_of_a_listing_are_named_and_never_taken_away"),
    Requirement("001-repair-4", "001", "and the result now says so, with the other line numbers", "tests/execution/test_patch.py::test_of_several_places_the_first_is_taken_and_the_others_are_named"),
    Requirement("001-repair-5", "001", "This file now holds what you wrote", "tests/execution/test_file_session.py::test_a_new_file_need_not_be_read_back"),
    Requirement("001-repair-6", "001", "is fixed text that depends only on which file tools are declared", "tests/tools/test_file_tools.py::test_the_block_is_a_fixed_text_of_the_declared_tools"),
)
