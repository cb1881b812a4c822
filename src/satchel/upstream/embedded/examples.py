"""The tasks that the embedded model is given, and the example turns that show it each of them."""

from __future__ import annotations

import re

PICK = (
    "You pick the entry of a list that a request belongs to. Entries are folders with the rules and figures of one "
    "house, which nobody knows by heart; a request belongs to one also when its description does not name the detail. "
    "Reply with the name of the entry."
)
PICK_LIST = """List:
- bakery-orders: Order rules of the Mirel bakery: cake deadlines, deposits, allergens.
- tide-tables: When ferries of the Ostrel line sail, how tides change the timetable, and where tickets are sold.
- piano-tuning: How the Carvo workshop tunes and rents out pianos: prices, pitch, appointments."""
NONE = "everyday"
NONE_LINE = (
    f"- {NONE}: Small talk, jokes, general knowledge, school subjects, arithmetic, translation, writing and code "
    "that have nothing to do with the house."
)
PICK_TURNS = (
    ("How many days before the party must I order a birthday cake?", "bakery-orders"),
    ("What is the capital of Norway?", NONE),
    ("Which nut is forbidden in the dough?", "bakery-orders"),
    ("Tell me something funny about cats.", NONE),
    ("To what pitch do we tune the grand in the hall?", "piano-tuning"),
    ("Write a short poem about the sea.", NONE),
    ("What does a pram cost on the late boat?", "tide-tables"),
    ("At what temperature does iron melt?", NONE),
    ("Who signs for a rented upright?", "piano-tuning"),
)
LOOK = (
    "You are given a text and a list of other files. Reply text when the text already says what the request asks for. "
    "Reply with the path of a file when it is the subject of that file and not of the text."
)
LOOK_LIST = """Text:
Birthday cakes are ordered 9 days ahead with a deposit of 14 euros.
Ovens are cleaned on Tuesdays. The shop opens at 6:20.

Other files:
- docs/allergens.md: Allergens are listed in `docs/allergens.md`.
- docs/wholesale.md: Wholesale prices: see [prices](docs/wholesale.md)."""
LOOK_TURNS = (
    ("How many days ahead must I order a birthday cake?", "text"),
    ("Which nut is forbidden in the dough?", "docs/allergens.md"),
    ("How high is the deposit for a cake?", "text"),
    ("What do fifty rolls cost a hotel?", "docs/wholesale.md"),
    ("On which day are the ovens cleaned?", "text"),
    ("May a guest with a milk allergy eat the rolls?", "docs/allergens.md"),
    ("At what time does the shop open?", "text"),
)
ANSWER = (
    "Answer the request at the end from the documents that follow. Use their values exactly as they stand there, and "
    "say so when they do not hold the answer."
)
ANSWER_RESULT = (
    "Answer the request at the end in one sentence. The result that comes last was worked out for this very request: "
    "use its values exactly as they were printed. The documents before it say what they mean."
)
RAN = "I ran the script for this request."
ANSWER_RAN = "Answer my request in one sentence with the values exactly as they were printed."
ANSWER_FAILED = (
    "The call whose result comes last was made for the request at the end and failed, so nothing was worked out. Reply "
    'in one sentence that begins with "It could not be worked out:" and gives the reason that the result names.'
)

