from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from satchel.skills import frontmatter
from satchel.skills.dialects import DIALECTS
from satchel.skills.frontmatter import FrontmatterError, parse_frontmatter, read_plain, split_fences
from satchel.skills.manifest import parse_head, parse_manifest
from satchel.skills.scanner import MAX_PLAIN, scan_block

LOADERS = [yaml.CBaseLoader, yaml.BaseLoader]


@pytest.mark.parametrize(
    ("block", "values"),
    [
        ("name: a\ndescription: Does x. Use when y.  \n", {"name": "a", "description": "Does x. Use when y."}),
        ("a: https://x.test/#y\nb: it's 10:30\n", {"a": "https://x.test/#y", "b": "it's 10:30"}),
        ("a: \"x: y # z\"\nb: 'it''s'\nc: ''\n", {"a": "x: y # z", "b": "it's", "c": ""}),
        ('a: "one\n  two  \n\n  three\n  "\nb: x\n', {"a": "one two\nthree ", "b": "x"}),
        ("a: one\n  two\n    three\nb: x\n", {"a": "one two three", "b": "x"}),
        ("a:\nb:   \nc: null\n", {"a": "", "b": "", "c": "null"}),
        ("m:\n  x: 1\n  y:\n    z: '2'\n\nn: 3\n", {"m": {"x": "1", "y": {"z": "2"}}, "n": "3"}),
        ("a:\n- x\n- 'y z'\nb:\n  - [p, q]\n", {"a": ["x", "y z"], "b": [["p", "q"]]}),
        ("a: [Read, Bash(git *), 'x']\nb: []\n", {"a": ["Read", "Bash(git *)", "x"], "b": []}),
        ("a: >\n  one\n  two: x\nb: |-\n  p\n  q\n\n", {"a": "one two: x\n", "b": "p\nq"}),
        ("a: 数据\r\nb: |\r\n  x\r\n  y\r\n", {"a": "数据", "b": "x\ny\n"}),
    ],
)
def test_the_shapes_that_are_read(block: str, values: object) -> None:
    scanned = scan_block(block)
    assert scanned is not None
    assert scanned.values == values
    assert scanned == frontmatter._read(block, {})


@pytest.mark.parametrize(
    "block",
    [
        "",
        "a: b",
        "a: b: c\n",
        "a: b #c\n",
        "a: b:\n",
        "a: &x b\n",
        "a: *x\n",
        "a: !t b\n",
        "a: {b: c}\n",
        "a: [b: c]\n",
        "a: [b, [c]]\n",
        "a: 'b' c\n",
        'a: "b\\n"\n',
        "a: |2\n   b\n",
        "a: |\n  b\n   c\n",
        "a: |\n  b\n\n  c\n",
        "a: b\na: c\n",
        "m:\n  x: 1\n  x: 2\n",
        "m:\n  x: 1\n y: 2\n",
        "- a\n",
        "- a: b\n",
        "a:\n  - b: c\n",
        "a:\n  - b\n    c\n",
        "a:\n  text\n",
        "a: b\n# c\n",
        "a:\tb\n",
        "a : b\n",
        "? a\n",
        "a: - b\n",
        "... \na: b\n",
        "--- \na: b\n",
        "a: b\x07\n",
        "a: b\u2028c: d\n",
        "a: b\rc: d\n",
        "a: " + "x" * MAX_PLAIN + "\n",
    ],
)
def test_whatever_is_not_sure_is_left_to_yaml(block: str) -> None:
    assert scan_block(block) is None


_PIECES = st.sampled_from(
    [
        *"a:#'\"\\-[],|>*!%@~=?{}\té数\u2028\u00a0\ufeff",
        "b c",
        " ",
        "  ",
        ": ",
        " #",
        "''",
        "- ",
        "&a",
        "...",
        "---",
        "<<",
    ]
)
_WORDS = st.lists(_PIECES, max_size=4).map("".join)
_VALUES = st.one_of(
    _WORDS,
    _WORDS.map(lambda text: f'"{text}"'),
    _WORDS.map(lambda text: f"'{text}'"),
    _WORDS.map(lambda text: f'"{text}'),
    st.lists(st.sampled_from(["x", "y z", "'q'", "-w", "1", "*"]), max_size=3).map(lambda all_: f"[{', '.join(all_)}]"),
    st.sampled_from(["", "|", ">-", "plain text", "x#y", "it's", "10:30", "x  "]),
)
_INDENTS = st.sampled_from(["", "", "", " ", "  ", "  ", "    "])
_KEYS = st.sampled_from(["a", "b", "c-d", "_e", "f.g", "no", "1h", "k "])
_LINES = st.one_of(
    st.builds("{}{}: {}".format, _INDENTS, _KEYS, _VALUES),
    st.builds("{}- {}".format, _INDENTS, _VALUES),
    st.builds("{}{}".format, _INDENTS, _VALUES),
    st.builds("{}{}:".format, _INDENTS, _KEYS),
    st.just(""),
)
_BLOCKS = st.lists(_LINES, min_size=1, max_size=6).map(lambda lines: "\n".join(lines) + "\n")


