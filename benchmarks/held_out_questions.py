"""Skills with scripts, and questions about them, that no prompt of the embedded model was written with in sight.

They are there to be measured. A prompt that is changed because of an answer to one of them needs another set.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Shipped:
    """A skill with one script, which prints one line like ``colour: 31``."""

    name: str
    description: str
    body: str
    script: str
    source: str
    files: dict[str, str] = field(default_factory=dict[str, str])

    def write(self, root: Path) -> None:
        """The skill's folder, below ``root``."""
        head = f"---\nname: {self.name}\ndescription: {self.description}\n---\n"
        for path, text in {"SKILL.md": head + self.body, self.script: self.source, **self.files}.items():
            target = root / self.name / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldOut:
    """``runs``: (question, skill, the right arguments); ``others``: (question, a value of the right answer)."""

    skills: tuple[Shipped, ...]
    runs: tuple[tuple[str, str, tuple[str, ...]], ...]
    others: tuple[tuple[str, str], ...]


_LOOM = Shipped(
    name="loom-warp",
    description="Warp yarn of the Tannic weaving mill: metres to wind, setts, shrinkage, beams. Use for any question "
    "about a warp or a loom of the mill.",
    body="""# Warps of the Tannic mill

`scripts/warp.py` works out how many metres of yarn are wound for a warp:

    python3 scripts/warp.py --width-cm 70 --sett 9 --pieces 4

| option | meaning |
| --- | --- |
| `--width-cm` | finished width of one piece, in centimetres |
| `--sett` | ends in a centimetre |
| `--pieces` | how many pieces hang on one warp |
| `--fringed` | only for pieces with a fringe; takes no value |

Linen shrinks by 6 percent, wool by 13 percent. A beam carries at most 46 kilograms. Yarn colours stand in
`references/colours.md`.
""",
    script="scripts/warp.py",
    source="""import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--width-cm", type=float, required=True)
parser.add_argument("--sett", type=int, required=True)
parser.add_argument("--pieces", type=int, required=True)
parser.add_argument("--fringed", action="store_true")
asked = parser.parse_args()
ends = round(asked.width_cm * 1.087 * asked.sett) + 6
print(f"yarn to wind: {round(ends * (asked.pieces * (2.31 + 0.37 * asked.fringed) + 0.83))} m")
""",
    files={"references/colours.md": "Madder red is colour 318, woad blue is colour 274.\n"},
)
_WAX = Shipped(
    name="ski-wax",
    description="The wax room of the Brenn ski school: wax codes, iron temperatures, opening hours. Use when someone "
    "waxes skis at Brenn.",
    body="""# Wax room of Brenn

The room is open from 6:40 to 20:15. The iron stands at 128 degrees for klister and at 141 for powder.
Brushes are changed every 19 days.

Which wax a pair of skis gets is a code that only the script knows. It takes the temperature of the snow in degrees
Celsius, the kind of snow (`fresh`, `old` or `wet`) and the kilometres of the tour:

    python3 scripts/wax.py -4 fresh 15
""",
    script="scripts/wax.py",
    source="""import sys
degrees, snow, km = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
base = {"fresh": 311, "old": 467, "wet": 593}[snow]
print(f"wax: B{(base * 37 + (degrees + 40) * 89 + km * 53) % 9000 + 1000}")
""",
)
FIRST = HeldOut(
    skills=(_LOOM, _WAX),
    runs=(
        (
            "How many metres of yarn do we wind at Tannic for 5 pieces, 60 cm wide, at a sett of 8?",
            "loom-warp",
            ("--width-cm", "60", "--sett", "8", "--pieces", "5"),
        ),
        (
            "Tannic mill: a warp for three pieces of 110 centimetres width with 7 ends per centimetre. Yarn to wind?",
            "loom-warp",
            ("--width-cm", "110", "--sett", "7", "--pieces", "3"),
        ),
        (
            "We weave two fringed shawls, 85 cm wide, sett 12, at the Tannic mill. How much yarn must be wound?",
            "loom-warp",
            ("--width-cm", "85", "--sett", "12", "--pieces", "2", "--fringed"),
        ),
        (
            "Warp for the mill: sett 10, width 42.5 cm, 6 pieces. Metres of yarn, please.",
            "loom-warp",
            ("--width-cm", "42.5", "--sett", "10", "--pieces", "6"),
        ),
        (
            "I am setting up a loom for one rug of 130 cm, 4 ends a centimetre, with a fringe. What length of yarn?",
            "loom-warp",
            ("--width-cm", "130", "--sett", "4", "--pieces", "1", "--fringed"),
        ),
        (
            "The customer of Tannic wants 8 runners, each 33 cm wide, sett 11. How many metres of warp yarn is that?",
            "loom-warp",
            ("--width-cm", "33", "--sett", "11", "--pieces", "8"),
        ),
        ("Which wax do I take at Brenn for a tour of 22 km on old snow at -9 degrees?", "ski-wax", ("-9", "old", "22")),
        ("Brenn wax code for fresh snow, minus 12 degrees, 8 kilometres?", "ski-wax", ("-12", "fresh", "8")),
        ("It is 2 degrees and the snow is wet. Wax for a 5 km round at Brenn, please.", "ski-wax", ("2", "wet", "5")),
        (
            "We ski 31 kilometres from Brenn tomorrow, the fresh snow has -6 degrees. Which wax code?",
            "ski-wax",
            ("-6", "fresh", "31"),
        ),
        (
            "Old snow at zero degrees, a tour of 17 kilometres: what is the wax code at Brenn?",
            "ski-wax",
            ("0", "old", "17"),
        ),
        ("My pupils at Brenn do 12 km, wet snow, 1 degree. Wax?", "ski-wax", ("1", "wet", "12")),
    ),
    others=(
        ("By what percentage does wool shrink at the Tannic mill?", "13"),
        ("How many kilograms may a beam at the Tannic mill carry?", "46"),
        ("What is the number of the colour woad blue at the Tannic mill?", "274"),
        ("In which unit does the Tannic mill give the width of a piece, in metres or in centimetres?", "centimet"),
        ("At what temperature does the iron stand for klister at Brenn?", "128"),
        ("When does the wax room of Brenn open?", "6:40"),
        ("Every how many days are the brushes in the wax room changed?", "19"),
        ("How much fuel do the tanks of the Petrel hold?", "395"),
        ("What share of the traffic goes to the canary first on the Larkspur platform?", "6"),
        ("What is the capital of Portugal?", "Lisbon"),
        ("What is 14 plus 29?", "43"),
        ("Who wrote the play Hamlet?", "Shakespeare"),
    ),
)

