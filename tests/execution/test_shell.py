from __future__ import annotations

import asyncio
import os
import random
import string
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from satchel.errors import PathError, SandboxError
from satchel.execution.options import ExecutionOptions, InstallOptions
from satchel.execution.requests import CommandPlan
from satchel.execution.shell_call import MAX_COMMAND_CHARS, ShellRequest
from satchel.execution.workspace import Workspace
from satchel.ports.execution import Captured, Launch, Outcome, Shell
from satchel.sandbox.unconfined import UnconfinedExecutor
from tests.execution.shells import HOST, OPTIONS, Claiming, left_in, printed, read, run, session

DRAW = random.Random(20261)


def word() -> str:
    return "".join(DRAW.choices(string.ascii_lowercase, k=9))


async def test_what_carries_over_and_what_does_not(tmp_path: Path) -> None:
    name, value = word(), word()
    async with session(tmp_path) as made:
        done = await run(
            made, f"mkdir -p {name}/deep && cd {name}/deep && export {name.upper()}={value} && local_only=1"
        )
        assert done.ok
        assert f"Working directory is now: {name}/deep" in done.text
        done = await run(made, f'echo "${name.upper()}${{local_only:-}}"; pwd; echo x > made.txt')
        assert printed(done) == f"{value}\n.\n"
        assert done.files == (f"{name}/deep/made.txt",)
        assert "Working directory" not in done.text


async def test_a_directory_that_is_gone_is_said(tmp_path: Path) -> None:
    async with session(tmp_path) as made:
        await run(made, "mkdir gone && cd gone && rmdir ../gone")
        done = await run(made, "echo here > here.txt")
        assert left_in(made) == ["here.txt"]
        assert done.ok


async def test_workdir_holds_for_one_call(tmp_path: Path) -> None:
    async with session(tmp_path) as made:
        await run(made, "mkdir a b; cd a")
        assert printed(await run(made, "pwd; ls ..", workdir="b")) == ".\na\nb\n"
        assert printed(await run(made, 'cd -P . ; basename "$(pwd)"')) == "a\n"
        assert printed(await run(made, 'basename "$PWD"', workdir=f"{made.workspace.work}/b")) == "b\n"
        assert printed(await run(made, 'basename "$PWD"', workdir="~/b")) == "b\n"
        moved = await run(made, "cd ..", workdir="b")
        assert "Working directory is now: ." in moved.text


@pytest.mark.parametrize(
    "workdir", ["/etc", "..", "../state", "nowhere", "/", "a/../../..", "out", "~root", "f.txt", "a\0b"]
)
async def test_workdir_is_inside_the_workspace_only(tmp_path: Path, workdir: str) -> None:
    async with session(tmp_path) as made:
        await run(made, "mkdir a; ln -s /etc out; touch f.txt")
        done = await run(made, "touch ran", workdir=workdir)
        assert (done.ok, done.code, done.outcome) == (False, "path-refused", None)
        assert "workdir" in done.text
        assert left_in(made) == ["a", "f.txt", "out"]


async def test_nothing_of_the_host_is_in_the_environment(tmp_path: Path) -> None:
    secret = word() + word()
    async with session(tmp_path, host=HOST | {"OPENAI_API_KEY": secret, "FOO": word()}) as made:
        done = await run(made, "env; export OPENAI_API_KEY=${OPENAI_API_KEY:-none}; echo $OPENAI_API_KEY")
        assert secret not in done.text
        assert printed(done).endswith("none\n")
        assert "FOO=" not in printed(done)
        assert f"printed {secret}" not in (await run(made, f"echo printed {secret}")).text


async def test_python_is_always_there(tmp_path: Path) -> None:
    async with session(tmp_path, host={"PATH": "/nowhere"}) as made:
        done = await run(made, "python -c 'print(6*7)'; python3 -c 'print(1)'")
        assert printed(done) == "42\n1\n"
        await run(made, "export PATH=/nowhere; readonly PATH")
        assert printed(await run(made, "python -c 'print(6*7)'")) == "42\n"


async def test_input_is_closed_and_a_redirection_is_none_of_ours(tmp_path: Path) -> None:
    async with session(tmp_path) as made:
        assert printed(await run(made, "cat; echo end")) == "end\n"
        done = await run(made, "ls nowhere.txt 2>&1")
        assert "nowhere.txt" in printed(done)
        assert not done.ok
        assert "install" not in done.text.lower()


