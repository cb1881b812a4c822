"""Seed 002, a read-only skill service: contract, roots and discovery, reads and the section."""

from __future__ import annotations

from tests.conformance.requirement import Requirement

# One row a line, so that it is found by its id, its words and its test at once.
# fmt: off
ROWS: tuple[Requirement, ...] = (
    Requirement("002-intro-1", "002", "discovery and parsing of SKILL.md directories", "tests/conformance/test_seed_002.py::test_the_contract_of_a_manifest"),
    Requirement("002-intro-2", "002", "Bodies load on demand.", "tests/conformance/test_seed_002.py::test_the_section_lists_metadata_and_never_a_body"),
    Requirement("002-intro-3", "002", "the caller composes the roots and decides what wins", "tests/conformance/test_seed_002.py::test_results_are_sorted_by_name_then_path_and_every_copy_of_a_name_is_kept"),
    # The SKILL.md contract
    Requirement("002-contract-1", "002", "A skill is a directory whose SKILL.md carries YAML frontmatter", "tests/conformance/test_seed_002.py::test_the_contract_of_a_manifest"),
    Requirement("002-contract-2", "002", "a mismatch is accepted with a warning", "tests/conformance/test_seed_002.py::test_a_name_that_differs_from_the_directory_is_accepted_with_a_warning"),
    Requirement("002-contract-3", "002", "Only malformed files fail the parse", "tests/conformance/test_seed_002.py::test_only_malformed_files_fail"),
    # Roots and discovery
    Requirement("002-roots-1", "002", "BFS-walks every root", "tests/conformance/test_conflicts.py::test_21_how_deep_skills_may_lie"),
    Requirement("002-roots-2", "002", "roots are parameters: the caller composes", "tests/conformance/test_seed_002.py::test_a_root_is_one_skill_or_a_tree_or_missing_and_never_implied"),
    Requirement("002-roots-3", "002", "nothing is scanned implicitly", "tests/conformance/test_seed_002.py::test_a_root_is_one_skill_or_a_tree_or_missing_and_never_implied"),
    Requirement("002-roots-4", "002", "a root may be one skill directory or a tree of them", "tests/conformance/test_seed_002.py::test_a_root_is_one_skill_or_a_tree_or_missing_and_never_implied"),
    Requirement("002-roots-5", "002", "that does not exist is silently empty", "tests/conformance/test_seed_002.py::test_a_root_is_one_skill_or_a_tree_or_missing_and_never_implied"),
    Requirement("002-roots-6", "002", "hidden entries are skipped", "tests/conformance/test_seed_002.py::test_hidden_entries_are_skipped_and_a_hidden_root_is_not"),
    Requirement("002-roots-7", "002", "symlinks are followed only while their target stays inside", "tests/conformance/test_acceptance_reading.py::test_17_links_out_of_the_roots_and_into_another_root"),
    Requirement("002-roots-8", "002", "is collected once, under its canonical path", "tests/conformance/test_seed_002.py::test_a_linked_tree_is_walked_once_under_its_real_path"),
    Requirement("002-roots-9", "002", "discovery terminates on any tree", "tests/conformance/test_acceptance_reading.py::test_15_links_to_the_root_itself"),
    Requirement("002-roots-10", "002", "a root configured twice is walked and listed once", "tests/conformance/test_acceptance_reading.py::test_16_a_root_given_twice_and_an_alias"),
    Requirement("002-roots-11", "002", "parse failures never fail the pass", "tests/conformance/test_seed_002.py::test_what_fails_stands_among_the_diagnostics_and_fails_nothing_else"),
    Requirement("002-roots-12", "002", "Warning marks a tolerated shape issue", "tests/conformance/test_seed_002.py::test_what_fails_stands_among_the_diagnostics_and_fails_nothing_else"),
    Requirement("002-roots-13", "002", "Results are sorted by name, then path.", "tests/conformance/test_seed_002.py::test_results_are_sorted_by_name_then_path_and_every_copy_of_a_name_is_kept"),
    Requirement("002-roots-14", "002", "Duplicate names across roots are all kept", "tests/conformance/test_seed_002.py::test_results_are_sorted_by_name_then_path_and_every_copy_of_a_name_is_kept"),
    # The service
    Requirement("002-service-1", "002", "A Service holds an immutable snapshot", "tests/conformance/test_seed_002.py::test_a_reload_swaps_a_snapshot_that_never_changes"),
    Requirement("002-service-2", "002", "Reload re-runs discovery and swaps the snapshot", "tests/conformance/test_seed_002.py::test_a_reload_swaps_a_snapshot_that_never_changes"),
    Requirement("002-service-3", "002", "the read paths are lock-free and safe for concurrent use", "tests/library/test_finding.py::test_readers_never_see_half_a_reload"),
    Requirement("002-service-4", "002", "Options.Disabled excludes skill names or absolute SKILL.md paths", "tests/conformance/test_seed_002.py::test_a_disabled_skill_is_left_out_before_names_are_settled"),
    # Reads
    Requirement("002-reads-1", "002", "the body with the frontmatter stripped", "tests/conformance/test_seed_002.py::test_a_full_read_is_the_metadata_and_the_body_without_the_frontmatter"),
    Requirement("002-reads-2", "002", "only serves paths from the current snapshot", "tests/conformance/test_seed_002.py::test_a_path_that_is_not_in_the_snapshot_reads_nothing"),
    Requirement("002-reads-3", "002", "the symlink target has left the configured roots", "tests/conformance/test_seed_002.py::test_a_link_that_has_left_the_roots_since_is_refused"),
    # Rendering
    Requirement("002-render-1", "002", "RenderSection(skills) renders the per-turn block", "tests/context/test_listings.py::test_the_section_of_a_turn_has_its_published_form"),
    Requirement("002-render-2", "002", "Skills relevant to this turn.", "tests/context/test_listings.py::test_the_section_of_a_turn_has_its_published_form"),
    Requirement("002-render-3", "002", "(file: /skills/release-notes/SKILL.md)", "tests/conformance/test_seed_002.py::test_the_section_lists_metadata_and_never_a_body"),
    Requirement("002-render-4", "002", "Bodies are never inlined.", "tests/conformance/test_seed_002.py::test_the_section_lists_metadata_and_never_a_body"),
    # Ranking, mentions and the two tools
    Requirement("002-rank-1", "002", "a BM25 index over skill names and descriptions", "tests/skills/test_rank.py::test_the_catalogue_ranks_and_cuts"),
    Requirement("002-rank-2", "002", "the name field is weighted 3× the description", "tests/skills/test_rank.py::test_a_name_counts_more_than_a_description_and_ties_keep_their_order"),
    Requirement("002-rank-3", "002", "k1 = 1.2, b = 0.75", "tests/skills/test_rank.py::test_the_published_scores"),
    Requirement("002-rank-4", "002", "that only prefixes an index term is discounted ×0.5", "tests/skills/test_rank.py::test_the_term_itself_wins_over_many_longer_ones"),
    Requirement("002-rank-5", "002", "CJK text is tokenized into single", "tests/skills/test_rank.py::test_chinese_japanese_and_korean_fragments_are_found"),
    Requirement("002-rank-6", "002", "(default 5); a minScore <= 0 accepts any match", "tests/skills/test_rank.py::test_the_lowest_score_cuts_what_the_limit_has_left"),
    Requirement("002-rank-7", "002", "An empty query — or one that matches nothing — returns nil", "tests/skills/test_rank.py::test_the_catalogue_ranks_and_cuts"),
    Requirement("002-rank-8", "002", "all kept and all rankable", "tests/skills/test_rank.py::test_copies_of_a_name_are_all_ranked_and_a_mention_takes_the_first"),
    Requirement("002-mention-1", "002", "extracts standalone $name mentions", "tests/skills/test_rank.py::test_a_mention_stands_on_its_own"),
    Requirement("002-mention-2", "002", "resolves them in mention order", "tests/skills/test_rank.py::test_copies_of_a_name_are_all_ranked_and_a_mention_takes_the_first"),
    Requirement("002-mention-3", "002", "The user can also activate a skill by mentioning $name.", "tests/engine/test_mentions.py::test_the_body_is_there_once_with_the_message_that_names_it"),
    Requirement("002-tools-1", "002", "Per turn: explicit $mentions first, then the ranking", "tests/tools/test_skill_search.py::test_mentions_come_first_and_nothing_comes_twice"),
    Requirement("002-tools-2", "002", "the application ships those tools on top of RankScored and ReadFull", "tests/engine/test_listing_cut.py::test_a_cut_listing_leads_to_a_search_and_the_search_to_the_skill"),
    Requirement("002-tools-3", "002", "return the metadata plus the body with the frontmatter", "tests/tools/test_skill_search.py::test_the_full_instructions_come_without_the_frontmatter"),
)
# fmt: on
