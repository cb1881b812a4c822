"""The bytes in front of a conversation: the same whatever order, root, process or round they come from."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from itertools import pairwise, permutations
from pathlib import Path
from typing import Any

import pytest

from tests.engine.prefix_run import FORMATS, run
from tests.project.tree import ROOT
from tests.support import write_skill


@pytest.fixture
def roots(tmp_path: Path) -> list[str]:
    folders = [tmp_path / name for name in ("b", "a")]
    for number, folder in enumerate(folders):
        for skill in (1, 2, 3):
            write_skill(folder, f"s{skill + 3 * number}", files={"x.md": "X", "a.md": "A"})
    return [str(folder) for folder in folders]


def front(body: dict[str, Any]) -> str:
    """Declarations and system text, as they are sent, keys in their order."""
    first = [item for item in body.get("messages", body.get("input", [])) if item.get("role") == "system"]
    return json.dumps([body.get("tools"), body.get("system"), body.get("instructions"), first])


def texts(body: dict[str, Any]) -> list[str]:
    return [json.dumps(item) for item in body.get("messages", body.get("input", []))]


async def test_no_order_of_skills_or_roots_changes_a_byte(roots: list[str]) -> None:
    expected = json.dumps(await run(roots, ["s1", "s2", "s5"]))
    for order in permutations(["s1", "s2", "s5"]):
        assert json.dumps(await run(roots, list(order))) == expected
    assert json.dumps(await run(roots, ["s5", "s5", "S1", "s2"])) == expected
    assert json.dumps(await run(roots[::-1], ["s2", "s1", "s5"])) == expected


@pytest.mark.parametrize("hash_seed", ["0", "1", "4242"])
async def test_a_restart_changes_no_byte(roots: list[str], hash_seed: str) -> None:
    expected = json.dumps(await run(roots, ["s1", "s5"]))
    given = json.dumps({"roots": roots[::-1], "skills": ["s5", "s1"]})
    environ = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    command = [sys.executable, "-m", "tests.engine.prefix_run", given]
    done = subprocess.run(command, env=environ, cwd=ROOT, capture_output=True, text=True, check=True)  # noqa: ASYNC221
    assert done.stdout == expected


@pytest.mark.parametrize("name", FORMATS)
async def test_every_round_begins_with_all_of_the_round_before(roots: list[str], name: str) -> None:
    bodies = [body[name] for body in await run(roots, ["s1"])]
    assert len(bodies) == 3
    assert len({front(body) for body in bodies}) == 1
    assert "s1" in front(bodies[0])
    for before, after in pairwise(bodies):
        # A later result may join the message of an earlier one on the wire; everything before that one is the same.
        whole, longer = texts(before), texts(after)
        assert longer[: len(whole)] == whole
        assert len(longer) > len(whole)
    settings = [{key: value for key, value in body.items() if key not in {"messages", "input"}} for body in bodies]
    assert len({tuple(sorted(each)) for each in settings}) == 1
