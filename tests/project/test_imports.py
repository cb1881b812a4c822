"""What importing costs, by what is imported. Seconds are measured in benchmarks/imports.py."""

from __future__ import annotations

import subprocess
import sys

import pytest

FRAMEWORKS = frozenset({"agents", "pydantic_ai", "langchain", "langchain_core", "langgraph", "openai", "anthropic"})
HEAVY = FRAMEWORKS | {"fastapi", "starlette", "uvicorn", "aiohttp", "xllamacpp", "opentelemetry"}


def imported_by(code: str) -> set[str]:
    """Names of the top-level packages that a fresh interpreter has imported after the code."""
    report = "import sys; sys.stderr.write('\\n'.join(m.partition('.')[0] for m in sys.modules))"
    ended = subprocess.run([sys.executable, "-c", f"{code}\n{report}"], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return set(ended.stderr.split())


def test_the_library_brings_no_server_no_validation_and_no_loop() -> None:
    assert imported_by("import satchel") & (HEAVY | {"pydantic", "asyncio", "cyclopts", "rich"}) == set()


def brought_by(*words: str) -> set[str]:
    """What a command line brings that only asks for help."""
    code = (
        "import contextlib, io, sys\n"
        f"sys.argv = ['satchel', *{list(words)!r}]\n"
        "from satchel.cli import main\n"
        "with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):\n"
        "    try:\n        main()\n    except SystemExit as ended:\n        assert not ended.code, ended.code"
    )
    return imported_by(code)


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["run", "--help"]])
def test_asking_for_help_brings_no_server_and_no_engine(words: list[str]) -> None:
    assert brought_by(*words) & HEAVY == set()


@pytest.mark.parametrize("command", ["", "list", "show", "files", "read", "render", "block", "run", "chat", "serve"])
def test_a_help_page_brings_nothing_of_what_the_command_does(command: str) -> None:
    words = [command] if command else []
    assert brought_by(*words, "--help") & {"pydantic", "yaml", "asyncio"} == set()


def test_a_session_brings_no_framework_and_no_validation() -> None:
    assert (
        imported_by("from satchel import SkillSession\nimport satchel.integrations.sessions") & (HEAVY | {"pydantic"})
        == set()
    )


@pytest.mark.parametrize(
    ("module", "framework"),
    [("openai_agents", "agents"), ("pydantic_ai", "pydantic_ai"), ("langchain", "langchain")],
)
def test_an_integration_brings_its_own_framework_alone(module: str, framework: str) -> None:
    own = {"agents": {"agents", "openai"}, "langchain": {"langchain", "langchain_core", "langgraph"}}
    brought = imported_by(f"import satchel.integrations.{module}")
    assert framework in brought
    assert brought & FRAMEWORKS - own.get(framework, {framework}) == set()
