from __future__ import annotations

import pytest

from satchel.errors import PathError, SkillError
from satchel.library.inline import read_inline
from tests.library.test_zips import MANIFEST, packed


def test_a_skill_is_read_from_memory_page_by_page() -> None:
    skill = read_inline(
        packed(("pdf/skill.md", MANIFEST), ("pdf/docs/a.md", "é".encode() * 10), ("pdf/logo.png", b"\x89PNG"))
    )
    assert (skill.loaded.name, skill.loaded.skill.ref.source, skill.loaded.body) == ("pdf", "request", "Read me.\n")
    assert [(file.path, file.kind, file.is_text) for file in skill.loaded.files] == [
        ("SKILL.md", "manifest", True),
        ("docs/a.md", "reference", True),
        ("logo.png", "asset", False),
    ]
    assert skill.read("", max_bytes=1000).text == MANIFEST.decode()
    page = skill.read("./docs\\a.md", offset=3, max_bytes=5)
    assert (page.text, page.start, page.end, page.total) == ("éé", 2, 6, 20)
    assert skill.bytes == len(MANIFEST) + 20 + 4


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("logo.png", "binary-file"),
        ("docs", "not-a-file"),
        ("nothing.md", "path-not-found"),
        ("../x", "path-refused"),
        (".env", "path-not-found"),
    ],
)
def test_what_cannot_be_read_says_why(path: str, code: str) -> None:
    skill = read_inline(
        packed(("SKILL.md", MANIFEST), ("docs/a.md", b"A"), ("logo.png", b"x"), (".env", b"KEY=1")), name="pdf"
    )
    with pytest.raises(PathError) as caught:
        skill.read(path, max_bytes=1000)
    assert caught.value.code == code


def test_an_offset_past_the_end_is_refused() -> None:
    skill = read_inline(packed(("SKILL.md", MANIFEST), ("empty.md", b"")), name="pdf")
    assert skill.read("empty.md", max_bytes=10).is_last
    with pytest.raises(PathError) as caught:
        skill.read("SKILL.md", offset=len(MANIFEST), max_bytes=10)
    assert caught.value.code == "offset-past-end"


def test_a_manifest_that_cannot_be_used_says_where() -> None:
    with pytest.raises(SkillError) as caught:
        read_inline(packed(("SKILL.md", b"no frontmatter")))
    assert caught.value.code == "skill-invalid"
