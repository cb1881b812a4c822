from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.calling import Caller
from tests.program.program import satchel as program
from tests.support import write_skill

FINDING = ["rule", "severity", "path", "line", "column", "message", "hint"]
SKILL = ["name", "description", "dir", "root", "kind_counts", "bytes", "warnings", "shadowed"]


def test_list_has_its_published_shape(satchel: Caller, root: Path, tmp_path: Path) -> None:
    second = tmp_path / "second"
    write_skill(second, "deploy", description="The other one. Use when asked.")
    said = satchel("list", "--skills-dir", str(root), "--skills-dir", str(second), "--json")
    assert said.code == 0
    assert list(said.json) == ["skills", "diagnostics"]
    deploy, lint = said.json["skills"]
    assert list(deploy) == SKILL
    assert deploy["name"] == "deploy"
    assert deploy["description"] == "Knows all about deploy. Use when the user asks for deploy."
    assert (deploy["dir"], deploy["root"]) == (str(root / "deploy"), str(root))
    assert deploy["kind_counts"] == {"asset": 1, "manifest": 1, "reference": 1, "script": 1}
    assert deploy["bytes"] == sum(file.stat().st_size for file in (root / "deploy").rglob("*") if file.is_file())
    assert (deploy["warnings"], deploy["shadowed"]) == ([], [str(second / "deploy")])
    assert lint["name"] == "lint"
    assert [list(item) for item in said.json["diagnostics"]] == [FINDING, FINDING]
    found = {item["rule"]: item for item in said.json["diagnostics"]}
    assert set(found) == {"description-missing", "name-shadowed"}
    broken = found["description-missing"]
    assert (broken["severity"], broken["path"]) == ("error", str(root / "broken" / "SKILL.md"))
    assert broken["line"] > 0
    assert broken["hint"]


def test_list_for_people_keeps_skills_and_findings_apart(satchel: Caller, root: Path) -> None:
    said = satchel("list", "--skills-dir", str(root))
    assert said.code == 0
    assert said.out.splitlines() == [
        "deploy  Knows all about deploy. Use when the user asks for deploy.",
        "lint    Knows all about lint. Use when the user asks for lint.",
    ]
    assert "[description-missing]" in said.err


def test_show_is_the_same_object_with_the_skill_s_content(satchel: Caller, root: Path) -> None:
    said = satchel("show", "deploy", "--skills-dir", str(root), "--json")
    (listed, _) = satchel("list", "--skills-dir", str(root), "--json").json["skills"]
    assert said.code == 0
    assert list(said.json) == [*SKILL, "frontmatter", "body", "files"]
    assert {key: said.json[key] for key in SKILL} == listed
    assert list(said.json["frontmatter"]) == ["name", "description", "argument-hint"]
    assert said.json["body"] == "Ship $0 to ${SKILL_DIR} as ${TAG}: $ARGUMENTS\n"
    assert [file["path"] for file in said.json["files"]] == [
        "SKILL.md",
        "logo.png",
        "references/steps.md",
        "scripts/go.py",
    ]


def test_files_are_listed_with_kind_and_size(satchel: Caller, root: Path) -> None:
    said = satchel("files", "deploy", "--skills-dir", str(root), "--json")
    assert (said.code, list(said.json)) == (0, ["name", "dir", "files"])
    assert (said.json["name"], said.json["dir"]) == ("deploy", str(root / "deploy"))
    assert said.json["files"][1:3] == [
        {"path": "logo.png", "kind": "asset", "bytes": 5, "text": False},
        {"path": "references/steps.md", "kind": "reference", "bytes": 80_000, "text": True},
    ]
    said = satchel("files", "deploy", "--skills-dir", str(root))
    assert (said.code, said.err) == (0, "")
    assert said.out.splitlines()[1:3] == [
        "logo.png             asset      5 B  binary",
        "references/steps.md  reference  78.1 KB",
    ]


