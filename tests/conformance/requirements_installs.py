"""Seed 001, what the host installs: requests read out of commands, missing imports, the way out, an open network."""

from __future__ import annotations

from tests.conformance.requirement import Requirement

_READING = "tests/execution/test_requests.py::test_requests_are_read_and_true_stands_in_their_place"
_REFUSED = "tests/execution/test_requests.py::test_refusals_name_their_cause_and_the_next_step"
_LEFT = "tests/execution/test_requests.py::test_what_installs_nothing_is_left_as_it_is"
_RUNNERS = "tests/execution/test_requests.py::test_runners_run_only_where_everything_may_be_fetched"
_OFF = "tests/execution/test_requests.py::test_without_installs_every_request_gets_the_same_answer"
_INSTALLS = "tests/execution/test_installs.py"
_CERTIFICATES = "tests/execution/test_certificates.py"

# One row a line, so that it is found by its id, its words and its test at once.
# fmt: off
ROWS: tuple[Requirement, ...] = (
    # When the model gets it wrong
    Requirement("001-installs-1", "001", "Installs it and re-runs the command inside the same call", f"{_INSTALLS}::test_a_missing_import_is_installed_and_the_same_call_runs_again"),
    Requirement("001-installs-2", "001", "bounded by 5 distinct packages and by the call's own timeout_ms", "tests/execution/test_recovery.py::test_five_packages_are_the_most"),
    Requirement("001-installs-3", "001", "a refused install left false | tail -5 running and answered exit 0", "tests/execution/test_requests.py::test_one_refusal_stops_the_whole_line"),
    Requirement("001-installs-4", "001", "a redirection (2>&1) was read as a package name", _READING),
    # Running scripts
    Requirement("001-installs-5", "001", "makes the host READ a pip install instead of running it", _READING),
    Requirement("001-installs-6", "001", "wheels only, no install scripts", f"{_INSTALLS}::test_nothing_is_built_from_source"),
    Requirement("001-installs-7", "001", "egress through the proxy to the hosts in --code-exec-install-domains and nowhere else", f"{_INSTALLS}::test_an_install_reaches_only_its_hosts"),
    Requirement("001-installs-8", "001", "The install command is then substituted out of the model's line with true", "tests/execution/test_commandline.py::test_places_of_words_lie_in_the_line_in_order"),
    Requirement("001-installs-9", "001", "an install that fails stops the line where it stands and is what comes back", f"{_INSTALLS}::test_the_first_failure_ends_the_line"),
    Requirement("001-installs-10", "001", "an option that changes where a package comes from", _REFUSED),
    Requirement("001-installs-11", "001", "so is an installer the host cannot perform on your behalf (uv, poetry, gem, cargo)", _REFUSED),
    Requirement("001-installs-12", "001", "is honoured by reading the file and validating each line", _READING),
    Requirement("001-installs-13", "001", "An npm request may name a registry package with a scope and a version", f"{_INSTALLS}::test_modules_of_npm_are_found_by_both_kinds_of_programs"),
    Requirement("001-installs-14", "001", "URL, Git, local-path and alias specs are refused", _REFUSED),
    Requirement("001-installs-15", "001", "a name allow-list applies to a recognised request however the model spelled it", "tests/execution/test_requests.py::test_the_list_of_packages_knows_every_spelling"),
    Requirement("001-installs-16", "001", "are both on and no --code-exec-packages list is set", _RUNNERS),
    Requirement("001-installs-17", "001", "the refusal is the generic one that installing is not enabled", _OFF),
    Requirement("001-installs-18", "001", "with a hint to run an installed binary from node_modules/.bin", _REFUSED),
    Requirement("001-installs-19", "001", "in any form is refused by name: it fetches a package in order to run it", _REFUSED),
    Requirement("001-installs-20", "001", "with a hint to name the package and version instead", _REFUSED),
    Requirement("001-installs-21", "001", "because the host installs packages rather than producing archives", _REFUSED),
    Requirement("001-installs-22", "001", "Harmless options before the subcommand are read the way the shell classifier reads them", _READING),
    Requirement("001-installs-23", "001", "probe of an installer or runner is not treated as an install", _LEFT),
    Requirement("001-installs-24", "001", "so a runtime the model unpacked into the session is the one packages are installed for", f"{_INSTALLS}::test_a_python_of_the_session_is_the_one_that_packages_are_installed_for"),
    Requirement("001-installs-25", "001", "receive only credential-free host HTTP/SOCKS proxy settings", f"{_CERTIFICATES}::test_proxies_without_secrets_are_passed_on"),
    Requirement("001-installs-26", "001", "only validated public certificates are copied", f"{_CERTIFICATES}::test_only_certificates_of_authorities_are_copied"),
    Requirement("001-installs-27", "001", "an immutable, read-only per-session snapshot", f"{_CERTIFICATES}::test_a_snapshot_does_not_change_with_the_bundle_and_the_same_one_is_kept_once"),
    Requirement("001-installs-28", "001", "custom-CA bundles no larger than 16 MiB", f"{_CERTIFICATES}::test_what_is_no_bundle_is_left_out"),
    Requirement("001-installs-29", "001", "expose the session's installed packages", f"{_INSTALLS}::test_what_was_installed_is_imported_by_the_next_command"),
)
# fmt: on
