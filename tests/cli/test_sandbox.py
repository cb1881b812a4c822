"""``satchel sandbox`` and what ``doctor`` says of sandboxes. The policy itself is tested with its backends."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from satchel.ports.execution import GAP_WRITES
from tests.cli.calling import Caller
from tests.support import write_skill

OFF = ("sandbox", "--skills-sandbox", "off")


def test_output_and_exit_code_are_those_of_the_command(satchel: Caller) -> None:
    code = "import os, sys; print(os.getcwd() == os.environ['HOME']); sys.stderr.write('oh'); sys.exit(3)"
    said = satchel(*OFF, "--", "python", "-c", code)
    assert (said.code, said.out) == (3, "True\n")
    first, second = said.err.splitlines()
    assert first == "oh"
    assert second.startswith(f"sandbox: exit code 3, without a sandbox. Not confined on this host: {GAP_WRITES};")


def test_options_behind_the_dashes_are_the_command_s(satchel: Caller) -> None:
    said = satchel(*OFF, "--", "echo", "--json", "--help")
    assert (said.code, said.out) == (0, "--json --help\n")


def test_what_is_written_in_the_scratch_is_listed_and_gone(satchel: Caller) -> None:
    said = satchel(*OFF, "--", "sh", "-c", "echo hello > out.txt; pwd")
    assert "wrote out.txt (6 B), gone now (--workdir DIR keeps what is written)" in said.err
    assert not Path(said.out.strip()).exists()


def test_a_directory_of_one_s_own_keeps_what_is_written(
    satchel: Caller, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    said = satchel(*OFF, "--workdir", ".", "--", "sh", "-c", 'echo "$PWD" > out.txt')
    assert (said.code, "wrote" in said.err) == (0, False)
    assert (tmp_path / "out.txt").read_text() == f"{os.path.realpath(tmp_path)}\n"


def test_nothing_of_the_environment_passes(satchel: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "sk-secret")
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example:3128")
    monkeypatch.setenv("HTTP_PROXY", "http://user:password@proxy.example:3128")
    alone = satchel(*OFF, "--", "env").out
    online = satchel(*OFF, "--network", "--", "env").out
    assert "secret" not in alone + online
    assert ("proxy.example" in alone, "HTTPS_PROXY=http://proxy.example:3128" in online) == (False, True)
    assert "password" not in online


def test_time_that_is_up_is_said_and_has_a_code_of_its_own(satchel: Caller) -> None:
    said = satchel(*OFF, "--timeout", "0.3", "--", "sh", "-c", "echo begun; sleep 60")
    assert (said.code, said.out) == (124, "begun\n")
    assert "sandbox: stopped at the time limit" in said.err


def test_json_has_the_outcome_and_the_record(satchel: Caller) -> None:
    said = satchel(*OFF, "--json", "--", "sh", "-c", "echo hi; echo no >&2; touch new; exit 4")
    shape = said.json
    assert said.code == 4
    assert (shape["exit_code"], shape["stopped"], shape["stdout"], shape["stderr"]) == (4, "", "hi\n", "no\n")
    assert shape["produced"] == [{"path": "new", "bytes": 0}]
    assert (shape["confinement"]["backend"], shape["confinement"]["is_full"]) == ("none", False)
    assert GAP_WRITES in shape["confinement"]["gaps"]
    assert said.err == ""


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ((), 2, "There is no command to run."),
        (("--workdir", "nowhere", "--", "true"), 2, "nowhere is not a directory."),
        (("--read", "nowhere", "--", "true"), 2, "nowhere does not exist."),
        (("--timeout", "0", "--", "true"), 2, "timeout"),
        (("--", "no-such-program"), 1, "There is no program no-such-program on the PATH"),
        (("--", "./no-such-program"), 1, "could not be started"),
    ],
)
def test_what_cannot_be_tried_is_said(satchel: Caller, arguments: tuple[str, ...], code: int, said: str) -> None:
    ended = satchel(*OFF, *arguments)
    assert (ended.code, ended.out) == (code, "")
    assert said in ended.err


def test_doctor_says_each_backend_and_what_is_allowed(satchel: Caller, root: Path) -> None:
    where = ("--skills-dir", str(root))
    report = satchel("doctor", "--json", *where).json
    backends = report["sandbox"]["backends"]
    assert [item["name"] for item in backends if item["used"]] == [report["sandbox"]["used"]["backend"]]
    by_what = {item["what"]: item for item in report["findings"]}
    for what, flag in (
        ("scripts", "--skills-allow-exec"),
        ("code", "--code-exec"),
        ("installs", "--code-exec-allow-install"),
    ):
        assert (by_what[what]["status"], flag in by_what[what]["hint"]) == ("ok", True)
    assert len([item for item in report["findings"] if item["what"] == "sandbox"]) == len(backends)
    allowed = satchel("doctor", "--skills-allow-exec", "--skills-sandbox", "off", *where).out
    assert "of skills run with the network, which nothing holds back, without a sandbox." in allowed


def test_doctor_names_variables_that_do_nothing(satchel: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SATCHEL_CODE_EXEC_PACKAGES", "humanize")
    assert "SATCHEL_CODE_EXEC_PACKAGES does nothing without --code-exec-allow-install" in satchel("doctor").err
    assert "does nothing" not in satchel("list").err


def test_doctor_names_grants_and_interpreters_that_give_nothing(
    satchel: Caller, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SATCHEL_SKILLS_INTERPRETERS", ".rb=no-such-ruby -w;.erb=no-such-ruby")
    monkeypatch.setenv("SET_HERE", "1")
    monkeypatch.setenv("SATCHEL_SKILLS_GRANT", "nobody=SET_HERE")
    write_skill(root, "fuel")
    where = ("--skills-dir", str(root), "--skills-sandbox", "off")
    said = satchel("doctor", "--json", "--skills-allow-exec", *where).json["findings"]
    missing = [item["detail"] for item in said if item["status"] == "missing" and item["what"] in {"grant", "scripts"}]
    assert "there is no skill nobody" in missing
    assert "no-such-ruby is not installed, so no .rb or .erb file runs" in missing
    granted = ("--skills-grant", "fule=SET_HERE", "--skills-grant", "fuel=SET_HERE,NOT_SET")
    said = satchel("doctor", "--json", "--skills-allow-exec", *granted, *where).json["findings"]
    told = [(item["detail"], item["hint"]) for item in said if item["what"] == "grant"]
    assert told == [
        ("there is no skill fule", "Did you mean fuel?"),
        ("NOT_SET is not set, so scripts of fuel do not get it", "Set NOT_SET where satchel is started."),
    ]
    assert not [item for item in satchel("doctor", "--json", *where).json["findings"] if item["what"] == "grant"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--no-skills", "--code-exec"), "note: --code-exec does nothing while skills are off (--no-skills)."),
        (
            ("--skills-sandbox", "preferred"),
            "note: --skills-sandbox does nothing without --skills-allow-exec or --code-",
        ),
        (("--skills-sandbox", "preferred", "--code-exec"), ""),
    ],
)
def test_what_nothing_comes_of_is_said(satchel: Caller, given: tuple[str, ...], said: str) -> None:
    err = satchel("run", *given, "--upstream", "http://127.0.0.1:9/v1", "hello").err
    assert said in err
    assert bool(said) == ("does nothing" in err)


def test_a_flag_that_does_nothing_alone_is_refused(satchel: Caller) -> None:
    said = satchel("run", "--code-exec-allow-network", "hello")
    assert (said.code, said.out) == (2, "")
    assert "--code-exec-allow-network does nothing without --code-exec." in said.err


@pytest.mark.parametrize("command", [("--netwrok", "--", "id"), ("--skills-allow-exec", "--", "id"), ("--", "-x")])
def test_a_misspelt_option_is_not_taken_for_a_program(satchel: Caller, command: tuple[str, ...]) -> None:
    said = satchel("sandbox", *command)
    named = next(word for word in command if word != "--")
    assert said.code == 2
    assert f"{named} is no option of satchel sandbox. [setting-invalid]" in said.err


@pytest.mark.parametrize("command", [(), ("--",), ("--", ""), ("--", " ")])
def test_a_command_that_is_none_is_refused(satchel: Caller, command: tuple[str, ...]) -> None:
    assert "There is no command to run." in satchel("sandbox", *command).err


def test_the_help_of_a_command_says_all_and_a_wrong_call_leads_there(satchel: Caller) -> None:
    assert "124 when its time was up" in " ".join(satchel("sandbox", "--help").out.split())
    assert "SATCHEL_KEYS (comma-separated)" in satchel("serve", "--help").out
    assert "The embedded model's weights" in satchel("model", "--help").out
    assert "hint: satchel sandbox --help shows its options." in satchel("sandbox", "--timeout", "0", "--", "id").err
    assert "hint: satchel --help shows the commands." in satchel("sandbxo").err


def test_a_list_that_is_wrong_is_shown_as_it_was_written(satchel: Caller) -> None:
    flags = ("--code-exec", "--code-exec-allow-install", "--code-exec-packages", "six==1")
    assert "--code-exec-packages 'six==1' cannot be used: " in satchel("doctor", *flags).err
