"""Seed 000, the skill tool: what its rows about reading, finding and placing arguments ask for."""

from __future__ import annotations

from tests.conformance.requirement import Requirement

# One row a line, so that it is found by its id, its words and its test at once.
# fmt: off
ROWS: tuple[Requirement, ...] = (
    # 1 Purpose
    Requirement("000-1-1", "000", "with YAML frontmatter plus optional `scripts/`, `references/`, `assets/`", "tests/conformance/test_seed_000.py::test_files_of_a_skill_are_named_and_not_loaded"),
    Requirement("000-1-2", "000", "(≤100 tokens per skill, always available)", "tests/skills/test_lint.py::test_the_cost_of_an_entry_is_told_above_a_hundred_tokens"),
    Requirement("000-1-3", "000", "**Name matches directory.**", "tests/conformance/test_seed_000.py::test_the_name_must_be_the_directory_s"),
    Requirement("000-1-4", "000", "Malformed YAML → structured error, not silently dropped.", "tests/conformance/test_seed_000.py::test_what_is_not_yaml_is_an_error_with_a_place_and_a_hint"),
    Requirement("000-1-5", "000", "Only session-configured roots are scanned", "tests/conformance/test_seed_000.py::test_only_the_given_roots_are_scanned_and_only_their_children"),
    Requirement("000-1-6", "000", "**Subagent-forked skills** (Claude Code's", "tests/conformance/test_seed_000.py::test_a_field_without_a_meaning_here_is_kept_and_refuses_nothing"),
    Requirement("000-1-7", "000", "**Dynamic shell injection** in skill bodies", "tests/skills/test_substitute.py::test_commands_are_looked_for_in_the_author_s_text_only_and_stay_text"),
    Requirement("000-1-8", "000", "**File-path gating for auto-activation**", "tests/conformance/test_seed_000.py::test_a_field_without_a_meaning_here_is_kept_and_refuses_nothing"),
    Requirement("000-1-9", "000", "**Model/effort overrides**", "tests/conformance/test_seed_000.py::test_a_field_without_a_meaning_here_is_kept_and_refuses_nothing"),
    Requirement("000-1-10", "000", "**Per-skill hooks** (skill-scoped", "tests/conformance/test_seed_000.py::test_a_field_without_a_meaning_here_is_kept_and_refuses_nothing"),
    Requirement("000-1-11", "000", "**Live filesystem watching** for in-session skill changes", "tests/conformance/test_seed_000.py::test_a_change_on_disk_is_not_watched_for"),
    # 2 Input, 3 Output: what reading has to give them
    Requirement("000-2-1", "000", "`arguments` is the Claude Code `$ARGUMENTS` / `$N` / `$name` conventions", "tests/conformance/test_substitution.py::test_agent_sh"),
    Requirement("000-3.1-1", "000", "{the SKILL.md body — everything after the closing ---}", "tests/conformance/test_seed_000.py::test_a_body_is_verbatim"),
    Requirement("000-3.1-2", "000", "// parsed YAML", "tests/conformance/test_seed_000.py::test_a_complete_manifest_is_read_field_by_field"),
    Requirement("000-3.4-1", "000", "YAML parse error, missing required fields, or constraints violated.", "tests/conformance/test_seed_000.py::test_every_refusal_of_the_row_has_a_rule_with_a_meaning_and_a_hint"),
    Requirement("000-3.4-2", "000", "Rejected with the path + declared name.", "tests/conformance/test_seed_000.py::test_the_name_must_be_the_directory_s"),
    Requirement("000-3.4-3", "000", "Skill dir resolved outside all configured workspace roots", "tests/conformance/test_seed_000.py::test_a_skill_directory_that_leads_out_of_every_root_is_no_skill"),
    # 4.1 Required fields
    Requirement("000-4.1-1", "000", "1-64 chars, `^[a-z0-9]+(-[a-z0-9]+)*$`", "tests/conformance/test_seed_000.py::test_a_legal_name_is_kept"),
    Requirement("000-4.1-2", "000", "| `name` | 1-64 chars", "tests/conformance/test_seed_000.py::test_any_other_name_is_refused"),
    Requirement("000-4.1-3", "000", "must equal the containing directory's basename", "tests/conformance/test_seed_000.py::test_the_name_must_be_the_directory_s"),
    Requirement("000-4.1-4", "000", "| `description` | 1-1024 chars", "tests/conformance/test_seed_000.py::test_a_description_has_1_to_1024_characters"),
    Requirement("000-4.1-5", "000", "*what the skill does AND when to use it*", "tests/skills/test_lint.py::test_a_description_without_when_is_found_on_its_line"),
    # 4.2 Optional fields, standardized
    Requirement("000-4.2-1", "000", "semver string (`1.0.0`, `2.1.3-beta`)", "tests/conformance/test_seed_000.py::test_standardized_fields"),
    Requirement("000-4.2-2", "000", "string, ≤ 200 chars", "tests/conformance/test_seed_000.py::test_lengths_of_the_optional_fields"),
    Requirement("000-4.2-3", "000", "SPDX identifier (`MIT`, `Apache-2.0`) or bundled filename", "tests/conformance/test_seed_000.py::test_standardized_fields"),
    Requirement("000-4.2-4", "000", "string, 1-500 chars", "tests/conformance/test_seed_000.py::test_lengths_of_the_optional_fields"),
    Requirement("000-4.2-5", "000", "Our parser passes through verbatim.", "tests/conformance/test_seed_000.py::test_standardized_fields"),
    # 4.3 Optional fields, behaviour
    Requirement("000-4.3-1", "000", "comma- or space-separated string", "tests/conformance/test_seed_000.py::test_allowed_tools_become_a_list_whatever_their_form"),
    Requirement("000-4.3-2", "000", "declares what tools the skill expects to need", "tests/conformance/test_conflicts.py::test_17_allowed_tools_are_only_recorded_by_reading"),
    Requirement("000-4.3-3", "000", "| `disable-model-invocation` | boolean (default `false`)", "tests/conformance/test_seed_000.py::test_who_may_invoke_a_skill"),
    Requirement("000-4.3-4", "000", "| `user-invocable` | boolean (default `true`)", "tests/conformance/test_seed_000.py::test_who_may_invoke_a_skill"),
    Requirement("000-4.3-5", "000", "hidden from any slash-menu catalog", "tests/conformance/test_seed_000.py::test_a_model_only_skill_is_not_in_the_menu_of_a_user"),
    Requirement("000-4.3-6", "000", "object, declaring named positional args", "tests/conformance/test_seed_000.py::test_arguments_are_declared_by_name"),
    # 4.4 Deferred fields
    Requirement("000-4.4-1", "000", "Parser must **ignore unknown fields, not reject**", "tests/conformance/test_seed_000.py::test_a_field_without_a_meaning_here_is_kept_and_refuses_nothing"),
    Requirement("000-4.4-2", "000", "| `context: fork` |", "tests/conformance/test_seed_000.py::test_a_field_without_a_meaning_here_is_kept_and_refuses_nothing"),
    Requirement("000-4.4-3", "000", "| `agent: <type>` |", "tests/conformance/test_seed_000.py::test_a_field_without_a_meaning_here_is_kept_and_refuses_nothing"),
    Requirement("000-4.4-4", "000", "| `hooks` |", "tests/conformance/test_seed_000.py::test_a_field_without_a_meaning_here_is_kept_and_refuses_nothing"),
    Requirement("000-4.4-5", "000", "| `model` |", "tests/conformance/test_seed_000.py::test_a_field_without_a_meaning_here_is_kept_and_refuses_nothing"),
    Requirement("000-4.4-6", "000", "| `effort` |", "tests/conformance/test_seed_000.py::test_a_field_without_a_meaning_here_is_kept_and_refuses_nothing"),
    Requirement("000-4.4-7", "000", "| `paths` |", "tests/conformance/test_seed_000.py::test_a_field_without_a_meaning_here_is_kept_and_refuses_nothing"),
    Requirement("000-4.4-8", "000", "| `shell` |", "tests/conformance/test_seed_000.py::test_a_field_without_a_meaning_here_is_kept_and_refuses_nothing"),
    Requirement("000-4.4-9", "000", "| `when_to_use` |", "tests/conformance/test_seed_000.py::test_a_field_without_a_meaning_here_is_kept_and_refuses_nothing"),
    # 4.5 Parser rules
    Requirement("000-4.5-1", "000", "Frontmatter is YAML between two `---` lines", "tests/conformance/test_conflicts.py::test_3_fences_may_have_blanks_behind_them_and_dots_close_too"),
    Requirement("000-4.5-2", "000", "Missing opening `---` → no frontmatter", "tests/conformance/test_conflicts.py::test_1_and_2_no_frontmatter_and_one_without_an_end"),
    Requirement("000-4.5-3", "000", "Missing closing `---` → `INVALID_FRONTMATTER`", "tests/conformance/test_conflicts.py::test_1_and_2_no_frontmatter_and_one_without_an_end"),
    Requirement("000-4.5-4", "000", "Validate required fields first.", "tests/conformance/test_seed_000.py::test_a_description_has_1_to_1024_characters"),
    Requirement("000-4.5-5", "000", "Validate `name` matches the containing directory's basename.", "tests/conformance/test_seed_000.py::test_the_name_must_be_the_directory_s"),
    Requirement("000-4.5-6", "000", "from either string or array form", "tests/conformance/test_seed_000.py::test_allowed_tools_become_a_list_whatever_their_form"),
    Requirement("000-4.5-7", "000", "Unknown fields are preserved in the output's", "tests/conformance/test_seed_000.py::test_a_field_without_a_meaning_here_is_kept_and_refuses_nothing"),
    Requirement("000-4.5-8", "000", "is stored verbatim — no markdown processing", "tests/conformance/test_seed_000.py::test_a_body_is_verbatim"),
    Requirement("000-4.6-1", "000", "allowed-tools: Read, Grep, Bash(git log:*)", "tests/conformance/test_seed_000.py::test_a_complete_manifest_is_read_field_by_field"),
    # 5 Discovery
    Requirement("000-5.1-1", "000", "A session declares one or more skill roots.", "tests/conformance/test_seed_000.py::test_only_the_given_roots_are_scanned_and_only_their_children"),
    Requirement("000-5.1-2", "000", "The tool scans only these", "tests/conformance/test_seed_000.py::test_only_the_given_roots_are_scanned_and_only_their_children"),
    Requirement("000-5.1-3", "000", "Lower-index roots shadow higher-index ones.", "tests/conformance/test_seed_000.py::test_an_earlier_root_overrides_a_later_one_and_says_whom_it_shadows"),
    Requirement("000-5.1-4", "000", "is populated on the catalog entry", "tests/conformance/test_seed_000.py::test_an_earlier_root_overrides_a_later_one_and_says_whom_it_shadows"),
    Requirement("000-5.1-5", "000", "Name collisions are resolved silently", "tests/conformance/test_seed_000.py::test_an_earlier_root_overrides_a_later_one_and_says_whom_it_shadows"),
    Requirement("000-5.2-1", "000", "For each root, list immediate subdirectories.", "tests/conformance/test_seed_000.py::test_only_the_given_roots_are_scanned_and_only_their_children"),
    Requirement("000-5.2-2", "000", "Skip dirs without one.", "tests/conformance/test_seed_000.py::test_only_the_given_roots_are_scanned_and_only_their_children"),
    Requirement("000-5.2-3", "000", "are logged but omitted from the catalog", "tests/conformance/test_seed_000.py::test_broken_skills_are_logged_and_left_out_and_end_nothing"),
    Requirement("000-5.2-4", "000", "Build `catalog: { name, description, dir, root_index }[]`", "tests/conformance/test_seed_000.py::test_only_the_given_roots_are_scanned_and_only_their_children"),
    Requirement("000-5.2-5", "000", "Discovery errors are never fatal", "tests/conformance/test_seed_000.py::test_broken_skills_are_logged_and_left_out_and_end_nothing"),
    Requirement("000-5.3-1", "000", "must be inside one of the session's configured skill roots", "tests/conformance/test_seed_000.py::test_a_skill_directory_that_leads_out_of_every_root_is_no_skill"),
    Requirement("000-5.3-2", "000", "via symlink, `..`, or session misconfiguration", "tests/test_pathguard.py::test_no_path_opens_a_file_outside"),
    # 6 allowed-tools, 7 Lifecycle
    Requirement("000-6-1", "000", "**`allowed-tools` is advisory in v1.**", "tests/conformance/test_conflicts.py::test_17_allowed_tools_are_only_recorded_by_reading"),
    Requirement("000-7-1", "000", "Walk `skill_roots`, parse frontmatter, build catalog.", "tests/conformance/test_seed_000.py::test_only_the_given_roots_are_scanned_and_only_their_children"),
    Requirement("000-7-2", "000", "the tool does not watch the filesystem", "tests/conformance/test_seed_000.py::test_a_change_on_disk_is_not_watched_for"),
    # 8 Resources
    Requirement("000-8-1", "000", "**Source code is NOT loaded into context.**", "tests/conformance/test_seed_000.py::test_files_of_a_skill_are_named_and_not_loaded"),
    Requirement("000-8-2", "000", "Markdown docs too big for the skill body.", "tests/conformance/test_seed_000.py::test_files_of_a_skill_are_named_and_not_loaded"),
    Requirement("000-8-3", "000", "templates, diagrams, images.", "tests/conformance/test_seed_000.py::test_files_of_a_skill_are_named_and_not_loaded"),
    Requirement("000-8-4", "000", "eagerly load any of these", "tests/conformance/test_seed_000.py::test_files_of_a_skill_are_named_and_not_loaded"),
    # 9 Substitution
    Requirement("000-9-1", "000", "the full string form of arguments", "tests/conformance/test_seed_000.py::test_text_arguments_are_placed_in_the_body"),
    Requirement("000-9-2", "000", "space-separated `key=value` pairs", "tests/conformance/test_seed_000.py::test_named_arguments_are_placed_where_the_frontmatter_declares_them"),
    Requirement("000-9-3", "000", "positional tokens from `arguments` split on whitespace", "tests/conformance/test_argument_forms.py::test_every_form_with_every_kind_of_arguments"),
    Requirement("000-9-4", "000", "same as `$N` but 0-indexed", "tests/conformance/test_substitution.py::test_agent_sh"),
    Requirement("000-9-5", "000", "a named argument, substituted from `arguments` object's", "tests/conformance/test_seed_000.py::test_named_arguments_are_placed_where_the_frontmatter_declares_them"),
    Requirement("000-9-6", "000", "Only honored if the frontmatter declares", "tests/conformance/test_seed_000.py::test_a_name_that_the_frontmatter_does_not_declare_stays"),
    Requirement("000-9-7", "000", "Unsubstituted placeholders are left as literal text", "tests/conformance/test_seed_000.py::test_without_arguments_every_placeholder_stays"),
    Requirement("000-9-8", "000", "the model sees `$1` in the body", "tests/conformance/test_seed_000.py::test_without_arguments_every_placeholder_stays"),
    Requirement("000-9-9", "000", "`${SKILL_DIR}` path resolution", "tests/conformance/test_substitution.py::test_agent_sh"),
    # 10 to 12
    Requirement("000-10-1", "000", "Core never depends on adapters.", "tests/project/test_contracts.py::test_the_tree_as_it_stands_keeps_every_contract"),
    Requirement("000-12-1", "000", "Skill body is byte-exact from disk.", "tests/conformance/test_seed_000.py::test_a_body_is_verbatim"),
    Requirement("000-12-2", "000", "Frontmatter-strip is deterministic.", "tests/skills/test_frontmatter.py::test_nothing_of_a_file_is_lost_between_its_fences"),
    Requirement("000-12-3", "000", "Argument substitution is deterministic.", "tests/skills/test_substitute.py::test_nothing_inserted_is_ever_read_again"),
    # 13.1 Acceptance matrix: the rows that reading decides
    Requirement("000-13.1-6", "000", "SKILL.md with name mismatch (`name: foo` in `bar/SKILL.md`)", "tests/conformance/test_seed_000.py::test_the_name_must_be_the_directory_s"),
    Requirement("000-13.1-7", "000", "SKILL.md with malformed YAML", "tests/conformance/test_seed_000.py::test_what_is_not_yaml_is_an_error_with_a_place_and_a_hint"),
    Requirement("000-13.1-8", "000", "SKILL.md with missing required `description`", "tests/conformance/test_seed_000.py::test_a_description_has_1_to_1024_characters"),
    Requirement("000-13.1-9", "000", "SKILL.md with unknown field `hooks`", "tests/conformance/test_seed_000.py::test_a_field_without_a_meaning_here_is_kept_and_refuses_nothing"),
    Requirement("000-13.1-10", "000", "Skill dir with `../` escape", "tests/conformance/test_seed_000.py::test_a_skill_directory_that_leads_out_of_every_root_is_no_skill"),
    Requirement("000-13.1-18", "000", "Activation with string `arguments`", "tests/conformance/test_seed_000.py::test_text_arguments_are_placed_in_the_body"),
    Requirement("000-13.1-19", "000", "Activation with object `arguments` + frontmatter", "tests/conformance/test_seed_000.py::test_named_arguments_are_placed_where_the_frontmatter_declares_them"),
    Requirement("000-13.1-26", "000", "`allowed-tools` string form", "tests/conformance/test_seed_000.py::test_allowed_tools_become_a_list_whatever_their_form"),
    Requirement("000-13.1-27", "000", "`allowed-tools` array form → accepted.", "tests/conformance/test_seed_000.py::test_allowed_tools_become_a_list_whatever_their_form"),
    Requirement("000-13.1-28", "000", "Name collision project > user → catalog shows project skill", "tests/conformance/test_seed_000.py::test_an_earlier_root_overrides_a_later_one_and_says_whom_it_shadows"),
    Requirement("000-13.1-29", "000", "Broken skill dir (no SKILL.md) → omitted", "tests/conformance/test_seed_000.py::test_only_the_given_roots_are_scanned_and_only_their_children"),
    Requirement("000-13.1-30", "000", "SKILL.md with CRLF line endings", "tests/conformance/test_acceptance_reading.py::test_1_line_ends_of_windows"),
    # 14 to the end
    Requirement("000-14-1", "000", "the parser **ignores unknown frontmatter fields**", "tests/conformance/test_seed_000.py::test_a_field_without_a_meaning_here_is_kept_and_refuses_nothing"),
    Requirement("000-15-1", "000", "Can a skill's body reference `{{skill:other-skill}}`", "tests/conformance/test_seed_000.py::test_a_body_is_verbatim"),
    Requirement("000-D-3", "000", "agentskills.io required + optional fields + 4 Claude Code extensions", "tests/conformance/test_seed_000.py::test_a_complete_manifest_is_read_field_by_field"),
    Requirement("000-D-4", "000", "**S-D4** (`allowed-tools` semantics): advisory in v1.", "tests/conformance/test_conflicts.py::test_17_allowed_tools_are_only_recorded_by_reading"),
    Requirement("000-D-7", "000", "Scripts and references load on demand", "tests/conformance/test_seed_000.py::test_files_of_a_skill_are_named_and_not_loaded"),
    Requirement("000-D-8", "000", "**S-D8** (Argument substitution)", "tests/conformance/test_substitution.py::test_agent_sh"),
    Requirement("000-D-12", "000", "unknown frontmatter fields preserved, not rejected", "tests/conformance/test_seed_000.py::test_a_field_without_a_meaning_here_is_kept_and_refuses_nothing"),
)
# fmt: on
