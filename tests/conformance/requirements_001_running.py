"""Seed 001, running the scripts of skills."""

from __future__ import annotations

from tests.conformance.requirement import Requirement

# One row a line, so that it is found by its id, its words and its test at once.
# fmt: off
ROWS: tuple[Requirement, ...] = (
    Requirement("001-run-1", "001", "OFF unless the operator opts in", "tests/tools/test_skills_run.py::test_it_is_offered_only_when_a_reachable_skill_ships_a_script"),
    Requirement("001-run-2", "001", "a complete SKILL.md read (the last page when it is paged) of a skill", "tests/tools/test_skills_run.py::test_only_the_last_page_says_how_to_run_a_script"),
    Requirement("001-run-3", "001", "holds a ready-made skills_run argument example", "tests/tools/test_skills_run.py::test_the_end_of_the_instructions_says_how_to_run_the_first_script"),
    Requirement("001-run-4", "001", "skills_run resolves the registered skill directory itself", "tests/tools/test_skills_run.py::test_a_source_of_directories_gives_its_own"),
    Requirement("001-run-5", "001", "so every parameter here is a string or an integer", "tests/tools/test_skills_run.py::test_the_declaration_is_flat_and_promises_what_holds"),
    Requirement("001-run-6", "001", "file, resource, script and arguments are accepted as argument aliases", "tests/tools/test_skills_run.py::test_the_names_and_paths_that_models_write"),
    Requirement("001-run-7", "001", "run a bundled script through skills_run rather than copying it", "tests/context/test_block.py::test_the_rules_name_no_tool_that_is_not_declared"),
    Requirement("001-run-8", "001", "scripts retain their per-call scratch directories", "tests/execution/test_scripts.py::test_a_script_runs_in_a_scratch_that_is_gone_afterwards"),
    Requirement("001-run-9", "001", '"isolation was unavailable" must never quietly become "isolation was skipped"', "tests/execution/test_scripts.py::test_a_sandbox_that_is_required_is_never_done_without"),
    Requirement("001-run-10", "001", "the path resolves through SkillPathGuard so only files inside the skill can be named", "tests/execution/test_scripts.py::test_only_files_of_the_skill_are_run"),
    Requirement("001-run-11", "001", "the interpreter comes from an allow-list rather than from a shebang", "tests/execution/test_interpreters.py::test_a_first_line_never_overrules_an_ending"),
    Requirement("001-run-12", "001", "all replaceable or removable", "tests/execution/test_interpreters.py::test_the_table_can_be_replaced_and_cut"),
    Requirement("001-run-13", "001", "in an argument are data rather than syntax", "tests/execution/test_scripts.py::test_arguments_reach_the_script_unchanged"),
    Requirement("001-run-14", "001", "the environment is reduced to PATH, LANG, LC_ALL, TZ and the Windows equivalents", "tests/execution/test_environment.py::test_only_an_allow_list_passes"),
    Requirement("001-run-15", "001", "the working directory is outside the skill", "tests/execution/test_scripts.py::test_what_is_launched_and_what_it_may_see"),
    Requirement("001-run-16", "001", "the process is killed at a 60-second deadline", "tests/execution/test_scripts.py::test_what_was_printed_before_the_time_limit_is_kept"),
    Requirement("001-run-17", "001", "stdout and stderr are each captured up to 32 KB", "tests/execution/test_scripts.py::test_a_flood_is_cut_in_the_middle_and_counted"),
    Requirement("001-run-18", "001", "HOME and PWD point at the script's working directory", "tests/execution/test_scripts.py::test_the_environment_is_an_allow_list_and_names_the_skill"),
    Requirement("001-run-19", "001", "session's package directories and <work>/.local/bin ahead of the host's", "tests/execution/test_environment.py::test_the_session_s_programs_come_before_the_host_s"),
    Requirement("001-run-20", "001", "one step's output is the next step's input", "tests/execution/test_scripts.py::test_one_workspace_is_shared_by_its_scripts"),
    Requirement("001-run-21", "001", "Neither flag grants network access to the other execution surface.", "tests/execution/test_scripts.py::test_what_is_launched_and_what_it_may_see"),
    Requirement("001-run-22", "001", "Accepting both shapes fixed it.", "tests/tools/test_skills_run.py::test_arguments_are_taken_as_models_write_them"),
    Requirement("001-run-23", "001", "not a valid array of strings returns an error that says how to quote it", "tests/tools/test_skills_run.py::test_a_list_that_is_none_is_refused_with_the_way_to_write_it"),
    Requirement("001-run-24", "001", "keeps argument boundaries and empty strings without any shell evaluation", "tests/tools/test_skills_run.py::test_a_line_is_split_and_nothing_in_it_expanded"),
)
# fmt: on
