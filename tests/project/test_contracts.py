"""Every import contract is broken once on purpose: a contract that nothing can break protects nothing."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.project.tree import ROOT, SRC, pyproject

CONTRACTS = {row["id"]: row["name"] for row in pyproject()["tool"]["importlinter"]["contracts"]}

# Contract, what the planted code does, and the files (under src/satchel) that do it.
PLANTS: list[tuple[str, str, dict[str, str]]] = [
    ("layers", "a sibling is imported", {"skills/planted.py": "import satchel.chat.messages\n"}),
    ("layers", "the evals use the client beside them", {"evals/planted.py": "import satchel.client.client\n"}),
    ("layers", "a higher layer is imported", {"library/planted.py": "import satchel.tools.base\n"}),
    ("layers", "a framework's module names a surface", {"integrations/planted.py": "import satchel.gateway.app\n"}),
    ("layers", "a module has no layer", {"planted.py": ""}),
    (
        "layers",
        "only the type checker sees the import",
        {
            "context/planted.py": "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    import satchel.ports.models\n",
        },
    ),
    ("adapters", "a face names an adapter", {"cli/planted.py": "import satchel.sandbox\n"}),
    ("layers", "running programs knows of activation", {"execution/planted.py": "import satchel.activation.session\n"}),
    ("adapters", "a runner chooses its sandbox", {"execution/planted.py": "import satchel.sandbox\n"}),
    ("adapters", "a session names its store", {"activation/planted.py": "import satchel.stores.jsonl\n"}),
    ("surfaces", "one surface uses another", {"gateway/openai_chat/planted.py": "import satchel.gateway.skills_api\n"}),
    (
        "surface-layers",
        "the wire knows its routes",
        {
            "gateway/openai_chat/routes.py": "",
            "gateway/openai_chat/wire.py": "import satchel.gateway.openai_chat.routes\n",
        },
    ),
    ("pure", "the domain touches files", {"skills/planted.py": "import pathlib\n"}),
    ("pure", "the conversation knows pydantic", {"chat/planted.py": "from pydantic import BaseModel\n"}),
    ("sync-library", "the library has a loop", {"library/planted.py": "import asyncio\n"}),
    ("processes", "an adapter starts a process", {"upstream/planted.py": "import subprocess\n"}),
    ("processes", "a script is started past the sandbox", {"execution/planted.py": "import subprocess\n"}),
    ("turn", "a generation knows how calls are answered", {"engine/round.py": "import satchel.engine.calls\n"}),
    ("turn", "a module of the engine has no place", {"engine/planted.py": ""}),
    (
        "assembler-blocklist",
        "the assembler learns of the blocklist by a detour",
        {
            "context/assembler.py": "import satchel.context.planted\n",
            "context/planted.py": "import satchel.context.blocklist\n",
        },
    ),
    (
        "cycles",
        "two modules import each other",
        {"skills/planted.py": "import satchel.skills.other\n", "skills/other.py": "import satchel.skills.planted\n"},
    ),
]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    shutil.copytree(SRC, tmp_path / "src" / "satchel", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def broken_contracts(project: Path) -> tuple[set[str], str]:
    """Ids of the contracts that do not hold there, and the linter's output."""
    ended = subprocess.run(
        [str(Path(sys.executable).with_name("lint-imports")), "--no-cache", "--no-logo"],
        cwd=project,
        env={**os.environ, "PYTHONPATH": str(project / "src"), "COLUMNS": "200", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    output = ended.stdout + ended.stderr
    assert re.search(r"^Contracts: \d+ kept, \d+ broken\.$", output, re.MULTILINE), output
    broken = {
        contract
        for contract, name in CONTRACTS.items()
        if re.search(rf"^{re.escape(name)} +BROKEN", output, re.MULTILINE)
    }
    assert bool(broken) == (ended.returncode != 0), output
    return broken, output


def test_the_tree_as_it_stands_keeps_every_contract(copy: Path) -> None:
    broken, output = broken_contracts(copy)
    assert broken == set(), output


@pytest.mark.parametrize(("contract", "files"), [pytest.param(c, f, id=f"{c}: {what}") for c, what, f in PLANTS])
def test_a_planted_violation_breaks_exactly_its_contract(copy: Path, contract: str, files: dict[str, str]) -> None:
    for name, code in files.items():
        (copy / "src" / "satchel" / name).write_text(code, encoding="utf-8")
    broken, output = broken_contracts(copy)
    assert broken == {contract}, output


def test_every_contract_has_a_violation_that_breaks_it() -> None:
    assert {contract for contract, _, _ in PLANTS} == set(CONTRACTS)