_ARCHIVE = Shipped(
    name="reel-transfer",
    description="Digitising film reels at the Corvin archive: tape needed, scan speeds, formats, storage. Use for any "
    "question about a reel, a scan or a transfer at Corvin.",
    body="""# Transfers at the Corvin archive

How many gigabytes a transfer takes is printed by `scripts/size.py`, and nobody guesses it:

    python3 scripts/size.py --metres 120 --fps 18 --gauge 8mm

| option | meaning |
| --- | --- |
| `--metres` | length of the film |
| `--fps` | frames a second that it was shot with |
| `--gauge` | `8mm`, `16mm` or `35mm` |
| `--sound` | only for films with a sound track; takes no value |

Reels are cleaned for 26 minutes before a scan. The scanner takes reels of at most 610 metres. Masters are kept for 34
years. Who may borrow a reel stands in `references/lending.md`.
""",
    script="scripts/size.py",
    source="""import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--metres", type=float, required=True)
parser.add_argument("--fps", type=int, required=True)
parser.add_argument("--gauge", choices=("8mm", "16mm", "35mm"), required=True)
parser.add_argument("--sound", action="store_true")
asked = parser.parse_args()
frames = asked.metres * {"8mm": 262.5, "16mm": 131.2, "35mm": 52.5}[asked.gauge]
size = frames * {"8mm": 3.1, "16mm": 7.7, "35mm": 19.3}[asked.gauge] / 1000 + frames / asked.fps * asked.sound * 0.004
print(f"size of the transfer: {size + 1.37:.2f} GB")
""",
    files={"references/lending.md": "Only schools of the district may borrow reels, for 12 days.\n"},
)
_HIVE = Shipped(
    name="hive-feed",
    description="The apiaries of the Sorrel estate: feed for hives, inspections, honey yields. Use when someone cares "
    "for bees at Sorrel.",
    body="""# Bees of the Sorrel estate

Hives are inspected every 9 days from April to July. A hive is sold with 6 frames. Honey is spun at 37 degrees.

The syrup that a hive gets is worked out by a script from the place of the hive (`meadow`, `wood` or `roof`), the frames
that are covered with bees and the lowest temperature of the night in degrees Celsius, in this order:

    python3 scripts/feed.py meadow 7 -3

It prints the litres and the ratio.
""",
    script="scripts/feed.py",
    source="""import sys
place, frames, degrees = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
base = {"meadow": 1.13, "wood": 1.71, "roof": 2.29}[place]
print(f"syrup: {base * frames + (20 - degrees) * 0.17:.2f} litres")
""",
)
SECOND = HeldOut(
    skills=(_ARCHIVE, _HIVE),
    runs=(
        (
            "How many gigabytes does a transfer of 240 metres of 16mm film at 24 frames a second take at Corvin?",
            "reel-transfer",
            ("--metres", "240", "--fps", "24", "--gauge", "16mm"),
        ),
        (
            "Corvin archive: we scan a 35mm reel of 300 m, shot with 25 fps, with a sound track. How large will it be?",
            "reel-transfer",
            ("--metres", "300", "--fps", "25", "--gauge", "35mm", "--sound"),
        ),
        (
            "An 8mm family film came to Corvin: 61 metres, 16 frames per second. Size of the transfer, please.",
            "reel-transfer",
            ("--metres", "61", "--fps", "16", "--gauge", "8mm"),
        ),
        (
            "Transfer at the archive: 16mm, 410.5 m, 18 fps. Gigabytes?",
            "reel-transfer",
            ("--metres", "410.5", "--fps", "18", "--gauge", "16mm"),
        ),
        (
            "I bring a sound film of 90 metres on 8mm, 24 frames a second, to Corvin. How many GB do I need for it?",
            "reel-transfer",
            ("--metres", "90", "--fps", "24", "--gauge", "8mm", "--sound"),
        ),
        (
            "The reel measures 550 metres, gauge 35mm, and was shot with 22 frames a second. How big is the scan?",
            "reel-transfer",
            ("--metres", "550", "--fps", "22", "--gauge", "35mm"),
        ),
        (
            "How much syrup does a hive in the wood at Sorrel get with 5 covered frames and a night of -6 degrees?",
            "hive-feed",
            ("wood", "5", "-6"),
        ),
        (
            "Sorrel bees: roof hive, 8 frames, minus 2 degrees at night. How many litres?",
            "hive-feed",
            ("roof", "8", "-2"),
        ),
        (
            "It will be 4 degrees tonight. The meadow hive has 9 frames with bees. Feed for it at Sorrel?",
            "hive-feed",
            ("meadow", "9", "4"),
        ),
        (
            "Tonight it goes down to zero degrees. What do I feed the hive on the roof at Sorrel, 6 frames?",
            "hive-feed",
            ("roof", "6", "0"),
        ),
        (
            "Eleven frames are covered in the hive in the wood at Sorrel, and we expect minus nine degrees. Syrup?",
            "hive-feed",
            ("wood", "11", "-9"),
        ),
        (
            "How many litres of syrup for a hive on the Sorrel meadow, 4 frames, 12 degrees in the night?",
            "hive-feed",
            ("meadow", "4", "12"),
        ),
    ),
    others=(
        ("For how many minutes is a reel cleaned before a scan at Corvin?", "26"),
        ("What is the longest reel that the scanner of Corvin takes?", "610"),
        ("For how many years are masters kept at the Corvin archive?", "34"),
        ("For how many days may a school borrow a reel from Corvin?", "12"),
        ("Every how many days are the hives of Sorrel inspected?", "9"),
        ("With how many frames is a hive sold at Sorrel?", "6"),
        ("At what temperature is honey spun at Sorrel?", "37"),
        ("What is the largest payload of the Petrel?", "480"),
        ("Which branch code does Porto have in the invoice numbers of Tarrow Freight?", "58"),
        ("What is the capital of Austria?", "Vienna"),
        ("What is 23 plus 38?", "61"),
        ("Which planet is closest to the sun?", "Mercury"),
    ),
)
