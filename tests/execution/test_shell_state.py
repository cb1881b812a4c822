from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from satchel.execution.shell_state import (
    MAX_STATE_BYTES,
    WRAPPERS_KEPT,
    SessionState,
    Wrapper,
    lasts,
    parse_exports,
    shift_lines,
)
from satchel.execution.workspace import Workspace, create_workspace
from satchel.ports.execution import Shell
from tests.execution.shells import printed, run, session

BASH = Shell()


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return create_workspace(str(tmp_path))


def called(state: SessionState, workspace: Workspace, command: str, shell: Shell = BASH) -> tuple[list[str], Wrapper]:
    """One call as a session makes it, without a session."""
    wrapper = state.write_wrapper(command, shell)
    environment = {"PATH": "/usr/bin:/bin", "HOME": workspace.work}
    subprocess.run([shell.program, wrapper.path], cwd=wrapper.cwd, env=environment, check=False, timeout=30)
    return state.keep(wrapper), wrapper


@pytest.mark.parametrize("shell", [BASH, Shell(dialect="sh", program="/bin/sh")])
def test_directory_and_exports_last_from_call_to_call(workspace: Workspace, shell: Shell) -> None:
    state = SessionState(workspace)
    text = "mkdir -p a/b && cd a/b && MINE='it'\"'\"'s \"two\" words $HOME `x` \\n' && export MINE && ONLY=here"
    assert called(state, workspace, text, shell)[0] == []
    assert state.load() == (f"{workspace.work}/a/b", {"MINE": 'it\'s "two" words $HOME `x` \\n'})
    called(state, workspace, 'printf %s "$MINE$ONLY" > value', shell)
    assert Path(workspace.work, "a/b/value").read_text() == 'it\'s "two" words $HOME `x` \\n'


def test_exit_inside_keeps_the_state_and_the_code(workspace: Workspace) -> None:
    state = SessionState(workspace)
    wrapper = state.write_wrapper("set -euo pipefail; export KEPT=1; mkdir d; cd d; exit 7; export LATER=1", BASH)
    done = subprocess.run(["/bin/bash", wrapper.path], cwd=wrapper.cwd, check=False, timeout=30)
    assert done.returncode == 7
    assert state.keep(wrapper) == []
    assert state.load()[0] == f"{workspace.work}/d"
    assert state.load()[1]["KEPT"] == "1"
    assert "LATER" not in state.load()[1]


@pytest.mark.parametrize(
    "name", ["PATH", "HOME", "IFS", "TMPDIR", "LD_PRELOAD", "https_proxy", "SSL_CERT_FILE", "SATCHEL_X"]
)
@pytest.mark.parametrize(
    "how", ["export {}=/evil", "readonly {}=/evil; export {}", "declare -rx {}=/evil", "declare -ax {}=(/evil)"]
)
def test_some_exports_never_last_in_whatever_form(workspace: Workspace, name: str, how: str) -> None:
    state = SessionState(workspace)
    assert called(state, workspace, how.format(name, name) + "; export MINE=1")[0] == []
    called(
        state,
        workspace,
        f'printf %s "${{{name}:-unset}}" > "{workspace.work}/seen"; printf %s "$MINE" > "{workspace.work}/mine"',
    )
    assert "evil" not in Path(workspace.work, "seen").read_text()
    assert Path(workspace.work, "mine").read_text() == "1"


def test_an_exported_map_is_left_out_alone(workspace: Workspace) -> None:
    state = SessionState(workspace)
    text = "declare -Ax M=([a]=1 ['b c]x']='$(d)' [$'\\n']=2); declare -ax LIST=(1 '2 3'); export KEPT=1"
    assert called(state, workspace, text)[0] == []
    called(state, workspace, 'printf %s "${M[a]-none}:${LIST[1]}:$KEPT" > seen')
    assert Path(workspace.work, "seen").read_text() == "none:2 3:1"


