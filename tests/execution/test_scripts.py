from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

import pytest

from satchel.errors import PathError, SandboxError
from satchel.execution.options import ExecutionOptions, InstallOptions
from satchel.execution.scripts import ScriptRequest, ScriptRun, ScriptRunner
from satchel.execution.workspace import ProducedFile, Workspace, create_workspace
from satchel.ports.execution import Confinement, Launch, Outcome
from satchel.sandbox.unconfined import UnconfinedExecutor

OFF = ExecutionOptions(scripts=True, sandbox="off")


@pytest.fixture
def skill(tmp_path: Path) -> Path:
    folder = tmp_path / "skills" / "demo"
    (folder / "scripts").mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: demo\ndescription: Demo.\n---\nBody.\n")
    return folder


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return create_workspace(str(tmp_path))


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def write(skill: Path, path: str, text: str) -> None:
    (skill / path).write_bytes(text.encode())


async def run(
    skill: Path, path: str, *arguments: str, options: ExecutionOptions = OFF, host: Mapping[str, str] | None = None
) -> ScriptRun:
    runner = ScriptRunner(UnconfinedExecutor(), options, base=str(skill.parent.parent), host=host)
    return await runner.run(ScriptRequest(skill="demo", directory=str(skill), path=path, arguments=arguments))


async def test_a_script_runs_in_a_scratch_that_is_gone_afterwards(skill: Path) -> None:
    write(skill, "scripts/a.py", "import os, sys\nopen('out.txt', 'w').write('x')\nprint(os.getcwd())\nsys.exit(3)\n")
    done = await run(skill, "scripts/a.py")
    assert done.text.startswith("Ran scripts/a.py (exit code 3, sandbox: none)\nNot confined on this host: ")
    assert done.text.endswith(
        "Files produced:\n- out.txt (1 B)\nThese files are gone now: nothing is kept between calls on this host."
    )
    assert (done.ok, done.code, done.produced) == (False, "script-failed", (ProducedFile(path="out.txt", bytes=1),))
    assert names(skill.parent.parent) == ["skills"]
    assert names(skill) == ["SKILL.md", "scripts"]


async def test_an_interpreter_is_chosen_by_ending_without_any_execute_bit(skill: Path) -> None:
    write(skill, "scripts/a.sh", "#!/bin/bash -eu\nfalse\necho no\n")
    write(skill, "scripts/b.py", '#!/usr/bin/env python3\r\nprint("ok")\r\n')
    write(skill, "scripts/c", '#!/usr/bin/env -S python3 -u\nprint("c")\n')
    write(skill, "scripts/d.sh", 'set -euo pipefail\nnames=(a b)\necho "${names[1]}"\n')
    a, b, c, d = [await run(skill, f"scripts/{name}") for name in ("a.sh", "b.py", "c", "d.sh")]
    assert a.outcome is not None
    assert (a.outcome.exit_code, a.outcome.output) == (1, "")
    assert a.text.endswith("(no output)")
    assert [done.outcome.output for done in (b, c, d) if done.outcome] == ["ok\n", "c\n", "b\n"]


async def test_a_shell_script_with_windows_line_ends_runs_with_its_neighbours(skill: Path) -> None:
    write(skill, "scripts/lib.sh", "greet() {\r\n  echo hello $1\r\n}\r\n")
    write(
        skill, "scripts/a.sh", '#!/bin/bash\r\n. "$(dirname "$0")/lib.sh"\r\ncat "$SKILL_DIR/data.txt"\r\ngreet you\r\n'
    )
    write(skill, "data.txt", "data\r\n")
    done = await run(skill, "scripts/a.sh")
    assert done.outcome is not None
    assert done.outcome.stdout.head == b"data\r\nhello you\n", done.text
    assert (skill / "scripts" / "a.sh").read_bytes().count(b"\r\n") == 4
    assert names(skill.parent.parent) == ["skills"]


