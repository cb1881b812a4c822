from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from satchel.skills.catalog import Catalog
from satchel.skills.model import Flags, Skill, SkillRef
from satchel.skills.rank import MAX_MENTIONS, Ranking, mentioned, terms

GREEK = (("alpha", ""), ("alpha beta", ""), ("beta gamma", ""), ("delta", "alpha"))
D1, D2, D4 = 1.2389761210503338, 0.9416218519982535, 0.1601397707480023
BETA, DELTA = 1.8299085566782556, 4.3423610910380965


def skill(name: str, description: str = "", location: str = "") -> Skill:
    ref = SkillRef(source="t", name=name)
    return Skill(ref=ref, description=description, summary=description, flags=Flags(), location=location)


def found(documents: tuple[tuple[str, str], ...], query: str) -> list[str]:
    return [documents[position][0] for position, _ in Ranking(documents).search(query)]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("alpha", [(0, D1), (1, D2), (3, D4)]),
        ("ALPHA, alpha!", [(0, D1), (1, D2), (3, D4)]),
        ("alph", [(0, D1 / 2), (1, D2 / 2), (3, D4 / 2)]),
        ("beta", [(1, BETA), (2, BETA)]),
        ("delta alpha", [(3, DELTA), (0, D1), (1, D2)]),
        ("", []),
        (" \n", []),
        ("!!!", []),
        ("omega", []),
    ],
)
def test_the_published_scores(query: str, expected: list[tuple[int, float]]) -> None:
    got = Ranking(GREEK).search(query)
    assert [position for position, _ in got] == [position for position, _ in expected]
    for (_, score), (_, wanted) in zip(got, expected, strict=True):
        assert math.isclose(score, wanted, rel_tol=0, abs_tol=1e-12)


def test_a_term_found_by_itself_and_by_its_beginning_counts_once_and_in_full() -> None:
    documents = (("res", ""), ("resume", ""))
    index = Ranking(documents)
    assert [position for position, _ in index.search("res")] == [0, 1]
    alone = dict(index.search("resume"))
    for query in ("res resume", "resume res"):
        assert math.isclose(dict(index.search(query))[1], alone[1], rel_tol=0, abs_tol=1e-12)


def test_the_term_itself_wins_over_many_longer_ones() -> None:
    many = (("con", ""), ("connect console contact control", ""), ("other", ""))
    assert found(many, "con") == ["con", "connect console contact control"]
    assert found((("resume", "pick up a past talk"), ("permissions", "what a reader may do")), "re")[0] == "resume"


def test_a_name_counts_more_than_a_description_and_ties_keep_their_order() -> None:
    assert found((("notes", "search old notes"), ("search", "other words here")), "search") == ["search", "notes"]
    assert found((("b", "same"), ("a", "same")), "same") == ["b", "a"]
    assert len(Ranking((("b", "same"), ("a", "same"))).search("same", 1)) == 1


def test_chinese_japanese_and_korean_fragments_are_found() -> None:
    documents = (
        ("docs", "检索本地文档并总结要点"),
        ("chat", "压缩并总结当前会话"),
        ("jp", "ファイルを読む"),
        ("kr", "문서를 요약"),
    )
    assert found(documents, "本地文档")[0] == "docs"
    assert found(documents, "ファイル") == ["jp"]
    assert found(documents, "요약") == ["kr"]
    assert terms("检索 foo本地BAR m²x_y-Z9") == [
        "检",
        "检索",
        "索",
        "foo",
        "本",
        "本地",
        "地",
        "bar",
        "m",
        "x",
        "y",
        "z9",
    ]


def test_no_documents_and_empty_fields() -> None:
    assert Ranking(()).search("a") == []
    assert Ranking((("", ""), ("", ""))).search("a") == []


@given(st.lists(st.tuples(st.text(max_size=12), st.text(max_size=30)), max_size=8), st.text(max_size=20))
def test_any_text_gives_positive_scores_in_order_and_only_of_documents(
    documents: list[tuple[str, str]], query: str
) -> None:
    got = Ranking(documents).search(query)
    assert all(score > 0 and 0 <= position < len(documents) for position, score in got)
    assert got == sorted(got, key=lambda item: (-item[1], item[0]))
    assert len({position for position, _ in got}) == len(got)
    asked = set(terms(query))
    for position, _ in got:
        own = terms(" ".join(documents[position]))
        assert any(term.startswith(wanted) for term in own for wanted in asked)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("use $plan and $review", ("plan", "review")),
        ("$plan $plan $nope", ("plan", "nope")),
        ("costs $50 and a$plan", ()),
        ("$50", ()),
        ("A$plan é$plan _$plan 5$plan", ()),
        ("$plan_x $planX $plan-aX $Plan $PATH", ()),
        ("$$plan ${plan} $ plan $-plan", ()),
        ("($plan), '$review'. $a1-b2-c3!", ("plan", "review", "a1-b2-c3")),
        ("请用$plan做 $review。", ("plan", "review")),
        ("line\n$plan\n", ("plan",)),
        ("$3d-print", ("3d-print",)),
    ],
)
def test_a_mention_stands_on_its_own(text: str, names: tuple[str, ...]) -> None:
    assert mentioned(text) == names


def test_a_long_text_without_mentions_is_read_quickly_enough_to_be_read_always() -> None:
    long = "a" + "-a" * 100_000
    assert mentioned("$" * 200_000 + "x" * 200_000 + f" ${long}_ ${long}") == (long,)


def test_the_catalogue_ranks_and_cuts() -> None:
    catalog = Catalog(skills=tuple(skill(f"s{number}", "common words") for number in range(8)))
    assert [item.name for item, _ in catalog.rank("common")] == ["s0", "s1", "s2", "s3", "s4"]
    assert len(catalog.rank("common", limit=0)) == 5
    assert len(catalog.rank("common", limit=7)) == 7
    score = catalog.rank("common")[0][1]
    assert catalog.rank("common", min_score=score * 2) == ()
    assert catalog.rank("nothing of this") == ()
    assert catalog.rank("  ") == ()


def test_the_lowest_score_cuts_what_the_limit_has_left() -> None:
    catalog = Catalog(skills=(skill("word"), skill("a", "word and many others that make it longer")))
    (first, best), (second, low) = catalog.rank("word")
    assert (first.name, second.name) == ("word", "a")
    assert [item.name for item, _ in catalog.rank("word", min_score=(best + low) / 2)] == ["word"]
    assert [item.name for item, _ in catalog.rank("word", limit=1)] == ["word"]


def test_copies_of_a_name_are_all_ranked_and_a_mention_takes_the_first() -> None:
    catalog = Catalog(skills=(skill("plan", "z", "/b/plan"), skill("plan", "z", "/a/plan"), skill("review", "z", "/r")))
    assert [item.location for item, _ in catalog.rank("plan")] == ["/a/plan", "/b/plan"]
    assert [item.location for item in catalog.mentions("$review, $plan, $plan and $nope")] == ["/r", "/a/plan"]
    assert catalog.mentions("costs $50 and a$plan") == ()


def test_mentions_after_the_first_many_are_not_read() -> None:
    names = [f"n{number}" for number in range(MAX_MENTIONS + 5)]
    assert mentioned(" ".join(f"${name}" for name in names)) == tuple(names[:MAX_MENTIONS])
