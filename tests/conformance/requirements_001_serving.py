"""Seed 001, skills of a server: what clients of a running gateway see, by whatever surface and before whatever model."""

from __future__ import annotations

from tests.conformance.requirement import Requirement

# One row a line, so that it is found by its id, its words and its test at once.
# fmt: off
ROWS: tuple[Requirement, ...] = (
    # Why it is in process
    Requirement("001-serving-1", "001", "on a normal chat request and gets back a finished completion", "tests/program/test_serve.py::test_the_same_text_by_every_way"),
    Requirement("001-serving-2", "001", "Skills run in a bounded, in-process tool loop.", "tests/program/test_serve.py::test_the_same_text_by_every_way"),
    Requirement("001-serving-3", "001", "that client would have no implementation for it and the conversation would stall", "tests/program/test_lockstep.py::test_every_piece_reaches_the_client_before_the_next_is_said"),
    Requirement("001-serving-4", "001", "which is what the server's structured logs", "tests/program/test_serve.py::test_each_request_is_one_line_of_log"),
    # Streaming
    Requirement("001-serving-5", "001", "on every surface, exactly like one that does not", "tests/program/test_lockstep.py::test_every_piece_reaches_the_client_before_the_next_is_said"),
    Requirement("001-serving-6", "001", "content as content, reasoning as reasoning, tool markup not at all", "tests/program/test_lockstep.py::test_every_piece_reaches_the_client_before_the_next_is_said"),
    Requirement("001-serving-7", "001", "Every round streams, including the ones that end in a lookup", "tests/program/test_lockstep.py::test_every_piece_reaches_the_client_before_the_next_is_said"),
    Requirement("001-serving-8", "001", "it cost a skills request its whole stream", "tests/program/test_lockstep.py::test_every_piece_reaches_the_client_before_the_next_is_said"),
    Requirement("001-serving-9", "001", "for single-round, multi-round and no-skills cases alike", "tests/program/test_lockstep.py::test_every_piece_reaches_the_client_before_the_next_is_said"),
    # Model-family caveats
    Requirement("001-serving-10", "001", "Skills are delivered differently depending on what a family's chat format can", "tests/upstream/test_families.py::test_a_row_is_found_and_tools_are_offered_only_when_both_halves_are_there"),
    Requirement("001-serving-11", "001", "Full progressive disclosure", "tests/upstream/test_families.py::test_a_row_is_found_and_tools_are_offered_only_when_both_halves_are_there"),
    Requirement("001-serving-12", "001", "including architectures with no registry entry", "tests/upstream/test_families.py::test_of_an_unknown_model_the_server_is_believed_unless_it_is_ollama"),
    Requirement("001-serving-13", "001", "a request that sends its own tools is refused", "tests/program/test_upstreams.py::test_a_diffusion_model_refuses_tools_of_the_client"),
    Requirement("001-serving-14", "001", "Offering a tool is two halves decided in two places", "tests/upstream/test_families.py::test_no_row_says_that_one_half_alone_is_enough"),
    Requirement("001-serving-15", "001", "walks every registered architecture and fails if the two halves ever drift apart", "tests/upstream/test_families.py::test_a_row_is_found_and_tools_are_offered_only_when_both_halves_are_there"),
    Requirement("001-serving-16", "001", "drops everything else on the floor, silently, with the request still succeeding", "tests/engine/test_turn.py::test_families_without_tool_role_get_results_as_user_turns"),
    # Operator surface
    Requirement("001-serving-17", "001", "Select a skill for this run.", "tests/program/test_run.py::test_selecting_without_discovery_offers_nothing_else"),
    Requirement("001-serving-18", "001", "Turn the feature off entirely.", "tests/program/test_run.py::test_no_skills_leaves_the_request_alone"),
    Requirement("001-serving-19", "001", "Do not advertise unselected skills to the model.", "tests/program/test_run.py::test_selecting_without_discovery_offers_nothing_else"),
    Requirement("001-serving-20", "001", "per turn, 1–64. Default 8", "tests/program/test_run.py::test_wrong_calls_say_what_is_wrong"),
    # HTTP: chat
    Requirement("001-serving-21", "001", "Every chat surface takes the same two optional fields", "tests/program/test_lockstep.py::test_every_piece_reaches_the_client_before_the_next_is_said"),
    Requirement("001-serving-22", "001", "skills_discovery defaults to true", "tests/program/test_lockstep.py::test_every_piece_reaches_the_client_before_the_next_is_said"),
    Requirement("001-serving-23", "001", 'The same requests also accept "multi_agent": false', "tests/gateway/test_openai_chat.py::test_fields_of_ours_end_here_and_others_go_on"),
    Requirement("001-serving-24", "001", "/api/chat/ollama", "tests/program/test_lockstep.py::test_every_piece_reaches_the_client_before_the_next_is_said"),
    Requirement("001-serving-25", "001", "The response is an ordinary completion.", "tests/program/test_surfaces.py::test_an_anthropic_and_an_ollama_client_hear_the_same"),
    # HTTP: managing skills
    Requirement("001-serving-26", "001", "and everything else returns", "tests/program/test_faults.py::test_every_fault_is_a_true_error_in_the_form_of_the_surface"),
    Requirement("001-serving-27", "001", "curl http://localhost:5000/v1/skills/pdf", "tests/program/test_serve.py::test_models_and_skills_are_listed"),
    Requirement("001-serving-28", "001", "The Web UI additionally carries skill_step and tool_progress frames.", "tests/gateway/test_native.py::test_work_of_every_agent_is_told_and_words_only_of_the_one_that_answers"),
    Requirement("001-serving-29", "001", "The Web UI stream additionally carries skill completion metadata", "tests/gateway/test_native.py::test_a_lookup_is_told_as_a_step_and_its_markup_never_leaves"),
    Requirement("001-serving-30", "001", '"detail":"references/forms.md","ok":true,"round":1', "tests/gateway/test_native.py::test_the_steps_of_real_tools_name_the_file_and_a_failed_one_too"),
    Requirement("001-serving-31", "001", "round is the 1-based tool-loop round", "tests/gateway/test_native.py::test_a_lookup_is_told_as_a_step_and_its_markup_never_leaves"),
    Requirement("001-serving-32", "001", '"skills": ["pdf"], "maxTokens": 400', "tests/gateway/test_native.py::test_what_is_ours_ends_here_and_everything_else_goes_upstream"),
    Requirement("001-serving-33", "001", "POST http://localhost:5000/api/skills/rescan", "tests/gateway/test_skills_management.py::test_a_rescan_finds_what_is_new_and_what_is_gone"),
    Requirement("001-serving-34", "001", "curl http://localhost:5000/api/skills/pdf/files/references/forms.md", "tests/gateway/test_skills_management.py::test_a_file_is_plain_text_that_no_browser_takes_for_anything_else"),
    Requirement("001-serving-35", "001", "/api/skills wraps the list as", "tests/gateway/test_skills_management.py::test_the_page_lists_skills_and_what_did_not_load"),
    Requirement("001-serving-36", "001", "GET /api/models grows a nullable block", "tests/gateway/test_native.py::test_models_are_listed_with_what_the_server_does_with_skills"),
    Requirement("001-serving-37", "001", "null means this build or this deployment has no skills", "tests/gateway/test_native.py::test_models_are_listed_with_what_the_server_does_with_skills"),
)
# fmt: on