async def test_arguments_reach_the_script_unchanged(skill: Path) -> None:
    write(skill, "scripts/echo.py", "import json, sys; print(json.dumps(sys.argv[1:]))")
    given = ("$(touch pwned)", "a;b", "--x=y z", "é", "", "* ?", "`id`", "'\"", "a\nb")
    done = await run(skill, "scripts/echo.py", *given)
    assert done.outcome is not None
    assert tuple(json.loads(done.outcome.output)) == given
    assert done.produced == ()


async def test_a_script_imports_its_neighbours_from_the_root_of_the_skill(skill: Path) -> None:
    write(skill, "scripts/check.py", "def check():\n    return 'checked'\n")
    write(skill, "scripts/pack.py", "from scripts.check import check\nprint(check())\n")
    done = await run(skill, "scripts/pack.py")
    assert done.outcome is not None
    assert done.outcome.output == "checked\n"


async def test_the_environment_is_an_allow_list_and_names_the_skill(skill: Path) -> None:
    write(skill, "scripts/env.py", "import json, os; print(json.dumps(dict(os.environ)))")
    host = {"PATH": os.environ["PATH"], "OPENAI_API_KEY": "x" * 9, "AWS_SECRET_ACCESS_KEY": "y" * 9, "DEMO": "z1"}
    done = await run(skill, "scripts/env.py", host=host)
    assert done.outcome is not None
    environment = json.loads(done.outcome.stdout.text)
    assert environment["SKILL_DIR"] == str(skill)
    assert not {"OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY", "DEMO"} & set(environment)
    assert environment["PWD"] == environment["HOME"]


async def test_the_host_grants_variables_by_skill_and_provider_keys_only_when_forced(skill: Path) -> None:
    write(skill, "scripts/env.py", "import os; print([os.environ.get(n) for n in ('DEMO', 'OPENAI_API_KEY', 'PATH')])")
    host = {"PATH": os.environ["PATH"], "OPENAI_API_KEY": "sk-12345678", "DEMO": "granted value"}
    wanted = ("DEMO", "OPENAI_API_KEY", "PATH")
    grants = {"demo": wanted, "other": wanted}
    done = await run(skill, "scripts/env.py", host=host, options=ExecutionOptions(sandbox="off", grants=grants))
    assert done.outcome is not None
    assert done.outcome.output.startswith("['granted value', None, ")
    assert "granted value" not in done.text
    assert "['[masked]', None, " in done.text
    forced = ExecutionOptions(sandbox="off", grants=grants, grants_provider_keys=True)
    done = await run(skill, "scripts/env.py", host=host, options=forced)
    assert done.outcome is not None
    assert "sk-12345678" in done.outcome.output
    assert "sk-12345678" not in done.text
    other = ExecutionOptions(sandbox="off", grants={"other": wanted})
    done = await run(skill, "scripts/env.py", host=host, options=other)
    assert done.outcome is not None
    assert done.outcome.output.startswith("[None, None, ")


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
async def test_a_result_names_no_path_of_the_host(skill: Path, ends: str) -> None:
    body = ("import os, sys", "print(os.getcwd(), os.environ['SKILL_DIR'], os.path.abspath('out.csv'))", "1 / 0", "")
    write(skill, "scripts/a.py", ends.join(body))
    write(skill, "scripts/b.sh", ends.join(("echo $0 $PWD", "nosuch", "")))
    for path in ("scripts/a.py", "scripts/b.sh"):
        done = await run(skill, path)
        assert done.text.startswith(f"Ran {path} (")
        assert str(skill.parent.parent) not in done.text
        assert "satchel-" not in done.text
        assert path in done.text.partition("stdout:")[2]
    done = await run(skill, "./scripts//a.py")
    assert done.text.startswith("Ran scripts/a.py (exit code 1")
    assert "\n. $SKILL_DIR out.csv\n" in done.text


