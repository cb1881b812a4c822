"""Seed 000, the skill tool: reading, finding and placing arguments in its row."""

from __future__ import annotations

from pathlib import Path

import pytest

from satchel.context.listings import slash_menu
from satchel.errors import PathError, SkillError
from satchel.library import discover, load_skill
from satchel.skills.diagnostics import RULES
from satchel.skills.fields import Argument
from satchel.skills.model import Flags
from satchel.skills.substitute import substitute_skill
from tests.conformance.reading import REFUSED, D, good, names, read, skill, text, verdict, write

ROW = "agent-sh"


def found(*lines: str) -> tuple[str, ...]:
    return verdict(read(ROW, text("name: a", D, *lines)))


@pytest.mark.parametrize("name", ["a", "a1-b2", "x" * 64, "3-d"])
def test_a_legal_name_is_kept(name: str) -> None:
    assert verdict(read(ROW, skill(name), name)) == (name,)


@pytest.mark.parametrize("name", ["''", "x" * 65, "Foo", "a_b", "a--b", "-a", "a-", "a b"])
def test_any_other_name_is_refused(name: str) -> None:
    assert verdict(read(ROW, skill(name), name))[0] == REFUSED


def test_the_name_must_be_the_directory_s() -> None:
    manifest = read(ROW, skill("foo"), "bar")
    assert verdict(manifest) == (REFUSED, "name-directory-mismatch")
    assert ['"foo"' in item.message and '"bar"' in item.message for item in manifest.diagnostics] == [True]


def test_a_description_has_1_to_1024_characters() -> None:
    for line, expected in (
        ("license: MIT", (REFUSED, "description-missing")),
        ("description:", (REFUSED, "description-missing")),
        ("description: x", ("a",)),
        ("description: " + "x" * 1024, ("a",)),
        ("description: " + "x" * 1025, (REFUSED, "description-long")),
    ):
        assert verdict(read(ROW, text("name: a", line))) == expected


@pytest.mark.parametrize("line", ["description [x", "metadata:\n\ta: b", "license: 'MIT\n  or", "  indented: x"])
def test_what_is_not_yaml_is_an_error_with_a_place_and_a_hint(tmp_path: Path, line: str) -> None:
    folder = write(tmp_path, "a", text("name: a", D, line))
    library = discover([tmp_path], dialect=ROW)
    assert names(library) == []
    (item,) = library.diagnostics
    assert (item.rule, item.severity, item.path) == ("yaml-invalid", "error", str(folder / "SKILL.md"))
    assert item.line > 1
    assert item.message
    assert item.hint


def test_standardized_fields() -> None:
    lines = (
        "version: 2.1.3-beta",
        "argument-hint: '[path] [--fix]'",
        "license: Apache-2.0",
        "compatibility: node >= 20",
        "metadata: {owner: us, tags: [x], deep: {y: '1'}}",
    )
    a = good(read(ROW, text("name: a", D, *lines)))
    assert a.diagnostics == ()
    assert (str(a.version), a.argument_hint, a.compatibility) == ("2.1.3-beta", "[path] [--fix]", "node >= 20")
    assert a.license is not None
    assert (a.license.kind, a.license.ids) == ("spdx", ("Apache-2.0",))
    bundled = good(read(ROW, text("name: a", D, "license: LICENSE"))).license
    assert bundled is not None
    assert bundled.kind == "file"
    assert a.frontmatter["metadata"] == {"owner": "us", "tags": ["x"], "deep": {"y": "1"}}


def test_lengths_of_the_optional_fields() -> None:
    assert found("argument-hint: " + "x" * 200) == ("a",)
    assert found("argument-hint: " + "x" * 201) == (REFUSED, "argument-hint-long")
    assert found("compatibility: " + "x" * 500) == ("a",)
    assert found("compatibility: " + "x" * 501) == (REFUSED, "compatibility-long")
    assert found("compatibility: [node]") == (REFUSED, "field-shape")


def test_who_may_invoke_a_skill() -> None:
    def flags(*lines: str) -> Flags:
        return good(read(ROW, text("name: a", D, *lines))).flags

    assert flags() == Flags(model_invocable=True, user_invocable=True)
    assert flags("disable-model-invocation: false", "user-invocable: true") == flags()
    assert not flags("disable-model-invocation: true").model_invocable
    model_only = flags("user-invocable: false")
    assert (model_only.model_invocable, model_only.user_invocable) == (True, False)


def test_a_model_only_skill_is_not_in_the_menu_of_a_user(tmp_path: Path) -> None:
    write(tmp_path, "inner", text("name: inner", D, "user-invocable: false"))
    write(tmp_path, "outer", text("name: outer", D, "argument-hint: '[file]'"))
    menu = slash_menu(discover([tmp_path], dialect=ROW).skills)
    assert menu.text == "/outer [file] - Sample skill for tests."


def test_arguments_are_declared_by_name() -> None:
    lines = ("arguments:", "  path: {type: string, required: true}", "  mode: string")
    a = good(read(ROW, text("name: a", D, *lines)))
    assert a.arguments_by_name
    assert a.arguments == (Argument(name="path", required=True), Argument(name="mode"))


