"""Where the five designs disagree about reading and finding: each point, read in each design's dialect.

The numbers are those of our table of conflicts; the points about placing arguments (28 to 37) have a module of their own.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from satchel.errors import PathError, SkillError
from satchel.library import discover
from satchel.skills.model import Flags
from tests.conformance.reading import (
    REFUSED,
    SEEDS,
    D,
    found_in_each,
    good,
    in_each,
    names,
    read,
    skill,
    text,
    verdict,
    write,
)


def test_1_and_2_no_frontmatter_and_one_without_an_end() -> None:
    assert in_each("# Only a body\n") == dict.fromkeys(SEEDS, (REFUSED, "frontmatter-missing"))
    assert in_each("---\nname: a\n") == dict.fromkeys(SEEDS, (REFUSED, "frontmatter-unterminated"))


def test_3_fences_may_have_blanks_behind_them_and_dots_close_too() -> None:
    assert in_each(f"--- \nname: a\n{D}\n---\t\nBody.\n") == dict.fromkeys(SEEDS, ("a",))
    assert in_each(f"---\nname: a\n{D}\n...\nBody.\n") == dict.fromkeys(SEEDS, ("a",))
    assert in_each(f"---x\nname: a\n{D}\n---\nBody.\n") == dict.fromkeys(SEEDS, (REFUSED, "frontmatter-missing"))


def test_4_a_name_that_differs_from_the_directory() -> None:
    assert in_each(skill("foo"), "bar") == {
        "agent-sh": (REFUSED, "name-directory-mismatch"),
        "tensorsharp": ("foo", "name-directory-mismatch"),
        "flowcraft": ("foo", "name-directory-mismatch"),
        "tnsai": ("foo",),
        "contextchef": ("foo",),
    }
    assert in_each(skill("foo"), "Foo") == {
        "agent-sh": (REFUSED, "directory-name-form"),
        "tensorsharp": ("foo",),
        "flowcraft": ("foo",),
        "tnsai": ("foo",),
        "contextchef": ("foo",),
    }


def test_5_no_name() -> None:
    assert in_each(text(D), "my-tool") == {
        "agent-sh": (REFUSED, "name-unusable"),
        "tensorsharp": ("my-tool", "name-missing"),
        "flowcraft": ("my-tool", "name-missing"),
        "tnsai": ("my-tool",),
        "contextchef": (REFUSED, "name-unusable"),
    }


def test_6_a_name_that_is_not_legal() -> None:
    assert in_each(skill("My PDF Tool"), "box") == {
        "agent-sh": (REFUSED, "name-normalized", "name-directory-mismatch"),
        "tensorsharp": ("my-pdf-tool", "name-normalized", "name-directory-mismatch"),
        "flowcraft": ("box", "name-normalized"),
        "tnsai": ("My PDF Tool",),
        "contextchef": ("My PDF Tool",),
    }


def test_7_letter_case_of_a_name_that_is_looked_up(tmp_path: Path) -> None:
    write(tmp_path, "pdf", skill("pdf"))
    libraries = {row: discover([tmp_path], dialect=row) for row in SEEDS}
    assert {row: library.get("PDF") is not None for row, library in libraries.items()} == {
        "agent-sh": False,
        "tensorsharp": True,
        "flowcraft": False,
        "tnsai": True,
        "contextchef": False,
    }
    assert all(library.get("pdf") for library in libraries.values())


def test_7_names_that_differ_in_letter_case_are_two_where_case_counts(tmp_path: Path) -> None:
    write(tmp_path, "one", skill("Deploy"))
    write(tmp_path, "two", skill("deploy"))
    assert names(discover([tmp_path], dialect="contextchef")) == ["Deploy", "deploy"]
    assert names(discover([tmp_path], dialect="tnsai")) == ["Deploy"]


def test_8_a_description_is_required_everywhere() -> None:
    for line in ("description:", "description: ' '", "license: MIT"):
        assert in_each(text("name: a", line)) == dict.fromkeys(SEEDS, (REFUSED, "description-missing"))


def test_9_a_long_description() -> None:
    long = text("name: a", "description: " + "描" * 2048)
    assert in_each(long) == {
        "agent-sh": (REFUSED, "description-long"),
        "tensorsharp": ("a", "description-long"),
        "flowcraft": ("a",),
        "tnsai": ("a",),
        "contextchef": ("a",),
    }
    told = {row: len(good(read(row, long)).summary) for row in SEEDS if row != "agent-sh"}
    assert told == {"tensorsharp": 2048, "flowcraft": 1024, "tnsai": 2048, "contextchef": 2048}
    assert all(len(good(read(row, long)).description) == 2048 for row in told)


def test_10_a_description_is_kept_as_written_and_on_one_line() -> None:
    content = text("name: a", "description: |", "  Two", "    lines.")
    for row in SEEDS:
        read_skill = good(read(row, content))
        assert (read_skill.description, read_skill.summary) == ("Two\n  lines.\n", "Two lines.")


def test_11_a_long_compatibility() -> None:
    assert in_each(text("name: a", D, "compatibility: " + "x" * 501)) == {
        "agent-sh": (REFUSED, "compatibility-long"),
        "tensorsharp": ("a", "compatibility-long"),
        "flowcraft": ("a",),
        "tnsai": ("a",),
        "contextchef": ("a",),
    }


def test_12_an_empty_body() -> None:
    expected = dict.fromkeys(SEEDS, ("a",)) | {"flowcraft": (REFUSED, "body-empty")}
    assert in_each(text("name: a", D, body=" \n")) == expected


def test_13_scalars_are_text_everywhere() -> None:
    for row in SEEDS:
        read_skill = good(read(row, text("name: 3000", D, "metadata: {version: 1.0, draft: no}"), "3000"))
        assert read_skill.name == "3000"
        assert read_skill.frontmatter["metadata"] == {"version": "1.0", "draft": "no"}


def test_14_a_key_that_stands_twice_is_an_error_everywhere() -> None:
    assert in_each(text("name: a", D, D)) == dict.fromkeys(SEEDS, (REFUSED, "yaml-duplicate-key"))


def test_15_nested_values_are_kept_under_unknown_keys_and_refused_under_known_ones() -> None:
    for row in SEEDS:
        assert good(read(row, text("name: a", D, "x-own: {b: [c]}"))).frontmatter["x-own"] == {"b": ["c"]}
    assert in_each(text("name: a", D, "allowed-tools: {Read: yes}")) == {
        "agent-sh": (REFUSED, "field-shape-unsafe"),
        "tensorsharp": (REFUSED, "field-shape-unsafe"),
        "flowcraft": ("a",),
        "tnsai": (REFUSED, "field-shape-unsafe"),
        "contextchef": (REFUSED, "field-shape-unsafe"),
    }
    assert verdict(read("contextchef", text("name: a", D, "whenToUse: {a: b}"))) == (REFUSED, "field-shape")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (
            "Read, Bash(git log:*) Grep",
            {
                "agent-sh": ("Read", "Bash(git log:*)", "Grep"),
                "tensorsharp": ("Read,", "Bash(git log:*)", "Grep"),
                "flowcraft": (),
                "tnsai": ("Read, Bash(git log:*) Grep",),
                "contextchef": REFUSED,
            },
        ),
        (
            "[Read, 'Bash(git log:*)']",
            dict.fromkeys(SEEDS, ("Read", "Bash(git log:*)")) | {"flowcraft": ()},
        ),
    ],
)
def test_16_forms_of_allowed_tools(value: str, expected: dict[str, object]) -> None:
    content = text("name: a", D, f"allowed-tools: {value}")
    results = {row: read(row, content).skill for row in SEEDS}
    assert {row: REFUSED if item is None else item.allowed_tools for row, item in results.items()} == expected


def test_17_allowed_tools_are_only_recorded_by_reading() -> None:
    for row in SEEDS:
        read_skill = good(read(row, text("name: a", D, "allowed-tools: [Bash]")))
        assert (read_skill.flags, read_skill.trusted) == (Flags(), False)


def test_18_spellings_of_a_key() -> None:
    def when(row: str, key: str) -> str:
        return good(read(row, text("name: a", D, f"{key}: Now"))).when_to_use

    spelled = ("when-to-use", "when_to_use", "whenToUse")
    assert {row: [when(row, key) for key in spelled] for row in ("tnsai", "contextchef", "portable")} == {
        "tnsai": ["Now", "Now", ""],
        "contextchef": ["Now", "", "Now"],
        "portable": ["Now", "Now", "Now"],
    }
    hint = {row: good(read(row, text("name: a", D, "argument_hint: x"))).argument_hint for row in ("agent-sh", "tnsai")}
    assert hint == {"agent-sh": "", "tnsai": "x"}


def test_18_what_restricts_a_skill_counts_in_every_spelling_and_says_where_the_harness_ignores_it() -> None:
    told = ("a", "restriction-spelling")
    expected = {
        "allowed_tools": dict.fromkeys(("agent-sh", "tensorsharp", "contextchef"), told),
        "allowedTools": dict.fromkeys(("agent-sh", "tensorsharp", "tnsai"), told),
        "disable_model_invocation": dict.fromkeys(("agent-sh", "tnsai"), told),
        "userInvocable": dict.fromkeys(("agent-sh", "tnsai"), told),
    }
    values = {"allowed_tools": "[Read]", "allowedTools": "[Read]", "disable_model_invocation": "on"}
    for key, rows in expected.items():
        content = text("name: a", D, f"{key}: {values.get(key, 'off')}")
        assert in_each(content) == dict.fromkeys(SEEDS, ("a",)) | rows
        for row in rows:
            record = good(read(row, content))
            assert record.allowed_tools == ("Read",) or record.flags != Flags()
            assert key in record.frontmatter  # as an unknown key is kept


def test_19_unknown_keys_are_kept_silently() -> None:
    content = text("name: a", D, "hooks: {x: y}", "Own: 1")
    assert in_each(content) == dict.fromkeys(SEEDS, ("a",))
    for row in SEEDS:
        front = good(read(row, content)).frontmatter
        assert (front["hooks"], front["Own"]) == ({"x": "y"}, "1")


def test_20_byte_order_mark_and_line_ends() -> None:
    content = b"\xef\xbb\xbf" + text("name: a", D, body="\r\n One\rTwo\r\n ", end="\r\n").encode()
    assert in_each(content) == dict.fromkeys(SEEDS, ("a",))
    assert {row: read(row, content).body for row in SEEDS} == {
        "agent-sh": "\r\n One\rTwo\r\n ",
        "tensorsharp": "\r\n One\rTwo\r\n ",
        "flowcraft": "One\rTwo",
        "tnsai": "\n One\nTwo\n ",
        "contextchef": "One\nTwo",
    }


def test_21_how_deep_skills_may_lie(tmp_path: Path) -> None:
    for folder in ("one", "b/two", "b/c/three", "b/c/d/four", "one/inner"):
        write(tmp_path, folder, skill(folder.rpartition("/")[2]))
    assert found_in_each(tmp_path) == {
        "agent-sh": ["one"],
        "tensorsharp": ["one", "three", "two"],
        "flowcraft": ["four", "inner", "one", "three", "two"],
        "tnsai": ["one"],
        "contextchef": ["one"],
    }


def test_21_a_root_that_is_a_skill(tmp_path: Path) -> None:
    root = write(tmp_path, "root", skill("root"))
    write(root, "child", skill("child"))
    assert found_in_each(root) == {
        "agent-sh": ["child"],
        "tensorsharp": ["root"],
        "flowcraft": ["child", "root"],
        "tnsai": ["child"],
        "contextchef": ["child"],
    }
    notes = [(found.rule, found.severity) for found in discover([root], dialect="agent-sh").diagnostics]
    assert notes == [("skill-is-root", "note")]


def test_22_hidden_directories(tmp_path: Path) -> None:
    for folder in (".own", "node_modules", "__pycache__"):
        write(tmp_path, folder, text("name: " + folder.strip("._").replace("_", "-"), D))
    write(tmp_path, "plain", skill("plain"))
    assert found_in_each(tmp_path) == {
        "agent-sh": ["plain"],  # it looks into all of them, and their names differ from their directories'
        "tensorsharp": ["plain"],
        "flowcraft": ["node-modules", "plain", "pycache"],
        "tnsai": ["node-modules", "own", "plain", "pycache"],
        "contextchef": ["node-modules", "own", "plain", "pycache"],
    }
    skipped = [found for found in discover([tmp_path], dialect="tensorsharp").diagnostics if "plain" not in found.path]
    assert [(found.rule, found.severity) for found in skipped] == [("skill-not-entered", "note")] * 3


def test_23_a_root_that_is_not_there(tmp_path: Path) -> None:
    missing = {row: discover([tmp_path / "none"], dialect=row).diagnostics for row in (*SEEDS, "portable")}
    assert {row: [(item.rule, item.severity) for item in found] for row, found in missing.items()} == {
        "agent-sh": [],
        "tensorsharp": [("root-missing", "error")],
        "flowcraft": [],
        "tnsai": [("root-missing", "warning")],
        "contextchef": [("root-missing", "error")],
        "portable": [("root-missing", "warning")],
    }


def test_24_one_name_in_two_roots(tmp_path: Path) -> None:
    one, two = tmp_path / "1", tmp_path / "2"
    for root in (one, two):
        write(root, "shared", skill("shared", f"From {root.name}."))
    results: dict[str, object] = {}
    for row in SEEDS:
        library = discover([one, two], dialect=row)
        kept = [(item.summary, [Path(place).parent.name for place in item.shadowed]) for item in library.skills]
        results[row] = (kept, [(found.rule, found.severity) for found in library.diagnostics])
    assert results == {
        "agent-sh": ([("From 1.", ["2"])], []),
        "tensorsharp": ([("From 1.", ["2"])], [("name-shadowed", "error")]),
        "flowcraft": ([("From 1.", []), ("From 2.", [])], []),
        "tnsai": ([("From 1.", ["2"])], [("name-shadowed", "warning")]),
        "contextchef": ([("From 2.", ["1"])], []),
    }


def test_25_links_never_lead_out_of_the_roots(tmp_path: Path) -> None:
    root = tmp_path / "root"
    inside = write(root, "inside", skill("inside"))
    outside = write(tmp_path / "elsewhere", "outside", skill("outside"))
    (root / "outside").symlink_to(outside)
    (inside / "out.md").symlink_to(outside / "SKILL.md")
    for row in SEEDS:
        library = discover([root], dialect=row)
        assert names(library) == ["inside"]
        severity = "error" if row == "flowcraft" else "warning"
        assert [(item.rule, item.severity) for item in library.diagnostics] == [("symlink-outside", severity)]
        with pytest.raises(PathError):
            library.read("inside", "out.md")


def test_26_a_broken_neighbour_is_a_finding(tmp_path: Path) -> None:
    write(tmp_path, "good", skill("good"))
    write(tmp_path, "broken", text("name: broken"))
    for row in SEEDS:
        library = discover([tmp_path], dialect=row)
        assert names(library) == ["good"]
        assert [(item.rule, item.severity) for item in library.diagnostics] == [("description-missing", "error")]


def test_27_what_changes_on_disk_counts_from_the_next_reload(tmp_path: Path) -> None:
    write(tmp_path, "one", skill("one"))
    for row in SEEDS:
        library = discover([tmp_path], dialect=row)
        before = library.catalog
        late = write(tmp_path, "two", skill("two"))
        assert library.get("two") is None
        assert library.reload().get("two") is not None
        assert before.get("two") is None
        (late / "SKILL.md").unlink()
        late.rmdir()


def test_39_and_40_who_may_invoke_a_skill() -> None:
    model = {row: good(read(row, text("name: a", D, "disable-model-invocation: true"))).flags for row in SEEDS}
    assert {row: flags.model_invocable for row, flags in model.items()} == {
        "agent-sh": False,
        "tensorsharp": True,
        "flowcraft": True,
        "tnsai": False,
        "contextchef": True,
    }
    user = {row: good(read(row, text("name: a", D, "user-invocable: false"))).flags for row in SEEDS}
    assert {row: (flags.user_invocable, flags.user_may_name) for row, flags in user.items()} == {
        "agent-sh": (False, True),
        "tensorsharp": (True, True),
        "flowcraft": (True, True),
        "tnsai": (False, False),
        "contextchef": (True, True),
    }


def test_47_the_size_of_a_manifest(tmp_path: Path) -> None:
    folder = write(tmp_path, "big", text("name: big", D, body="x" * (300 * 1024)))
    assert found_in_each(tmp_path) == {row: ["big"] for row in SEEDS} | {"flowcraft": []}
    (folder / "SKILL.md").write_bytes(b"x" * (4 * 1024 * 1024 + 1))
    for row in SEEDS:
        with pytest.raises(SkillError):
            discover([tmp_path], dialect=row).load("big")
        assert [item.rule for item in discover([tmp_path], dialect=row).diagnostics] == ["manifest-too-large"]