async def test_a_flood_is_cut_in_the_middle_and_counted(skill: Path) -> None:
    write(skill, "scripts/flood.py", "import sys\nfor _ in range(64): sys.stdout.write('y' * 65536)\nprint('end')\n")
    options = ExecutionOptions(sandbox="off", output_bytes=2048)
    done = await run(skill, "scripts/flood.py", options=options)
    assert done.ok
    assert done.outcome is not None
    assert done.outcome.stdout.total_bytes == 64 * 65536 + 4
    assert "bytes left out ...]" in done.text
    assert done.text.endswith("end")
    assert len(done.text) < 4096


async def test_what_was_printed_before_the_time_limit_is_kept(skill: Path) -> None:
    write(skill, "scripts/a.py", "import time\nprint('begun')\ntime.sleep(60)\n")
    done = await run(skill, "scripts/a.py", options=ExecutionOptions(sandbox="off", script_timeout_s=1.0))
    assert not done.ok
    assert "(stopped at the time limit after 1 s, sandbox: none)" in done.text
    assert done.text.endswith("stdout:\nbegun")


async def test_a_cancelled_call_leaves_no_scratch(skill: Path) -> None:
    write(skill, "scripts/a.py", "open('started', 'w').close()\nimport time\ntime.sleep(60)\n")
    task = asyncio.create_task(run(skill, "scripts/a.py"))
    base = skill.parent.parent
    while not await asyncio.to_thread(lambda: list(base.glob("satchel-*/*/work/started"))):  # noqa: ASYNC110 - a file
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert names(base) == ["skills"]


async def test_one_workspace_is_shared_by_its_scripts(skill: Path, workspace: Workspace) -> None:
    write(skill, "scripts/one.py", "open('step.txt', 'w').write('1')")
    write(skill, "scripts/two.py", "print(open('step.txt').read())")
    runner = ScriptRunner(UnconfinedExecutor(), OFF, workspace=workspace)
    first = await runner.run(ScriptRequest(skill="demo", directory=str(skill), path="scripts/one.py"))
    second = await runner.run(ScriptRequest(skill="demo", directory=str(skill), path="scripts/two.py"))
    assert first.text.endswith("- step.txt (1 B)")
    assert second.outcome is not None
    assert (second.outcome.output, second.produced) == ("1\n", ())
    assert await runner.has_file("step.txt")
    assert not await runner.has_file("../work/step.txt")
    for name, target in (("link", "step.txt"), ("out", "/etc/passwd")):
        await asyncio.to_thread(Path(workspace.work, name).symlink_to, target)
    assert await runner.has_file("link")
    assert not await runner.has_file("out"), "what the host has is nobody's business"


async def test_files_of_a_scratch_can_be_kept_before_it_goes(skill: Path) -> None:
    write(skill, "scripts/a.py", "open('out.txt', 'w').write('kept')")
    kept: list[str] = []

    async def keep(workspace: Workspace, files: tuple[ProducedFile, ...]) -> None:
        kept.extend([await asyncio.to_thread(Path(workspace.work, file.path).read_text) for file in files])

    runner = ScriptRunner(UnconfinedExecutor(), OFF, keep=keep)
    done = await runner.run(ScriptRequest(skill="demo", directory=str(skill), path="scripts/a.py"))
    assert kept == ["kept"]
    assert done.text.endswith("- out.txt (4 B)")


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("../demo2/a.py", "path-refused"),
        ("/etc/passwd", "path-refused"),
        ("scripts/out.py", "path-refused"),
        ("scripts/.hidden.py", "path-refused"),
        (".git/hooks/x.sh", "path-refused"),
        ("scripts/none.py", "path-not-found"),
        ("scripts", "not-a-file"),
        ("scripts/large.py", "path-refused"),
    ],
)
async def test_only_files_of_the_skill_are_run(skill: Path, tmp_path: Path, path: str, code: str) -> None:
    (tmp_path / "out.py").write_text("print(1)")
    (skill / "scripts" / "out.py").symlink_to(tmp_path / "out.py")
    write(skill, "scripts/.hidden.py", "print(1)")
    write(skill, "scripts/large.py", "#" * (1024 * 1024 + 1))
    with pytest.raises(PathError) as caught:
        await run(skill, path)
    assert caught.value.code == code