def test_a_name_that_only_looks_like_one_of_those_lasts() -> None:
    assert all(lasts(name) for name in ("MY_PATH", "PATHS", "HOMEPAGE", "proxy_list", "XSATCHEL_Y", "_X"))
    assert not any(lasts(name) for name in ("PATH", "NO_PROXY", "all_proxy", "proxy", "DYLD_INSERT_LIBRARIES"))


def test_a_readonly_export_stays_readonly(workspace: Workspace) -> None:
    state = SessionState(workspace)
    called(state, workspace, "readonly FIXED=one; export FIXED; declare -ax LIST=(a 'b c')")
    called(state, workspace, f'(FIXED=two) 2>/dev/null || echo "$FIXED ${{LIST[1]}}" > {workspace.work}/seen')
    assert Path(workspace.work, "seen").read_text() == "one b c\n"


def test_a_constant_of_the_shell_that_is_exported_does_not_cost_the_others(workspace: Workspace) -> None:
    state = SessionState(workspace)
    called(state, workspace, "export SHELLOPTS UID MINE=1")
    assert called(state, workspace, "true")[0] == []
    assert state.load()[1] == {"MINE": "1"}


@pytest.mark.parametrize("target", ["/", "/etc", "..", "../state"])
def test_a_directory_outside_is_not_kept(workspace: Workspace, target: str) -> None:
    state = SessionState(workspace)
    notes, _ = called(state, workspace, f"cd {target}")
    assert "outside" in notes[0]
    assert state.load()[0] == workspace.work


@pytest.mark.parametrize("written", ["", "/et"])
def test_a_directory_that_could_not_be_written_down_is_not_called_outside(workspace: Workspace, written: str) -> None:
    state = SessionState(workspace)
    wrapper = state.write_wrapper("true", BASH, keeps_state=True, cwd=workspace.work)
    Path(workspace.state, f"{wrapper.stem}.cwd").write_text(written)
    (note,) = state.keep(wrapper)
    assert "outside" not in note
    assert "the disk was full" in note


def test_a_link_out_of_the_workspace_is_no_way_out(workspace: Workspace) -> None:
    state = SessionState(workspace)
    called(state, workspace, "ln -s /etc out; mkdir in; ln -s in alias; cd out")
    assert state.load()[0] == workspace.work
    called(state, workspace, "cd alias")
    assert state.load()[0] == f"{workspace.work}/in"
    shutil.rmtree(f"{workspace.work}/in")
    Path(workspace.work, "in").symlink_to("/etc")
    assert state.load()[0] == workspace.work


PLANTS = {
    "fifo": "mkfifo",
    "zero": "ln -s /dev/zero",
    "passwd": "ln -s /etc/passwd",
    "directory": "mkdir",
    "flood": f"head -c {MAX_STATE_BYTES + 1} /dev/zero | tr '\\0' x >",
}


@pytest.mark.parametrize("plant", PLANTS.values(), ids=PLANTS.keys())
@pytest.mark.parametrize("which", ["env", "cwd"])
def test_odd_state_files_neither_hang_nor_lead_away(workspace: Workspace, plant: str, which: str) -> None:
    state = SessionState(workspace)
    called(state, workspace, "export BEFORE=1")
    wrapper = state.write_wrapper("true", BASH)
    # What a program of the call left there after its shell had ended.
    stem = f"{workspace.state}/{wrapper.stem}"
    Path(f"{stem}.cwd").write_text(f"{workspace.work}\n")
    Path(f"{stem}.env").write_text('declare -x AFTER="1"\n')
    Path(f"{stem}.{which}").unlink()
    subprocess.run(["/bin/sh", "-c", f"{plant} {stem}.{which}"], check=True, timeout=30)
    notes = state.keep(wrapper)
    assert notes
    cwd, exports = state.load()
    assert cwd == workspace.work
    assert "AFTER" not in exports
    assert not any("root:" in value for value in exports.values())