@pytest.mark.parametrize(
    "line",
    [
        "context: fork",
        "agent: explorer",
        "hooks: {PreToolUse: [{run: x}]}",
        "model: opus",
        "effort: high",
        "paths: {not: [a, list]}",
        "shell: bash",
        "when_to_use: Now",
        "own-key: [1, {b: c}]",
    ],
)
def test_a_field_without_a_meaning_here_is_kept_and_refuses_nothing(line: str) -> None:
    manifest = read(ROW, text("name: a", D, line))
    a = good(manifest)
    assert manifest.diagnostics == ()
    key = line.partition(":")[0]
    assert list(a.frontmatter) == ["name", "description", key]
    assert (a.when_to_use, a.paths) == ("", ())


@pytest.mark.parametrize("value", ["Read, Grep", "Read Grep", "[Read, Grep]", "\n  - Read\n  - Grep"])
def test_allowed_tools_become_a_list_whatever_their_form(value: str) -> None:
    assert good(read(ROW, text("name: a", D, f"allowed-tools: {value}"))).allowed_tools == ("Read", "Grep")


def test_a_complete_manifest_is_read_field_by_field(tmp_path: Path) -> None:
    folder = write(
        tmp_path,
        "api-rules",
        text(
            "# Required",
            "name: api-rules",
            "description: |",
            "  Use when an HTTP API is designed.",
            "  Covers names and errors.",
            "",
            "# Recommended",
            "version: 1.2.0",
            'argument-hint: "[--audit file]"',
            "license: MIT",
            'compatibility: "any runtime"',
            "metadata:",
            '  short-description: "API style"',
            "  owner: platform",
            "allowed-tools: Read, Grep, Bash(git log:*)",
            "disable-model-invocation: false",
            "user-invocable: true",
            body="\n# API rules\n\n1. Plural nouns.\n",
        ),
    )
    loaded = load_skill(folder, dialect=ROW)
    told = loaded.skill
    assert told.diagnostics == ()
    assert told.description == "Use when an HTTP API is designed.\nCovers names and errors.\n"
    assert told.summary == "Use when an HTTP API is designed. Covers names and errors."
    assert (str(told.version), told.argument_hint) == ("1.2.0", "[--audit file]")
    assert told.allowed_tools == ("Read", "Grep", "Bash(git log:*)")
    assert told.metadata == {"short-description": "API style", "owner": "platform"}
    assert told.flags == Flags()
    assert loaded.body == "\n# API rules\n\n1. Plural nouns.\n"


@pytest.mark.parametrize("body", ["", "\r\n# T\r\n\r\n---\r\nx: y\r\n---\r\n", " \t<b>$1</b> {{x}} !`ls`\n\n", "é\rü"])
def test_a_body_is_verbatim(tmp_path: Path, body: str) -> None:
    folder = tmp_path / "a"
    folder.mkdir()
    (folder / "SKILL.md").write_bytes(f"---\nname: a\n{D}\n---\n{body}".encode())
    loads = {load_skill(folder, dialect=ROW).body for _ in range(2)}
    assert loads == {body}


def test_only_the_given_roots_are_scanned_and_only_their_children(tmp_path: Path) -> None:
    root = tmp_path / "above" / "root"
    write(tmp_path, "above-them", skill("above-them"))
    write(tmp_path / "above", "beside", skill("beside"))
    write(root, "b", skill("b"))
    write(root, "a", skill("a"))
    write(root, "group/deep", skill("deep"))
    (root / "no-skill").mkdir()
    (root / "no-skill" / "README.md").write_text("x")
    (root / "file.md").write_text("x")
    library = discover([root], dialect=ROW)
    assert names(library) == ["a", "b"]
    assert [(item.location, library.root_of(item), item.summary) for item in library.skills] == [
        (str(root / name), str(root), "Sample skill for tests.") for name in ("a", "b")
    ]
    # A folder without a SKILL.md is nothing to speak of; one that lies too deep is a note at most.
    assert [(item.rule, item.severity) for item in library.diagnostics if "no-skill" in item.path] == []
    assert {item.severity for item in library.diagnostics} <= {"note"}
    assert discover([], dialect=ROW).skills == ()


def test_an_earlier_root_overrides_a_later_one_and_says_whom_it_shadows(tmp_path: Path) -> None:
    project, user = tmp_path / "project", tmp_path / "user"
    write(project, "same", skill("same", "The project's."))
    write(user, "same", skill("same", "The user's."))
    write(user, "other", skill("other"))
    library = discover([project, user], dialect=ROW)
    assert [(item.name, item.summary, item.shadowed) for item in library.skills] == [
        ("other", "Sample skill for tests.", ()),
        ("same", "The project's.", (str(user / "same"),)),
    ]
    assert library.diagnostics == ()