async def test_other_endings_and_missing_interpreters_are_told(skill: Path) -> None:
    write(skill, "scripts/a.rb", "puts 1")
    write(skill, "scripts/a.py", "print(1)")
    done = await run(skill, "scripts/a.rb")
    assert (done.code, done.outcome) == ("script-not-runnable", None)
    assert ".py, .js, .mjs, .sh, .bash" in done.text
    options = ExecutionOptions(sandbox="off", interpreters={".py": ("no-such-python",)})
    done = await run(skill, "scripts/a.py", options=options)
    assert (done.code, done.ok) == ("interpreter-missing", False)
    assert done.text == "no-such-python is not installed on this host, so scripts/a.py cannot be run."


class Recorder:
    """An executor that notes what is launched and ends as it is told."""

    shell = None

    def __init__(self, *outcomes: Outcome, gaps: tuple[str, ...] = (), unavailable: str = "") -> None:
        full = not gaps
        self.confinement = Confinement(
            backend="double", writes=full, network=full, home=full, process_tree=full, gaps=gaps
        )
        self.can_run, self.unavailable_reason = not unavailable, unavailable
        self.launches: list[Launch] = []
        self._outcomes = list(outcomes)

    async def start(self, launch: Launch) -> object:
        raise NotImplementedError(launch)

    async def run(self, launch: Launch) -> Outcome:
        self.launches.append(launch)
        return self._outcomes.pop(0) if self._outcomes else Outcome(exit_code=0)


async def recorded(executor: Recorder, skill: Path, options: ExecutionOptions) -> ScriptRun:
    runner = ScriptRunner(executor, options)  # pyright: ignore[reportArgumentType] - a part of the port
    return await runner.run(ScriptRequest(skill="demo", directory=str(skill), path="scripts/a.py", arguments=("x",)))


