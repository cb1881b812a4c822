"""Seed 001, what holds a script on each system: which backend is chosen, what holds, Seatbelt profiles and job objects."""

from __future__ import annotations

from tests.conformance.requirement import Requirement

# One row a line, so that it is found by its id, its words and its test at once.
# fmt: off
ROWS: tuple[Requirement, ...] = (
    # Running scripts
    Requirement("001-sandbox-1", "001", "The two that would have been an escape did not happen", "tests/sandbox/test_confined.py::test_what_a_hostile_program_tries"),
    Requirement("001-sandbox-2", "001", "Linux additionally bounds descendants with a PID namespace", "tests/sandbox/test_confined.py::test_a_daemon_ends_with_the_program"),
    Requirement("001-sandbox-3", "001", "and Linux hides common /run endpoints", "tests/sandbox/test_confined.py::test_the_root_is_read_only_and_bare"),
    Requirement("001-sandbox-4", "001", "a write there succeeds, is invisible to the host, and dies with the process", "tests/sandbox/test_confined.py::test_what_is_written_to_the_temporary_directory_dies_with_the_program"),
    Requirement("001-sandbox-5", "001", "On macOS /private/tmp is readable and writable", "tests/sandbox/test_seatbelt.py::test_a_file_is_decided_by_the_last_rule"),
    Requirement("001-sandbox-6", "001", "Only the exact directory the OS reports", "tests/sandbox/test_seatbelt.py::test_a_file_is_decided_by_the_last_rule"),
    Requirement("001-sandbox-7", "001", "a granted writable root may not itself be unlinked", "tests/sandbox/test_seatbelt.py::test_a_file_is_decided_by_the_last_rule"),
    Requirement("001-sandbox-8", "001", "Mach names that end in a process ID may be registered", "tests/sandbox/test_seatbelt.py::test_what_native_programs_need_is_allowed_and_no_more"),
    Requirement("001-sandbox-9", "001", "Signals and process-info queries are allowed within the same sandbox", "tests/sandbox/test_seatbelt.py::test_what_native_programs_need_is_allowed_and_no_more"),
    Requirement("001-sandbox-10", "001", "the exact mDNSResponder pathname socket required for DNS", "tests/sandbox/test_seatbelt.py::test_the_network_is_closed_pinned_or_open"),
    Requirement("001-sandbox-11", "001", "where the sandbox can pin a single loopback port (Seatbelt)", "tests/sandbox/test_seatbelt.py::test_the_network_is_closed_pinned_or_open"),
    Requirement("001-sandbox-12", "001", "a deliberately detached child can outlive the request", "tests/sandbox/test_seatbelt.py::test_what_it_leaves_open_is_told"),
    Requirement("001-sandbox-13", "001", "The Windows sandbox bounds the process tree and declares the rest as gaps", "tests/sandbox/test_jobobject.py::test_it_never_passes_for_confinement"),
    # The choice
    Requirement("001-sandbox-14", "001", "Sandbox or refuse. A host with no sandbox declines the tool", "tests/sandbox/test_detect.py::test_required_starts_nothing_where_nothing_holds_everything"),
    Requirement("001-sandbox-15", "001", "Sandbox where the platform provides one, run anyway where it does not", "tests/sandbox/test_detect.py::test_preferred_takes_a_part_and_then_nothing_at_all"),
    Requirement("001-sandbox-16", "001", "In-process limits only", "tests/sandbox/test_detect.py::test_off_looks_for_nothing"),
    Requirement("001-sandbox-17", "001", "only if bwrap 0.12.0 or newer is installed", "tests/sandbox/test_detect.py::test_the_version_of_bubblewrap_counts_where_a_floor_is_set"),
    Requirement("001-sandbox-18", "001", "so the claim and the implementation cannot drift", "tests/sandbox/test_detect.py::test_what_is_here_stops_everything_that_it_does_not_tell"),
)