def test_broken_skills_are_logged_and_left_out_and_end_nothing(tmp_path: Path) -> None:
    write(tmp_path, "good", skill("good"))
    write(tmp_path, "bar", skill("foo"))
    write(tmp_path, "open", "---\nname: open\n")
    write(tmp_path, "plain", "# Only text\n")
    write(tmp_path, "silent", text("name: silent"))
    library = discover([tmp_path / "gone", tmp_path], dialect=ROW)
    assert names(library) == ["good"]
    assert [(Path(item.path).parent.name, item.rule, item.severity) for item in library.diagnostics] == [
        ("bar", "name-directory-mismatch", "error"),
        ("open", "frontmatter-unterminated", "error"),
        ("plain", "frontmatter-missing", "error"),
        ("silent", "description-missing", "error"),
    ]


@pytest.mark.parametrize("target", ["../../outside/far", "../beside"])
def test_a_skill_directory_that_leads_out_of_every_root_is_no_skill(tmp_path: Path, target: str) -> None:
    root = tmp_path / "skills"
    write(root, "near", skill("near"))
    write(tmp_path / "outside", "far", skill("far"))
    write(tmp_path, "beside", skill("beside"))
    (root / "far").symlink_to(target)
    (root / "far2").symlink_to(tmp_path / "outside" / "far")
    library = discover([root], dialect=ROW)
    assert names(library) == ["near"]
    escapes = [item for item in library.diagnostics if item.rule == "symlink-outside"]
    assert [Path(item.path).name for item in escapes if item.path.endswith("far2")] == ["far2"]
    for path in ("../far/SKILL.md", "../../outside/far/SKILL.md"):
        with pytest.raises(PathError) as caught:
            library.read("near", path)
        assert caught.value.code == "path-refused"
    with pytest.raises(SkillError):
        library.load("../beside")


def test_files_of_a_skill_are_named_and_not_loaded(tmp_path: Path) -> None:
    folder = write(tmp_path, "a", skill("a"))
    for path in ("scripts/a.py", "scripts/b.sh", "references/r.md", "assets/t.html"):
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_text("SECRET SOURCE")
    library = discover([tmp_path], dialect=ROW)
    loaded = library.load("a")
    assert [(file.path, file.kind) for file in loaded.files if file.kind != "manifest"] == [
        ("assets/t.html", "asset"),
        ("references/r.md", "reference"),
        ("scripts/a.py", "script"),
        ("scripts/b.sh", "script"),
    ]
    assert "SECRET" not in repr(loaded)
    assert library.read("a", "references/r.md").text == "SECRET SOURCE"


def rendered(tmp_path: Path, body: str, arguments: str | dict[str, str] | None, *fields: str) -> str:
    folder = write(tmp_path, "a", text("name: a", D, *fields, body=body))
    return substitute_skill(load_skill(folder, dialect=ROW), arguments, dialect=ROW).text


def test_text_arguments_are_placed_in_the_body(tmp_path: Path) -> None:
    body = "all $ARGUMENTS; $1 then $2; $ARGUMENTS[0] then $ARGUMENTS[1]; $3 ${a} $0"
    assert rendered(tmp_path, body, "x y") == "all x y; x then y; x then y; $3 ${a} $0"


def test_named_arguments_are_placed_where_the_frontmatter_declares_them(tmp_path: Path) -> None:
    declared = ("arguments:", "  path: {type: string, required: true}", "  mode: string")
    body = "${path} in ${mode}, not ${other} nor $path: $ARGUMENTS"
    given = {"path": "p", "mode": "m", "other": "o"}
    expected = "p in m, not ${other} nor $path: mode=m other=o path=p"
    assert rendered(tmp_path, body, given, *declared) == expected


def test_a_name_that_the_frontmatter_does_not_declare_stays(tmp_path: Path) -> None:
    assert rendered(tmp_path, "${path} $ARGUMENTS", {"path": "p"}) == "${path} path=p"


def test_without_arguments_every_placeholder_stays(tmp_path: Path) -> None:
    body = "$1 $ARGUMENTS $ARGUMENTS[0] ${path} ${SKILL_DIR}"
    assert rendered(tmp_path, body, None, "arguments: {path: string}") == body


def test_a_change_on_disk_is_not_watched_for(tmp_path: Path) -> None:
    folder = write(tmp_path, "a", skill("a", "Before."))
    library = discover([tmp_path], dialect=ROW)
    (folder / "SKILL.md").write_text(skill("a", "After."))
    write(tmp_path, "b", skill("b"))
    assert [(item.name, item.summary) for item in library.skills] == [("a", "Before.")]
    assert library.load("a").skill.summary == "Before."
    assert [item.summary for item in library.reload().skills] == ["After.", "Sample skill for tests."]


def test_every_refusal_of_the_row_has_a_rule_with_a_meaning_and_a_hint() -> None:
    refused = [read(ROW, content, "a") for content in ("", "---\n", text(D), text("name: a"), skill("b"), skill("A"))]
    for manifest in refused:
        assert manifest.skill is None
        for item in manifest.diagnostics:
            assert RULES[item.rule].meaning
            assert item.hint
            assert item.path == "SKILL.md"
