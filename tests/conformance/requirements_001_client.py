"""Seed 001, the client for programs: who runs the loop, what it sends, what it gives back."""

from __future__ import annotations

from tests.conformance.requirement import Requirement

# One row a line, so that it is found by its id, its words and its test at once.
# fmt: off
ROWS: tuple[Requirement, ...] = (
    Requirement("001-client-1", "001", "name the skills and the server does everything, including the disclosure loop", "tests/client/test_client.py::test_server_delivery_leaves_everything_to_the_gateway"),
    Requirement("001-client-2", "001", "Nothing is uploaded per request and the skill files never leave the server.", "tests/client/test_client.py::test_what_server_delivery_asks_for"),
    Requirement("001-client-3", "001", "declares the skill tools and runs the loop in this process", "tests/client/test_client.py::test_local_delivery_runs_the_loop_here_over_any_endpoint"),
    Requirement("001-client-4", "001", "probes /v1/skills once and caches the answer for the client's lifetime", "tests/client/test_client.py::test_requests_that_begin_together_probe_once"),
    Requirement("001-client-5", "001", "local delivery if it does not and this client has a registry", "tests/client/test_client.py::test_an_endpoint_that_is_no_satchel_server_gets_local_delivery"),
    Requirement("001-client-6", "001", "holds calls to the caller's own tools, which the client never executes", "tests/client/test_client.py::test_calls_to_ones_own_tools_come_back_and_the_conversation_goes_on"),
    Requirement("001-client-7", "001", "Rounds is 1 when the model answered without reading anything.", "tests/client/test_client.py::test_what_server_delivery_asks_for"),
    Requirement("001-client-8", "001", "so the server's own machinery stands down", "tests/client/test_client.py::test_local_delivery_over_our_own_gateway_injects_once"),
    Requirement("001-client-9", "001", "only when the one-time probe showed the endpoint understands those fields", "tests/client/test_client.py::test_local_delivery_tells_a_satchel_server_to_stand_down"),
    Requirement("001-client-10", "001", 'under server delivery it is forwarded as "multi_agent": false', "tests/client/test_client.py::test_what_server_delivery_asks_for"),
    Requirement("001-client-11", "001", "names the agent that made each call (/root for the parent)", "tests/client/test_client.py::test_the_events_are_the_same_whoever_runs_the_loop"),
)