def test_a_file_is_read_page_by_page_without_splitting_a_character(satchel: Caller, root: Path) -> None:
    offset, text = 0, ""
    while offset is not None:
        said = satchel(
            "read", "deploy", "references/steps.md", "--offset", str(offset), "--skills-dir", str(root), "--json"
        )
        assert said.code == 0
        page = said.json
        assert list(page) == ["name", "path", "text", "start", "end", "total", "next_offset"]
        assert (page["name"], page["path"], page["start"], page["total"]) == (
            "deploy",
            "references/steps.md",
            offset,
            80_000,
        )
        text += page["text"]
        offset = page["next_offset"]
    assert text == "é" * 40_000


def test_read_prints_the_file_and_says_where_to_go_on(satchel: Caller, root: Path) -> None:
    said = satchel("read", "deploy", "SKILL.md", "--skills-dir", str(root))
    assert (said.code, said.out, said.err) == (0, (root / "deploy" / "SKILL.md").read_text(encoding="utf-8"), "")
    said = satchel("read", "deploy", "references/steps.md", "--skills-dir", str(root))
    assert "of 80000; go on with --offset " in said.err
    said = satchel("read", "deploy", "scripts/go.py", "--offset", "7", "--skills-dir", str(root))
    assert (said.out, said.err) == ("é')\n", "bytes 7 to 12 of 12\n")


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["../lint/SKILL.md"], "path-refused"),
        (["nothing.md"], "path-not-found"),
        (["logo.png"], "binary-file"),
        (["scripts"], "not-a-file"),
        (["scripts/go.py", "--offset", "99"], "offset-past-end"),
    ],
)
def test_what_cannot_be_read_is_a_failure_with_a_code(satchel: Caller, root: Path, words: list[str], code: str) -> None:
    said = satchel("read", "deploy", *words, "--skills-dir", str(root), "--json")
    assert (said.code, said.json["error"]["code"]) == (1, code)


def test_render_puts_arguments_in(satchel: Caller, root: Path) -> None:
    said = satchel("render", "deploy", "--args", "shop now", "--env", "TAG=v=1", "--skills-dir", str(root), "--json")
    assert said.code == 0
    assert said.json == {
        "name": "deploy",
        "text": f"Ship shop to {root / 'deploy'} as v=1: shop now\n",
        "unused_arguments": [],
        "diagnostics": [],
    }
    plain = satchel("render", "deploy", "--args", "shop now", "--env", "TAG=v=1", "--skills-dir", str(root))
    assert (plain.code, plain.out, plain.err) == (0, said.json["text"], "")


def test_render_reports_what_has_no_place_and_what_has_no_value(satchel: Caller, root: Path) -> None:
    said = satchel("render", "deploy", "--arg", "app=shop", "--arg", "stage=", "--skills-dir", str(root), "--json")
    assert said.json["text"] == f"Ship $0 to {root / 'deploy'} as ${{TAG}}: app=shop stage=\n"
    assert said.json["unused_arguments"] == []
    assert [item["rule"] for item in said.json["diagnostics"]] == ["placeholder-unfilled"]
    assert list(said.json["diagnostics"][0]) == FINDING
    said = satchel("render", "lint", "--args", "a 'b c'", "--skills-dir", str(root))
    assert (said.code, said.out) == (0, "Run it.\n\nARGUMENTS: a 'b c'")
    assert "no place for a, b c" in said.err


def test_render_follows_the_dialect_and_no_arguments_change_nothing(satchel: Caller, root: Path) -> None:
    body = "Ship $0 to ${SKILL_DIR} as ${TAG}: $ARGUMENTS\n"
    said = satchel("render", "deploy", "--args", "shop", "--dialect", "agent-sh", "--skills-dir", str(root))
    assert said.out == "Ship $0 to ${SKILL_DIR} as ${TAG}: shop\n"
    said = satchel("render", "deploy", "--dialect", "tensorsharp", "--args", "shop", "--skills-dir", str(root))
    assert said.out == body
    said = satchel("render", "deploy", "--skills-dir", str(root))
    assert said.out == body.replace("${SKILL_DIR}", str(root / "deploy"))


