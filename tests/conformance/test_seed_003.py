"""Seed 003, the format of a SKILL.md: layout, fields, substitution and rejections in its row."""

from __future__ import annotations

from pathlib import Path

import pytest

from satchel.context.listings import slash_menu
from satchel.errors import PathError
from satchel.library import discover
from satchel.skills.substitute import substitute_skill
from tests.conformance.reading import REFUSED, D, good, names, read, skill, text, verdict, write

ROW = "tnsai"
DEPLOY = text(
    "name: deploy",
    "description: Deploy a build to a target environment",
    "arguments:",
    "  - environment",
    body=(
        "# Deploy to $0\n\n1. Verify CI is green for the build tagged `${BUILD_TAG}`.\n"
        "2. `kubectl apply -f manifests/$0/`\n3. Smoke-test https://$0.example.com/healthz.\n"
    ),
)
DEPLOYED = (
    "# Deploy to staging\n\n1. Verify CI is green for the build tagged `v1.4.2`.\n"
    "2. `kubectl apply -f manifests/staging/`\n3. Smoke-test https://staging.example.com/healthz.\n"
)


def test_every_child_with_a_manifest_is_a_skill_and_nothing_else(tmp_path: Path) -> None:
    write(tmp_path, "deploy", text(D))
    write(tmp_path, "group/deep", skill("deep"))
    write(tmp_path, "lint", skill("Lint It"))
    (tmp_path / "notes").mkdir()
    library = discover([tmp_path], dialect=ROW)
    assert names(library) == ["Lint It", "deploy"]
    assert [item for item in library.diagnostics if item.severity != "note"] == []


def test_supporting_files_are_read_on_demand(tmp_path: Path) -> None:
    folder = write(tmp_path, "deploy", text(D, body="See `reference.md`.\n"))
    (folder / "scripts").mkdir()
    (folder / "reference.md").write_text("EXAMPLES")
    (folder / "scripts" / "precheck.sh").write_text("CHECK")
    library = discover([tmp_path], dialect=ROW)
    loaded = library.load("deploy")
    assert [file.path for file in loaded.files] == ["SKILL.md", "reference.md", "scripts/precheck.sh"]
    assert "EXAMPLES" not in repr(loaded)
    assert "CHECK" not in repr(loaded)
    assert library.read("deploy", "reference.md").text == "EXAMPLES"
    with pytest.raises(PathError):
        library.read("deploy", "../deploy/reference.md")


def test_every_field_with_its_default() -> None:
    a = good(
        read(
            ROW,
            text(
                "name: deploy",
                "description: Production deploy",
                "when-to-use: |",
                "  When the user asks to ship.",
                "  Say deploy or ship.",
                "allowed-tools:",
                "  - bash",
                "  - github.create_pr",
                'argument-hint: "<environment>"',
                "arguments:",
                "  - environment",
                "disable-model-invocation: true",
                "user-invocable: false",
                "paths:",
                '  - "infra/**"',
            ),
            "deploy",
        )
    )
    assert a.diagnostics == ()
    assert (a.when_to_use, a.argument_hint) == ("When the user asks to ship. Say deploy or ship.", "<environment>")
    assert (a.allowed_tools, a.paths) == (("bash", "github.create_pr"), ("infra/**",))
    assert ([item.name for item in a.arguments], a.arguments_by_name) == (["environment"], False)
    assert (a.flags.model_invocable, a.flags.user_invocable, a.flags.user_may_name) == (False, False, False)
    plain = good(read(ROW, text(D), "deploy"))
    assert (plain.name, plain.when_to_use, plain.allowed_tools, plain.argument_hint) == ("deploy", "", (), "")
    assert (plain.arguments, plain.paths) == ((), ())
    assert (plain.flags.model_invocable, plain.flags.user_invocable) == (True, True)


def test_a_name_is_looked_up_in_any_case(tmp_path: Path) -> None:
    write(tmp_path, "one", skill("Deploy"))
    library = discover([tmp_path], dialect=ROW)
    for name in ("deploy", "DEPLOY", "Deploy"):
        assert library.get(name) is library.skills[0]