@pytest.mark.parametrize("loader", LOADERS)
@given(_BLOCKS)
def test_a_block_that_is_taken_says_what_yaml_says(loader: type, block: str) -> None:
    scanned = scan_block(block)
    if scanned is None:
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(frontmatter, "_LOADER", loader)
        read = frontmatter._read(block, {})
    assert scanned == read
    assert list(scanned.values) == list(read.values)


_TEXT = st.text(st.characters(codec="utf-8", categories=["L", "N"], include_characters=" -_/.(),;"), min_size=1)
_PLAIN = _TEXT.filter(lambda text: text[0].isascii() and text[0].isalnum() and text[-1] != " ")
_SCALARS = st.one_of(
    _PLAIN.map(lambda text: (text, text)),
    _TEXT.map(lambda text: (f'"{text}"', text)),
    _TEXT.map(lambda text: (f"'{text}'", text)),
)
_NAMES = st.from_regex(r"[a-z][a-z-]{0,8}[a-z]", fullmatch=True)
_FIELDS = st.one_of(
    _SCALARS.map(lambda pair: (f" {pair[0]}\n", pair[1])),
    st.lists(_SCALARS, min_size=1, max_size=3).map(
        lambda items: ("\n" + "".join(f"  - {text}\n" for text, _ in items), [value for _, value in items])
    ),
    st.dictionaries(_NAMES, _SCALARS, min_size=1, max_size=3).map(
        lambda items: (
            "\n" + "".join(f"  {key}: {text}\n" for key, (text, _) in items.items()),
            {key: value for key, (_, value) in items.items()},
        )
    ),
)


@given(st.dictionaries(_NAMES, _FIELDS, min_size=1, max_size=4))
def test_ordinary_frontmatter_is_always_taken(fields: dict[str, tuple[str, object]]) -> None:
    block = "".join(f"{key}:{text}" for key, (text, _) in fields.items())
    scanned = scan_block(block)
    assert scanned is not None
    assert scanned.values == {key: value for key, (_, value) in fields.items()}
    assert scanned == frontmatter._read(block, {})


_FENCES = st.sampled_from(["---\n", "---\n", "--- \n", "...\n", "---\r\n", "---x\n", ""])
_BODIES = st.sampled_from(["", " \n", "\x1c\n", "Body.\n", "\n\nBody\n---\n", "a\u200bb\n", "é\n", "\ufeff"])
_FILES = st.builds(
    lambda opening, block, closing, body: (opening + block + closing + body).encode(),
    _FENCES,
    st.one_of(_BLOCKS, st.just("name: a\ndescription: D.\n")),
    _FENCES,
    _BODIES,
)


@given(_FILES)
def test_a_file_that_is_read_plainly_is_read_the_same_in_full(data: bytes) -> None:
    front = read_plain(data)
    if front is not None:
        fenced = split_fences(data.decode())
        assert parse_frontmatter(fenced.yaml) == front
        assert fenced.body.strip()


@given(_FILES, st.sampled_from(sorted(DIALECTS)))
def test_without_the_body_the_verdict_is_the_same(data: bytes, row: str) -> None:
    whole = parse_manifest(data, directory="a", dialect=DIALECTS[row], path="p", location="/a", source="s")
    head = parse_head(data, directory="a", dialect=DIALECTS[row], path="p", location="/a", source="s")
    assert head == (whole.skill, whole.diagnostics)


def test_lines_are_told_after_a_finding_about_the_body() -> None:
    data = b"---\ndescription: D.\nmetadata: [x]\nname: other\n---\n"
    found = parse_manifest(data, directory="a", dialect=DIALECTS["portable"]).diagnostics
    assert [(item.rule, item.line) for item in found] == [
        ("body-empty", 0),
        ("name-directory-mismatch", 4),
        ("field-shape", 3),
    ]


@pytest.mark.parametrize(
    "block",
    [
        " " * MAX_PLAIN,
        "".join(" " * depth + 'k: "x\n' for depth in range(150)),
        'k: "x\n' + "\n" * 9000,
        "k: '" + "''" * 5000 + "\n",
        "k: [" + "a," * 5000 + "\n",
    ],
)
def test_hostile_blocks_end_like_any_other(block: str) -> None:
    assert scan_block(block + "\n") is None
    with pytest.raises(FrontmatterError):
        parse_frontmatter(block + "\n@\n")