async def test_a_failure_in_the_middle_of_a_pipe_stays_visible(tmp_path: Path) -> None:
    async with session(tmp_path) as made:
        done = await run(made, "false | tail -5")
        assert done.ok
        assert "exit code 0" in done.text
        done = await run(made, "pip install left-pad-like-name; false | tail -5")
        assert (done.ok, done.outcome, done.code) == (False, None, "command-refused")
        assert "exit code" not in done.text


async def test_a_flood_keeps_head_and_tail_and_counts_the_middle(tmp_path: Path) -> None:
    async with session(tmp_path, options=replace(OPTIONS, output_bytes=2000)) as made:
        done = await run(made, "echo first; head -c 1000000 /dev/zero | tr '\\0' y; echo; echo last")
        assert done.text.index("first") < done.text.index("bytes left out") < done.text.index("last")
        assert len(done.text) < 4000


async def test_a_time_limit_kills_the_tree_and_keeps_what_was_printed(tmp_path: Path) -> None:
    async with session(tmp_path) as made:
        done = await run(made, "export A=1; echo begun; (sleep 30; touch late) & sleep 30; touch late", timeout_s=0.5)
        assert done.outcome is not None
        assert (done.ok, done.outcome.stopped) == (False, "deadline")
        assert "begun" in done.text
        assert "timeout_ms" in done.text
        assert "not kept" in done.text
        assert printed(await run(made, "echo ${A:-none}; ls")) == "none\n"


async def test_the_longest_time_limit_holds_and_is_said(tmp_path: Path) -> None:
    seen: list[Launch] = []

    class Watching(UnconfinedExecutor):
        async def run(self, launch: Launch) -> Outcome:
            seen.append(launch)
            return await super().run(launch)

    async with session(tmp_path, executor=Watching()) as made:
        assert "600 s" in (await run(made, "true", timeout_s=5000)).text
        await run(made, "true")
        await run(made, "true", timeout_s=0.3)
    assert [launch.deadline_s for launch in seen] == [600.0, 120.0, 0.3]
    assert {launch.purpose for launch in seen} == {"shell"}
    assert {launch.network.mode for launch in seen} == {"none"}
    assert all(
        made.workspace.packages in launch.readable and made.workspace.packages not in launch.writable for launch in seen
    )


async def test_cancelling_ends_the_command(tmp_path: Path) -> None:
    async with session(tmp_path) as made:
        task = asyncio.create_task(run(made, "echo $$ > pid; sleep 60"))
        while not read(made, "pid"):  # noqa: ASYNC110 - another process writes it
            await asyncio.sleep(0.01)
        pid = int(read(made, "pid"))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


@pytest.mark.parametrize("command", ["", "  \n", "a\0b", "echo \ud800", "x" * (MAX_COMMAND_CHARS + 1)])
async def test_what_is_no_command_is_not_run(tmp_path: Path, command: str) -> None:
    async with session(tmp_path) as made:
        done = await run(made, command)
        assert (done.ok, done.outcome) == (False, None)
        assert len(done.text) < 300


async def test_a_sandbox_that_is_required_and_not_there(tmp_path: Path) -> None:
    async with session(tmp_path, options=ExecutionOptions(code=True)) as made:
        done = await run(made, "touch ran")
        assert (done.ok, done.code) == (False, "sandbox-unavailable")
        assert "no OS sandbox" in done.text
        assert left_in(made) == []


async def test_the_open_network_brings_proxies_without_secrets(tmp_path: Path) -> None:
    host = HOST | {"HTTPS_PROXY": "http://user:secret@proxy:3128", "HTTP_PROXY": "http://proxy:3128"}
    command = "echo ${HTTP_PROXY:-none} ${HTTPS_PROXY:-none}; export HTTP_PROXY=http://other"
    async with session(tmp_path, host=host, options=replace(OPTIONS, code_network=True)) as made:
        for _ in range(2):
            assert printed(await run(made, command)) == "http://proxy:3128 none\n"
    async with session(tmp_path, host=host) as made:
        assert printed(await run(made, command)) == "none none\n"


async def test_every_result_names_what_is_open_and_a_full_sandbox_names_nothing(tmp_path: Path) -> None:
    for command, background in (("true", False), ("false", False), ("sleep 9", True)):
        async with session(tmp_path) as made:
            done = await run(made, command, background=background)
            assert "Not confined on this host: the script may write anywhere" in done.text
        async with session(tmp_path, executor=Claiming(), options=ExecutionOptions(code=True)) as made:
            done = await run(made, command, background=background)
            assert "Not confined" not in done.text
            assert "sandbox: full" in done.text


