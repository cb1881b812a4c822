"""Seeds 000 and 001: what their rows about real models ask for, as scenarios of ``satchel eval``."""

from __future__ import annotations

from tests.conformance.requirement import Requirement

_SHIPPED = "tests/evals/test_contract.py::test_the_contract_of_every_scenario_that_ships_holds"

# One row a line, so that it is found by its id, its words and its test at once.
# fmt: off
ROWS: tuple[Requirement, ...] = (
    Requirement("000-13.2-1", "000", "**SK1 golden**: prompt references a skill's described trigger", "tests/evals/test_models.py::test_a_made_up_answer_fails_the_golden_scenario"),
    Requirement("000-13.2-2", "000", "**SK2 wrong-name**: prompt mentions a skill by paraphrase", _SHIPPED),
    Requirement("000-13.2-3", "000", "**SK3 already-loaded**: agent activates the same skill twice", _SHIPPED),
    Requirement("000-13.2-4", "000", "**SK4 allowed-tools-advisory**", _SHIPPED),
    Requirement("000-13.2-5", "000", "**SK5 disable-model-invocation**", "tests/evals/test_models.py::test_a_refusal_that_is_accepted_passes_and_a_second_attempt_fails"),
    Requirement("000-13.2-6", "000", "**SK6 resource-reference**", _SHIPPED),
    Requirement("000-13.2-7", "000", "**SK7 argument-passing**", _SHIPPED),
    Requirement("000-13.2-8", "000", "**SK8 trust-gate**", "tests/evals/test_models.py::test_a_refused_skill_that_is_read_through_the_shell_is_a_bypass"),
    Requirement("000-13.2-9", "000", "Stochastic ones (SK4 especially) in pass@k.", "tests/evals/test_models.py::test_attempts_are_counted_and_pass_at_k_is_one_of_them"),
    Requirement("001-work-1", "001", "The control failing every task is the point", "tests/evals/test_models.py::test_the_control_must_not_know_and_the_others_must_have_read"),
    Requirement("001-work-2", "001", "did not leak skill content into the answer", "tests/evals/test_models.py::test_the_negative_control_is_answered_without_a_leak"),
)
# fmt: on
