"""Seed 001, the shell of a workspace: its results, what the host does when a command goes wrong, and its backends."""

from __future__ import annotations

from tests.conformance.requirement import Requirement

# One row a line, so that it is found by its id, its words and its test at once.
# fmt: off
ROWS: tuple[Requirement, ...] = (
    # When the model gets it wrong
    Requirement("001-shell-1", "001", "the names the class actually has", "tests/execution/test_api_probe.py::test_a_guessed_name_is_answered_with_the_real_ones"),
    Requirement("001-shell-2", "001", "Reads the real API out of the installed package and appends it", "tests/execution/test_api_probe.py::test_the_same_mistake_in_a_program_of_ones_own_is_not_probed"),
    Requirement("001-shell-3", "001", "The nine results had been identical except a scratch filename", "tests/execution/test_shell.py::test_a_failing_command_sent_again_is_counted"),
    Requirement("001-shell-4", "001", "Rewritten to paths relative to where the command ran", "tests/execution/test_shell.py::test_paths_of_the_host_are_relative_in_results"),
    Requirement("001-shell-5", "001", "13.9% of all result characters", "tests/execution/test_output_paths.py::test_what_is_no_path_below_the_workspace_is_left_alone"),
    Requirement("001-shell-6", "001", "via a shim in the session's own PATH", "tests/execution/test_shell.py::test_python_is_always_there"),
    Requirement("001-shell-7", "001", "grep exits 1 when it finds nothing, diff exits 1 when files differ", "tests/execution/test_shell.py::test_a_benign_code_is_no_failure"),
    Requirement("001-shell-8", "001", "as a closed list of names at exit 1 only", "tests/execution/test_benign.py::test_only_exit_code_one_is_an_answer"),
    Requirement("001-shell-9", "001", "which costs the same recovery round a false success does", "tests/execution/test_benign.py::test_a_failure_is_never_called_an_answer"),
    # The in-process agentic loop
    Requirement("001-shell-10", "001", "enabling them does not imply network or package-install permission", "tests/tools/test_shell.py::test_the_declaration_is_flat_and_says_how_commands_run"),
    # Running scripts
    Requirement("001-shell-11", "001", "every result likewise names what was not confined on this host", "tests/execution/test_shell.py::test_every_result_names_what_is_open_and_a_full_sandbox_names_nothing"),
    Requirement("001-shell-12", "001", "under the same required-by-default rule", "tests/execution/test_shell.py::test_a_sandbox_that_is_required_and_not_there"),
    Requirement("001-shell-13", "001", "Direct-network runs receive only credential-free host HTTP/SOCKS proxy settings", "tests/execution/test_shell.py::test_the_open_network_brings_proxies_without_secrets"),
    # Launch backends
    Requirement("001-shell-14", "001", "whose working directory and exports it restores and re-saves", "tests/execution/test_shell_state.py::test_directory_and_exports_last_from_call_to_call"),
    Requirement("001-shell-15", "001", "writes both back through the same filter the wrapper pipes export -p through", "tests/execution/test_shell_state.py::test_a_host_without_processes_saves_through_the_same_filter"),
    Requirement("001-shell-16", "001", "and the reset note behave identically whichever backend ran the command", "tests/execution/test_shell.py::test_an_in_process_backend_gets_the_text_and_the_state"),
    Requirement("001-shell-17", "001", "parses env.sh (the declare -x NAME", "tests/execution/test_shell_state.py::test_bash_and_we_read_the_same_value"),
)