async def test_what_is_launched_and_what_it_may_see(skill: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example:3128")
    monkeypatch.setenv("HTTP_PROXY", "http://user:password@proxy.example:3128")
    write(skill, "scripts/a.py", "print(1)")
    executor = Recorder()
    done = await recorded(executor, skill, ExecutionOptions())
    (launch,) = executor.launches
    assert launch.command[-2:] == (str(skill / "scripts" / "a.py"), "x")
    assert launch.cwd in launch.writable
    assert str(skill) in launch.readable
    assert (launch.purpose, launch.deadline_s, launch.max_output_bytes) == ("script", 60.0, 32 * 1024)
    assert launch.network.mode == "none"
    assert done.text == "Ran scripts/a.py (exit code 0, sandbox: double)\n(no output)"
    assert "HTTPS_PROXY" not in launch.env
    await recorded(executor, skill, ExecutionOptions(scripts_network=True, code_network=False))
    assert executor.launches[-1].env["HTTPS_PROXY"] == "http://proxy.example:3128"
    assert "HTTP_PROXY" not in executor.launches[-1].env
    await recorded(executor, skill, ExecutionOptions(scripts_network=False, code_network=True))
    assert [launch.network.mode for launch in executor.launches] == ["none", "open", "none"]


@pytest.mark.parametrize(
    ("executor", "mode", "runs"),
    [
        (Recorder(), "required", True),
        (Recorder(gaps=("the script may reach the network",)), "required", False),
        (Recorder(gaps=("the script may reach the network",)), "preferred", True),
        (Recorder(gaps=("the script may reach the network",)), "off", True),
        (Recorder(unavailable="There is no OS sandbox here."), "required", False),
        (Recorder(unavailable="There is no OS sandbox here."), "preferred", False),
    ],
)
async def test_a_sandbox_that_is_required_is_never_done_without(
    skill: Path, executor: Recorder, mode: str, runs: bool
) -> None:
    write(skill, "scripts/a.py", "print(1)")
    done = await recorded(executor, skill, ExecutionOptions(sandbox=mode, unconfined=True))  # pyright: ignore[reportArgumentType]
    assert (len(executor.launches), done.ok) == (int(runs), runs)
    if not runs:
        assert "no OS sandbox" in done.text
        assert done.text.endswith("The script was not run.")
        assert done.code == "sandbox-unavailable"


async def test_a_script_that_cannot_be_started_raises(skill: Path) -> None:
    write(skill, "scripts/a.py", "print(1)")
    with pytest.raises(SandboxError):
        await run(skill, "scripts/a.py", "with\0nul")


class Packages:
    """Installs nothing and says what it was asked for; runs again as often as it is told."""

    def __init__(self, again: int = 0) -> None:
        self.asked: list[tuple[tuple[str, ...], str]] = []
        self._again = again

    async def provide(self, packages: Sequence[str], workspace: Workspace, *, ecosystem: str) -> Sequence[str]:
        assert workspace.root
        self.asked.append((tuple(packages), ecosystem))
        return [f"Installed {', '.join(packages)}."]

    async def run(
        self,
        run: Callable[[float], Awaitable[Outcome]],
        workspace: Workspace,
        *,
        deadline_s: float,
        folders: Sequence[str],
    ) -> tuple[Outcome, Sequence[str]]:
        assert workspace.root
        assert folders
        outcome = await run(deadline_s)
        for _ in range(self._again):
            outcome = await run(deadline_s / 2)
        return outcome, ["Ran again."] * self._again


HEADER = "# /// script\n# dependencies = ['requests<3']\n# ///\nprint(1)\n"


async def test_declared_packages_are_installed_once_in_a_workspace_when_the_host_allows_it(
    skill: Path, workspace: Workspace
) -> None:
    write(skill, "scripts/a.py", HEADER)
    write(skill, "requirements.txt", "rich\n--index-url https://x\n")
    write(skill, "scripts/requirements.txt", "httpx\n")
    packages, executor = Packages(again=1), Recorder(Outcome(exit_code=1), Outcome(exit_code=0))
    runner = ScriptRunner(
        executor,  # pyright: ignore[reportArgumentType] - a part of the port
        ExecutionOptions(install=InstallOptions(enabled=True)),
        workspace=workspace,
        packages=packages,
    )
    request = ScriptRequest(skill="demo", directory=str(skill), path="scripts/a.py", packages=("attrs",))
    done = await runner.run(request)
    assert packages.asked == [(("attrs", "requests<3", "rich", "httpx"), "python")]
    assert done.ok
    assert done.text.startswith(
        "Installed attrs, requests<3, rich, httpx.\nRan again.\nRan scripts/a.py (exit code 0, sandbox: double)"
    )
    assert [launch.deadline_s for launch in executor.launches] == [60.0, 30.0]
    await runner.run(request)
    assert len(packages.asked) == 1


async def test_without_installs_a_failure_names_the_packages_that_were_asked_for(skill: Path) -> None:
    write(skill, "scripts/a.py", HEADER)
    packages, executor = Packages(), Recorder(Outcome(exit_code=1), Outcome(exit_code=0))
    runner = ScriptRunner(executor, ExecutionOptions(), packages=packages)  # pyright: ignore[reportArgumentType]
    request = ScriptRequest(skill="demo", directory=str(skill), path="scripts/a.py")
    failed, ran = await runner.run(request), await runner.run(request)
    assert packages.asked == []
    said = "This script asks for packages (requests<3); installing is not enabled on this host."
    assert failed.text.splitlines()[1] == said
    assert ran.text.startswith("Ran scripts/a.py")


@pytest.mark.parametrize(
    ("line", "named"), [("import no_such_thing_at_all", "no_such_thing_at_all"), ("import urllib2", ""), ("1 / 0", "")]
)
async def test_without_installs_a_missing_import_is_named_as_its_package(skill: Path, line: str, named: str) -> None:
    write(skill, "scripts/a.py", f"{line}\n")
    done = await run(skill, "scripts/a.py")
    assert done.code == "script-failed"
    told = f"This script asks for packages ({named}); installing is not enabled on this host."
    assert (told in done.text) is bool(named)
    assert ("installing" in done.text) is bool(named)