@pytest.mark.parametrize(
    "planted",
    [
        "exit 0\n",
        'declare -x A="1"\nexit 0\n',
        'declare -x A="$(touch pwned)"\n',
        'declare -x A="`touch pwned`"\n',
        'declare -x A="1"; touch pwned\n',
        'declare -ax A=([0]="$(touch pwned)")\n',
        'declare -ax A=([x[$(touch pwned)]]="1")\n',
        "export A='1' touch pwned\n",
        'alias ls="touch pwned"\n',
        'A=1 declare -x B="2"\n',
    ],
)
def test_only_exports_are_ever_read_back(workspace: Workspace, planted: str) -> None:
    state = SessionState(workspace)
    wrapper = state.write_wrapper("true", BASH)
    stem = f"{workspace.state}/{wrapper.stem}"
    Path(f"{stem}.cwd").write_text(f"{workspace.work}\n")
    Path(f"{stem}.env").write_text(planted)
    assert parse_exports(planted) is None
    assert any("reset" in note for note in state.keep(wrapper))
    called(state, workspace, "echo ran > ran")
    assert Path(workspace.work, "ran").read_text() == "ran\n"
    assert not list(Path(workspace.root).rglob("pwned"))


@pytest.mark.parametrize("planted", ['declare -rx UID="5"\n', 'declare -x GONE="1"\nexit 0\n', 'declare -x A="\n'])
def test_exports_that_cannot_be_restored_are_reset_and_the_command_runs(workspace: Workspace, planted: str) -> None:
    state = SessionState(workspace)
    called(state, workspace, "export GONE=1")
    wrapper = state.write_wrapper('echo "${GONE:-none}" > seen', BASH)
    Path(wrapper.path.removesuffix(".sh") + ".restore").write_text(planted)
    subprocess.run(["/bin/bash", wrapper.path], cwd=wrapper.cwd, check=False, timeout=30)
    assert any("reset" in note for note in state.keep(wrapper))
    assert Path(workspace.work, "seen").read_text() == "none\n"


def test_sixteen_wrappers_are_kept_and_nothing_else(workspace: Workspace) -> None:
    state = SessionState(workspace)
    last = [called(state, workspace, "true")[1].path for _ in range(WRAPPERS_KEPT + 3)]
    assert sorted(str(path) for path in Path(workspace.calls).iterdir()) == sorted(last[-WRAPPERS_KEPT:])


def test_directories_that_became_links_are_neither_written_nor_read(workspace: Workspace, tmp_path: Path) -> None:
    state = SessionState(workspace)
    wrapper = state.write_wrapper("true", BASH)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for folder in (workspace.state, workspace.calls):
        shutil.rmtree(folder)
        Path(folder).symlink_to(elsewhere)
    with pytest.raises(OSError):
        state.write_wrapper("true", BASH)
    assert not list(elsewhere.iterdir())
    (elsewhere / f"{wrapper.stem}.cwd").write_text(workspace.tmp)
    (elsewhere / f"{wrapper.stem}.env").write_text('declare -x EVIL="1"\n')
    assert state.keep(wrapper)
    assert state.load() == (workspace.work, {})
    assert len(list(elsewhere.iterdir())) == 2


def test_a_directory_that_cannot_be_entered_is_not_where_the_next_call_begins(workspace: Workspace) -> None:
    state = SessionState(workspace)
    notes, _ = called(state, workspace, "mkdir shut; cd shut; chmod 0 .")
    assert "cannot be entered" in notes[0]
    assert state.directory() == workspace.work


def test_a_host_without_processes_saves_through_the_same_filter(workspace: Workspace) -> None:
    state = SessionState(workspace)
    Path(workspace.work, "sub").mkdir()
    state.save(f"{workspace.work}/sub", {"MINE": "it's\n$(x)", "PATH": "/evil", "bad-name": "1", "HTTP_PROXY": "x"})
    assert state.load() == (f"{workspace.work}/sub", {"MINE": "it's\n$(x)"})
    state.save("/etc", {})
    assert state.load() == (workspace.work, {})
    state.mark_reset()
    assert len(state.reset_notes()) == 1
    assert state.reset_notes() == []


