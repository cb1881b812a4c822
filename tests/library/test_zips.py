"""Archives from strangers."""

from __future__ import annotations

import io
import stat
import struct
import zipfile
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from satchel.errors import BundleError
from satchel.library.zips import ZipLimits, ZippedSkill, unzip

MANIFEST = b"---\nname: pdf\ndescription: Fills forms.\n---\nRead me.\n"


def packed(*entries: tuple[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, data in entries:
            archive.writestr(name, data)
    return file.getvalue()


def refusal(data: bytes, **limits: int) -> str:
    with pytest.raises(BundleError) as caught:
        unzip(data, limits=ZipLimits(**limits))
    return caught.value.code


@pytest.mark.parametrize("start", ["", "pdf/"])
def test_a_skill_is_found_at_the_top_and_in_its_folder(start: str) -> None:
    data = packed((f"{start}SKILL.md", MANIFEST), (f"{start}refs/a.md", b"A"), ("__MACOSX/SKILL.md", b"junk"))
    assert unzip(data, limits=ZipLimits()) == (start.rstrip("/"), {"SKILL.md": MANIFEST, "refs/a.md": b"A"})


def test_what_lies_beside_the_folder_is_left_out() -> None:
    data = packed(("README.md", b"hi"), ("pdf/SKILL.md", MANIFEST), ("pdf/inner/SKILL.md", b"one of its files"))
    assert sorted(unzip(data, limits=ZipLimits())[1]) == ["SKILL.md", "inner/SKILL.md"]


@pytest.mark.parametrize(
    "name",
    [
        "../x",
        "a/../../x",
        "/etc/passwd",
        "C:\\x",
        "\\\\host\\x",
        "~/x",
        "a\\..\\..\\x",
        "x./y",
        ".",
        "a/" * 33 + "x",
        "x" * 1025,
    ],
)
def test_a_name_that_leads_elsewhere_is_refused(name: str) -> None:
    assert refusal(packed(("SKILL.md", MANIFEST), (name, b"x"))) == "bundle-unsafe"


def test_a_name_that_hides_behind_a_nul_is_refused() -> None:
    data = packed(("SKILL.md", MANIFEST), ("safe.txt#../x", b"x")).replace(b"safe.txt#", b"safe.txt\0")
    assert refusal(data) == "bundle-unsafe"


@pytest.mark.parametrize(
    "entries", [[("a.md", b""), ("A.md", b"")], [("a", b""), ("a/b", b"")], [("a/b/c", b""), ("A", b"")]]
)
def test_files_that_would_overwrite_each_other_are_refused(entries: list[tuple[str, bytes]]) -> None:
    assert refusal(packed(("SKILL.md", MANIFEST), *entries)) == "bundle-unsafe"


def test_links_and_devices_are_left_out() -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("SKILL.md", MANIFEST)
        for name, kind in (("link", stat.S_IFLNK), ("device", stat.S_IFCHR), ("plain", stat.S_IFREG)):
            info = zipfile.ZipInfo(name)
            info.external_attr = (kind | 0o644) << 16
            archive.writestr(info, b"/etc/passwd")
    assert sorted(unzip(file.getvalue(), limits=ZipLimits())[1]) == ["SKILL.md", "plain"]


@pytest.mark.parametrize(
    ("entries", "code"),
    [
        ([], "bundle-no-skill"),
        ([("notes.md", b"x")], "bundle-no-skill"),
        ([("a/b/SKILL.md", MANIFEST)], "bundle-no-skill"),
        ([("__MACOSX/SKILL.md", MANIFEST)], "bundle-no-skill"),
        ([("a/SKILL.md", MANIFEST), ("b/skill.md", MANIFEST)], "bundle-many-skills"),
    ],
)
def test_exactly_one_skill_is_wanted(entries: list[tuple[str, bytes]], code: str) -> None:
    assert refusal(packed(*entries)) == code


def test_every_limit_counts_what_comes_out() -> None:
    noise = bytes(range(256)) * 40
    data = packed(("SKILL.md", MANIFEST), ("a", noise), ("b", noise))
    assert refusal(data, entries=2) == "bundle-too-large"
    assert refusal(data, entry_bytes=10_000) == "bundle-too-large"
    assert refusal(data, total_bytes=15_000) == "bundle-too-large"
    assert refusal(packed(("SKILL.md", MANIFEST), ("zeros", bytes(3_000_000)))) == "bundle-too-large"
    assert len(unzip(data, limits=ZipLimits(entries=3, entry_bytes=10_240, total_bytes=21_000))[1]) == 3


def test_a_bomb_is_stopped_before_it_has_unfolded() -> None:
    skill = ZippedSkill(io.BytesIO(packed(("SKILL.md", MANIFEST), ("zeros", bytes(50_000_000)))))
    chunks = skill.chunks("zeros")
    for _ in range(20):
        assert len(next(chunks)) <= 256 * 1024
    with pytest.raises(BundleError):
        list(chunks)


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_methods_that_unfold_without_bound_are_refused(method: int) -> None:
    assert refusal(packed(("SKILL.md", MANIFEST), method=method)) == "bundle-unsafe"


def test_an_encrypted_entry_is_refused() -> None:
    data = bytearray(packed(("SKILL.md", MANIFEST)))
    data[data.index(b"PK\x01\x02") + 8] |= 1
    assert refusal(bytes(data)) == "bundle-unsafe"


def test_a_directory_of_entries_that_is_too_long_is_refused_before_it_is_read() -> None:
    data = packed(*[(f"{number:06}", b"") for number in range(5000)], ("SKILL.md", MANIFEST))
    assert refusal(data, entries=100) == "bundle-too-large"
    lying = bytearray(data)
    struct.pack_into("<2H", lying, data.rindex(b"PK\x05\x06") + 8, 1, 1)
    assert refusal(bytes(lying), entries=100) == "bundle-too-large"


def test_the_form_for_huge_archives_is_refused() -> None:
    data = packed(("SKILL.md", MANIFEST))
    end = data.rindex(b"PK\x05\x06")
    assert refusal(data[:end] + b"PK\x06\x07" + bytes(16) + data[end:]) == "bundle-unsafe"


@pytest.mark.parametrize("data", [b"", b"PK", b"not an archive", b"PK\x05\x06" + bytes(10)])
def test_what_is_no_archive_is_refused(data: bytes) -> None:
    assert refusal(data) == "bundle-unsafe"


@given(st.data())
def test_a_damaged_archive_is_refused_and_never_anything_else(draw: st.DataObject) -> None:
    whole = bytearray(packed(("pdf/SKILL.md", MANIFEST), ("pdf/a.md", b"some text " * 20)))
    for _ in range(draw.draw(st.integers(1, 4))):
        whole[draw.draw(st.integers(0, len(whole) - 1))] = draw.draw(st.integers(0, 255))
    with suppress(BundleError):
        assert "SKILL.md" in {path.upper().replace(".MD", ".md") for path in unzip(bytes(whole), limits=ZipLimits())[1]}
