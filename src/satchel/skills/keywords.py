"""How much of a text skills share, word by word: a name counts three times, when-to-use twice, a description once.

The ranking of seed 003. Unlike that of seed 002 (``satchel.skills.rank``) it knows no rarity and no prefixes; only what
a word is, is the same.
"""

from __future__ import annotations

from collections.abc import Iterable

from satchel.skills.model import Skill
from satchel.skills.rank import terms

_NAME_WEIGHT = 3
_WHEN_WEIGHT = 2
_DESCRIPTION_WEIGHT = 1


class KeywordRanking:
    """An index over skills that never changes."""

    def __init__(self, skills: Iterable[Skill]) -> None:
        self._skills = tuple(skills)
        self._weights: dict[str, dict[int, int]] = {}
        for position, skill in enumerate(self._skills):
            for weight, text in (
                (_NAME_WEIGHT, skill.name),
                (_WHEN_WEIGHT, skill.when_to_use),
                (_DESCRIPTION_WEIGHT, skill.summary),
            ):
                for word in set(terms(text)):
                    weights = self._weights.setdefault(word, {})
                    weights[position] = weights.get(position, 0) + weight

    def search(self, text: str, limit: int = 0) -> list[tuple[Skill, int]]:
        """``(skill, score)`` of the skills that share a word with ``text``, best first and of equals by name; 0: all.

        A word counts once, however often it stands in either text.
        """
        scores: dict[int, int] = {}
        for word in set(terms(text)):
            for position, weight in self._weights.get(word, {}).items():
                scores[position] = scores.get(position, 0) + weight
        ranked = sorted(scores.items(), key=lambda item: (-item[1], self._skills[item[0]].name))
        return [(self._skills[position], score) for position, score in (ranked[:limit] if limit > 0 else ranked)]
