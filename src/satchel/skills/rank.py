"""Which skills a text is about: those it mentions by name, and a BM25 ranking of names and descriptions (seed 002).

A term of a query counts with the best of its matches in each field. Chinese, Japanese and Korean text is cut into
single characters and pairs of neighbours, so that a fragment is found without a dictionary.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice, takewhile

MAX_MENTIONS = 1000
"""Most mentions that are read of one text."""

_K1 = 1.2
_B = 0.75
_NAME_WEIGHT = 3.0
_TEXT_WEIGHT = 1.0
_PREFIX_WEIGHT = 0.5

# Han, Hiragana, Katakana and Hangul, by their blocks.
_CJK = (
    "\u1100-\u11ff\u2e80-\u2fd5\u3005\u3007\u3021-\u3029\u3038-\u303b\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fd-\u30ff"
    "\u3131-\u318e\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97c\uac00-\ud7fb\uf900-\ufad9\uff66-\uff6f\uff71-\uff9d"
    "\uffa0-\uffdc\U0001b000-\U0001b16f\U00020000-\U000323af"
)
_IS_CJK = re.compile(f"[{_CJK}]")
_WORD = re.compile(r"[^\W_]+")
# A name on its own, inside no word (CJK text has no blanks around it). The dollar stands first: a search jumps to it.
_MENTION = re.compile(
    rf"\$(?:(?<![^\W].)|(?<=[{_CJK}].))(?<!\$\$)((?>[a-z0-9]+(?:-[a-z0-9]+)*))(?:(?![^\W])|(?=[{_CJK}]))", re.DOTALL
)


def terms(text: str) -> list[str]:
    """The terms of a text in order: lower-case runs of letters and digits, and CJK characters with their pairs."""
    found: list[str] = []
    for match in _WORD.finditer(text.lower()):
        word = match.group()
        if word.isascii():
            found.append(word)
        else:
            found.extend(_mixed_terms(word))
    return found


def _mixed_terms(word: str) -> Iterator[str]:
    plain, before = "", ""
    for character in word:
        is_cjk = _IS_CJK.match(character) is not None
        if is_cjk or not (character.isalpha() or character.isdecimal()):
            if plain:
                yield plain
            plain = ""
        if is_cjk:
            if before:
                yield before + character
            yield character
        elif character.isalpha() or character.isdecimal():
            plain += character
        before = character if is_cjk else ""
    if plain:
        yield plain


def mentioned(text: str) -> tuple[str, ...]:
    """The names that stand in ``text`` as ``$name``, in order, each once.

    A mention stands on its own and is no amount of money: "$50", "a$plan" and "$plan_b" mention nothing. Those after
    the first ``MAX_MENTIONS`` are not looked at.
    """
    names = (match.group(1) for match in islice(_MENTION.finditer(text), MAX_MENTIONS))
    return tuple(dict.fromkeys(name for name in names if not name.isdecimal()))


@dataclass(slots=True)
class _Field:
    """Statistics of one field: each document's length, and by term the documents that have it, with how often."""

    weight: float
    lengths: list[int] = field(default_factory=list[int])
    postings: dict[str, list[tuple[int, int]]] = field(default_factory=dict[str, list[tuple[int, int]]])
    ordered: list[str] = field(default_factory=list[str])
    average: float = 0.0

    def add(self, text: str) -> None:
        found = terms(text)
        for term, count in Counter(found).items():
            self.postings.setdefault(term, []).append((len(self.lengths), count))
        self.lengths.append(len(found))

    def finish(self) -> None:
        self.ordered = sorted(self.postings)
        self.average = sum(self.lengths) / len(self.lengths) if self.lengths else 0.0

    def longer(self, prefix: str) -> Iterator[str]:
        """The terms that begin with ``prefix`` and are longer."""
        start = bisect_left(self.ordered, prefix)
        begun = takewhile(lambda term: term.startswith(prefix), self.ordered[start:])
        return (term for term in begun if term != prefix)


class Ranking:
    """An index over ``(name, text)`` documents that never changes."""

    def __init__(self, documents: Iterable[tuple[str, str]]) -> None:
        names, texts = _Field(_NAME_WEIGHT), _Field(_TEXT_WEIGHT)
        for name, text in documents:
            names.add(name)
            texts.add(text)
        self._fields = (names, texts)
        for each in self._fields:
            each.finish()
        self._count = len(names.lengths)

    def search(self, query: str, limit: int = 0) -> list[tuple[int, float]]:
        """``(position, score)`` of the documents that match, best first and of equals the earlier one; 0 means all."""
        scores: dict[int, float] = {}
        for group in self._groups(dict.fromkeys(terms(query))):
            for each in self._fields:
                if each.average:
                    for document, score in self._best(each, group).items():
                        scores[document] = scores.get(document, 0.0) + score
        ranked = sorted(scores.items(), key=lambda item: (-item[1], item[0]))
        return ranked[:limit] if limit > 0 else ranked

    def _groups(self, asked: Iterable[str]) -> list[dict[str, float]]:
        """For each term of a query the indexed terms that it stands for, with 1 for itself and less for longer ones.

        A term that two of the query's terms lead to belongs to the first, and counts in full when it is one of them.
        """
        groups: list[dict[str, float]] = []
        owner: dict[str, dict[str, float]] = {}
        for term in asked:
            group: dict[str, float] = {}
            groups.append(group)
            owner.setdefault(term, group)[term] = 1.0
            for each in self._fields:
                for longer in each.longer(term):
                    if longer not in owner:
                        owner[longer] = group
                        group[longer] = _PREFIX_WEIGHT
        return groups

    def _best(self, each: _Field, group: dict[str, float]) -> dict[int, float]:
        best: dict[int, float] = {}
        for term, share in group.items():
            postings = each.postings.get(term)
            if not postings:
                continue
            weight = each.weight * share * self._rarity(term)
            for document, count in postings:
                length = each.lengths[document] / each.average
                score = weight * count * (_K1 + 1) / (count + _K1 * (1 - _B + _B * length))
                best[document] = max(score, best.get(document, 0.0))
        return best

    def _rarity(self, term: str) -> float:
        having = {document for each in self._fields for document, _ in each.postings.get(term, ())}
        return math.log(1 + (self._count - len(having) + 0.5) / (len(having) + 0.5))
