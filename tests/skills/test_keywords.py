from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from satchel.skills import inline
from satchel.skills.dialects import PORTABLE, TNSAI
from satchel.skills.keywords import KeywordRanking
from satchel.skills.model import Skill
from satchel.skills.paths import PathMatches, match_paths


def skill(name: str, description: str = "Helps.", when: str = "", *paths: str) -> Skill:
    fields = {"paths": list(paths)} if paths else {}
    made = inline(name=name, description=description, instructions="x", when_to_use=when, frontmatter=fields)
    return made.skill


def ranked(text: str, *skills: Skill, limit: int = 0) -> list[tuple[str, int]]:
    return [(found.name, score) for found, score in KeywordRanking(skills).search(text, limit)]


def test_a_name_counts_three_times_and_when_to_use_twice() -> None:
    skills = (skill("about", "Will deploy."), skill("deploy"), skill("when", "Helps.", "To deploy"))
    assert ranked("Please DEPLOY it", *skills) == [("deploy", 3), ("when", 2), ("about", 1)]


def test_words_add_up_over_the_fields_and_count_once_each() -> None:
    both = skill("deploy-build", "Builds and deploys. Deploy deploy.", "deploy")
    assert ranked("deploy deploy the build", both) == [("deploy-build", 3 + 2 + 1 + 3)]


def test_equals_stand_by_name_and_what_shares_no_word_is_left_out() -> None:
    skills = (skill("b", "Ships."), skill("a", "Ships."), skill("c", "Sails."))
    assert ranked("ships", *skills) == [("a", 1), ("b", 1)]
    assert ranked("ships", *skills, limit=1) == [("a", 1)]
    assert ranked("ship", *skills) == ranked("", *skills) == []


def test_words_are_found_in_text_without_blanks() -> None:
    assert ranked("请部署", skill("deploy", "用于部署服务"))[0][0] == "deploy"


@given(st.lists(st.sampled_from(["ship", "sail", "row", "Ship"])), st.sampled_from(["ship it", "SAIL", "row row", ""]))
def test_the_score_is_the_formula(words: list[str], text: str) -> None:
    asked = {word.lower() for word in text.split()}
    made = skill("ship", " ".join(["x", *words]), " ".join(words))
    mine = {word.lower() for word in words}
    score = 3 * len(asked & {"ship"}) + 2 * len(asked & mine) + len(asked & {"x", *mine})
    assert ranked(text, made) == ([("ship", score)] if score else [])


@pytest.mark.parametrize("file", ["infra/a.tf", "infra\\a.tf", "./infra/deep/b.tf", "src/../infra/a", "INFRA/x"])
def test_a_file_at_hand_matches_a_glob(file: str) -> None:
    deploy, other = skill("deploy", "D.", "", "docs/*", "infra/**"), skill("other", "O.", "", "src/*.py")
    assert match_paths([deploy, other, skill("none")], [file], TNSAI) == PathMatches(activated=(deploy,))
    assert match_paths([deploy, other], [file], PORTABLE) == PathMatches(proposed=(deploy,))


@pytest.mark.parametrize(
    "file", ["", ".", "infra", "/infra/a", "C:/infra/a", "../infra/a", "infra/../../infra/a", "x/infra/a"]
)
def test_a_file_elsewhere_matches_nothing(file: str) -> None:
    assert match_paths([skill("deploy", "D.", "", "infra/**", "**/*.none")], [file], TNSAI) == PathMatches()
