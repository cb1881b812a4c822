"""Missing imports: which are one, what they are called in a registry, and when it ends."""

from __future__ import annotations

import secrets

import pytest

from satchel.execution.packages import Package
from satchel.execution.recovery import MOST_PACKAGES, missing_package, rerun_with_installs
from satchel.execution.workspace import Workspace
from satchel.ports.execution import Captured, Outcome

WORKSPACE = Workspace(root="/nowhere", id="w")
TRACE = 'Traceback (most recent call last):\n  File "x.py", line 1, in <module>\n    import x\n'


def failed(stderr: str = "", stdout: str = "", code: int | None = 1) -> Outcome:
    return Outcome(exit_code=code, stderr=Captured(head=stderr.encode()), stdout=Captured(head=stdout.encode()))


def python(name: str) -> str:
    return f"{TRACE}ModuleNotFoundError: No module named '{name}'\n"


def below(line: str, name: str) -> str:
    """Of a program that does not even have what it imports from."""
    return f"{TRACE.replace('import x', line)}ModuleNotFoundError: No module named '{name}'\n"


def node(name: str) -> str:
    return f"Error: Cannot find module '{name}'\nRequire stack:\n- /w/x.js\n  code: 'MODULE_NOT_FOUND'\n"


@pytest.mark.parametrize(
    ("stderr", "name"),
    [
        (python("requests"), "requests"),
        (python("yaml"), "pyyaml"),
        (python("PIL"), "pillow"),
        (python("google.protobuf"), "protobuf"),
        (python("google.cloud.storage.blob"), "google-cloud-storage"),
        (below("from google.cloud import storage", "google"), "google-cloud-storage"),
        (below("import google.generativeai as genai", "google"), "google-generativeai"),
        (python("distutils"), "setuptools"),
        ("ImportError: Missing optional dependency 'openpyxl'.  Use pip or conda to install openpyxl.\n", "openpyxl"),
        ("/usr/bin/python3: No module named pytest\n", "pytest"),
        (node("left-pad"), "left-pad"),
        (node("@scope/tool/lib/x"), "@scope/tool"),
        (node("lodash/fp"), "lodash"),
        ("Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'chalk' imported from /w/x.mjs\n", "chalk"),
    ],
)
def test_a_run_that_died_of_a_missing_import_names_its_package(stderr: str, name: str) -> None:
    for outcome in (failed(stderr), failed(stdout=stderr)):
        found = missing_package(outcome)
        assert found is not None
        assert found.name == name


@pytest.mark.parametrize(
    "outcome",
    [
        failed(python("requests"), code=0),
        failed(python("requests"), code=None),
        failed(python("requests") + TRACE + "ValueError: no\n"),
        failed("print ModuleNotFoundError: No module named 'requests'\n"),
        failed(python("utils")),
        failed(python("tkinter")),
        failed(python("_speedups")),
        failed(python("google")),
        failed(below("import google", "google")),
        failed(below("from azure.own import x", "azure")),
        failed(below("import google.protobuf", "azure")),
        failed(python("urllib2")),
        failed(python("imp")),
        failed(python("num\u0440y")),
        failed(python("name_")),
        failed(python("requests.gone")),
        failed("ImportError: cannot import name 'x' from 'requests'\n"),
        failed(node("./helper")),
        failed(node("/w/x.js")),
        failed(node("fs/promise")),
        failed(node("node:gone")),
        failed(node("UPPER CASE")),
        failed("No module named x in our catalogue\n"),
    ],
)
def test_other_failures_are_not_taken_for_a_missing_package(outcome: Outcome) -> None:
    assert missing_package(outcome) is None


def test_what_lies_in_the_workspace_is_not_looked_for_elsewhere() -> None:
    assert missing_package(failed(python("mine")), own={"mine"}.__contains__) is None
    assert missing_package(failed(node("mine")), own={"mine"}.__contains__) is None


