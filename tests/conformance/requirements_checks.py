"""The acceptance checks that follow from all seeds: parsing, discovery, the skill tool, substitution, pages and paths."""

from __future__ import annotations

from tests.conformance.requirement import Requirement

# One row a line, so that it is found by its id, its words and its test at once.
# fmt: off
ROWS: tuple[Requirement, ...] = (
    # Parsing
    Requirement("checks-1", "checks", "Line ends of Windows change neither the fields nor whether a skill loads.", "tests/conformance/test_acceptance_reading.py::test_1_line_ends_of_windows"),
    Requirement("checks-2", "checks", "A byte order mark is no reason for a warning, and the body can be read.", "tests/conformance/test_acceptance_reading.py::test_2_a_byte_order_mark_is_no_reason_for_a_warning"),
    Requirement("checks-3", "checks", "My_Skill in My_Skill is my-skill with a warning in 001 and 002, and refused in 000.", "tests/conformance/test_acceptance_reading.py::test_3_a_name_with_capitals_and_an_underscore"),
    Requirement("checks-4", "checks", "Without a name, a directory in Chinese cannot stand in; the message says so.", "tests/conformance/test_acceptance_reading.py::test_4_a_directory_whose_name_cannot_stand_in"),
    Requirement("checks-5", "checks", "A mismatch warns in 001 and 002 and refuses in 000; a neighbour without description is an error.", "tests/conformance/test_acceptance_reading.py::test_5_a_mismatch_beside_a_neighbour_without_a_description"),
    Requirement("checks-6", "checks", "A name of 65 characters gives way to the directory's in 002 and is refused in 000.", "tests/conformance/test_acceptance_reading.py::test_6_a_name_of_65_characters"),
    Requirement("checks-7", "checks", "2,048 characters are cut at 1,024 in 002, and kept with a warning and listed with dots in 001.", "tests/conformance/test_acceptance_reading.py::test_7_a_description_of_2048_characters"),
    Requirement("checks-8", "checks", "A folded description is one line in 001, and keeps its paragraphs in 004.", "tests/conformance/test_acceptance_reading.py::test_8_folded_descriptions"),
    Requirement("checks-9", "checks", "Tools in one text are cut at commas or blanks, and never inside parentheses.", "tests/conformance/test_acceptance_reading.py::test_9_allowed_tools_as_text"),
    Requirement("checks-10", "checks", "A map where tools belong is an error in 004; the same under an unknown key loads.", "tests/conformance/test_acceptance_reading.py::test_10_a_known_key_of_the_wrong_shape"),
    Requirement("checks-11", "checks", "The text 1.0 stays text, a vendor's key stays, license and compatibility are read in 001.", "tests/conformance/test_acceptance_reading.py::test_11_text_stays_text_and_unknown_keys_stay"),
    Requirement("checks-12", "checks", "One byte above the ceiling of 002 is refused by path and by bytes.", "tests/conformance/test_acceptance_reading.py::test_12_one_byte_over_the_ceiling"),
    # Discovery
    Requirement("checks-13", "checks", "One name in two roots: first with the other listed, first with an error, both, last, or both under namespaces.", "tests/conformance/test_acceptance_reading.py::test_13_one_name_in_two_roots"),
    Requirement("checks-14", "checks", "A broken skill of a later root does not take the place of a good one.", "tests/conformance/test_acceptance_reading.py::test_14_a_broken_skill_never_hides_a_good_one"),
    Requirement("checks-15", "checks", "Two links from a root to itself: one skill, nothing to report.", "tests/conformance/test_acceptance_reading.py::test_15_links_to_the_root_itself"),
    Requirement("checks-16", "checks", "A root given twice and once more through a link: one skill.", "tests/conformance/test_acceptance_reading.py::test_16_a_root_given_twice_and_an_alias"),
    Requirement("checks-17", "checks", "Links out of the roots are reported and not read; a link into another root leads to one skill.", "tests/conformance/test_acceptance_reading.py::test_17_links_out_of_the_roots_and_into_another_root"),
    Requirement("checks-18", "checks", "What is written later is seen after a reload.", "tests/conformance/test_acceptance_reading.py::test_18_a_skill_that_is_written_later_is_seen_after_a_reload"),
    Requirement("checks-19", "checks", "A skill disabled by name or by absolute path is not there at all.", "tests/conformance/test_acceptance_reading.py::test_19_disabled_by_name_and_by_path"),
    Requirement("checks-20", "checks", "skills/x/SKILL.md below a root is found; an example inside x/references is no skill.", "tests/conformance/test_acceptance_reading.py::test_20_a_published_layout"),
    # The tool skill
    Requirement("checks-21-1", "checks", "An empty name, one with capitals and one of 65 characters are INVALID_PARAM, the second with what is right.", "tests/conformance/test_activation_000.py::test_a_name_that_is_not_kebab_case"),
    Requirement("checks-21-2", "checks", "Keys that mean something elsewhere are answered with the right key, or why there is none.", "tests/conformance/test_activation_000.py::test_several_aliases_are_told_together_and_the_table_is_complete"),
    Requirement("checks-22", "checks", "A name with one letter too many leads to not_found and the name that was meant.", "tests/conformance/test_activation_000.py::test_a_name_that_nobody_has"),
    Requirement("checks-23-1", "checks", "A second call answers already_loaded.", "tests/conformance/test_activation_000.py::test_the_second_activation_says_when_the_first_was"),
    Requirement("checks-23-2", "checks", "Two sessions know nothing of each other: each gets the skill once.", "tests/conformance/test_activation_000.py::test_a_session_ends_with_its_process"),
    Requirement("checks-24-1", "checks", "What no model may start answers DISABLED to a model.", "tests/conformance/test_activation_000.py::test_a_skill_that_no_model_may_start"),
    Requirement("checks-24-2", "checks", "The same starts when a user asks for it.", "tests/conformance/test_activation_000.py::test_a_skill_that_no_model_may_start_is_started_by_people"),
    Requirement("checks-25-1", "checks", "Untrusted without a hook is NOT_TRUSTED; the flag for tests lets it in, as the matrix says and against the code.", "tests/conformance/test_activation_000.py::test_an_untrusted_skill_without_a_hook_in_a_test"),
    Requirement("checks-25-2", "checks", "With allow and warn it starts; a trusted root starts without a hook, as the text says and against the code.", "tests/conformance/test_activation_000.py::test_other_rules_for_untrusted_skills"),
    Requirement("checks-25-3", "checks", "A hook that answers deny or ask is PERMISSION_DENIED, and NOT_TRUSTED where trust was the question.", "tests/conformance/test_activation_000.py::test_a_hook_that_does_not_allow"),
    Requirement("checks-26", "checks", "Twelve files in a folder are ten names and how many more there are.", "tests/conformance/test_activation_000.py::test_more_resources_than_ten_in_a_folder"),
    # Substitution
    Requirement("checks-27-1", "checks", "Positions from 1: two tokens take the places of the first two placeholders.", "tests/conformance/test_substitution.py::test_agent_sh"),
    Requirement("checks-27-2", "checks", "Positions from 0: two tokens, and nothing for a third.", "tests/conformance/test_substitution.py::test_contextchef"),
    Requirement("checks-28-1", "checks", "An argument that looks like a placeholder or a replacement pattern stays as it is.", "tests/conformance/test_substitution.py::test_agent_sh"),
    Requirement("checks-28-2", "checks", "An argument that is itself the placeholder for all arguments stays literal in 003.", "tests/conformance/test_substitution.py::test_tnsai"),
    Requirement("checks-29", "checks", "A quoted argument is one; a name does not match inside a longer one.", "tests/conformance/test_substitution.py::test_contextchef"),
    Requirement("checks-30", "checks", "Arguments without a place are appended, blank ones are not, and without any nothing changes.", "tests/conformance/test_substitution.py::test_contextchef"),
    # Ranking and mentions
    Requirement("checks-31-1", "checks", "The published scores to twelve places, also of beginnings of words.", "tests/skills/test_rank.py::test_the_published_scores"),
    Requirement("checks-31-2", "checks", "A term counts more than four longer ones; two letters find a name.", "tests/skills/test_rank.py::test_the_term_itself_wins_over_many_longer_ones"),
    Requirement("checks-31-3", "checks", "A Chinese fragment finds its description.", "tests/skills/test_rank.py::test_chinese_japanese_and_korean_fragments_are_found"),
    Requirement("checks-32", "checks", "Two mentions in order, one of three, none in amounts and inside words.", "tests/skills/test_rank.py::test_a_mention_stands_on_its_own"),
    # The section, pages and paths
    Requirement("checks-33", "checks", "The section of 002 has its form, without a line end, and is empty without skills.", "tests/context/test_listings.py::test_the_section_of_a_turn_has_its_published_form"),
    Requirement("checks-34-1", "checks", "A page ends with the offset of the next; the last page says nothing of one.", "tests/tools/test_skill_tools.py::test_a_long_file_comes_in_pages_with_the_call_for_the_next"),
    Requirement("checks-34-2", "checks", "A character at the edge of a page is never split.", "tests/library/test_reading.py::test_pages_put_together_are_the_file"),
    Requirement("checks-34-3", "checks", "An offset past the end is answered with the size.", "tests/library/test_reading.py::test_reads_that_cannot_be_answered_name_the_reason"),
    Requirement("checks-35-1", "checks", "Each spelling that the guard refuses has its own words.", "tests/test_pathguard.py::test_each_spelling_that_could_lead_elsewhere_is_refused_by_its_own_name"),
    Requirement("checks-35-2", "checks", "A directory, a missing file, a relative root and a blank root are told apart.", "tests/test_pathguard.py::test_absent_directory_and_root_each_have_their_code"),
    Requirement("checks-35-3", "checks", "Backslashes, a leading dot and nothing at all are accepted spellings.", "tests/test_pathguard.py::test_accepted_spellings"),
    Requirement("checks-35-4", "checks", "A link that stays inside is followed.", "tests/test_pathguard.py::test_links_that_stay_inside_are_followed"),
    Requirement("checks-35-5", "checks", "A link as the last part that leaves is refused as a link.", "tests/test_pathguard.py::test_links_that_leave_are_refused_whether_or_not_their_target_exists"),
    Requirement("checks-35-6", "checks", "A link in the middle that leaves is refused as a link.", "tests/test_pathguard.py::test_a_link_in_the_middle_of_a_path_is_checked_too"),
    Requirement("checks-35-7", "checks", "A sibling whose name begins like the root is outside.", "tests/test_pathguard.py::test_inside_is_about_whole_segments"),
    # Whose tool it is, and how many are answered
    Requirement("checks-36-1", "checks", "Arguments may be a list, a number, a line or a list in a text.", "tests/tools/test_skills_run.py::test_arguments_are_taken_as_models_write_them"),
    Requirement("checks-36-2", "checks", "A bracket that begins no list is refused with how to quote it.", "tests/tools/test_skills_run.py::test_a_list_that_is_none_is_refused_with_the_way_to_write_it"),
    Requirement("checks-36-3", "checks", "A path with arguments behind it is answered with the call that was meant.", "tests/tools/test_skills_run.py::test_a_path_that_is_none_is_answered_with_the_call_that_was_meant"),
    Requirement("checks-37-1", "checks", "A tool of the client with the name of ours is the one that counts, and that is told.", "tests/engine/test_turn.py::test_a_client_tool_of_the_same_name_wins"),
    Requirement("checks-37-2", "checks", "A call to an unknown tool with the name of a skill is answered with how to read it.", "tests/engine/test_turn.py::test_wrong_calls_are_answered_in_the_loop"),
    Requirement("checks-37-3", "checks", "Of nine calls in a round eight are answered.", "tests/engine/test_turn.py::test_no_more_than_eight_calls_a_round"),
    # The blocklist and the skill of a prompt
    Requirement("checks-40-1", "checks", "A blocked tool is refused with the words of the seed, and a list replaces the one before, with copies.", "tests/conformance/test_context_004.py::test_a_list_replaces_the_list_before_and_copies_go_in_and_out"),
    Requirement("checks-40-2", "checks", "A blocklist comes back from its snapshot.", "tests/conformance/test_context_004.py::test_a_blocklist_comes_back_from_its_snapshot"),
    Requirement("checks-40-3", "checks", "A snapshot that is restored without registered skills keeps the instructions.", "tests/conformance/test_context_004.py::test_without_a_registered_skill_its_instructions_are_kept"),
    Requirement("checks-40-4", "checks", "The message of a skill stands in front of the memory.", "tests/conformance/test_context_004.py::test_the_order_of_the_messages"),
)
# fmt: on