async def test_paths_of_the_host_are_relative_in_results(tmp_path: Path) -> None:
    async with session(tmp_path) as made:
        name = word()
        await run(
            made, f"mkdir {name}; cd {name}; echo 'import nowhere_{name}' > broken.py; echo 'import broken' > ../top.py"
        )
        done = await run(
            made,
            "python -c 'import sys; sys.path.insert(0, \".\"); import broken'; python $PWD/../top.py; python ~/top.py",
        )
        assert made.workspace.root not in done.text
        assert 'File "../top.py"' in done.text


async def test_a_failing_command_sent_again_is_counted(tmp_path: Path) -> None:
    async with session(tmp_path) as made:
        command = f"cat {word()}.txt && true"
        assert "failed" not in (await run(made, command)).text
        assert "failed 2 times" in (await run(made, command.replace(" ", "  ") + "\n")).text
        assert "failed 3 times" in (await run(made, command)).text
        assert "failed" not in (await run(made, f"cat {word()}.txt")).text
        await asyncio.to_thread(Path(made.workspace.work, "edited.txt").write_text, "by a file tool")
        assert "failed" not in (await run(made, command)).text
        assert "failed 2" in (await run(made, command)).text
        await run(made, "echo new > file.txt")
        assert "failed" not in (await run(made, command)).text


async def test_what_is_no_repeated_failure_is_not_counted(tmp_path: Path) -> None:
    async with session(tmp_path) as made:
        name = word()
        for _ in range(3):  # it goes well every time
            assert "failed" not in (await run(made, f"echo {name}")).text
        for _ in range(3):  # another command every time
            assert "failed" not in (await run(made, f"cat {word()}.txt")).text
        for number in range(3):  # it fails, and something was tried in between
            assert "failed" not in (await run(made, f"cat {name}.txt")).text
            await run(made, f"echo {number} > tried.txt")


async def test_a_benign_code_is_no_failure(tmp_path: Path) -> None:
    async with session(tmp_path) as made:
        await run(made, "echo a > f; echo b > g")
        for command in ("grep zzz f", "diff f g", "test -f nowhere", "cd . && grep zzz f", "cat f | grep zzz"):
            done = await run(made, command)
            assert done.ok, command
            assert "exit code 1" in done.text
            assert "not a failure" in done.text
            assert "times" not in (await run(made, command)).text
        for command in ("grep zzz nowhere", "false", "cat nowhere | grep zzz", "! grep a f", "(exit 1)"):
            done = await run(made, command)
            assert not done.ok, command
            assert "not a failure" not in done.text


async def test_apply_patch_in_a_command_is_handed_over(tmp_path: Path) -> None:
    class Patches:
        seen: tuple[str, str] = ("", "")

        async def patch_command(self, command: str, cwd: str) -> Patched | None:
            if not command.startswith("apply_patch"):
                return None
            self.seen = (command, cwd)
            if "bad" in command:
                raise PathError("path-refused", "That does not fit.", hint="Read it first.")
            return Patched(text="Updated a.txt.", files=("a.txt",))

    patches = Patches()
    text = "apply_patch <<'EOF'\n*** Begin Patch\n*** End Patch\nEOF"
    async with session(tmp_path, patches=patches) as made:
        await run(made, "mkdir d; cd d; false")
        done = await run(made, text)
        assert (done.text, done.ok, done.files) == ("Updated a.txt.", True, ("a.txt",))
        assert patches.seen == (text, f"{made.workspace.work}/d")
        done = await run(made, f"{text} # bad")
        assert (done.text, done.ok, done.code) == ("That does not fit. Read it first.", False, "path-refused")
        assert (await run(made, "echo apply_patch")).outcome is not None
    async with session(tmp_path) as made:
        assert "call the tool apply_patch" in (await run(made, f"true && {text}")).text
        went_on = await run(made, f"{text}\necho done")
        assert (went_on.ok, printed(went_on)) == (True, "done\n")
        assert "nothing was patched: call the tool apply_patch" in went_on.text
        assert "call the tool" not in (await run(made, "nosuch_apply_patch")).text


@dataclass(frozen=True)
class Patched:
    text: str
    files: tuple[str, ...]


@dataclass
class Answer:
    ok: bool
    note: str


class Installer:
    def __init__(self, *, ok: bool = True) -> None:
        self.ok = ok
        self.asked: list[str] = []
        self.runs = 0

    async def perform(self, plan: CommandPlan, workspace: Workspace, *, deadline_s: float) -> Answer:
        self.asked += [request.asked for request in plan.requests]
        return Answer(ok=self.ok, note=f"{'Installed' if self.ok else 'Could not install'} {self.asked[-1]}.")

    async def run(
        self, run: Callable[[float], Awaitable[Outcome]], workspace: Workspace, *, deadline_s: float
    ) -> tuple[Outcome, Sequence[str]]:
        self.runs += 1
        await run(deadline_s)
        return await run(deadline_s), ("Installed what was missing.",)