class Installs:
    """Installs by remembering."""

    def __init__(self, *absent: str) -> None:
        self.added: list[str] = []
        self.absent = absent

    async def add(self, package: Package, workspace: Workspace, *, deadline_s: float) -> str:
        if package.name in self.absent:
            return "There is none."
        self.added.append(package.name)
        return ""


async def recover(
    needs: list[str], installs: Installs, *, deadline_s: float = 60, cost: float = 0
) -> tuple[int, Outcome, tuple[str, ...]]:
    """``needs`` are imports in order; a run dies of the first that is not installed."""
    runs, now = 0, 0.0

    async def run(left: float) -> Outcome:
        nonlocal runs, now
        runs += 1
        now += cost
        assert left > 0
        missing = next((name for name in needs if name not in installs.added), "")
        return failed(python(missing)) if missing else Outcome(exit_code=0)

    outcome, notes = await rerun_with_installs(run, installs, WORKSPACE, deadline_s=deadline_s, clock=lambda: now)
    return runs, outcome, notes


async def test_what_is_missing_is_installed_and_the_run_repeated() -> None:
    names = [f"m{secrets.token_hex(4)}" for _ in range(3)]
    installs = Installs()
    runs, outcome, notes = await recover(names, installs)
    assert (runs, outcome.exit_code, installs.added) == (4, 0, names)
    assert notes == tuple(f"{name} was missing: the host installed it and ran this again." for name in names)


async def test_a_run_without_trouble_runs_once_and_says_nothing() -> None:
    assert await recover([], Installs()) == (1, Outcome(exit_code=0), ())


async def test_five_packages_are_the_most() -> None:
    assert MOST_PACKAGES == 5
    names = [f"m{index}x" for index in range(MOST_PACKAGES + 2)]
    installs = Installs()
    runs, outcome, notes = await recover(names, installs)
    assert (runs, outcome.exit_code, installs.added) == (MOST_PACKAGES + 1, 1, names[:MOST_PACKAGES])
    assert f"install it with `pip install {names[MOST_PACKAGES]}` and run again" in notes[-1]


async def test_the_same_package_is_installed_once() -> None:
    installs = Installs()

    async def run(left: float) -> Outcome:
        return failed(python("again"))

    outcome, notes = await rerun_with_installs(run, installs, WORKSPACE, deadline_s=60)
    assert installs.added == ["again"]
    assert outcome.exit_code == 1
    assert notes[-1] == "again was installed and its import is still missing: check the name of the import."


async def test_what_cannot_be_had_is_told_and_the_failure_stands() -> None:
    runs, outcome, notes = await recover(["gone"], Installs("gone"))
    assert (runs, outcome.exit_code) == (1, 1)
    assert notes == ("The run needs gone, which could not be installed. There is none.",)


async def test_an_install_that_used_up_the_time_is_told_and_nothing_runs_again() -> None:
    name, now, runs = f"m{secrets.token_hex(4)}", 0.0, 0

    class Slow(Installs):
        async def add(self, package: Package, workspace: Workspace, *, deadline_s: float) -> str:
            nonlocal now
            now += deadline_s - 0.5
            return await super().add(package, workspace, deadline_s=deadline_s)

    async def run(left: float) -> Outcome:
        nonlocal runs
        runs += 1
        return failed(python(name))

    installs = Slow()
    outcome, notes = await rerun_with_installs(run, installs, WORKSPACE, deadline_s=60, clock=lambda: now)
    assert (runs, outcome.exit_code, installs.added) == (1, 1, [name])
    assert notes == (f"{name} was missing and is installed now; no time was left to run again: run it again.",)


async def test_everything_happens_within_the_time_of_the_call() -> None:
    installs = Installs()
    runs, outcome, notes = await recover(["one", "two", "three"], installs, deadline_s=10, cost=6)
    assert (runs, installs.added) == (2, ["one"])
    assert outcome.exit_code == 1
    assert notes[-1] == "two is missing and no time is left: install it with `pip install two` first."