def test_render_never_runs_a_command_that_it_finds(satchel: Caller, tmp_path: Path) -> None:
    write_skill(tmp_path, "plan", body="Plan for: $ARGUMENTS\n\n!`touch own`\n")
    said = satchel("render", "plan", "--args=!`touch given`", "--skills-dir", str(tmp_path), "--json")
    assert said.json["text"] == "Plan for: !`touch given`\n\n!`touch own`\n"
    (found,) = said.json["diagnostics"]
    assert (found["rule"], found["path"]) == ("command-injection", str(tmp_path / "plan" / "SKILL.md"))
    assert "touch own" in found["message"]


def test_block_prints_the_text_and_counts_aside(satchel: Caller, root: Path) -> None:
    said = satchel("block", "--skill", "deploy", "--context-tokens", "8000", "--skills-dir", str(root), "--json")
    assert said.code == 0
    made = said.json
    assert list(made) == ["text", "tokens", "entries", "selected", "advertised", "omitted"]
    assert (made["selected"], made["advertised"], made["omitted"]) == (["deploy"], ["lint"], 0)
    assert [list(entry) for entry in made["entries"]] == [["name", "tokens", "shortened"]] * 2
    assert "- lint: Knows all about lint." in made["text"]
    assert str(root) not in made["text"]
    plain = satchel("block", "--skill", "deploy", "--context-tokens", "8000", "--skills-dir", str(root))
    assert (plain.code, plain.out) == (0, made["text"] + "\n")
    assert [line.split()[2] for line in plain.err.splitlines()] == ["deploy", "lint", "together,"]
    assert f"{made['tokens']} tokens  together" in plain.err


def test_a_window_decides_how_much_of_a_crowd_fits(satchel: Caller, tmp_path: Path) -> None:
    for number in range(120):
        write_skill(tmp_path, f"s{number:03d}", description="Word " * 50 + "Use when asked.")
    small = satchel("block", "--context-tokens", "4000", "--skills-dir", str(tmp_path), "--json").json
    assert small["omitted"] == 120 - len(small["advertised"]) > 0
    assert all(entry["shortened"] for entry in small["entries"])
    said = satchel("block", "--context-tokens", "4000", "--skills-dir", str(tmp_path))
    assert f"{small['omitted']} more did not fit." in said.err


def test_a_new_skill_passes_the_strictest_check(satchel: Caller, tmp_path: Path) -> None:
    said = satchel("new", "release-notes", "--dir", str(tmp_path / "a" / "skills"), "--json")
    place = tmp_path / "a" / "skills" / "release-notes"
    assert said.code == 0
    assert said.json == {"name": "release-notes", "dir": str(place), "files": ["SKILL.md"]}
    assert [path.name for path in place.iterdir()] == ["SKILL.md"]
    checked = satchel("check", str(place), "--strict", "--json")
    assert (checked.code, checked.json["ok"]) == (0, True)
    assert checked.json["skills"][0]["diagnostics"] == []


