"""Skills and questions made from a seed, so that no prompt can have been tuned to their values.

Four skills are drawn from a pool of subjects and get an invented organisation, invented rules and random values.
Nobody can answer the ten questions without reading: seven need SKILL.md, three need a reference file that only
SKILL.md names. Five more questions need no skill at all.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

_STARTS = ("Zor", "Quel", "Brim", "Tav", "Oke", "Nym", "Fel", "Harr", "Jud", "Vex", "Lum", "Pask", "Ryd", "Sten")
_SHALLOW, _DEEP = 7, 3
_ENDS = ("vane", "mont", "tica", "ford", "lis", "dora", "wick", "nis", "berg", "quist", "ley", "mar")


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """``expected`` are alternatives, one of which the answer must contain; ``path`` is the file that holds it."""

    text: str
    expected: tuple[str, ...] = ()
    skill: str = ""
    path: str = "SKILL.md"

    def is_answered_by(self, answer: str) -> bool:
        """Whether the answer holds the value; see ``holds_value``."""
        return holds_value(answer, self.expected)


def holds_value(answer: str, alternatives: Iterable[str]) -> bool:
    """Whether the answer holds one of the values by itself, whatever its letter case and digit grouping."""
    plain = re.sub(r"(?<=\d)[,\u202f](?=\d)", "", answer.lower())
    return any(re.search(rf"(?<![\w.]){re.escape(value.lower())}(?!\w|\.\d)", plain) for value in alternatives)


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratedSkill:
    """``files`` maps paths to text; SKILL.md is among them, with its frontmatter."""

    name: str
    description: str
    files: dict[str, str]
    questions: tuple[Question, ...] = ()
    deep_question: Question | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Exam:
    """Four skills, ten questions that need one of them, five that need none."""

    skills: tuple[GeneratedSkill, ...]
    questions: tuple[Question, ...]
    plain: tuple[Question, ...] = field(default=())

    def write(self, root: Path) -> None:
        """Writes each skill as a folder below ``root``."""
        for skill in self.skills:
            for path, text in skill.files.items():
                target = root / skill.name / path
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(text, encoding="utf-8")


class Dice:
    """Random values of the kinds that rules are made of."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self.org = rng.choice(_STARTS) + rng.choice(_ENDS)

    def number(self, low: int, high: int) -> str:
        return str(self._rng.randint(low, high))

    def code(self) -> str:
        letters = "".join(self._rng.choices("BCDFGHJKLMNPQRSTVWXZ", k=3))
        return f"{letters}-{self._rng.randint(100, 999)}"

    def word(self) -> str:
        return (self._rng.choice(_STARTS) + self._rng.choice(_ENDS)).lower()

    def value(self, kind: Literal["number", "code", "word"]) -> str:
        """One value of a kind: a number of three digits, a code such as ``QFX-318``, a word."""
        if kind == "number":
            return self.number(101, 989)
        return self.code() if kind == "code" else self.word()


def _skill(  # noqa: PLR0917 - the order is the order of a skill
    name: str,
    description: str,
    body: str,
    questions: list[tuple[str, str]],
    reference: tuple[str, str] | None = None,
    deep: tuple[str, str] | None = None,
) -> GeneratedSkill:
    files = {"SKILL.md": f"---\nname: {name}\ndescription: {description}\n---\n{body.strip()}\n"}
    if reference is not None:
        files[reference[0]] = reference[1].strip() + "\n"
    return GeneratedSkill(
        name=name,
        description=description,
        files=files,
        questions=tuple(Question(text=text, expected=(value,), skill=name) for text, value in questions),
        deep_question=None
        if reference is None or deep is None
        else Question(text=deep[0], expected=(deep[1],), skill=name, path=reference[0]),
    )


def _expenses(d: Dice) -> GeneratedSkill:
    meal, hotel, code, days, km = d.number(31, 79), d.number(101, 189), d.code(), d.number(11, 38), d.number(21, 69)
    return _skill(
        "expense-claims",
        f"Rules for travel expenses at {d.org}: meal and hotel limits, cost codes and deadlines. Use for any question "
        "about claiming money back.",
        f"""
# Expense claims at {d.org}

- Meals: at most {meal} euros a day, receipts above 10 euros.
- Hotels: at most {hotel} euros a night with breakfast.
- Every claim carries the cost code `{code}`.
- A claim must be filed within {days} days after the trip.

Mileage, ferries and flights have their own rates: see [travel rates](references/rates.md).
""",
        [
            (f"I travel for {d.org}. How much may I spend on meals a day?", meal),
            ("Which cost code goes on my travel expense claim?", code),
            ("My business trip ended yesterday. How many days do I have to file the expense claim?", days),
            (f"What is the most that {d.org} pays for a hotel night?", hotel),
        ],
        ("references/rates.md", f"# Travel rates\n\n- Own car: {km} cents a kilometre.\n- Ferry: second class only.\n"),
        (f"How many cents a kilometre do I get for using my own car on a trip for {d.org}?", km),
    )


