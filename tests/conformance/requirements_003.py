"""Seed 003, the format of a SKILL.md: layout, fields, substitution, what is rejected, and skills at work."""

from __future__ import annotations

from tests.conformance.requirement import Requirement

# One row a line, so that it is found by its id, its words and its test at once.
# fmt: off
ROWS: tuple[Requirement, ...] = (
    Requirement("003-intro-1", "003", "is a YAML frontmatter block followed by a markdown body", "tests/conformance/test_seed_003.py::test_every_field_with_its_default"),
    # File layout
    Requirement("003-layout-1", "003", "The directory name is the default skill name", "tests/conformance/test_seed_003.py::test_every_child_with_a_manifest_is_a_skill_and_nothing_else"),
    Requirement("003-layout-2", "003", "treats every immediate child directory containing", "tests/conformance/test_seed_003.py::test_every_child_with_a_manifest_is_a_skill_and_nothing_else"),
    Requirement("003-layout-3", "003", "are NOT loaded eagerly", "tests/conformance/test_seed_003.py::test_supporting_files_are_read_on_demand"),
    # Frontmatter reference
    Requirement("003-fields-1", "003", "| `name` | string | parent dir |", "tests/conformance/test_seed_003.py::test_every_field_with_its_default"),
    Requirement("003-fields-2", "003", "case-insensitive on lookup", "tests/conformance/test_seed_003.py::test_a_name_is_looked_up_in_any_case"),
    Requirement("003-fields.2-2", "003", "Stable identifier, case-insensitive on lookup.", "tests/activation/test_names.py::test_letter_case_counts_for_nobody_where_the_row_says_so"),
    Requirement("003-fields-3", "003", "| `description` | string | **required** |", "tests/conformance/test_seed_003.py::test_what_the_reader_rejects"),
    Requirement("003-fields-4", "003", "| `when-to-use` | string | empty |", "tests/conformance/test_seed_003.py::test_every_field_with_its_default"),
    Requirement("003-fields-5", "003", "| `allowed-tools` | list of strings | empty |", "tests/conformance/test_seed_003.py::test_every_field_with_its_default"),
    Requirement("003-fields-6", "003", "Free-form hint shown in catalog listings.", "tests/conformance/test_seed_003.py::test_the_menu_of_a_user"),
    Requirement("003-fields-7", "003", "Positional argument names for `argument-hint`.", "tests/conformance/test_seed_003.py::test_every_field_with_its_default"),
    Requirement("003-fields-8", "003", "the LLM may not activate this skill", "tests/conformance/test_seed_003.py::test_every_field_with_its_default"),
    Requirement("003-fields-9", "003", "hidden from the user-facing menu and rejected", "tests/conformance/test_seed_003.py::test_the_menu_of_a_user"),
    Requirement("003-fields-10", "003", "Programmatic activation still works.", "tests/conformance/test_seed_003.py::test_the_menu_of_a_user"),
    Requirement("003-fields-11", "003", "| `paths` | list of glob patterns | empty |", "tests/conformance/test_seed_003.py::test_every_field_with_its_default"),
    Requirement("003-fields-12", "003", "Always in the system prompt. The resolver scores against it.", "tests/conformance/test_turns_003.py::test_candidates_are_the_skills_that_share_most_words_with_the_message"),
    Requirement("003-fields-13", "003", "Optional context for the resolver, such as trigger phrases and example requests.", "tests/conformance/test_turns_003.py::test_phrases_in_when_to_use_move_a_skill_ahead"),
    Requirement("003-fields-14", "003", "Tools auto-granted while this skill is active.", "tests/conformance/test_turns_003.py::test_tools_are_granted_while_their_skill_is_active"),
    Requirement("003-fields-15", "003", "Empty = no constraint.", "tests/conformance/test_turns_003.py::test_the_filter_is_the_union_of_what_active_skills_allow"),
    Requirement("003-fields-16", "003", "Only the user (or `Agent.invokeSkill(...)`) can.", "tests/conformance/test_turns_003.py::test_the_policy_auto_lets_a_model_activate_what_it_may"),
    Requirement("003-fields-17", "003", "and rejected on `/skill-name`.", "tests/conformance/test_turns_003.py::test_a_user_may_not_start_what_is_not_for_users"),
    Requirement("003-fields-18", "003", "auto-activate when the agent is operating on matching files", "tests/conformance/test_turns_003.py::test_files_at_hand_activate_in_this_row_and_propose_in_portable"),
    # Aliases, lists, line ends
    Requirement("003-aliases-1", "003", "The parser accepts both the kebab-case", "tests/conformance/test_conflicts.py::test_18_spellings_of_a_key"),
    Requirement("003-aliases-2", "003", "| `when-to-use` | `when_to_use` |", "tests/conformance/test_seed_003.py::test_field_aliases"),
    Requirement("003-aliases-3", "003", "| `allowed-tools` | `allowed_tools` |", "tests/conformance/test_seed_003.py::test_field_aliases"),
    Requirement("003-aliases-4", "003", "| `argument-hint` | `argument_hint` |", "tests/conformance/test_seed_003.py::test_field_aliases"),
    Requirement("003-lists-1", "003", "A scalar in place of a single-element list is accepted", "tests/conformance/test_seed_003.py::test_one_value_stands_for_a_list_of_one"),
    Requirement("003-crlf-1", "003", "parse identically, because the parser normalises line endings", "tests/conformance/test_seed_003.py::test_files_of_windows_are_read_alike"),
    # Body
    Requirement("003-body-1", "003", "The body is plain markdown.", "tests/conformance/test_seed_003.py::test_the_body_is_everything_to_the_end_and_plain_text"),
    Requirement("003-body-2", "003", "resolved at activation time (not at parse time)", "tests/conformance/test_seed_003.py::test_placeholders_are_resolved_on_activation_and_not_when_read"),
    Requirement("003-body-3", "003", "before it lands in the system prompt", "tests/conformance/test_turns_003.py::test_the_bodies_of_all_active_skills_stand_in_the_system_prompt"),
    # Substitution
    Requirement("003-substitution-1", "003", "All positional arguments space-joined.", "tests/conformance/test_argument_forms.py::test_every_form_with_every_kind_of_arguments"),
    Requirement("003-substitution-2", "003", "Out-of-range = empty string.", "tests/conformance/test_substitution.py::test_tnsai"),
    Requirement("003-substitution-3", "003", "Unknown name = empty string.", "tests/conformance/test_substitution.py::test_tnsai"),
    Requirement("003-substitution-4", "003", "Escapes the placeholder at that position.", "tests/conformance/test_substitution.py::test_tnsai"),
    Requirement("003-substitution-5", "003", "**single-pass and left-to-right**", "tests/skills/test_substitute.py::test_nothing_inserted_is_ever_read_again"),
    Requirement("003-substitution-6", "003", "passed as `$0` stays literal in the output", "tests/conformance/test_substitution.py::test_tnsai"),
    Requirement("003-substitution-7", "003", "Invoked as `/deploy staging` with", "tests/conformance/test_seed_003.py::test_placeholders_are_resolved_on_activation_and_not_when_read"),
    Requirement("003-substitution-8", "003", "Named env value supplied by the caller.", "tests/conformance/test_turns_003.py::test_the_bodies_of_all_active_skills_stand_in_the_system_prompt"),
    # Validation rules
    Requirement("003-validation-1", "003", "Files without an opening `---` delimiter on the first line.", "tests/conformance/test_seed_003.py::test_what_the_reader_rejects"),
    Requirement("003-validation-2", "003", "Files with an opening delimiter but no closing one.", "tests/conformance/test_seed_003.py::test_what_the_reader_rejects"),
    Requirement("003-validation-3", "003", "Frontmatter that is not valid YAML.", "tests/conformance/test_seed_003.py::test_what_the_reader_rejects"),
    Requirement("003-validation-4", "003", "A `Skill` with blank `name`", "tests/conformance/test_seed_003.py::test_what_the_reader_rejects"),
    Requirement("003-validation-5", "003", "A `Skill` with blank `description`.", "tests/conformance/test_seed_003.py::test_what_the_reader_rejects"),
    Requirement("003-validation-6", "003", "is **logged and skipped** by", "tests/conformance/test_seed_003.py::test_a_rejected_file_does_not_poison_its_siblings"),
    Requirement("003-validation-7", "003", "does not poison the store", "tests/conformance/test_seed_003.py::test_a_rejected_file_does_not_poison_its_siblings"),
    # Authoring tips
    Requirement("003-tips-1", "003", "**Reference supporting files by relative path**", "tests/conformance/test_seed_003.py::test_supporting_files_are_read_on_demand"),
    Requirement("003-tips-2", "003", "The resolver scores by token overlap", "tests/conformance/test_turns_003.py::test_candidates_are_the_skills_that_share_most_words_with_the_message"),
    Requirement("003-tips-3", "003", "matches 2× and `name` matches 3×", "tests/skills/test_keywords.py::test_a_name_counts_three_times_and_when_to_use_twice"),
    Requirement("003-tips-4", "003", "wiring a store + resolver into", "tests/conformance/test_turns_003.py::test_skills_of_a_program_survive_a_refresh_and_a_file_of_their_name_wins"),
)
# fmt: on
