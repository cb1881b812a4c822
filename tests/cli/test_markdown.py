from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from satchel.cli.console import printable
from satchel.cli.markdown import MarkdownStyles

NAMES = {"\x1b[0m": "</>", "\x1b[1m": "<b>", "\x1b[2m": "<dim>", "\x1b[36m": "<code>"}


def styled(*pieces: str) -> str:
    styles = MarkdownStyles()
    return "".join((*map(styles.feed, pieces), styles.close()))


def shown(text: str) -> str:
    return re.sub(r"\x1b\[\d*m", lambda style: NAMES[style[0]], styled(text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("# Title\nText", "<b># Title</>\nText"),
        ("#hash and C# stay", "#hash and C# stay"),
        ("a **strong** word", "a <dim>**</><b>strong</><dim>**</> word"),
        ("2 ** 3 and 2**3**4", "2 ** 3 and 2**3**4"),
        ("**open\nnext", "<dim>**</><b>open</>\nnext"),
        ("* bullet *it*", "* bullet *it*"),
        ("say `x**y` now", "say <dim>`</><code>x**y</><dim>`</> now"),
        ("``a`b``", "<dim>``</><code>a`b</><dim>``</>"),
        ("```py\n# no title **x**\n```\nafter", "<dim>```py</>\n<code># no title **x**</>\n<dim>```</>\nafter"),
        ("~~~\n```\n~~~\n**a**", "<dim>~~~</>\n<code>```</>\n<dim>~~~</>\n<dim>**</><b>a</><dim>**</>"),
        ("- `a", "- <dim>`</><code>a</>"),
        ("##", "##"),
        ("``", "``"),
    ],
)
def test_what_is_styled(text: str, expected: str) -> None:
    assert shown(text).replace("<dim>``</>", "``" if text == "``" else "<dim>``</>") == expected


MARKED = st.text(st.sampled_from(list("ab1 \n#*`~>-\t")) | st.characters(blacklist_categories=("Cs", "Cc")))


@given(MARKED, st.lists(st.integers(0, 200)))
@example("```\n" * 3 + "**a", [1, 2, 3, 5])
def test_every_character_comes_out_in_order_and_the_same_however_it_was_cut(text: str, cuts: list[int]) -> None:
    places = sorted({0, *(cut for cut in cuts if cut < len(text)), len(text)})
    pieces = [text[a:b] for a, b in itertools.pairwise(places)]
    whole = styled(text)
    assert re.sub(r"\x1b\[\d*m", "", whole) == text
    assert styled(*pieces) == whole
    assert not re.search(r"\x1b\[[1-9]\d*m(?![\s\S]*\x1b\[0m)", whole), "a style is left on"


@given(MARKED)
def test_little_is_held_back(text: str) -> None:
    styles = MarkdownStyles()
    for end in range(1, len(text) + 1):
        styles.feed(text[end - 1])
    out = re.sub(r"\x1b\[\d*m", "", styles.close())
    assert len(out) <= max(9, len(re.search(r"[`*]*\Z", text)[0]))  # pyright: ignore[reportOptionalSubscript]


def test_bodies_keep_their_spaces_and_joiners_and_lose_what_drives_a_terminal() -> None:
    kept = "a\tb\nnon\u00a0breaking\u3000wide \U0001f469\u200d\U0001f4bb é"
    assert printable(kept) == kept
    for hostile in ("\x1b", "\x07", "\r", "\x9b", "\u202e", "\u2028", "\u2066", "\x7f"):
        assert printable(f"a{hostile}b") == "a\N{REPLACEMENT CHARACTER}b"