ALLOWED = replace(OPTIONS, install=InstallOptions(enabled=True))


async def test_an_install_is_performed_by_the_host_and_the_rest_runs(tmp_path: Path) -> None:
    installer = Installer()
    async with session(tmp_path, options=ALLOWED, installer=installer) as made:
        done = await run(made, "pip install six && echo $? >> ran; false")
        assert len(installer.asked) == 1
        assert done.text.splitlines()[0].startswith("Ran the command (exit code 1")
        assert done.text.splitlines()[1].startswith("Installed ")
        assert "Installed what was missing." in done.text
        assert read(made, "ran") == "0\n0\n"
        assert done.files == ("ran",)


@pytest.mark.parametrize("path", ["../names.txt", "~/names.txt", "{work}/names.txt", "../app/../names.txt"])
async def test_a_list_of_packages_may_lie_anywhere_in_the_working_directory(tmp_path: Path, path: str) -> None:
    installer = Installer()
    async with session(tmp_path, options=ALLOWED, installer=installer) as made:
        await run(made, "mkdir app; echo six > names.txt; ln -s /etc/hostname app/link; mkfifo app/pipe; cd app")
        work = made.workspace.work
        done = await run(made, f"pip install -r {path.format(work=work)}")
        assert len(installer.asked) == 1, done.text
        for other in ("../../names.txt", "/etc/hostname", "link", "pipe", "../app", f"{work}/../state", "~root/x"):
            done = await run(made, f"pip install -r {other}")
            assert "cannot be read in the workspace" in done.text
        assert len(installer.asked) == 1


async def test_an_install_that_fails_stops_the_line(tmp_path: Path) -> None:
    installer = Installer(ok=False)
    async with session(tmp_path, options=ALLOWED, installer=installer) as made:
        for background in (False, True):
            done = await run(made, "pip install six; touch ran", background=background)
            assert (done.ok, done.outcome) == (False, None)
            assert "Could not install" in done.text
        assert "failed 2 times" in done.text
        assert left_in(made) == []
    async with session(tmp_path, installer=installer) as made:
        assert not (await run(made, "pip install six; touch ran")).ok
        assert left_in(made) == []


async def test_an_in_process_backend_gets_the_text_and_the_state(tmp_path: Path) -> None:
    seen: list[Launch] = []

    class Embedded(Claiming):
        async def run(self, launch: Launch) -> Outcome:
            seen.append(launch)
            assert launch.state is not None
            cwd, env = await asyncio.to_thread(launch.state.load)
            if launch.command == "fail":
                launch.state.mark_reset()
            else:
                await asyncio.to_thread(os.makedirs, f"{cwd}/sub", exist_ok=True)
                await asyncio.to_thread(launch.state.save, f"{cwd}/sub", env | {"SEEN": "1", "PATH": "/x"})
            return Outcome(exit_code=0, stdout=Captured(head=f"{cwd} {env}".encode()))

    async with session(
        tmp_path, executor=Embedded(Shell(dialect="sh", program="")), options=ExecutionOptions(code=True)
    ) as made:
        done = await run(made, "go there")
        assert done.text.startswith(
            "Working directory is now: sub\nRan the command (exit code 0, sandbox: full)\nstdout:\n. {}"
        )
        assert seen[0].command == "go there"
        assert ". {'SEEN': '1'}" in (await run(made, "fail")).text
        assert "{}" in (await run(made, "again")).text
        assert "reset" in (await run(made, "fail")).text
        assert "background" in (await run(made, "x", background=True)).text


async def test_a_host_without_a_shell_says_so(tmp_path: Path) -> None:
    async with session(tmp_path, executor=Claiming(None)) as made:
        assert "no shell" in (await made.run(ShellRequest(command="ls"))).text
        assert made.dialect == ""


async def test_a_directory_of_calls_that_is_gone_is_a_failure_to_start(tmp_path: Path) -> None:
    async with session(tmp_path) as made:
        await asyncio.to_thread(os.rmdir, made.workspace.calls)
        with pytest.raises(SandboxError):
            await run(made, "true")


async def test_no_part_of_a_secret_is_told_as_the_reason(tmp_path: Path) -> None:
    secret = word() * 4
    async with session(tmp_path, host={**HOST, "DEMO_TOKEN": secret}) as made:
        done = await run(made, f"echo {'x' * 490}{secret} >&2; false")
    assert done.reason == f"{'x' * 490}[masked]"
