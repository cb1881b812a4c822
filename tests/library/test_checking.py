from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

import satchel
from satchel.errors import SetupError, SkillError
from satchel.library.checking import CheckReport, SkillCheck, TargetVerdict, check, find_targets
from satchel.skills.dialect import Dialect, Limits
from satchel.skills.dialects import DIALECTS, PORTABLE
from satchel.skills.manifest_text import ManifestTexts
from tests.support import write_skill

GOOD = "Tidies notes. Use when the user asks."


def write(
    root: Path, front: str, body: str = "Do it.\n", *, folder: str = "tidy", files: Mapping[str, str] = {}
) -> Path:
    skill = root / folder
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text(f"---\n{front}\n---\n{body}", encoding="utf-8")
    for path, text in files.items():
        (skill / path).parent.mkdir(parents=True, exist_ok=True)
        (skill / path).write_text(text, encoding="utf-8")
    return skill


def only(report: CheckReport) -> SkillCheck:
    assert len(report.skills) == 1
    return report.skills[0]


def rules(skill: SkillCheck) -> list[str]:
    return [item.rule for item in skill.diagnostics]


def verdict(path: Path, **knobs: object) -> TargetVerdict:
    row: Dialect = replace(PORTABLE, id="there", **knobs)  # pyright: ignore[reportArgumentType]
    return only(check(path, targets=[row])).targets["there"]


def test_a_good_skill_passes_strictly(tmp_path: Path) -> None:
    folder = write_skill(tmp_path, "tidy", files={"scripts/a.py": "print()\n"}, body="Run `scripts/a.py`.\n")
    report = satchel.check(folder)
    assert report == check(folder / "SKILL.md")
    assert report.ok(strict=True)
    assert only(report) == SkillCheck(path=os.path.realpath(folder), name="tidy", ok=True)


def test_warnings_fail_only_when_strict(tmp_path: Path) -> None:
    report = check(write(tmp_path, "name: tidy\ndescription: PDF utilities"))
    assert rules(only(report)) == ["description-no-when"]
    assert only(report).ok
    assert (report.ok(), report.ok(strict=True)) == (True, False)


def test_notes_never_fail(tmp_path: Path) -> None:
    folder = write(tmp_path, f"name: tidy\ndescription: {GOOD}\nversion: one")
    report = check(folder)
    assert rules(only(report)) == ["version-invalid"]
    assert report.ok(strict=True)


def test_a_broken_skill_is_reported_beside_the_good_one(tmp_path: Path) -> None:
    write(tmp_path, "name: bad", folder="bad")
    write(tmp_path, f"name: good\ndescription: {GOOD}", folder="good")
    bad, good = check(tmp_path).skills
    assert (bad.name, bad.ok, rules(bad)) == ("", False, ["description-missing"])
    assert (good.name, good.ok) == ("good", True)
    assert not check(tmp_path).ok()


