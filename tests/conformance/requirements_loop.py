"""Seed 001, skills of a server: the loop, streaming, the cost of a round, reach and model families."""

from __future__ import annotations

from tests.conformance.requirement import Requirement

# One row a line, so that it is found by its id, its words and its test at once.
# fmt: off
ROWS: tuple[Requirement, ...] = (
    # The in-process agentic loop
    Requirement("001-loop-1", "001", "generate → answer any skill tool calls in process → generate again", "tests/engine/test_turn.py::test_answer_after_a_read"),
    Requirement("001-loop-2", "001", "The caller's own tools are never executed.", "tests/engine/test_turn.py::test_mixed_turn_returns_only_the_clients_calls"),
    Requirement("001-loop-3", "001", "with any skill results the same turn produced already in the returned history", "tests/engine/test_followup.py::test_a_mixed_turn_goes_on_with_its_own_results"),
    Requirement("001-loop-4", "001", "Eight covers the realistic reading case", "tests/engine/test_loop.py::test_eight_rounds_and_one_without_our_tools_is_all_there_is"),
    Requirement("001-loop-5", "001", "A model emitting fifty reads in one turn is malfunctioning", "tests/engine/test_turn.py::test_refused_calls_are_not_read_and_endless_ones_are_dropped"),
    Requirement("001-loop-6", "001", "say which part you could not check", "tests/engine/test_turn.py::test_round_limit_ends_with_a_note_and_without_own_tools"),
    Requirement("001-loop-7", "001", "Returning a tool-call-only turn to the user would show them nothing at all.", "tests/engine/test_loop.py::test_the_clients_calls_ride_out_of_the_last_round"),
    Requirement("001-loop-8", "001", "shadowing it to add a feature it did not ask for would break a working integration", "tests/engine/test_turn.py::test_a_client_tool_of_the_same_name_wins"),
    # Streaming
    Requirement("001-streaming-1", "001", "A request that selects or discovers skills streams token by token", "tests/engine/test_loop.py::test_every_piece_of_every_round_goes_out_before_the_next_one_comes"),
    Requirement("001-streaming-2", "001", "the markup a client cannot service never leaves the server", "tests/gateway/test_openai_chat.py::test_a_stream_has_one_role_one_finish_one_id_and_no_tools_of_ours"),
    Requirement("001-streaming-3", "001", "a parent round that starts while a sub-agent report is still unread is buffered", "tests/engine/test_hosts_and_stopping.py::test_an_answer_waits_for_what_a_host_still_has_to_say"),
    Requirement("001-streaming-4", "001", "byte-identical to what the non-streaming endpoint returns", "tests/gateway/test_openai_chat.py::test_streamed_and_whole_answers_carry_the_same_text"),
    # What a round costs
    Requirement("001-cost-1", "001", "so the re-rendered prefix stays byte-identical from round to round", "tests/engine/test_prefix.py::test_every_round_begins_with_all_of_the_round_before"),
    Requirement("001-cost-2", "001", "The whole of round 1 — prompt and generated tokens alike — carries over.", "tests/model/test_prefix_cache.py::test_what_stands_in_front_is_computed_once"),
    # When the model gets it wrong
    Requirement("001-wrong-1", "001", "A byte-identical failing command re-sent nine times", "tests/engine/test_loop.py::test_the_same_failing_call_is_told_how_often_it_failed"),
    Requirement("001-wrong-2", "001", "The turn says it ran out, appended to whatever the model had already written", "tests/engine/test_turn.py::test_round_limit_ends_with_a_note_and_without_own_tools"),
    Requirement("001-wrong-3", "001", "None of the recoveries touch the prompt.", "tests/engine/test_turn.py::test_rounds_extend_the_same_prefix"),
    # Prompt injection and the KV prefix cache
    Requirement("001-cache-6", "001", "The same conversation with the same skills renders to the same leading tokens", "tests/engine/test_prefix.py::test_a_restart_changes_no_byte"),
    Requirement("001-cache-7", "001", "a selection rendered in whatever order the caller's JSON happened to list it", "tests/engine/test_prefix.py::test_no_order_of_skills_or_roots_changes_a_byte"),
    # One skill cannot read another
    Requirement("001-cross-3", "001", "B has to already be reachable in that request", "tests/engine/test_reach.py::test_no_tool_and_no_spelling_reads_a_skill_that_was_not_opened"),
    Requirement("001-cross-4", "001", "pull the contents of a skill the user never enabled", "tests/engine/test_reach.py::test_a_mention_does_not_open_what_the_request_closed"),
    Requirement("001-cross-5", "001", "narrows it further, to exactly the skills that request named", "tests/engine/test_turn.py::test_an_unselected_skill_cannot_be_read"),
    # Model-family caveats
    Requirement("001-families-1", "001", "fed back as a user turn rather than a tool turn", "tests/engine/test_turn.py::test_families_without_tool_role_get_results_as_user_turns"),
    Requirement("001-families-2", "001", "written into the prompt up front and the catalog is dropped", "tests/engine/test_turn.py::test_families_without_tools_get_bodies"),
    Requirement("001-families-3", "001", "everything available to it is already in front of it", "tests/context/test_block.py::test_the_rules_name_no_tool_that_is_not_declared"),
    # HTTP: chat
    Requirement("001-http-1", "001", "restricts the request to exactly the skills it named", "tests/engine/test_turn.py::test_an_unselected_skill_cannot_be_read"),
    Requirement("001-http-2", "001", "the client never sees a tool call it cannot service", "tests/gateway/test_openai_chat.py::test_only_the_clients_own_calls_come_back_numbered_from_zero"),
)
# fmt: on
