"""Seed 001, skills of a server: reading, finding, files, paths, the block and the two tools."""

from __future__ import annotations

from tests.conformance.requirement import Requirement

# One row a line, so that it is found by its id, its words and its test at once.
# fmt: off
ROWS: tuple[Requirement, ...] = (
    # What a skill is
    Requirement("001-what-1", "001", "A skill is a directory whose name is the skill's name", "tests/conformance/test_seed_001.py::test_bundled_files_are_classified_and_any_layout_loads"),
    Requirement("001-what-2", "001", "that opens with a YAML frontmatter block", "tests/conformance/test_seed_001.py::test_what_refuses_a_skill"),
    Requirement("001-what-3", "001", "Everything after the closing --- is the body", "tests/skills/test_frontmatter.py::test_nothing_of_a_file_is_lost_between_its_fences"),
    # Frontmatter fields
    Requirement("001-fields-1", "001", "lowercase a-z, 0-9 and single hyphens", "tests/conformance/test_seed_001.py::test_a_name_is_made_legal_before_the_directory_s_is_used"),
    Requirement("001-fields-2", "001", "Whitespace is collapsed to a single line", "tests/conformance/test_seed_001.py::test_fields_and_the_keys_outside_them"),
    Requirement("001-fields-3", "001", "Free text; an SPDX identifier by convention.", "tests/conformance/test_seed_001.py::test_fields_and_the_keys_outside_them"),
    Requirement("001-fields-4", "001", "Up to 500 characters describing what the environment must provide.", "tests/conformance/test_seed_001.py::test_everything_else_is_a_warning"),
    Requirement("001-fields-5", "001", "Surfaced to the model as requires: in skills_list.", "tests/conformance/test_seed_001.py::test_the_list_names_each_skill_its_description_what_it_requires_and_its_files"),
    Requirement("001-fields-6", "001", "A mapping of string keys to string values.", "tests/conformance/test_seed_001.py::test_fields_and_the_keys_outside_them"),
    Requirement("001-fields-7", "001", "A whitespace-separated string (a YAML list is also accepted).", "tests/conformance/test_seed_001.py::test_fields_and_the_keys_outside_them"),
    Requirement("001-fields-8", "001", "TensorSharp records and reports it", "tests/conformance/test_conflicts.py::test_17_allowed_tools_are_only_recorded_by_reading"),
    Requirement("001-fields-9", "001", "Keys outside that set are not dropped", "tests/conformance/test_seed_001.py::test_fields_and_the_keys_outside_them"),
    # Strict about two things
    Requirement("001-strict-1", "001", "refuses to load a skill in only a few cases", "tests/conformance/test_seed_001.py::test_what_refuses_a_skill"),
    Requirement("001-strict-2", "001", "no YAML frontmatter block delimited by ---", "tests/conformance/test_seed_001.py::test_what_refuses_a_skill"),
    Requirement("001-strict-3", "001", "a duplicate key is a parse failure", "tests/conformance/test_seed_001.py::test_what_refuses_a_skill"),
    Requirement("001-strict-4", "001", "a missing or empty description;", "tests/conformance/test_seed_001.py::test_what_refuses_a_skill"),
    Requirement("001-strict-5", "001", "a name that is unusable and no directory name to fall back on.", "tests/conformance/test_seed_001.py::test_what_refuses_a_skill"),
    Requirement("001-strict-6", "001", "reported by --list-skills", "tests/cli/test_skill_commands.py::test_list_for_people_keeps_skills_and_findings_apart"),
    Requirement("001-strict-7", "001", "name disagrees with its directory;", "tests/conformance/test_seed_001.py::test_everything_else_is_a_warning"),
    Requirement("001-strict-8", "001", "normalized into one (My PDF Tool → my-pdf-tool)", "tests/conformance/test_seed_001.py::test_a_name_is_made_legal_before_the_directory_s_is_used"),
    Requirement("001-strict-9", "001", "name is missing and the directory name was used;", "tests/conformance/test_seed_001.py::test_everything_else_is_a_warning"),
    Requirement("001-strict-10", "001", "description is over 1024 characters, or compatibility over 500;", "tests/conformance/test_seed_001.py::test_everything_else_is_a_warning"),
    Requirement("001-strict-11", "001", "metadata is not a string-to-string mapping", "tests/conformance/test_seed_001.py::test_everything_else_is_a_warning"),
    Requirement("001-strict-12", "001", "carries values that are not strings (those are dropped)", "tests/conformance/test_seed_001.py::test_fields_and_the_keys_outside_them"),
    Requirement("001-strict-13", "001", "three characters over the description limit", "tests/conformance/test_conflicts.py::test_9_a_long_description"),
    # The directory
    Requirement("001-directory-1", "001", "a file under scripts/ (or an executable file type anywhere)", "tests/conformance/test_seed_001.py::test_bundled_files_are_classified_and_any_layout_loads"),
    Requirement("001-directory-2", "001", "one under references/ or reference/", "tests/conformance/test_seed_001.py::test_bundled_files_are_classified_and_any_layout_loads"),
    Requirement("001-directory-3", "001", "under assets/ (or any binary resource)", "tests/conformance/test_seed_001.py::test_bundled_files_are_classified_and_any_layout_loads"),
    Requirement("001-directory-4", "001", "Any file or directory layout loads.", "tests/conformance/test_seed_001.py::test_bundled_files_are_classified_and_any_layout_loads"),
    Requirement("001-directory-5", "001", "a SKILL.md is parsed up to 4 MB", "tests/conformance/test_conflicts.py::test_47_the_size_of_a_manifest"),
    Requirement("001-directory-6", "001", "may hold up to 4096 files totalling 256 MB", "tests/conformance/test_seed_001.py::test_ceilings_of_one_skill"),
    Requirement("001-directory-7", "001", "a whole registry is capped at 512 skills", "tests/conformance/test_seed_001.py::test_a_registry_holds_512_skills_and_says_when_there_are_more"),
    # Progressive disclosure
    Requirement("001-disclosure-1", "001", "Always, for every reachable skill", "tests/conformance/test_seed_001.py::test_three_tiers_of_disclosure"),
    Requirement("001-disclosure-2", "001", "When the model activates the skill, by calling", "tests/conformance/test_seed_001.py::test_three_tiers_of_disclosure"),
    Requirement("001-disclosure-3", "001", "the index of paths and sizes rides with the activation", "tests/conformance/test_seed_001.py::test_three_tiers_of_disclosure"),
    Requirement("001-disclosure-4", "001", "it does not load anything", "tests/conformance/test_seed_001.py::test_three_tiers_of_disclosure"),
    Requirement("001-disclosure-5", "001", "the same block cost 1,050 tokens", "tests/context/test_block.py::test_four_skills_with_descriptions_of_a_real_length_are_cheap"),
    # The injected block
    Requirement("001-block-1", "001", "to ask one focused question", "tests/conformance/test_seed_001.py::test_the_rules_of_the_block"),
    Requirement("001-block-2", "001", "to resume the pending task", "tests/conformance/test_seed_001.py::test_the_rules_of_the_block"),
    Requirement("001-block-3", "001", "its instructions outrank the model's default approach", "tests/conformance/test_seed_001.py::test_the_rules_of_the_block"),
    Requirement("001-block-4", "001", "Skills selected for this conversation — one", "tests/context/test_block.py::test_every_part_stands_in_its_order"),
    Requirement("001-block-5", "001", "Other available skills — the discovery catalog", "tests/context/test_block.py::test_every_part_stands_in_its_order"),
    Requirement("001-block-6", "001", "How to use a skill — the operating rules", "tests/conformance/test_seed_001.py::test_the_rules_of_the_block"),
    Requirement("001-block-7", "001", "can set SkillPromptOptions.InlineSelectedBodies", "tests/context/test_block.py::test_bodies_that_do_not_fit_are_deferred_where_a_tool_can_fetch_them"),
    Requirement("001-block-8", "001", "forced on for families that cannot carry tool declarations", "tests/context/test_block.py::test_bodies_are_inlined_where_no_tool_can_fetch_them"),
    # The budget
    Requirement("001-budget-1", "001", "approximated at 4 bytes per token", "tests/context/test_budget.py::test_tokens_are_a_quarter_of_the_bytes_rounded_up"),
    Requirement("001-budget-2", "001", "2% of contextTokens, clamped to 1024–10000", "tests/context/test_budget.py::test_budgets"),
    Requirement("001-budget-3", "001", "contextTokens / 4, clamped to 1024–48000", "tests/context/test_budget.py::test_budgets"),
    Requirement("001-budget-4", "001", "three quarters of the block ceiling (minimum 512)", "tests/context/test_budget.py::test_tokens_are_a_quarter_of_the_bytes_rounded_up"),
    Requirement("001-budget-5", "001", "trimmed to 1024 characters at a word boundary", "tests/conformance/test_seed_001.py::test_a_long_description_is_trimmed_at_a_word_with_dots"),
    Requirement("001-budget-6", "001", "so a conformant skill is never cut", "tests/context/test_block.py::test_a_description_within_the_specification_is_never_cut_when_selected"),
    Requirement("001-budget-7", "001", "at most 96, then", "tests/context/test_block.py::test_at_most_ninety_six_are_advertised"),
    Requirement("001-budget-8", "001", "at most 40 paths, then", "tests/tools/test_skill_tools.py::test_many_files_are_counted_and_listed_on_request"),
    # Deferred
    Requirement("001-deferred-1", "001", "announced by name and description, with its approximate size", "tests/context/test_block.py::test_every_part_stands_in_its_order"),
    Requirement("001-deferred-2", "001", "The description is the whole routing signal once bodies are deferred", "tests/context/test_block.py::test_a_description_within_the_specification_is_never_cut_when_selected"),
    Requirement("001-deferred-3", "001", "the discovery catalog is dropped", "tests/conformance/test_seed_001.py::test_a_body_that_is_too_large_is_cut_where_there_are_no_tools"),
    Requirement("001-deferred-4", "001", "inlined anyway and truncated at the cap", "tests/conformance/test_seed_001.py::test_a_body_that_is_too_large_is_cut_where_there_are_no_tools"),
    # The skill tools
    Requirement("001-tools-1", "001", "every reachable skill, its description and its files", "tests/conformance/test_seed_001.py::test_the_list_names_each_skill_its_description_what_it_requires_and_its_files"),
    Requirement("001-tools-2", "001", '"SKILL.md" is the instructions', "tests/tools/test_skill_tools.py::test_reading_the_instructions"),
    Requirement("001-tools-3", "001", "returns at most 48 KB per call by default", "tests/conformance/test_seed_001.py::test_a_page_has_48_kb_and_its_footer_is_the_next_call"),
    Requirement("001-tools-4", "001", 'Continue with skills_read(skill="pdf", path="references/api.md"', "tests/conformance/test_seed_001.py::test_a_page_has_48_kb_and_its_footer_is_the_next_call"),
    Requirement("001-tools-5", "001", "every parameter here is a string or an integer", "tests/tools/test_skill_tools.py::test_declarations_are_flat"),
    Requirement("001-tools-6", "001", "skills_read with no path is answered with SKILL.md", "tests/tools/test_skill_tools.py::test_slightly_wrong_arguments_are_understood"),
    Requirement("001-tools-7", "001", "is accepted as api.md inside skill pdf", "tests/tools/test_skill_tools.py::test_slightly_wrong_arguments_are_understood"),
    Requirement("001-tools-8", "001", "A .. segment is deliberately not rewritten", "tests/conformance/test_seed_001.py::test_a_parent_segment_is_refused_as_one_and_never_rewritten"),
    Requirement("001-tools-9", "001", "A tool call that fails never throws.", "tests/tools/test_skill_tools.py::test_failures_are_sentences_that_say_what_to_do"),
    # The block and the prefix cache
    Requirement("001-cache-1", "001", "The block is merged into the leading system/developer message", "tests/context/test_place.py::test_the_block_joins_the_first_message"),
    Requirement("001-cache-2", "001", "only becomes its own leading system message when there is not", "tests/context/test_place.py::test_without_a_leading_system_message_there_is_a_new_one"),
    Requirement("001-cache-3", "001", "a pure function of the sorted selection and the options", "tests/conformance/test_seed_001.py::test_the_block_changes_with_nothing_but_the_skills_and_the_options"),
    Requirement("001-cache-4", "001", "skills are sorted by id with an ordinal comparison", "tests/context/test_block.py::test_the_order_of_the_inputs_does_not_matter"),
    Requirement("001-cache-5", "001", "nothing environment-derived is rendered", "tests/conformance/test_seed_001.py::test_the_block_changes_with_nothing_but_the_skills_and_the_options"),
    # Path containment
    Requirement("001-paths-1", "001", "A skill is untrusted content.", "tests/context/test_block.py::test_a_description_stays_on_its_line"),
    Requirement("001-paths-2", "001", "SkillPathGuard is the single security boundary.", "tests/conformance/test_public_reports.py::test_s40_reads_stay_inside_the_skill"),
    Requirement("001-paths-3", "001", ".. segments, absolute paths (/etc/...), ~, UNC paths", "tests/test_pathguard.py::test_each_spelling_that_could_lead_elsewhere_is_refused_by_its_own_name"),
    Requirement("001-paths-4", "001", "Rejected before touching the disk.", "tests/conformance/test_seed_001.py::test_spellings_are_refused_before_the_disk_is_touched"),
    Requirement("001-paths-5", "001", "the result must still sit under the skill root", "tests/test_pathguard.py::test_no_path_opens_a_file_outside"),
    Requirement("001-paths-6", "001", "a symlink inside the skill pointing out of it", "tests/test_pathguard.py::test_links_that_leave_are_refused_whether_or_not_their_target_exists"),
    Requirement("001-paths-7", "001", "component by component, not just the leaf", "tests/conformance/test_seed_001.py::test_every_component_of_a_path_is_resolved_not_only_the_last"),
    Requirement("001-paths-8", "001", "follows the host filesystem's own case rule", "tests/conformance/test_seed_001.py::test_containment_follows_the_case_rule_of_the_host"),
    Requirement("001-paths-9", "001", "why a .. in a model-supplied path is left in place", "tests/conformance/test_seed_001.py::test_a_parent_segment_is_refused_as_one_and_never_rewritten"),
    # One skill cannot read another
    Requirement("001-cross-1", "001", "There is no spelling of a path inside skill A", "tests/conformance/test_seed_001.py::test_a_path_inside_one_skill_never_reaches_another"),
    Requirement("001-cross-2", "001", "Reachability is per request, not global.", "tests/conformance/test_seed_001.py::test_a_path_inside_one_skill_never_reaches_another"),
    # Operator surface
    Requirement("001-operator-1", "001", "is an instruction it cannot follow", "tests/context/test_block.py::test_the_rules_name_no_tool_that_is_not_declared"),
    Requirement("001-operator-2", "001", "outside a repository only the working directory is checked", "tests/conformance/test_seed_001.py::test_roots_by_default"),
    Requirement("001-operator-3", "001", "Personal skill directories are never loaded implicitly.", "tests/conformance/test_seed_001.py::test_roots_by_default"),
    Requirement("001-operator-4", "001", "explicit roots replace the defaults", "tests/conformance/test_seed_001.py::test_given_roots_replace_the_defaults_and_must_exist"),
    Requirement("001-operator-5", "001", "Print the registry and exit.", "tests/cli/test_skill_commands.py::test_list_has_its_published_shape"),
    Requirement("001-operator-6", "001", "A root that does not exist is a startup error naming the flag", "tests/conformance/test_seed_001.py::test_given_roots_replace_the_defaults_and_must_exist"),
    Requirement("001-operator-7", "001", "Roots are scanned in precedence order with the install directory first", "tests/conformance/test_seed_001.py::test_roots_by_default"),
    Requirement("001-operator-8", "001", "a name collision between two roots is reported as an error", "tests/conformance/test_seed_001.py::test_a_name_in_two_roots_is_an_error_and_nothing_is_renamed"),
    Requirement("001-operator-9", "001", '"kind": "script", "text": true', "tests/cli/test_skill_commands.py::test_files_are_listed_with_kind_and_size"),
    Requirement("001-operator-10", "001", "the directories that looked like skills and did not load, with the reason", "tests/library/test_discover.py::test_a_broken_skill_stands_beside_good_ones"),
    # Writing a good skill: what check says about one
    Requirement("001-writing-1", "001", "The description is the whole trigger.", "tests/skills/test_lint.py::test_a_description_without_when_is_found_on_its_line"),
    Requirement("001-writing-2", "001", "Keep SKILL.md under about 500 lines.", "tests/skills/test_lint.py::test_a_long_body_is_told_by_lines_or_by_tokens"),
    Requirement("001-writing-3", "001", "Write paths relative to the skill.", "tests/skills/test_lint.py::test_where_one_program_installs_skills"),
    Requirement("001-writing-4", "001", "an absolute one is rejected by the path guard", "tests/conformance/test_seed_001.py::test_spellings_are_refused_before_the_disk_is_touched"),
    Requirement("001-writing-5", "001", "name must match it; anything else loads with a warning", "tests/conformance/test_seed_001.py::test_everything_else_is_a_warning"),
    Requirement("001-writing-6", "001", "It is shown to the model in skills_list as requires:", "tests/conformance/test_seed_001.py::test_the_list_names_each_skill_its_description_what_it_requires_and_its_files"),
    # Compared with the reference implementations, and where to get skills
    Requirement("001-compared-1", "001", "the specification's limits (name ≤ 64, description ≤ 1024", "tests/conformance/test_skills_ref.py::test_the_verdict_is_the_same_or_the_reason_is_listed"),
    Requirement("001-compared-2", "001", "1024 chars, ... suffix", "tests/conformance/test_seed_001.py::test_a_long_description_is_trimmed_at_a_word_with_dots"),
    Requirement("001-compared-3", "001", "paginated, byte offset", "tests/library/test_reading.py::test_pages_follow_each_other_and_never_split_a_character"),
    Requirement("001-compared-4", "001", "flat scalars only", "tests/tools/test_skill_tools.py::test_declarations_are_flat"),
    Requirement("001-where-1", "001", "the scanner walks up to three levels", "tests/conformance/test_seed_001.py::test_the_scanner_walks_three_levels_and_tells_real_violations_as_warnings"),
    Requirement("001-where-2", "001", "description is 1068 characters", "tests/conformance/test_seed_001.py::test_the_scanner_walks_three_levels_and_tells_real_violations_as_warnings"),
    Requirement("001-where-3", "001", "declares name: template-skill", "tests/conformance/test_seed_001.py::test_the_scanner_walks_three_levels_and_tells_real_violations_as_warnings"),
    Requirement("001-where-4", "001", "Both load and both work", "tests/conformance/test_seed_001.py::test_the_scanner_walks_three_levels_and_tells_real_violations_as_warnings"),
)
# fmt: on
