"""Seed 000, the skill tool: its acceptance matrix and the texts of its answers, in a session of its row."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, cast

import pytest

from satchel.activation.params import ALIASES
from satchel.activation.permission import Decision, PermissionRequest
from satchel.activation.reply import Activation
from satchel.activation.schema import DESCRIPTION
from satchel.activation.session import SkillSession
from satchel.activation.trust import Trust
from satchel.library import discover
from tests.activation.shelves import D, allow, brief, put, session_over
from tests.conformance.reading import text, write

ROW = "agent-sh"
NAMED = ("arguments:", "  path:", "    type: string", "    required: true", "  note: string")


def says(reply: Activation, *parts: str) -> bool:
    return all(part in reply.output for part in parts)


async def test_an_empty_name(tmp_path: Path) -> None:
    session = session_over(tmp_path)
    for name in ("", "  "):
        assert brief(await session.activate(name)) == ("error", "INVALID_PARAM")
    assert brief(await session.call({})) == ("error", "INVALID_PARAM")
    assert brief(await session.call({"name": 7})) == ("error", "INVALID_PARAM")
    assert brief(await session.call("deploy")) == ("error", "INVALID_PARAM")


@pytest.mark.parametrize("name", ["MySkill", "my_skill", "-a", "a--b", "a b", "../a", "ä"])
async def test_a_name_that_is_not_kebab_case(tmp_path: Path, name: str) -> None:
    reply = await session_over(tmp_path).activate(name)
    assert brief(reply) == ("error", "INVALID_PARAM")
    assert says(reply, "lowercase-kebab-case")


async def test_a_name_that_is_too_long(tmp_path: Path) -> None:
    session = session_over(tmp_path)
    assert brief(await session.activate("x" * 65)) == ("error", "INVALID_PARAM")
    assert brief(await session.activate("x" * 64)) == ("not_found", "NOT_FOUND")


async def test_a_name_that_nobody_has(tmp_path: Path) -> None:
    for name in ("tweet-thread", "tweet-threat", "tweet", "deploy"):
        put(tmp_path, name)
    session = session_over(tmp_path)
    reply = await session.activate("tweet-threads")
    assert (reply.kind, reply.code, reply.siblings) == ("not_found", "NOT_FOUND", ("tweet-thread", "tweet-threat"))
    assert reply.output == (
        '(No skill matches "tweet-threads". Did you mean: tweet-thread, tweet-threat? '
        "Run with a listed name from the catalog.)"
    )
    nothing = await session.activate("zzz")
    assert (nothing.siblings, nothing.output) == (
        (),
        '(No skill matches "zzz". Check the catalog for installed skill names.)',
    )
    assert nothing.to_dict() == {
        "kind": "not_found",
        "name": "zzz",
        "code": "NOT_FOUND",
        "siblings": [],
        "output": nothing.output,
    }


TOLD = {
    "'name'": ("skill", "skill_name", "name_of_skill", "slug"),
    "activation is implicit": ("invoke", "activate", "run"),
    "'arguments'": ("args", "args_string", "input", "params", "parameters"),
    "Skill context is session-scoped; no per-call override": ("context", "session"),
    "Skills load once per session; edit the skill file and restart the session to refresh": (
        "reload",
        "fresh",
        "force_reload",
        "refresh",
    ),
    "subagent-forked skills deferred to v1.1": ("fork", "subagent", "isolated"),
    "deferred to v1.1": ("paths", "scope_paths"),
    "overrides are a harness concern, not tool parameters": ("model", "effort"),
    "Skills dispatch by 'name', not path; the harness owns discovery": ("file", "file_path", "skill_path", "dir"),
}


@pytest.mark.parametrize(("hint", "alias"), [(hint, alias) for hint, group in TOLD.items() for alias in group])
async def test_every_alias_is_pushed_back_with_what_to_write(tmp_path: Path, hint: str, alias: str) -> None:
    put(tmp_path, "deploy")
    session = session_over(tmp_path)
    reply = await session.call({"name": "deploy", alias: "x"})
    assert brief(reply) == ("error", "INVALID_PARAM")
    assert says(reply, f"'{alias}'", hint)
    assert session.active == ()


async def test_several_aliases_are_told_together_and_the_table_is_complete(tmp_path: Path) -> None:
    assert sorted(ALIASES) == sorted(alias for group in TOLD.values() for alias in group)
    reply = await session_over(tmp_path).call({"skill_name": "a", "params": {}, "reload": True, "verbose": 1})
    assert brief(reply) == ("error", "INVALID_PARAM")
    assert reply.message.count("; ") == 4  # one of them inside the sentence about reload
    assert says(reply, "'name'", "'arguments'", "Skills load once per session", "unknown parameter 'verbose'")


async def test_a_parameter_that_nobody_knows_is_refused(tmp_path: Path) -> None:
    put(tmp_path, "deploy")
    reply = await session_over(tmp_path).call({"name": "deploy", "loud": True})
    assert (brief(reply), reply.message) == (("error", "INVALID_PARAM"), "unknown parameter 'loud'.")


async def test_the_directory_must_have_the_name(tmp_path: Path) -> None:
    folder = write(tmp_path, "bar", text("name: foo", D))
    session = session_over(tmp_path)
    reply = await session.activate("bar")
    assert brief(reply) == ("error", "NAME_MISMATCH")
    assert reply.path == str(folder / "SKILL.md")
    assert says(reply, 'skill "bar"', '"foo"', f"Path: {folder}/SKILL.md", "Reason: ", "Hint: ")
    assert brief(await session.activate("foo")) == ("not_found", "NOT_FOUND")


@pytest.mark.parametrize(
    "content",
    [
        text("name: bad", "description [x"),
        text("name: bad", "license: MIT"),
        text("name: bad", "description: ''"),
        "---\nname: bad\ndescription: x\n",
        text("name: bad", "description: " + "x" * 1025),
    ],
)
async def test_broken_frontmatter(tmp_path: Path, content: str) -> None:
    folder = write(tmp_path, "bad", content)
    reply = await session_over(tmp_path).activate("bad")
    assert brief(reply) == ("error", "INVALID_FRONTMATTER")
    lines = reply.output.splitlines()
    assert lines[0].startswith('Error [INVALID_FRONTMATTER]: skill "bad" has ')
    assert lines[1] == f"Path: {folder / 'SKILL.md'}"
    assert [line.partition(":")[0] for line in lines[2:]] == ["Reason", "Hint"]


async def test_a_folder_without_a_fence_is_no_skill(tmp_path: Path) -> None:
    write(tmp_path, "plain", "Just text.\n")
    assert brief(await session_over(tmp_path).activate("plain")) == ("not_found", "NOT_FOUND")


async def test_an_unknown_field_is_in_the_answer(tmp_path: Path) -> None:
    put(tmp_path, "deploy", "hooks: {before: x}")
    reply = await session_over(tmp_path).activate("deploy")
    assert (reply.kind, reply.frontmatter["hooks"]) == ("ok", {"before": "x"})
    assert says(reply, "hooks:\n  before: x\n")


async def test_a_skill_outside_of_every_root(tmp_path: Path) -> None:
    outside = put(tmp_path / "elsewhere", "evil")
    root = tmp_path / "skills"
    root.mkdir()
    (root / "evil").symlink_to(outside)
    put(root, "link")
    (root / "link" / "SKILL.md").unlink()
    (root / "link" / "SKILL.md").symlink_to(outside / "SKILL.md")
    session = session_over(root)
    for name in ("evil", "link"):
        reply = await session.activate(name)
        assert brief(reply) == ("error", "OUTSIDE_WORKSPACE")
        assert says(reply, str(root / name))
    assert session.active == ()


async def test_a_sensitive_place_without_a_hook(tmp_path: Path) -> None:
    root = tmp_path / ".env" / "skills"
    put(root, "deploy")
    trust = Trust(trusted_roots=[root])
    reply = await session_over(root, permission=None, trust=trust).activate("deploy")
    assert brief(reply) == ("error", "SENSITIVE")
    assert says(reply, "**/.env/**", str(root / "deploy"))
    assert (await session_over(root, trust=trust).activate("deploy")).kind == "ok"


async def test_a_skill_that_no_model_may_start(tmp_path: Path) -> None:
    put(tmp_path, "deploy", "disable-model-invocation: true")
    session = session_over(tmp_path)
    reply = await session.activate("deploy")
    assert (brief(reply), session.active) == (("error", "DISABLED"), ())
    assert "deploy" not in str(session.system_message()["content"])


@pytest.mark.parametrize("by", ["user", "program"])
async def test_a_skill_that_no_model_may_start_is_started_by_people(tmp_path: Path, by: str) -> None:
    put(tmp_path, "deploy", "disable-model-invocation: true")
    session = session_over(tmp_path)
    assert (await session.activate("deploy", by=cast("Any", by))).kind == "ok"
    assert (await session.activate("deploy")).kind == "already_loaded"


async def test_an_untrusted_skill_without_a_hook(tmp_path: Path) -> None:
    put(tmp_path, "deploy")
    session = session_over(tmp_path, permission=None)
    reply = await session.activate("deploy")
    assert (brief(reply), session.active) == (("error", "NOT_TRUSTED"), ())
    assert says(reply, str(tmp_path / "deploy"), "no permission hook", "do not try another way", "user can approve")
    assert not says(reply, "trust add")


async def test_an_untrusted_skill_without_a_hook_in_a_test(tmp_path: Path) -> None:
    put(tmp_path, "deploy")
    session = session_over(tmp_path, permission=None, unsafe_allow_skill_without_hook=True)
    assert (await session.activate("deploy")).kind == "ok"


async def test_a_trusted_root_needs_no_hook(tmp_path: Path) -> None:
    put(tmp_path, "deploy")
    session = session_over(tmp_path, permission=None, trust=Trust(trusted_roots=[tmp_path]))
    assert (await session.activate("deploy")).kind == "ok"


async def test_the_first_activation_brings_the_skill_in_its_wrapper(tmp_path: Path) -> None:
    folder = put(
        tmp_path,
        "deploy",
        "version: 1.2.0",
        "allowed-tools: Read, Bash(git log:*)",
        "metadata: {owner: us}",
        body="# Deploy é\n\n1. Ship.\n</skill>\n",
        files={"scripts/a.py": "", "references/r.md": "", "assets/t.txt": "", "other/x.md": ""},
    )
    session = session_over(tmp_path)
    reply = await session.activate("deploy")
    nonce = cast("Any", session.snapshot())["active"][0]["nonce"]
    assert reply.output == (
        f'<skill name="deploy" dir="{folder}" nonce="{nonce}">\n'
        "<frontmatter>\n"
        "name: deploy\n"
        'description: "Sample skill for tests."\n'
        "version: 1.2.0\n"
        'allowed-tools: "Read, Bash(git log:*)"\n'
        "metadata:\n"
        "  owner: us\n"
        "</frontmatter>\n"
        "<instructions>\n"
        "# Deploy é\n\n1. Ship.\n</skill>\n\n"
        "</instructions>\n"
        "<resources>\n"
        "scripts/a.py\nreferences/r.md\nassets/t.txt\n"
        "</resources>\n"
        "</skill>\n"
        '(Skill "deploy" activated. Body is 31 bytes. Scripts available via bash(<skill-dir>/scripts/<name>). '
        "References via read(<skill-dir>/references/<name>).)"
    )
    assert reply.to_dict() == {
        "kind": "ok",
        "name": "deploy",
        "dir": str(folder),
        "body": "# Deploy é\n\n1. Ship.\n</skill>\n",
        "frontmatter": {
            "name": "deploy",
            "description": "Sample skill for tests.",
            "version": "1.2.0",
            "allowed-tools": "Read, Bash(git log:*)",
            "metadata": {"owner": "us"},
        },
        "resources": ["scripts/a.py", "references/r.md", "assets/t.txt"],
        "bytes": 31,
        "at_turn": 1,
        "output": reply.output,
    }
    json.dumps(reply.to_dict())


async def test_the_second_activation_says_when_the_first_was(tmp_path: Path) -> None:
    put(tmp_path, "deploy")
    session = session_over(tmp_path)
    await session.activate("nothing-there")
    assert (await session.activate("deploy")).at_turn == 2
    reply = await session.activate("deploy", {"wrong": "shape"})
    assert (reply.kind, reply.at_turn) == ("already_loaded", 2)
    assert reply.output == (
        '(Skill "deploy" is already active in this session. Body was loaded at turn 2. No new content was added.)'
    )
    assert reply.to_dict() == {"kind": "already_loaded", "name": "deploy", "at_turn": 2, "output": reply.output}


async def test_text_arguments_are_placed(tmp_path: Path) -> None:
    put(tmp_path, "deploy", body="All: $ARGUMENTS. First: $1. Third: $3.\n")
    reply = await session_over(tmp_path).activate("deploy", "api $1")
    assert reply.body == "All: api $1. First: api. Third: $3.\n"
    assert reply.bytes == len(reply.body)


async def test_named_arguments_are_placed(tmp_path: Path) -> None:
    put(tmp_path, "deploy", *NAMED, body="${path} and ${note} and ${other}\n")
    reply = await session_over(tmp_path).activate("deploy", {"path": "a/${note}", "note": "n"})
    assert reply.body == "a/${note} and n and ${other}\n"


async def test_named_arguments_that_a_skill_does_not_take(tmp_path: Path) -> None:
    put(tmp_path, "deploy")
    session = session_over(tmp_path)
    reply = await session.activate("deploy", {"path": "x"})
    assert brief(reply) == ("error", "INVALID_PARAM")
    assert says(reply, 'skill "deploy" does not accept named arguments')
    assert (await session.activate("deploy", {})).kind == "ok"


async def test_text_for_a_skill_with_named_arguments(tmp_path: Path) -> None:
    put(tmp_path, "deploy", *NAMED)
    reply = await session_over(tmp_path).activate("deploy", "x")
    assert brief(reply) == ("error", "INVALID_PARAM")
    assert says(reply, "skill \"deploy\" expects named arguments: 'path', 'note'")


async def test_resources_are_listed_by_name(tmp_path: Path) -> None:
    files = {"scripts/a.py": "secret source", "scripts/b.sh": "", "references/r.md": "", "references/deep/x.md": ""}
    put(tmp_path, "deploy", files=files)
    reply = await session_over(tmp_path).activate("deploy")
    assert reply.resources == ("scripts/a.py", "scripts/b.sh", "references/deep/", "references/r.md")
    assert says(reply, "<resources>\nscripts/a.py\nscripts/b.sh\nreferences/deep/\nreferences/r.md\n</resources>")
    assert not says(reply, "secret source")
    put(tmp_path, "bare")
    assert not says(await session_over(tmp_path).activate("bare"), "<resources>")


async def test_more_resources_than_ten_in_a_folder(tmp_path: Path) -> None:
    put(tmp_path, "deploy", files={f"scripts/{n:02}.py": "" for n in range(12)} | {"assets/a": ""})
    reply = await session_over(tmp_path).activate("deploy")
    listed = tuple(f"scripts/{n:02}.py" for n in range(10))
    assert reply.resources == (*listed, "scripts/(... 2 more)", "assets/a")
    assert says(reply, "scripts/09.py\nscripts/(... 2 more)\nassets/a\n")


@pytest.mark.parametrize("answer", ["deny", "ask"])
async def test_a_hook_that_does_not_allow(tmp_path: Path, answer: str) -> None:
    put(tmp_path, "deploy")
    trusting = session_over(tmp_path, permission=lambda _: answer, trust=Trust(trusted_roots=[tmp_path]))
    reply = await trusting.activate("deploy")
    assert (brief(reply), trusting.active) == (("error", "PERMISSION_DENIED"), ())
    assert brief(await session_over(tmp_path, permission=lambda _: answer).activate("deploy")) == (
        "error",
        "NOT_TRUSTED",
    )


async def test_the_hook_is_asked_with_the_payload_of_the_seed(tmp_path: Path) -> None:
    project, user = tmp_path / "project", tmp_path / "user"
    put(project, "deploy", "version: 1.0.0", "allowed-tools: Read, Grep")
    put(user, "plan")
    asked: list[PermissionRequest] = []

    def hook(request: PermissionRequest) -> Decision:
        asked.append(request)
        return "allow_once"

    library = discover([project, user], dialect=ROW)
    session = SkillSession(library, permission=hook, trust=Trust(trusted_roots=[user]))
    assert [(await session.activate(name)).kind for name in ("deploy", "plan")] == ["ok", "ok"]
    assert asked[0].to_dict() == {
        "tool": "skill",
        "action": "activate",
        "path": str(project / "deploy"),
        "always_patterns": ["Skill(name:deploy)"],
        "metadata": {
            "name": "deploy",
            "root_index": 0,
            "frontmatter": {
                "name": "deploy",
                "description": "Sample skill for tests.",
                "version": "1.0.0",
                "allowed-tools": "Read, Grep",
                "allowed_tools": ["Read", "Grep"],
            },
            "reason": "untrusted_project_skill",
        },
    }
    assert asked[1].metadata["root_index"] == 1
    assert asked[1].metadata["reason"] == "normal"
    assert asked[0].skill.ref.digest.startswith("sha256:")


@pytest.mark.parametrize("mode", ["warn", "allow"])
async def test_other_rules_for_untrusted_skills(tmp_path: Path, mode: str, caplog: pytest.LogCaptureFixture) -> None:
    put(tmp_path, "deploy")
    trust = Trust(untrusted_project_skills=cast("Any", mode))
    reply = await session_over(tmp_path, permission=None, trust=trust).activate("deploy")
    assert reply.kind == "ok"
    assert bool(reply.warnings) is ("not trusted" in caplog.text) is (mode == "warn")
    denied = await session_over(tmp_path, permission=lambda _: "deny", trust=trust).activate("deploy")
    assert brief(denied) == ("error", "PERMISSION_DENIED")


@pytest.mark.parametrize("value", ['"Read, Grep"', "[Read, Grep]", "Read Grep"])
async def test_either_form_of_allowed_tools_reaches_the_hook_as_a_list(tmp_path: Path, value: str) -> None:
    put(tmp_path, "deploy", f"allowed-tools: {value}")
    asked: list[PermissionRequest] = []

    def hook(request: PermissionRequest) -> Decision:
        asked.append(request)
        return "allow"

    session = session_over(tmp_path, permission=hook)
    assert (await session.activate("deploy")).kind == "ok"
    assert cast("Any", asked[0].metadata["frontmatter"])["allowed_tools"] == ["Read", "Grep"]
    assert session.active[0].allowed_tools == ("Read", "Grep")


async def test_a_folder_without_a_manifest_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "empty" / "scripts").mkdir(parents=True)
    put(tmp_path, "deploy")
    session = session_over(tmp_path)
    assert [entry.name for entry in await session.discover()] == ["deploy"]
    assert brief(await session.activate("empty")) == ("not_found", "NOT_FOUND")


async def test_line_ends_of_windows_come_through(tmp_path: Path) -> None:
    (tmp_path / "deploy").mkdir()
    content = "---\r\nname: deploy\r\ndescription: Ships.\r\nversion: 1.0.0\r\n---\r\nOne $1.\r\nTwo.\r\n"
    (tmp_path / "deploy" / "SKILL.md").write_bytes(content.encode())
    reply = await session_over(tmp_path).activate("deploy", "x")
    assert reply.body == "One x.\r\nTwo.\r\n"
    assert reply.frontmatter == {"name": "deploy", "description": "Ships.", "version": "1.0.0"}


async def test_a_collision_is_told_in_the_result(tmp_path: Path) -> None:
    project, user = tmp_path / "project", tmp_path / "user"
    put(project, "deploy", "metadata: {owner: us}", body="Project.\n")
    put(user, "deploy", body="User.\n")
    session = SkillSession(discover([project, user], dialect=ROW), permission=allow)
    (entry,) = await session.discover()
    assert entry.skill is not None
    assert (entry.dir, entry.root_index, entry.skill.shadowed) == (str(project / "deploy"), 0, (str(user / "deploy"),))
    reply = await session.activate("deploy")
    assert reply.body == "Project.\n"
    assert cast("Any", reply.to_dict())["frontmatter"]["metadata"] == {
        "owner": "us",
        "shadowed": [str(user / "deploy")],
    }


async def test_a_file_that_is_gone(tmp_path: Path) -> None:
    folder = put(tmp_path, "deploy")
    session = session_over(tmp_path)
    (folder / "SKILL.md").unlink()
    reply = await session.activate("deploy")
    assert brief(reply) == ("error", "IO_ERROR")
    assert says(reply, f"Path: {folder / 'SKILL.md'}", "Reason: ")


async def test_edits_after_the_session_began(tmp_path: Path) -> None:
    folder = put(tmp_path, "deploy", body="Old.\n")
    session = session_over(tmp_path)
    (folder / "SKILL.md").write_text(text("name: deploy", "description: New.", body="New.\n"), encoding="utf-8")
    first = await session.activate("deploy")
    assert (first.body, first.frontmatter["description"]) == ("New.\n", "Sample skill for tests.")
    (folder / "SKILL.md").write_text(text("name: deploy", "description: Newer.", body="Newer.\n"), encoding="utf-8")
    assert (await session.activate("deploy")).kind == "already_loaded"
    await session.reload()
    assert (await session.activate("deploy")).kind == "already_loaded"
    assert session.unload("deploy")
    again = await session.activate("deploy")
    assert (again.body, again.frontmatter["description"]) == ("Newer.\n", "Newer.")


async def test_a_body_is_expanded_only_when_it_is_asked_for(tmp_path: Path) -> None:
    put(tmp_path, "deploy", body="The secret is 4217.\n")
    session = session_over(tmp_path)
    said = json.dumps([session.system_message(), session.tools("openai")])
    assert "Sample skill for tests." in said
    assert "4217" not in said


def test_the_description_says_five_things() -> None:
    paragraphs = DESCRIPTION.split("\n\n")
    assert len(paragraphs) == 5
    for paragraph, words in zip(
        paragraphs,
        (
            ("by its name", "SKILL.md", "rest of the session"),
            ("When to use", "description", "fits best"),
            ("already_loaded", "changes nothing"),
            ("Arguments", "a string", "an object", "leave them out"),
            ("Permission", "allowed-tools", "allow nothing"),
        ),
        strict=True,
    ):
        assert all(word in paragraph for word in words)


async def test_a_session_ends_with_its_process(tmp_path: Path) -> None:
    put(tmp_path, "deploy")
    assert (await session_over(tmp_path).activate("deploy")).kind == "ok"
    assert (await session_over(tmp_path).activate("deploy")).kind == "ok"
    assert sorted(name for _, folders, files in os.walk(tmp_path) for name in (*folders, *files)) == [
        "SKILL.md",
        "deploy",
    ]