def test_new_never_overwrites(satchel: Caller, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "file").write_text("kept", encoding="utf-8")
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    for name, folder in (("mine", tmp_path), ("link", tmp_path), ("x", tmp_path / "file")):
        said = satchel("new", name, "--dir", str(folder), "--json")
        assert (said.code, said.json["error"]["code"]) == (2, "setting-invalid")
    assert list((tmp_path / "mine").iterdir()) == []
    assert (tmp_path / "file").read_text(encoding="utf-8") == "kept"
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize(
    ("name", "hint"),
    [("Release Notes", "satchel new release-notes"), ("a/b", "satchel new a-b"), ("..", "a-z"), ("文档", "a-z")],
)
def test_an_illegal_name_is_refused_with_the_legal_one(satchel: Caller, tmp_path: Path, name: str, hint: str) -> None:
    said = satchel("new", name, "--dir", str(tmp_path), "--json")
    assert said.code == 2
    assert hint in said.json["error"]["hint"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", [["show"], ["files"], ["render"], ["read", "SKILL.md"]])
def test_an_unknown_skill_is_a_failure_with_the_likely_name(satchel: Caller, root: Path, command: list[str]) -> None:
    said = satchel(command[0], "deplyo", *command[1:], "--skills-dir", str(root), "--json")
    assert (said.code, said.json["error"]["code"]) == (1, "skill-not-found")
    assert "deploy" in said.json["error"]["hint"]
    assert satchel("block", "--skill", "nope", "--skills-dir", str(root)).code == 1


@pytest.mark.parametrize(
    "words",
    [
        ["render", "deploy", "--args", "x", "--arg", "a=1"],
        ["render", "deploy", "--arg", "novalue"],
        ["render", "deploy", "--arg", "=x"],
        ["render", "deploy", "--env", "A=1", "--env", "A=2"],
        ["render"],
        ["read", "deploy"],
        ["read", "deploy", "SKILL.md", "--offset", "-1"],
        ["read", "deploy", "SKILL.md", "--offset", "many"],
        ["block", "--context-tokens", "0"],
        ["files", "deploy", "--nope"],
        ["list", "--skills-dir", "/nowhere/at/all"],
        ["new"],
        ["nonsense"],
    ],
)
def test_a_wrong_call_exits_2_and_says_why(satchel: Caller, root: Path, words: list[str]) -> None:
    given = words if "--skills-dir" in words or words[0] in {"new", "nonsense"} else [*words, "--skills-dir", str(root)]
    said = satchel(*given)
    assert (said.code, said.out) == (2, "")
    assert said.err.startswith("satchel: ")


def test_a_dialect_is_an_option_a_variable_and_a_choice(
    satchel: Caller, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for command in (
        ["list"],
        ["show", "deploy"],
        ["files", "deploy"],
        ["read", "deploy", "SKILL.md"],
        ["render", "deploy"],
    ):
        said = satchel(*command, "--dialect", "codx", "--skills-dir", str(root), "--json")
        assert (said.code, said.json["error"]["code"]) == (2, "setting-invalid")
        assert "codex" in said.json["error"]["message"]
        assert satchel(*command, "--dialect", "codex", "--skills-dir", str(root)).code == 0
    # A skill two directories down is one in the default dialect, and none where only one level is looked at.
    write_skill(root / "team", "deep")
    names = [item["name"] for item in satchel("list", "--skills-dir", str(root), "--json").json["skills"]]
    assert names == ["deep", "deploy", "lint"]
    monkeypatch.setenv("SATCHEL_DIALECT", "agent-sh")
    names = [item["name"] for item in satchel("list", "--skills-dir", str(root), "--json").json["skills"]]
    assert names == ["deploy", "lint"]
    monkeypatch.setenv("SATCHEL_DIALECT", "agentsh")
    assert satchel("list", "--skills-dir", str(root)).code == 2


def test_a_name_that_is_not_utf_8_breaks_no_output(satchel: Caller, tmp_path: Path) -> None:
    strange = tmp_path / "caf\udce9"
    write_skill(strange, "deploy")
    for words in (["list"], ["list", "--json"], ["show", "deploy", "--json"], ["files", "deploy", "--json"]):
        assert satchel(*words, "--skills-dir", str(strange)).code == 0


async def test_the_installed_program_answers_the_same(root: Path) -> None:
    ended = await program(
        "render", "deploy", "--args", "shop now", "--env", "TAG=1", "--skills-dir", str(root), "--json"
    )
    assert ended.code == 0
    assert json.loads(ended.out)["text"] == f"Ship shop to {root / 'deploy'} as 1: shop now\n"
    failed = await program("read", "deploy", "../x", "--skills-dir", str(root))
    assert (failed.code, failed.out) == (1, "")
    assert "[path-refused]" in failed.err