def _returns(d: Dice) -> GeneratedSkill:
    days, fee, desk, limit = d.number(17, 88), d.number(3, 19), d.code(), d.number(210, 690)
    weight = d.number(12, 47)
    return _skill(
        "shop-returns",
        f"How customers send goods back to the {d.org} web shop: return window, fees, return desk, refunds.",
        f"""
# Returns to {d.org}

1. Goods may come back within {days} days after delivery.
2. A restocking fee of {fee} percent is kept for opened boxes.
3. Parcels go to return desk {desk}.
4. Refunds above {limit} euros need a second signature.

For furniture and other bulky goods read `references/bulky.md`.
""",
        [
            (f"A customer wants to return shoes to {d.org}. Within how many days is that possible?", days),
            ("What percentage restocking fee do we keep when the returned box was opened?", fee),
            ("To which return desk must the customer address the parcel?", desk),
        ],
        (
            "references/bulky.md",
            f"# Bulky goods\n\nCollected by van. Anything above {weight} kilograms needs two carriers.\n",
        ),
        ("From what weight in kilograms on does returned furniture need two carriers?", weight),
    )


def _greenhouse(d: Dice) -> GeneratedSkill:
    night, litres, ph, vent, dose = (
        d.number(13, 19),
        d.number(21, 89),
        f"5.{d.number(1, 9)}",
        d.number(27, 39),
        d.number(120, 480),
    )
    return _skill(
        "greenhouse-care",
        f"Settings for the {d.org} greenhouses: temperatures, watering, ventilation, fertiliser doses.",
        f"""
# Greenhouse care

Night temperature is {night} degrees. Open the roof vents at {vent} degrees.
Each tomato row gets {litres} litres of water a day, with a pH of {ph}.

Fertiliser doses stand in `references/fertiliser.md`.
""",
        [
            (f"At what temperature do we open the roof vents in the {d.org} greenhouse?", vent),
            ("How many litres of water does a tomato row get each day?", litres),
            ("Which pH must the water for the tomatoes have?", ph),
        ],
        ("references/fertiliser.md", f"# Fertiliser\n\nCucumbers: {dose} millilitres a week. Herbs: none.\n"),
        ("How many millilitres of fertiliser do the cucumbers get a week?", dose),
    )


def _radio(d: Dice) -> GeneratedSkill:
    freq, call, minutes, power = (
        f"4{d.number(30, 39)}.{d.number(125, 875)}",
        d.code(),
        d.number(12, 55),
        d.number(6, 48),
    )
    return _skill(
        "harbour-radio",
        f"Radio procedure for boats entering {d.org} harbour: frequencies, call signs, reporting times.",
        f"""
# Radio procedure

Call on {freq} megahertz and use the call sign {call}.
Report {minutes} minutes before the breakwater. Transmit with {power} watts at most.
""",
        [
            (f"On which frequency do boats call {d.org} harbour?", freq),
            (f"What call sign do I use when I enter {d.org} harbour?", call),
            ("How many minutes before the breakwater must a boat report?", minutes),
        ],
    )


def _backup(d: Dice) -> GeneratedSkill:
    host, hour, keep, key, tape = f"{d.word()}-07", d.number(2, 5), d.number(33, 97), d.code(), d.number(310, 890)
    return _skill(
        "nightly-backups",
        f"Runs and restores the nightly database backups of {d.org}: hosts, retention, encryption keys, tapes.",
        f"""
# Nightly backups

The dump runs at 0{hour}:40 on the host {host}. Copies are kept for {keep} days.
They are encrypted with the key {key}.

The tape archive is described in references/tapes.md.
""",
        [
            ("On which host does the nightly database dump run?", host),
            ("For how many days do we keep backup copies?", keep),
            ("Which key encrypts our database backups?", key),
        ],
        ("references/tapes.md", f"# Tapes\n\nMonthly tapes go to vault {tape}. Yearly tapes are never overwritten.\n"),
        ("Into which vault do the monthly backup tapes go?", tape),
    )


