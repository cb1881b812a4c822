"""The README's command lines, run as they stand and in their order."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

from tests.program.program import satchel

ROOT = Path(__file__).parents[2]
NOWHERE = "http://127.0.0.1:9/v1"


def command_lines() -> list[list[str]]:
    """What stands after ``satchel`` on each line of the README's shell blocks."""
    blocks = re.findall(
        r"^```sh\n(.*?)^```", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    lines = [shlex.split(line, comments=True) for block in blocks for line in block.splitlines()]
    return [words[1:] for words in lines if words[:1] == ["satchel"]]


async def test_every_command_of_the_readme_is_understood(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "skills", tmp_path / "skills")
    (tmp_path / "question.txt").write_text("Which share?\n", encoding="utf-8")
    tried: set[str] = set()
    for words in command_lines():
        if words[0] in {"serve", "model", "chat"}:
            continue  # they never end, download or need a terminal; tests of their own start them
        tried.add(words[0])
        asks = words[0] == "run"
        # Without a model to answer, a question that was understood ends at the server that is not there.
        given = [word for word in words if word not in {"--upstream", "http://localhost:11434/v1"}] if asks else words
        more = ("--upstream", NOWHERE, "--model", "m") if asks and "--model" not in given else ()
        more = ("--upstream", NOWHERE) if asks and not more else more
        ended = await satchel(*given, *more, cwd=tmp_path)
        # The README's command in the sandbox is one that has to fail there.
        assert ended.code == (1 if asks or words[0] == "sandbox" else 0), (words, ended.err)
        assert words[0] != "sandbox" or "confined by" in ended.err, words
        assert not asks or "upstream-unreachable" in ended.out + ended.err, words
    assert {"run", "list", "show", "check", "new", "render", "block", "doctor", "sandbox"} <= tried
