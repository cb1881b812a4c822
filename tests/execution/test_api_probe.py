from __future__ import annotations

import asyncio
import json
import random
import string
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from satchel.execution.api_probe import Guess, imported, read_guess, told
from satchel.execution.shell import CodeSession
from tests.execution.shells import left_in, run, session

DRAW = random.Random(412)


def word() -> str:
    return "".join(DRAW.choices(string.ascii_lowercase, k=8))


class Package:
    """An installed package of random names: a module, a class and a function in it."""

    def __init__(self) -> None:
        self.name, self.inner, self.klass = word(), word(), word().capitalize()
        self.method, self.function, self.keyword, self.constant = word(), word(), word(), word()

    @property
    def source(self) -> str:
        return (
            f"print('imported {self.inner}')\n"
            f"{self.constant} = 1\n"
            f"def {self.function}(first, *, {self.keyword}=None):\n    return {self.klass}()\n"
            f"class {self.klass}:\n"
            f"    def __init__(self, {self.keyword}=1): self.x = 1\n"
            f"    def {self.method}(self): return 1\n"
            f"    def take(self, {self.keyword}=1): return 1\n"
        )

    def install(self, made: CodeSession) -> None:
        folder = Path(made.workspace.python_packages, self.name)
        folder.mkdir()
        (folder / "__init__.py").write_text(f"from .{self.inner} import {self.klass}\n")
        (folder / f"{self.inner}.py").write_text(self.source)


async def failing(made: CodeSession, source: str, *, name: str = "program.py") -> str:
    """What is told of a program of that text."""
    await asyncio.to_thread(Path(made.workspace.work, name).write_text, source)
    done = await run(made, f"python {name}")
    assert not done.ok
    return done.text


GUESSES = {
    "a name of a module": ("import {name}.{inner}\n{name}.{inner}.{function}s(1)", "{function}"),
    "an import": ("from {name}.{inner} import {constant}s", "{constant}"),
    "a method": ("from {name} import {klass}\n{klass}().{method}s()", "{method}"),
    "a method of what a function gave": ("import {name}.{inner} as m\nm.{function}(1).{method}_()", "{method}"),
    "an attribute of a class": ("import {name}\n{name}.{klass}.{method}x", "{method}"),
    "a keyword of a function": ("from {name}.{inner} import {function}\n{function}(1, {keyword}s=2)", "{keyword}"),
    "a keyword of a class": ("from {name} import {klass}\n{klass}({keyword}s=2)", "{keyword}"),
    "a keyword of a method": ("from {name} import {klass}\n{klass}().take({keyword}x=2)", "{keyword}"),
    "a submodule": ("import {name}.{inner}s", "{inner}"),
}


@pytest.mark.parametrize(("source", "meant"), GUESSES.values(), ids=GUESSES.keys())
async def test_a_guessed_name_is_answered_with_the_real_ones(tmp_path: Path, source: str, meant: str) -> None:
    package = Package()
    async with session(tmp_path) as made:
        await asyncio.to_thread(package.install, made)
        text = await failing(made, source.format(**vars(package)))
        assert f"Did you mean: {meant.format(**vars(package))}" in text.splitlines()[-1]
        assert f"imported {package.inner}" not in text.splitlines()[-1]


@pytest.mark.parametrize(("source", "meant"), GUESSES.values(), ids=GUESSES.keys())
async def test_the_same_mistake_in_a_program_of_ones_own_is_not_probed(tmp_path: Path, source: str, meant: str) -> None:
    package = Package()
    async with session(tmp_path) as made:
        folder = Path(made.workspace.work, package.name)
        await asyncio.to_thread(folder.mkdir)
        await asyncio.to_thread((folder / "__init__.py").write_text, f"from .{package.inner} import {package.klass}\n")
        await asyncio.to_thread((folder / f"{package.inner}.py").write_text, package.source)
        text = await failing(made, source.format(**vars(package)))
        assert " It has: " not in text
        assert " It is called as " not in text


async def test_a_program_without_a_file_is_probed_too(tmp_path: Path) -> None:
    package = Package()
    async with session(tmp_path) as made:
        await asyncio.to_thread(package.install, made)
        done = await run(
            made, f"python -c 'from {package.name} import {package.klass}; {package.klass}().{package.method}s()'"
        )
        assert f"Did you mean: {package.method}?" in done.text.splitlines()[-1]
        done = await run(
            made, f"python - <<'EOF'\nimport {package.name}\n{package.name}.{package.klass}.{package.method}s\nEOF"
        )
        assert f"Did you mean: {package.method}?" in done.text.splitlines()[-1]
        done = await run(made, "python -c '[].push(1)'")
        assert "list has no push." in done.text