ACT = (
    "You are given a text and a list of scripts and other files. Reply text when the request asks for a rule or a "
    "figure that stands in the text, or for what the script needs. Reply run and the path of a script when the request "
    "gives values of its own and wants the result that only the script works out from them. Reply with the path of a "
    "file when it is the subject of that file and not of the text."
)
ACT_LIST = """Text:
Prices stand in no list:
    python3 scripts/price.py GUESTS TIERS
Birthday cakes are ordered 9 days ahead with a deposit of 14 euros. A cake has at most 5 tiers.
A tier weighs 830 grams. The oven is heated for 25 minutes and cleaned on Tuesdays.

Scripts and other files:
- run scripts/price.py: python3 scripts/price.py GUESTS TIERS
- docs/allergens.md: Allergens are listed in `docs/allergens.md`."""
ACT_TURNS = (
    ("What does a cake of 3 tiers for 40 guests cost?", "run scripts/price.py"),
    ("How many days ahead must I order a birthday cake?", "text"),
    ("Which nut is forbidden in the dough?", "docs/allergens.md"),
    ("How many tiers may a cake have?", "text"),
    ("We are 17 people and want two tiers. What do we pay?", "run scripts/price.py"),
    ("How many grams does one tier weigh?", "text"),
    ("May a guest with a milk allergy eat the rolls?", "docs/allergens.md"),
    ("How many minutes is the oven heated?", "text"),
    ("Quote me one tier for twenty-five people.", "run scripts/price.py"),
    ("Which values go into the price of a cake?", "text"),
    ("Price for 8 guests, 1 tier, please.", "run scripts/price.py"),
    ("How high is the deposit for a cake?", "text"),
)
FILL = (
    "You are given a text, a script that it describes and a request. Reply with the script's arguments as one JSON "
    "object, made like the example with the values of the request in place of its own. What stands in square brackets "
    "is left out when the request does not ask for it."
)
_PRICE = """Text:
Run `python3 scripts/price.py --guests 12 --tiers 1 [--rush]`. `--rush` is for cakes within two days.
`--shift` moves delivery by so many minutes; negative for earlier.

Script: scripts/price.py
Example: {"args": ["--guests", "12", "--tiers", "1"]}"""
_SAIL = """Text:
`scripts/sail.sh FROM TO [--prams N]` prints the next ferry, for example `scripts/sail.sh Nor "Port Ela" --prams 1`.

Script: scripts/sail.sh
Example: {"args": ["Nor", "Port Ela", "--prams", "1"]}"""
_FILL_TURNS = (
    (
        f"{_PRICE}\nRequest: What does a cake of 3 tiers for 40 guests cost?",
        '{"args": ["--guests", "40", "--tiers", "3"]}',
    ),
    (
        f"{_SAIL}\nRequest: When does the next boat leave Saint Oye for Tamm?",
        '{"args": ["Saint Oye", "Tamm"]}',
    ),
    (
        f"{_PRICE}\nRequest: We are 25 and need one tier by tomorrow, 15 minutes earlier. What do we pay?",
        '{"args": ["--guests", "25", "--tiers", "1", "--rush", "--shift", "-15"]}',
    ),
    (
        f"{_SAIL}\nRequest: Next boat from Nor to Lower Vell with two prams?",
        '{"args": ["Nor", "Lower Vell", "--prams", "2"]}',
    ),
    (
        f"{_PRICE}\nRequest: Cake, 31 guests, 2 tiers, 20 minutes earlier: price please.",
        '{"args": ["--guests", "31", "--tiers", "2", "--shift", "-20"]}',
    ),
)
_LIFT = """Text:
`scripts/lift.py` takes the level, the goods and the number of crates, like `python3 scripts/lift.py -4 flour 15`.

Script: scripts/lift.py
Example: {"args": ["-4", "flour", "15"]}"""
_FILL_PLACES = (
    (
        f"{_LIFT}\nRequest: How long does the lift take to level minus two with 8 crates of rye?",
        '{"args": ["-2", "rye", "8"]}',
    ),
    _FILL_TURNS[1],
    (
        f"{_LIFT}\nRequest: Six crates, salt, level zero: how long?",
        '{"args": ["0", "salt", "6"]}',
    ),
    _FILL_TURNS[3],
    (
        f"{_LIFT}\nRequest: We have 12 crates, butter, level 3. Lift?",
        '{"args": ["3", "butter", "12"]}',
    ),
)
FILL_NAMED = (
    "You are given a text, a script that it describes, the script's arguments and a request. Reply with the arguments "
    "as one JSON object: the values of the request, null for what it does not speak of."
)
_PRICE_NAMED = """Text:
Run `python3 scripts/price.py`. `--rush` is for cakes within two days.

Script: scripts/price.py
Arguments:
- --guests: whole number
- --tiers: whole number; layers of the cake
- --rush: true or false
- --shift: whole number or null; minutes by which delivery is moved, negative for earlier"""
_SAIL_NAMED = """Text:
`scripts/sail.sh` prints the next ferry.

Script: scripts/sail.sh
Arguments:
- FROM: text
- TO: text
- --prams: text or null"""
_LIFT_NAMED = """Text:
`scripts/lift.py` takes the level, the goods and the number of crates, like `python3 scripts/lift.py`.

Script: scripts/lift.py
Arguments:
- level: whole number
- goods: "flour" or "rye" or "salt" or "butter"
- crates: whole number"""
FILL_NAMED_TURNS = (
    (
        f"{_PRICE_NAMED}\nRequest: What does a cake of 3 tiers for 40 guests cost?",
        '{"args": {"--guests": 40, "--tiers": 3, "--rush": false, "--shift": null}}',
    ),
    (
        f"{_SAIL_NAMED}\nRequest: When does the next boat leave Saint Oye for Tamm?",
        '{"args": {"FROM": "Saint Oye", "TO": "Tamm", "--prams": null}}',
    ),
    (
        f"{_LIFT_NAMED}\nRequest: How long does the lift take to level minus two with 8 crates of rye?",
        '{"args": {"level": -2, "goods": "rye", "crates": 8}}',
    ),
    (
        f"{_PRICE_NAMED}\nRequest: We are 25 and need one tier by tomorrow, 15 minutes earlier. What do we pay?",
        '{"args": {"--guests": 25, "--tiers": 1, "--rush": true, "--shift": -15}}',
    ),
    (
        f"{_SAIL_NAMED}\nRequest: Next boat from Nor to Lower Vell with two prams?",
        '{"args": {"FROM": "Nor", "TO": "Lower Vell", "--prams": "2"}}',
    ),
    (
        f"{_LIFT_NAMED}\nRequest: Six crates, salt, level zero: how long?",
        '{"args": {"level": 0, "goods": "salt", "crates": 6}}',
    ),
)
_NAMES_OPTION = re.compile(r'"--?[A-Za-z]')


def fill_turns(example: str) -> tuple[tuple[str, str], ...]:
    """The examples of arguments that are written like ``example``, "" for none.

    Named and placed ones are kept apart: shown together, the model writes either kind for the other.
    """
    return _FILL_TURNS if not example or _NAMES_OPTION.search(example) else _FILL_PLACES