def _visitors(d: Dice) -> GeneratedSkill:
    badge, door, hours, wifi = d.word(), d.number(31, 97), d.number(26, 70), d.code()
    return _skill(
        "visitor-badges",
        f"Letting guests into the {d.org} building: badges, entrance doors, notice period, guest network.",
        f"""
# Guests

Guests wear a badge called "{badge}" and come in through door {door}.
Announce them {hours} hours ahead. The guest network's password is {wifi}.
""",
        [
            (f"Through which door do guests enter the {d.org} building?", door),
            ("How many hours ahead must I announce a visitor?", hours),
            ("What is the password of our guest network?", wifi),
        ],
    )


def _lab(d: Dice) -> GeneratedSkill:
    speed, minutes, cold, waste, acid = (
        d.number(2100, 8900),
        d.number(7, 39),
        d.number(21, 88),
        d.word(),
        d.number(13, 79),
    )
    return _skill(
        "sample-prep",
        f"Preparing blood and water samples in the {d.org} laboratory: centrifuge, storage, dilution, waste.",
        f"""
# Sample preparation

Spin blood at {speed} revolutions a minute for {minutes} minutes. Store it at minus {cold} degrees.
Used tips go into the bin marked "{waste}".

How water samples are diluted: references/dilution.md
""",
        [
            ("How fast does the centrifuge spin blood samples, in revolutions a minute?", speed),
            ("For how many minutes do I spin a blood sample?", minutes),
            ("What is the mark on the bin for used pipette tips?", waste),
        ],
        ("references/dilution.md", f"# Dilution\n\nWater samples: one part in {acid}. Never use tap water.\n"),
        ("One part in how many is the right dilution for a water sample?", acid),
    )


def _release(d: Dice) -> GeneratedSkill:
    branch, share, soak, approver, port = d.word(), d.number(3, 19), d.number(35, 95), d.word(), d.number(7100, 9800)
    return _skill(
        "service-release",
        f"Puts a new version of the {d.org} web service into production: branches, canary share, soak time, approval.",
        f"""
# Release of the web service

1. Cut the branch `{branch}`.
2. Send {share} percent of the traffic to the new version.
3. Wait {soak} minutes.
4. {approver.title()} approves the rest.

Health checks are listed in [checks](references/health.md).
""",
        [
            ("What share of the traffic goes to the new version first when we release?", share),
            ("How many minutes do we wait before a release continues?", soak),
            (f"Who approves a release of the {d.org} web service?", approver),
        ],
        ("references/health.md", f"# Health checks\n\nPoll `/ready` on port {port}. Three failures mean rollback.\n"),
        ("On which port is the health check of a new release polled?", port),
    )


_SUBJECTS: tuple[Callable[[Dice], GeneratedSkill], ...] = (
    _expenses,
    _returns,
    _greenhouse,
    _radio,
    _backup,
    _visitors,
    _lab,
    _release,
)

_PLAIN = (
    "What is the capital of France?",
    "What is 17 plus 25?",
    "Translate 'good morning' into Spanish.",
    "Write a haiku about autumn rain.",
    "Who wrote Romeo and Juliet?",
    "Name three primary colours.",
    "What does the Python function len do?",
    "Say hello.",
    "How many legs does a spider have?",
    "Give me a synonym for happy.",
    "Which planet is closest to the sun?",
    "Rewrite this in passive voice: The cat chased the mouse.",
    "What is the boiling point of water in Celsius?",
    "Thank you, that was helpful!",
    "Tell me a short joke about computers.",
)


def make_exam(seed: int) -> Exam:
    """The same seed gives the same exam. Always seven questions on SKILL.md and three on reference files."""
    rng = random.Random(seed)  # noqa: S311 - values for questions, no secrets
    while True:
        skills = [make(Dice(rng)) for make in rng.sample(_SUBJECTS, 4)]
        deep = [skill.deep_question for skill in skills if skill.deep_question is not None]
        if len(deep) >= _DEEP:
            break
    rng.shuffle(deep)
    shallow = [question for skill in skills for question in skill.questions]
    rng.shuffle(shallow)
    questions = shallow[:_SHALLOW] + deep[:_DEEP]
    rng.shuffle(questions)
    plain = tuple(Question(text=text) for text in rng.sample(_PLAIN, 5))
    return Exam(skills=tuple(sorted(skills, key=lambda skill: skill.name)), questions=tuple(questions), plain=plain)