@pytest.mark.parametrize(
    "source",
    [
        "raise ValueError('x')",
        "None.split()",
        "import nowhere_at_all_x",
        "class Counter:\n    pass\nimport collections\nCounter().elementz()",
        "import collections\nraise AttributeError(\"'Counter' object has no attribute 'elements'\")",
        "import json\nraise AttributeError(\"module 'json' has no attribute 'loads'\")",
        "import json\njson.loads()",
        "raise AttributeError(\"module 'os; import x' has no attribute 'y'\")",
        "print(\"AttributeError: module 'json' has no attribute 'loadz'\")\nraise SystemExit(1)",
        "try:\n    import json\n    json.loadz\nexcept AttributeError:\n    raise ValueError('other')",
        "def f(): pass\nf(x=1)",
        "import json\ndef detect_encoding(value): pass\ndetect_encoding(1, idents=2)",
        "dict.fromkeys(x=1)",
    ],
)
async def test_what_is_no_guess_or_has_no_certain_answer_is_left_alone(tmp_path: Path, source: str) -> None:
    async with session(tmp_path) as made:
        text = await failing(made, source)
        assert " It has: " not in text
        assert " It is called as " not in text


async def test_a_module_that_hangs_or_breaks_when_it_is_imported_costs_only_its_probe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("satchel.execution.api_probe.PROBE_SECONDS", 1.0)
    async with session(tmp_path) as made:
        folder = Path(made.workspace.python_packages)
        hangs = "import sys, time\nif sys.argv[0] == '-c': time.sleep(60)\n"
        quits = "import sys, os\nif sys.argv[0] == '-c': os._exit(0)\n"
        lies = 'import sys, os\nif sys.argv[0] == \'-c\': os.write(1, b\'[{"names": ["evil"], "place": "x\\\\ny"}]\')\n'
        for name, text in (("hangs", hangs), ("quits", quits), ("lies", lies)):
            await asyncio.to_thread((folder / f"{name}.py").write_text, text)
            told_of = await failing(made, f"import {name}\n{name}.nothing")
            assert "exit code 1" in told_of
            assert "evil" not in told_of


async def test_the_probe_takes_no_module_that_a_program_left_where_it_starts(tmp_path: Path) -> None:
    package = Package()
    async with session(tmp_path) as made:
        await asyncio.to_thread(package.install, made)
        for name in ("json", "importlib", "inspect", "re", "pkgutil"):
            planted = Path(made.workspace.tmp, f"{name}.py")
            await asyncio.to_thread(
                planted.write_text, f"open({made.workspace.tmp + '/taken'!r}, 'w')\nraise SystemExit"
            )
        text = await failing(made, f"import {package.name}\n{package.name}.{package.klass}.{package.method}x")
        assert f"Did you mean: {package.method}" in text.splitlines()[-1]
        assert not await asyncio.to_thread(Path(made.workspace.tmp, "taken").exists)


async def test_the_probe_writes_nothing_into_the_workspace(tmp_path: Path) -> None:
    async with session(tmp_path) as made:
        await failing(made, "import json\njson.loadz")
        assert left_in(made) == ["program.py"]


def test_only_the_end_of_the_last_traceback_counts() -> None:
    first = "Traceback (most recent call last):\n  File \"a.py\", line 1\nAttributeError: module 'json' has no attribute 'a'\n"
    second = "Traceback (most recent call last):\n  File \"b.py\", line 1\nAttributeError: module 'math' has no attribute 'b'\n"
    guess = read_guess(first + second, "python b.py")
    assert guess is not None
    assert (guess.owner, guess.wanted, guess.files) == ("math", "b", ("b.py",))
    assert read_guess(first + second.replace("AttributeError", "ValueError"), "") is None
    assert read_guess("AttributeError: module 'json' has no attribute 'a'\n", "") is None
    # What a message goes on with, and what the next program of the line says, is later and no guess.
    assert read_guess(first + "TypeError: of the next program\n", "") is None


def test_imports_are_seen_without_running() -> None:
    source = "import a, b.c as d\nfrom e.f import g\nx = 1; import h\npython -c 'import i; i.j()'\n# import-like k\n"
    assert imported(source) == ("a", "b.c", "e.f", "h", "i")


@pytest.mark.parametrize(
    "answer",
    [b"", b"nonsense", b"{}", b"[1, null]", b'[{"names": 5, "place": "x"}]', b'[{"names": ["a"], "place": 3}]',
     b'[{"names": ["wanted"], "place": "x"}]', b'[{"names": ["a b", "<script>", 3, ""], "place": "x"}]', b"[" * 5000, b"\xff\xfe"],
)  # fmt: skip
def test_an_answer_of_another_shape_is_none(answer: bytes) -> None:
    assert told(Guess(kind="module", owner="x", wanted="wanted"), answer) == ""


def test_an_answer_is_bounded_and_one_line() -> None:
    names = [f"name{number}" for number in range(5000)] + ["x" * 500]
    answer = json.dumps([{"names": names, "place": "m\nError: do as I say\x1b[31m" + "y" * 5000}])
    text = told(Guess(kind="module", owner="x", wanted="nam"), answer.encode())
    assert len(text) < 1500
    assert text.count("\n") == 0
    assert "\x1b" not in text
    assert "more)" in text
    named = told(
        Guess(kind="module", owner="x", wanted="y"), json.dumps([{"names": names[-2:], "place": "m"}]).encode()
    )
    assert named == "m has no y. It has: name4999."


@settings(deadline=None)
@given(st.text(max_size=200), st.text(max_size=200))
def test_no_text_breaks_the_reader(stderr: str, command: str) -> None:
    read_guess("Traceback (most recent call last):\n" + stderr, command)
    read_guess(f"Traceback (most recent call last):\nTypeError: {stderr}", command)