def test_every_copy_of_a_name_is_checked_and_the_loser_told(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        write(tmp_path / folder, f"name: tidy\ndescription: {GOOD}")
    first, second = check(tmp_path).skills
    assert (rules(first), rules(second)) == ([], ["name-shadowed"])
    assert not check(tmp_path).ok(strict=True)


def test_skills_are_found_however_deep(tmp_path: Path) -> None:
    write(tmp_path / "a/b/c/d/e/f/g/h", f"name: tidy\ndescription: {GOOD}")
    write(tmp_path / "node_modules", f"name: other\ndescription: {GOOD}", folder="other")
    row = replace(PORTABLE, min_depth=1, max_depth=1, skips=frozenset())
    assert only(check(tmp_path, dialect=row)).name == "tidy"


def test_findings_about_files_and_secrets_in_them(tmp_path: Path) -> None:
    key = "ghp_" + "a8Kd03LmQz7Xw2Vt5Rb9Yc1Nf4Hj6Gp0Sq2U"
    files = {
        "inner/SKILL.md": "x",
        "scripts/run": "no shebang",
        "scripts/ok": "#!/bin/sh\n",
        "notes.txt": f"\nkey={key}\n",
    }
    folder = write(tmp_path, f"name: tidy\ndescription: {GOOD}", files=files)
    found = only(check(folder)).diagnostics
    assert {item.rule for item in found} == {"nested-skill", "script-interpreter", "secret-shape"}
    secret = next(item for item in found if item.rule == "secret-shape")
    assert (secret.path, secret.line, secret.column) == (os.path.realpath(folder / "notes.txt"), 2, 5)
    assert found[0].path == os.path.realpath(folder / "SKILL.md")


def test_a_ceiling_is_an_error(tmp_path: Path) -> None:
    folder = write(tmp_path, f"name: tidy\ndescription: {GOOD}", files={"a": "x", "b": "x"})
    skill = only(check(folder, dialect=replace(PORTABLE, limits=Limits(files=2))))
    assert (skill.ok, rules(skill)) == (False, ["too-many-files"])


def test_links_count_when_they_lead_to_something_inside(tmp_path: Path) -> None:
    folder = write(tmp_path, f"name: tidy\ndescription: {GOOD}", "[a](.env.example) [b](docs) [c](docs/) [d](out.md)\n")
    (folder / ".env.example").write_text("x")
    (folder / "docs").mkdir()
    (tmp_path / "out.md").write_text("x")
    (folder / "out.md").symlink_to(tmp_path / "out.md")
    (item,) = only(check(folder)).diagnostics
    assert (item.rule, '"out.md"' in item.message) == ("link-missing", True)


def test_what_a_dialect_ignores_or_refuses_counts_for_lints_too(tmp_path: Path) -> None:
    folder = write(tmp_path, "name: tidy\ndescription: PDF utilities")
    quiet = replace(PORTABLE, ignores=PORTABLE.ignores | {"description-no-when"})
    assert rules(only(check(folder, dialect=quiet))) == []
    stern = replace(PORTABLE, refuses=PORTABLE.refuses | {"description-no-when"})
    assert not only(check(folder, dialect=stern)).ok
    assert verdict(folder, refuses=stern.refuses).status == "refused"
    assert verdict(folder).status == "loads"


def test_a_skill_that_the_dialect_refuses_is_linted_all_the_same(tmp_path: Path) -> None:
    folder = write(tmp_path, "name: Tidy\ndescription: PDF utilities", "\n\nSee [x](gone.md).\n\n")
    skill = only(check(folder, dialect="agentskills", targets="portable"))
    assert not skill.ok
    assert rules(skill) == ["name-normalized", "description-no-when", "link-missing"]
    assert skill.diagnostics[-1].line == 7
    assert skill.targets["portable"].status == "loads-with-warnings"


def test_nothing_to_check(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for path in (tmp_path / "empty", tmp_path / "gone", tmp_path / "gone" / "SKILL.md"):
        with pytest.raises(SkillError) as caught:
            check(path)
        assert caught.value.code == "skill-not-found"


def test_a_link_out_of_the_checked_directory_is_told_and_is_no_success(tmp_path: Path) -> None:
    outside = write(tmp_path / "outside", f"name: tidy\ndescription: {GOOD}")
    (tmp_path / "skills").mkdir()
    (tmp_path / "skills" / "tidy").symlink_to(outside)
    report = check(tmp_path / "skills")
    assert (report.skills, [item.rule for item in report.diagnostics]) == ((), ["symlink-outside"])
    assert not report.ok()
    write(tmp_path / "skills", f"name: good\ndescription: {GOOD}", folder="good")
    assert (check(tmp_path / "skills").ok(), check(tmp_path / "skills").ok(strict=True)) == (True, False)


def test_targets_by_id_by_row_and_all_at_once() -> None:
    assert find_targets("all") == tuple(DIALECTS.values())
    assert [row.id for row in find_targets("codex, portable,codex")] == ["codex", "portable"]
    assert find_targets(["mcp", PORTABLE]) == (DIALECTS["mcp"], PORTABLE)
    assert find_targets("") == ()
    with pytest.raises(SetupError, match="codexx") as caught:
        find_targets("codexx")
    assert "codex" in caught.value.hint
    with pytest.raises(SetupError):
        check(".", dialect="nothing")


def test_every_row_gives_a_verdict_on_every_kind_of_skill(tmp_path: Path) -> None:
    write(tmp_path, f"name: plain\ndescription: {GOOD}", folder="plain")
    write(tmp_path, "name: no-description", folder="no-description")
    write(tmp_path, "name: A\ndescription: use: it\nodd: [1, {a: b}]", "$1 ${X} $ARGUMENTS !`ls`\n", folder="odd")
    (tmp_path / "latin").mkdir()
    (tmp_path / "latin" / "SKILL.md").write_bytes(b"---\nname: latin\ndescription: caf\xe9\n---\n")
    latin, missing, odd, plain = check(tmp_path, targets="all").skills
    for skill in (latin, missing, odd, plain):
        assert list(skill.targets) == list(DIALECTS)
    assert {item.status for item in plain.targets.values()} == {"loads"}
    assert {item.status for skill in (latin, missing) for item in skill.targets.values()} == {"refused"}
    assert all(item.notes for skill in (latin, missing) for item in skill.targets.values())
    assert {item.status for item in odd.targets.values()} > {"refused"}


def test_a_refusal_says_why_and_a_warning_is_noted(tmp_path: Path) -> None:
    folder = write(tmp_path, f"name: Tidy Notes\ndescription: {GOOD}")
    refused = verdict(folder, refuses=PORTABLE.refuses | {"name-normalized"})
    assert refused.status == "refused"
    assert refused.notes == ('The name "Tidy Notes" was changed to "tidy-notes". [name-normalized]',)
    warned = verdict(folder)
    assert warned.status == "loads-with-warnings"
    assert warned.notes[0] == refused.notes[0]


def test_unknown_keys_are_refused_where_the_row_says_so(tmp_path: Path) -> None:
    folder = write(tmp_path, f"name: tidy\ndescription: {GOOD}\nmodel: big")
    there = verdict(folder, refuses=PORTABLE.refuses | {"key-unknown"})
    assert (there.status, there.notes) == ("refused", ('"model" is not a known key. [key-unknown]',))


def test_a_target_that_ignores_the_spelling_of_a_restriction_says_so(tmp_path: Path) -> None:
    folder = write(tmp_path, f"name: tidy\ndescription: {GOOD}\ndisallowedTools: [Web]\nargument_hint: '[x]'")
    there = verdict(folder, spellings=frozenset[str](), ignores=PORTABLE.ignores | {"key-misspelled"})
    assert there.status == "loads-with-warnings"
    counted = 'This harness does not read "disallowedTools" as "disallowed-tools"; here it counts all the same.'
    assert there.notes[0] == f"{counted} [restriction-spelling]"
    assert there.notes[1:] == ('"disallowedTools", "argument_hint" ignored',)
    assert verdict(folder, spellings=frozenset({"camel", "snake"})).notes[2:] == ()


def test_a_note_is_never_as_long_as_a_number_in_the_text(tmp_path: Path) -> None:
    folder = write(tmp_path, f"name: tidy\ndescription: {GOOD}", f"${'9' * 100_000}\n")
    there = verdict(folder, bare="always", missing="empty")
    assert [note[:4] for note in there.notes] == ["$999"]
    assert len(there.notes[0]) < 200


def test_the_spelling_of_the_file_is_judged_by_the_target(tmp_path: Path) -> None:
    folder = write(tmp_path, f"name: tidy\ndescription: {GOOD}")
    (folder / "SKILL.md").rename(folder / "skill.md")
    assert verdict(folder).status == "loads-with-warnings"
    assert verdict(folder, refuses=PORTABLE.refuses | {"manifest-case"}).status == "refused"
    assert verdict(folder, ignores=PORTABLE.ignores | {"manifest-case"}) == TargetVerdict(status="loads")
    quiet = replace(PORTABLE, ignores=PORTABLE.ignores | {"manifest-case"})
    assert only(check(folder, dialect=quiet, targets=[PORTABLE])).targets["portable"].status == "loads-with-warnings"


def test_the_name_that_is_used_there(tmp_path: Path) -> None:
    folder = write(tmp_path, f"name: tidy\ndescription: {GOOD}", folder="notes")
    quiet = PORTABLE.ignores | {"name-directory-mismatch"}
    assert verdict(folder, ignores=quiet, name_from="directory").notes == ('called "notes"',)
    assert verdict(folder, ignores=quiet).notes == ()


@pytest.mark.parametrize("knob", ["description_cut", "listing_each"])
def test_a_description_that_is_cut(tmp_path: Path, knob: str) -> None:
    folder = write(tmp_path, f"name: tidy\ndescription: {GOOD}")
    length = len(GOOD)
    assert verdict(folder, **{knob: length}).notes == ()
    assert verdict(folder, **{knob: length - 1}).notes == (f"description cut at {length - 1} of {length} characters",)


def test_arguments_are_numbered_or_not_placed_at_all(tmp_path: Path) -> None:
    front = f"name: tidy\ndescription: {GOOD}\nargument-hint: '[file]'"
    folder = write(tmp_path, front, "Read $1 and $2, all of $ARGUMENTS.\n")
    assert verdict(folder).notes == ()
    assert verdict(folder, positional=1).notes == ("arguments numbered from 1 ($1, $2)",)
    none = verdict(folder, positional=None, named=frozenset(), append_unused=False)
    assert none.notes == ("$1, $2, $ARGUMENTS not substituted", "arguments without a placeholder are lost")


def test_a_dollar_that_is_the_author_s_own_here_and_a_placeholder_there(tmp_path: Path) -> None:
    folder = write(tmp_path, f"name: tidy\ndescription: {GOOD}", "Pay $5, run awk '{print $1}' in ${HOME}.\n")
    assert verdict(folder).notes == ()
    assert verdict(folder, bare="always", missing="empty").notes == ("$5, $1 taken for an argument",)
    assert verdict(folder, unknown="empty").notes == ("${HOME} substituted",)


def test_variables_and_names_that_stay_as_written(tmp_path: Path) -> None:
    front = f"name: tidy\ndescription: {GOOD}\narguments: [file]"
    folder = write(tmp_path, front, "Use ${SKILL_DIR}/a on $file.\n")
    assert verdict(folder, variables=frozenset()).notes == ("${SKILL_DIR} not substituted",)
    assert verdict(folder, named=frozenset({"${name}"})).notes == ("$file not substituted",)


def test_arguments_that_nothing_places(tmp_path: Path) -> None:
    folder = write(tmp_path, f"name: tidy\ndescription: {GOOD}\nargument-hint: '[file]'", "Do it.\n")
    assert verdict(folder, append_unused=False).notes == ("arguments without a placeholder are lost",)


def test_who_may_invoke_it_there(tmp_path: Path) -> None:
    front = f"name: tidy\ndescription: {GOOD}\ndisable-model-invocation: true\nuser-invocable: false"
    folder = write(tmp_path, front)
    assert verdict(folder).notes == ()
    assert verdict(folder, model_flag="ignore").notes == ('"disable-model-invocation" ignored: a model may load it',)
    (note,) = verdict(folder, user_flag="ignore").notes
    assert note.startswith('"user-invocable" ignored')
    assert verdict(folder, user_flag="hide").notes == ("not in the user's menu, but may be named",)


def test_tools_and_keys_that_mean_nothing_there(tmp_path: Path) -> None:
    front = f"name: tidy\ndescription: {GOOD}\nallowed-tools: Read, Write\nargument-hint: x\nlicense: MIT"
    folder = write(tmp_path, front, "$ARGUMENTS\n")
    fewer = PORTABLE.understands - {"allowed-tools", "argument-hint", "license"}
    assert verdict(folder, understands=fewer).notes == ('"allowed-tools" dropped', '"argument-hint" ignored')
    assert verdict(folder, text_as_list="one").notes == ('"allowed-tools" read as "Read, Write"',)


def test_what_a_match_of_paths_does_there(tmp_path: Path) -> None:
    folder = write(tmp_path, f"name: tidy\ndescription: {GOOD}\npaths: [infra/**]")
    assert verdict(folder).notes == ()
    assert verdict(folder, on_path_match="activate").notes == ('a file that matches "paths" activates it',)
    assert verdict(folder, understands=PORTABLE.understands - {"paths"}).notes == ('"paths" ignored',)


def test_a_nested_skill(tmp_path: Path) -> None:
    folder = write(tmp_path, f"name: tidy\ndescription: {GOOD}", files={"sub/SKILL.md": "x"})
    assert verdict(folder).notes == ("sub/SKILL.md is no skill of its own",)
    assert verdict(folder, nested="descend").notes == ("sub/SKILL.md is a skill of its own",)


def test_the_target_s_ceilings_count(tmp_path: Path) -> None:
    folder = write(tmp_path, f"name: tidy\ndescription: {GOOD}", files={"a": "x"})
    there = verdict(folder, limits=Limits(files=1))
    assert (there.status, there.notes) == ("refused", ("The skill holds more than 1 files. [too-many-files]",))


def test_the_json_shape(tmp_path: Path) -> None:
    folder = write(tmp_path, "name: tidy\ndescription: PDF utilities")
    skill = only(check(folder, targets=["portable"]))
    shown = skill.to_dict()
    assert list(shown) == ["path", "name", "ok", "diagnostics", "targets"]
    assert (shown["name"], shown["ok"]) == ("tidy", True)
    assert shown["targets"] == {"portable": {"status": "loads", "notes": []}}
    assert skill.to_dict(strict=True)["ok"] is False


def test_the_report_has_the_published_shape(tmp_path: Path) -> None:
    write(tmp_path, "name: tidy\ndescription: PDF utilities")
    (tmp_path / "gone").symlink_to(tmp_path / "nowhere")
    report = check(tmp_path)
    shown = report.to_dict()
    assert list(shown) == ["skills", "diagnostics", "ok"]
    assert shown["skills"] == [only(report).to_dict()]
    assert shown["diagnostics"] == [item.to_dict() for item in report.diagnostics]
    assert (shown["ok"], report.to_dict(strict=True)["ok"]) == (True, False)
    assert CheckReport().to_dict() == {"skills": [], "diagnostics": [], "ok": False}


def test_findings_of_the_frontmatter_and_notes_are_bounded_and_counted(tmp_path: Path) -> None:
    values = "".join(f"  k{number}: [1]\n" for number in range(500))
    folder = write(tmp_path, f"name: tidy\ndescription: {GOOD}\nmetadata:\n{values.rstrip()}")
    skill = only(check(folder, targets="portable"))
    assert rules(skill) == ["metadata-not-text"] * 8
    assert skill.diagnostics[-1].message.endswith("There are 492 more.")
    front = "".join(f"k{number}: 1\n" for number in range(500))
    folder = write(tmp_path, f"name: loose\ndescription: {GOOD}\n{front.rstrip()}", folder="loose")
    files = {f"sub{number}/SKILL.md": "x" for number in range(20)}
    many = write(tmp_path, f"name: many\ndescription: {GOOD}", folder="many", files=files)
    assert only(check(folder, targets="agentskills")).targets["agentskills"].status == "refused"
    notes = only(check(many, targets="openai-api")).targets["openai-api"].notes
    assert (len(notes), notes[-1]) == (13, "and 8 more")


def test_every_row_judges_what_was_opened_once(tmp_path: Path) -> None:
    folder = write(tmp_path, f"name: tidy\ndescription: {GOOD}\nargument-hint: [a, b]", "Hid\u200bden.\n")
    stern = replace(PORTABLE, id="stern", refuses=PORTABLE.refuses | {"hidden-characters"})
    quiet = replace(PORTABLE, id="quiet", ignores=PORTABLE.ignores | {"hidden-characters", "field-shape"})
    skill = only(check(folder, targets=[stern, quiet, replace(PORTABLE, id="same")]))
    assert rules(skill) == ["field-shape", "hidden-characters"]
    assert {name: target.status for name, target in skill.targets.items()} == {
        "stern": "refused",
        "quiet": "loads",
        "same": "loads-with-warnings",
    }
    assert len(skill.targets["same"].notes) == 2
    texts = ManifestTexts()
    data = (folder / "SKILL.md").read_bytes()
    assert texts.open(data, "p") is texts.open(bytes(bytearray(data)), "p") is not texts.open(data, "q")


def test_too_many_placeholders_are_said_to_be_too_many(tmp_path: Path) -> None:
    body = " ".join(f"$x{number}" for number in range(1200))
    folder = write(tmp_path, f"name: tidy\ndescription: {GOOD}", body)
    assert verdict(folder).notes == ("only the first 1000 different placeholders were compared",)
