"""What a run found: one result for each case, rows that sum them up, the table and the JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from satchel.chat.messages import Json
from satchel.errors import SetupError
from satchel.evals.transcript import Transcript
from satchel.skills.oneline import one_line

Verdict = Literal["pass", "fail", "error", "not-reached", "open", "cannot"]
Column = Literal["contract", "model"]

_JUDGED = frozenset({"pass", "fail", "error"})
ANY_ROW = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseResult:
    """How one case went, once.

    "not-reached": nothing was wrong, but what the scenario is about did not come about. "cannot": the model, or this
    version, has no way to do it. "open": only a person or a judge can tell. "error": the model server failed.
    ``reasons`` say why it is no "pass".
    """

    scenario: str
    arm: str
    case: str
    column: Column
    verdict: Verdict
    reasons: tuple[str, ...] = ()
    attempt: int = 1
    seen: Transcript = field(default_factory=Transcript)
    duration_s: float = 0.0

    def to_dict(self) -> dict[str, Json]:
        """JSON-safe, with the published keys."""
        return {
            "scenario": self.scenario,
            "arm": self.arm,
            "case": self.case,
            "column": self.column,
            "attempt": self.attempt,
            "verdict": self.verdict,
            "reasons": list(self.reasons),
            "answers": list(self.seen.answers),
            "calls": [
                {"tool": call.name, "arguments": dict(call.arguments), "code": call.code} for call in self.seen.calls
            ],
            "duration_s": round(self.duration_s, 2),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the table: a scenario, in one arm where there are arms."""

    scenario: str
    arm: str
    title: str
    results: tuple[CaseResult, ...]
    note: str = ""

    def of(self, column: Column) -> tuple[CaseResult, ...]:
        """The results of one column."""
        return tuple(result for result in self.results if result.column == column)

    def share(self, column: Column) -> float | None:
        """The part that passed of what could be judged, None when there was nothing to judge."""
        judged = [result for result in self.of(column) if result.verdict in _JUDGED]
        return sum(result.verdict == "pass" for result in judged) / len(judged) if judged else None

    def cell(self, column: Column) -> str:
        """``passed/judged``, and how many cases were not judged."""
        results = self.of(column)
        if not results:
            return "-"
        judged = [result for result in results if result.verdict in _JUDGED]
        passed = sum(result.verdict == "pass" for result in judged)
        parts = [f"{passed}/{len(judged)}"] if judged else []
        for verdict, words in (("not-reached", "not reached"), ("open", "open"), ("cannot", "cannot")):
            count = sum(result.verdict == verdict for result in results)
            parts += [f"{count} {words}"] if count else []
        return ", ".join(parts)

    @property
    def passed_once(self) -> float | None:
        """pass@k: the part of the cases that passed in at least one attempt; None when nothing was judged."""
        judged = [result for result in self.of("model") if result.verdict in _JUDGED]
        cases = {result.case for result in judged}
        return len({r.case for r in judged if r.verdict == "pass"}) / len(cases) if cases else None

    @property
    def remarks(self) -> str:
        """The note, and why cases could not be done."""
        reasons = (r.reasons[0] for r in self.results if r.verdict == "cannot" and r.reasons)
        return "; ".join(text for text in dict.fromkeys((self.note, *reasons)) if text)

    def to_dict(self) -> dict[str, Json]:
        """JSON-safe, with the published keys."""
        return {
            "scenario": self.scenario,
            "arm": self.arm,
            "title": self.title,
            "contract": self.cell("contract"),
            "contract_share": self.share("contract"),
            "model": self.cell("model"),
            "model_share": self.share("model"),
            "model_pass_at_k": self.passed_once,
            "note": self.remarks,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """All rows of a run, of a ``model`` ("" when only the contract was run) with the values of a ``seed``."""

    model: str
    seed: int
    rows: tuple[Row, ...]

    @property
    def holds(self) -> bool:
        """Whether every case that has a contract keeps it."""
        results = [result for row in self.rows for result in row.of("contract")]
        return all(result.verdict in {"pass", "cannot"} for result in results)

    def unmet(self, least: Mapping[str, float]) -> tuple[str, ...]:
        """A sentence for each threshold that is not met.

        ``least`` maps a scenario's id, an arm or "" (every row) to the part of the model's cases that must pass. A row
        in which nothing could be judged misses a threshold that names it.
        """
        found: list[str] = []
        for name, share in least.items():
            rows = [row for row in self.rows if name in {ANY_ROW, row.scenario, row.arm}]
            if not rows:
                found.append(f"{name}: there is no such row")
            for row in rows:
                reached = row.share("model")
                label = f"{row.scenario} {row.arm}".strip()
                if reached is None and name != ANY_ROW:
                    found.append(f"{label}: nothing could be judged")
                elif reached is not None and reached < share:
                    found.append(f"{label}: {reached:.2f} is below {share:g}")
        return tuple(found)

    def to_dict(self, least: Mapping[str, float] | None = None) -> dict[str, Json]:
        """``{"model","seed","ok","contract_holds","unmet","rows","results"}``."""
        unmet = self.unmet(least or {})
        return {
            "model": self.model,
            "seed": self.seed,
            "ok": self.holds and not unmet,
            "contract_holds": self.holds,
            "unmet": list(unmet),
            "rows": [row.to_dict() for row in self.rows],
            "results": [result.to_dict() for row in self.rows for result in row.results],
        }


_HEAD = ("scenario", "arm", "contract", "model", "what")


def table(rows: Sequence[Row]) -> list[str]:
    """The rows as lines of text."""
    lines: list[tuple[str, ...]] = [_HEAD]
    for row in rows:
        what = f"{row.title} ({row.remarks})" if row.remarks else row.title
        cells = (row.scenario, row.arm or "-", row.cell("contract"), row.cell("model"), what)
        lines.append(tuple(one_line(cell) for cell in cells))
    widths = [max(len(line[place]) for line in lines) for place in range(len(_HEAD) - 1)]
    return ["  ".join((*(cell.ljust(w) for cell, w in zip(line, widths, strict=False)), line[-1])) for line in lines]


def read_least(given: Iterable[str]) -> dict[str, float]:
    """``["0.5", "SK1=0.8"]`` as ``{"": 0.5, "SK1": 0.8}``. Raises ``SetupError``."""
    least: dict[str, float] = {}
    for text in given:
        name, _, share = text.rpartition("=")
        try:
            value = float(share)
        except ValueError:
            value = -1.0
        if not 0 <= value <= 1:
            raise SetupError(
                "setting-invalid", f'"{text}" is no threshold.', hint="A part from 0 to 1: --min 0.8, --min SK1=0.8."
            )
        least[name] = value
    return least
