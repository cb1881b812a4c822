"""What a host may be without: a test that cannot be run is skipped, and fails where the sandbox has to be shown."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from satchel.sandbox import detect as module
from satchel.sandbox.detect import BackendReport
from tests.backends import EVERY, FULL, PARTS, REQUIRED, executor_of, not_here
from tests.project.tree import ROOT

SKIPPED, FAILED = pytest.skip.Exception, pytest.fail.Exception


@pytest.fixture(autouse=True)
def unknown() -> Iterator[None]:
    """What these tests make up is known to no other test."""
    kept = dict(module._found)
    yield
    module._found.clear()
    module._found.update(kept)


def without(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A host that has every backend but one."""

    async def look(floor: str) -> tuple[tuple[object, BackendReport], ...]:
        del floor
        return tuple(
            (
                module.UnavailableExecutor(""),
                BackendReport(backend=name, reason="it is not there" if name == backend else ""),
            )
            for name in (*FULL, *PARTS)
        )

    module._found.clear()
    monkeypatch.setattr(module, "_look", look)


@pytest.mark.parametrize("backend", FULL)
async def test_a_full_backend_that_is_missing_fails_where_it_must_be_shown(
    backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    without(backend, monkeypatch)
    monkeypatch.setenv(REQUIRED, "1")
    with pytest.raises(FAILED, match=f"{backend} is not used here: it is not there"):
        await executor_of(backend)
    monkeypatch.delenv(REQUIRED)
    with pytest.raises(SKIPPED, match=f"{backend} is not used here: it is not there"):
        await executor_of(backend)


@pytest.mark.parametrize("backend", PARTS)
async def test_a_part_that_is_missing_is_skipped_everywhere(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    without(backend, monkeypatch)
    for value in ("", "1"):
        monkeypatch.setenv(REQUIRED, value)
        with pytest.raises(SKIPPED):
            await executor_of(backend)


@pytest.mark.parametrize("backend", EVERY)
async def test_a_backend_is_the_one_that_was_asked_for(backend: str) -> None:
    made = await executor_of(backend)
    assert made.confinement.backend == ("none" if backend == "unconfined" else backend)


async def test_a_backend_that_nobody_knows_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(REQUIRED, "1")
    with pytest.raises(FAILED, match="there is no jail on this system"):
        await executor_of("jail")


def test_the_rule_stands_in_one_place() -> None:
    """No other test decides for itself what may be missing; marks are for systems and programs."""
    mine = {"tests/backends.py", "tests/sandbox/test_missing.py"}
    wrong: list[str] = []
    for path in sorted((ROOT / "tests").rglob("*.py")):
        name, text = path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")
        if name not in mine and "skip" in text:
            wrong += [f"{name}: {word}" for word in _skips(ast.parse(text))]
    assert wrong == []


def _skips(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.skip":
            yield ast.unparse(node)
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("mark.skipif"):
            condition = ast.unparse(node.args[0])
            if re.search(r"geteuid|PLACES|PARENT|bwrap|kernel|unavailable", condition):
                yield condition


@pytest.mark.parametrize(
    "text",
    [
        "import pytest\ndef f():\n    pytest.skip('x')\n",
        "@pytest.mark.skipif(not any(Path(place).exists() for place in PLACES), reason='x')\ndef f(): ...\n",
        "@pytest.mark.skipif(os.geteuid() != 0, reason='x')\ndef f(): ...\n",
    ],
)
def test_a_test_with_a_rule_of_its_own_is_seen(text: str) -> None:
    assert list(_skips(ast.parse(text)))


def test_a_system_may_be_skipped_by_its_name() -> None:
    assert not list(_skips(ast.parse("@pytest.mark.skipif(sys.platform != 'linux', reason='x')\ndef f(): ...\n")))


def test_a_word_in_the_environment_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(REQUIRED, "1")
    with pytest.raises(FAILED, match="words"):
        not_here("words")
    with pytest.raises(SKIPPED, match="words"):
        not_here("words", may_be_missing=True)
    monkeypatch.delenv(REQUIRED)
    with pytest.raises(SKIPPED, match="words"):
        not_here("words")