@settings(max_examples=150, deadline=None)
@given(
    st.dictionaries(
        st.from_regex(r"[A-Z][A-Z_]{0,5}X", fullmatch=True),
        st.text(st.characters(codec="utf-8", exclude_characters="\0")),
    )
)
def test_every_value_comes_back_as_it_was(env: dict[str, str]) -> None:
    state = SessionState(Workspace(root="/nowhere", id="x"))
    state.save("/nowhere", env)
    assert state.load()[1] == env


@settings(max_examples=25, deadline=None)
@given(st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=40))
def test_bash_and_we_read_the_same_value(value: str) -> None:
    done = subprocess.run(
        ["/bin/bash", "-c", "export -p"], env={"MINE": value}, capture_output=True, check=True, timeout=30
    )
    state = SessionState(Workspace(root="/nowhere", id="x"))
    exports = parse_exports(done.stdout.decode("utf-8", "surrogateescape"))
    assert exports is not None
    state._exports = exports
    assert state.load()[1] == {"MINE": value}


@settings(deadline=None)
@given(st.text(alphabet="declarexp -\"'$()[]=A1\n\\`", max_size=60))
def test_no_text_breaks_the_reader(text: str) -> None:
    found = parse_exports(text)
    assert found is None or all(re.match(r"export |declare -", line) for line in found.values())


def test_line_numbers_are_those_of_the_command(tmp_path: Path) -> None:
    wrapper = Wrapper(path="/w/x.sh", lines_before=14, stem="x", cwd="/w")
    told = shift_lines(
        "/w/x.sh: line 16: a: not found\n/w/x.sh: command substitution: line 15: b\nsee /w/x.sh: line 20: c", wrapper
    )
    assert told.splitlines() == [
        "bash: line 2: a: not found",
        "bash: command substitution: line 1: b",
        "see /w/x.sh: line 20: c",
    ]
    assert shift_lines("/w/x.sh: 15: a: not found", wrapper, "sh") == "sh: 1: a: not found"
    assert shift_lines("/w/y.sh: line 16: a: not found", wrapper) == "/w/y.sh: line 16: a: not found"


async def test_errors_name_the_lines_that_were_written(tmp_path: Path) -> None:
    async with session(tmp_path) as made:
        done = await run(made, "true\nnosuchprogram_a\n\ncat <<EOF\n$(nosuchprogram_b)\nEOF\nif [ 1 ; then")
        assert "bash: line 2: nosuchprogram_a: command not found" in done.text
        assert "nosuchprogram_b: command not found" in done.text
        assert "bash: line 8: syntax error" in done.text
        assert made.workspace.root not in done.text


async def test_a_shell_that_is_replaced_is_told_that_nothing_was_kept(tmp_path: Path) -> None:
    async with session(tmp_path) as made:
        await run(made, "export ONE=1")
        done = await run(made, "trap 'echo mine' EXIT; export TWO=2; exec true")
        assert "not kept" in done.text
        assert printed(await run(made, 'echo "$ONE:$TWO"')) == "1:\n"


async def test_a_line_number_beyond_all_numbers_is_left_as_it_was_printed(tmp_path: Path) -> None:
    async with session(tmp_path) as made:
        command = (
            'many=$(printf "9%.0s" {1..5000}); echo "$0: line $many: x" >&2; echo "$0: line 99: at line $many" >&2'
        )
        done = await run(made, command)
        assert "9" * 5000 + ": x" in done.text
        assert "at line " + "9" * 5000 in done.text


async def test_a_locale_that_is_not_here_is_complained_of_once(tmp_path: Path) -> None:
    async with session(tmp_path) as made:
        assert "setlocale" in (await run(made, "export LC_ALL=xx_YY.UTF-8 KEPT=1")).text
        done = await run(made, 'echo "$LC_ALL:$KEPT"')
        assert printed(done) == "xx_YY.UTF-8:1\n"
        assert "setlocale" not in done.text