@pytest.mark.parametrize(
    ("canonical", "alias"),
    [("when-to-use", "when_to_use"), ("allowed-tools", "allowed_tools"), ("argument-hint", "argument_hint")],
)
def test_field_aliases(canonical: str, alias: str) -> None:
    kebab, snake = (read(ROW, text("name: a", D, f"{key}: x y")) for key in (canonical, alias))
    assert good(kebab) == good(snake)
    assert kebab.diagnostics == snake.diagnostics == ()
    assert good(kebab).frontmatter[canonical] == "x y"


@pytest.mark.parametrize("key", ["allowed-tools", "paths", "arguments"])
def test_one_value_stands_for_a_list_of_one(key: str) -> None:
    short, whole = (good(read(ROW, text("name: a", D, f"{key}: {value}"))) for value in ("bash", "[bash]"))
    assert (short.allowed_tools, short.paths, short.arguments) == (whole.allowed_tools, whole.paths, whole.arguments)
    assert [*whole.allowed_tools, *whole.paths, *(item.name for item in whole.arguments)] == ["bash"]


def test_files_of_windows_are_read_alike() -> None:
    unix = read(ROW, DEPLOY, "deploy")
    windows = read(ROW, DEPLOY.replace("\n", "\r\n"), "deploy")
    assert (windows.skill, windows.body, windows.diagnostics) == (unix.skill, unix.body, ())


def test_the_body_is_everything_to_the_end_and_plain_text() -> None:
    body = "\n# T\n---\n<b>{{x}}</b>\n\n---\nname: not-this\n"
    manifest = read(ROW, text("name: a", D, body=body))
    assert (good(manifest).name, manifest.body) == ("a", body)


def test_placeholders_are_resolved_on_activation_and_not_when_read(tmp_path: Path) -> None:
    write(tmp_path, "deploy", DEPLOY)
    loaded = discover([tmp_path], dialect=ROW).load("deploy")
    assert loaded.body == DEPLOY.partition("\n---\n")[2]
    for arguments in ("staging", ["staging"]):
        assert substitute_skill(loaded, arguments, dialect=ROW, environ={"BUILD_TAG": "v1.4.2"}).text == DEPLOYED


@pytest.mark.parametrize(
    ("content", "directory", "rule"),
    [
        (f"\n---\nname: a\n{D}\n---\nB\n", "a", "frontmatter-missing"),
        (f"name: a\n{D}\n---\nB\n", "a", "frontmatter-missing"),
        (f"---\nname: a\n{D}\n", "a", "frontmatter-unterminated"),
        (text("name: a", D, "paths: [a"), "a", "yaml-repaired"),
        (text("name: a", D, "x:\n\ty: z"), "a", "yaml-invalid"),
        (text("name: ' '", D), "", "name-unusable"),
        (text("name: a", "description: ' '"), "a", "description-missing"),
        (text("name: a"), "a", "description-missing"),
    ],
)
def test_what_the_reader_rejects(content: str, directory: str, rule: str) -> None:
    assert verdict(read(ROW, content, directory))[:2] == (REFUSED, rule)


def test_a_rejected_file_does_not_poison_its_siblings(tmp_path: Path) -> None:
    write(tmp_path, "a", "no frontmatter")
    write(tmp_path, "b", skill("b"))
    write(tmp_path, "c", text("name: c", "description: ''"))
    library = discover([tmp_path], dialect=ROW)
    assert names(library) == ["b"]
    assert [(Path(item.path).parent.name, item.severity) for item in library.diagnostics] == [
        ("a", "error"),
        ("c", "error"),
    ]


def test_the_menu_of_a_user(tmp_path: Path) -> None:
    write(tmp_path, "deploy", text("description: Ships it.", 'argument-hint: "<environment>"'))
    write(tmp_path, "inner", text("description: For programs.", "user-invocable: false"))
    library = discover([tmp_path], dialect=ROW)
    assert slash_menu(library.skills).text == "/deploy <environment> - Ships it."
    inner = library.get("inner")
    assert inner is not None
    assert not inner.flags.user_may_name
    # Programs get it all the same.
    assert library.load("inner").body == "Body.\n"
