"""Seed 004, the skill primitive: its section 5 (type, loaders, listing), and what other sections say of it."""

from __future__ import annotations

from tests.conformance.requirement import Requirement

# One row a line, so that it is found by its id, its words and its test at once.
# fmt: off
ROWS: tuple[Requirement, ...] = (
    # 2 Design principles
    Requirement("004-2-1", "004", "Skills are plain JS objects", "tests/conformance/test_seed_004.py::test_a_skill_needs_no_file_no_loader_and_no_markdown"),
    Requirement("004-2-2", "004", "chef does NOT read this field for enforcement", "tests/conformance/test_seed_004.py::test_allowed_tools_are_an_annotation"),
    Requirement("004-2-3", "004", "No magic discovery — no hardcoded", "tests/conformance/test_seed_004.py::test_a_directory_is_looked_at_one_level_deep_and_nothing_without_being_named"),
    Requirement("004-2-4", "004", "no path-conditional triggers", "tests/conformance/test_seed_004.py::test_a_field_that_is_not_supported_is_preserved_and_does_nothing"),
    # 5.1 Plain objects, 5.2 the file
    Requirement("004-5.1-1", "004", "Inline declarations are fully supported", "tests/conformance/test_seed_004.py::test_a_skill_needs_no_file_no_loader_and_no_markdown"),
    Requirement("004-5.1-2", "004", "// No file, no loader, no markdown", "tests/conformance/test_seed_004.py::test_a_skill_needs_no_file_no_loader_and_no_markdown"),
    Requirement("004-5.2-1", "004", "whenToUse: When the user reports slow SQL", "tests/conformance/test_seed_004.py::test_the_file_format"),
    Requirement("004-5.2-2", "004", "allowedTools: [query_db, tail_logs, read_file, grep]", "tests/conformance/test_seed_004.py::test_the_file_format"),
    # 5.3 Fields
    Requirement("004-5.3-1", "004", "Unique within a registered set", "tests/conformance/test_acceptance_reading.py::test_13_one_name_in_two_roots"),
    Requirement("004-5.3-2", "004", "Short — appears in formatSkillListing", "tests/conformance/test_seed_004.py::test_name_and_description_are_required"),
    Requirement("004-5.3-3", "004", "Longer guidance for LLM activation decisions", "tests/conformance/test_seed_004.py::test_the_listing_and_its_defaults"),
    Requirement("004-5.3-4", "004", "Annotation only — chef does NOT enforce. See §5.4", "tests/conformance/test_seed_004.py::test_allowed_tools_are_an_annotation"),
    Requirement("004-5.3-5", "004", "NOT supported — agent runtime concern", "tests/conformance/test_seed_004.py::test_a_field_that_is_not_supported_is_preserved_and_does_nothing"),
    Requirement("004-5.3-6", "004", "NOT supported — path-conditional activation is policy", "tests/conformance/test_seed_004.py::test_a_field_that_is_not_supported_is_preserved_and_does_nothing"),
    Requirement("004-5.3-7", "004", "NOT supported — open-agents shipped these as dead code", "tests/conformance/test_seed_004.py::test_a_field_that_is_not_supported_is_preserved_and_does_nothing"),
    Requirement("004-5.4-1", "004", "ContextChef does not enforce it.", "tests/conformance/test_seed_004.py::test_allowed_tools_are_an_annotation"),
    # 5.5 Types, 5.6 loaders
    Requirement("004-5.5-1", "004", "// Markdown body (frontmatter stripped)", "tests/conformance/test_seed_004.py::test_the_file_format"),
    Requirement("004-5.5-2", "004", "Auto-populated to the skill file's directory", "tests/conformance/test_seed_004.py::test_the_base_of_a_skill_is_absolute_and_leads_to_its_references"),
    Requirement("004-5.5-3", "004", "errors: Array<{ path: string; message: string }>", "tests/conformance/test_seed_004.py::test_loading_one_file_raises_where_loading_a_directory_collects"),
    Requirement("004-5.6-1", "004", "Throws on parse error.", "tests/conformance/test_seed_004.py::test_loading_one_file_raises_where_loading_a_directory_collects"),
    Requirement("004-5.6-2", "004", "(one level deep, not recursive)", "tests/conformance/test_seed_004.py::test_a_directory_is_looked_at_one_level_deep_and_nothing_without_being_named"),
    Requirement("004-5.6-3", "004", "skips invalid skills, returns errors alongside successes", "tests/conformance/test_seed_004.py::test_loading_one_file_raises_where_loading_a_directory_collects"),
    Requirement("004-5.6-4", "004", "Format skills as a system-prompt-friendly listing.", "tests/conformance/test_seed_004.py::test_the_listing_and_its_defaults"),
    Requirement("004-5.6-5", "004", "maxChars?: number;", "tests/context/test_listings.py::test_a_cut_listing_is_exactly_as_long_as_allowed"),
    Requirement("004-5.6-6", "004", "truncation budget (default: no limit)", "tests/conformance/test_seed_004.py::test_the_listing_and_its_defaults"),
    Requirement("004-5.6-7", "004", "format?: 'plain' | 'xml';", "tests/context/test_listings.py::test_the_xml_listing_is_escaped_and_never_empty_handed"),
    Requirement("004-5.6-8", "004", "includeWhenToUse?: boolean; // default: true", "tests/context/test_listings.py::test_the_plain_listing_says_when"),
    Requirement("004-5.6-9", "004", "Use when slow SQL or connection errors.", "tests/context/test_listings.py::test_the_plain_listing_says_when"),
    # 5.7 Conventions, 5.8 out of scope
    Requirement("004-5.7-1", "004", "baseDir is the absolute path of the directory", "tests/conformance/test_seed_004.py::test_the_base_of_a_skill_is_absolute_and_leads_to_its_references"),
    Requirement("004-5.7-2", "004", "loadSkillsDir does NOT recurse.", "tests/conformance/test_seed_004.py::test_a_directory_is_looked_at_one_level_deep_and_nothing_without_being_named"),
    Requirement("004-5.7-3", "004", "Frontmatter parser: lenient — unknown fields are preserved", "tests/conformance/test_seed_004.py::test_a_field_that_is_not_supported_is_preserved_and_does_nothing"),
    Requirement("004-5.8-1", "004", "Auto-discovery of well-known paths", "tests/conformance/test_seed_004.py::test_a_directory_is_looked_at_one_level_deep_and_nothing_without_being_named"),
    Requirement("004-5.8-2", "004", "Reference file auto-loading — baseDir is the contract", "tests/conformance/test_seed_004.py::test_the_base_of_a_skill_is_absolute_and_leads_to_its_references"),
    Requirement("004-5.8-3", "004", "strict validation rejects perfectly usable skills", "tests/conformance/test_seed_004.py::test_nothing_else_is"),
    # 7.5 References, 8 out of scope, 9 questions
    Requirement("004-7.5-1", "004", "// skill.baseDir = '/abs/path/to/skills/db-debug'", "tests/conformance/test_seed_004.py::test_the_base_of_a_skill_is_absolute_and_leads_to_its_references"),
    Requirement("004-8-1", "004", "Auto-discovery (`~/.context-chef/skills/`)", "tests/conformance/test_seed_004.py::test_a_directory_is_looked_at_one_level_deep_and_nothing_without_being_named"),
    Requirement("004-8-2", "004", "Path-conditional activation (Claude Code's `paths:`)", "tests/conformance/test_seed_004.py::test_a_field_that_is_not_supported_is_preserved_and_does_nothing"),
    Requirement("004-8-3", "004", "Token explosion + cache invalidation traps", "tests/conformance/test_seed_004.py::test_the_base_of_a_skill_is_absolute_and_leads_to_its_references"),
    Requirement("004-8-4", "004", "`userInvocable` + `disableModelInvocation` two-axis flags", "tests/conformance/test_conflicts.py::test_39_and_40_who_may_invoke_a_skill"),
    Requirement("004-8-5", "004", "Model / temperature switching per skill", "tests/conformance/test_seed_004.py::test_a_field_that_is_not_supported_is_preserved_and_does_nothing"),
    Requirement("004-9-2", "004", "Skill systems must tolerate partial failure", "tests/conformance/test_seed_004.py::test_loading_one_file_raises_where_loading_a_directory_collects"),
    Requirement("004-9-3", "004", "Developer knows their context window better than chef does.", "tests/conformance/test_seed_004.py::test_the_listing_and_its_defaults"),
)
# fmt: on
