from __future__ import annotations

from pathlib import Path

import pytest

from satchel.activation.session import SkillSession
from satchel.activation.trust import Trust
from satchel.library.approvals import Approvals
from tests.cli.calling import Caller


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "satchel" / "trust.json"


def test_a_folder_is_approved_listed_changed_and_forgotten(satchel: Caller, root: Path, state: Path) -> None:
    lint = root / "lint"
    assert satchel("trust", "list", "--json").json == {"file": str(state), "approved": []}
    added = satchel("trust", "add", str(lint), "--json")
    assert (added.code, sorted(added.json), added.json["path"]) == (0, ["digest", "name", "path"], str(lint))
    (row,) = satchel("trust", "--json").json["approved"]
    assert (row["path"], row["digest"], row["valid"]) == (str(lint), added.json["digest"], True)
    (lint / "extra").write_text("x", encoding="utf-8")
    assert satchel("trust", "list").out == f"changed   {lint}\n"
    removed = satchel("trust", "remove", str(lint), "--json")
    assert (removed.code, removed.json) == (0, {"path": str(lint), "removed": True})
    again = satchel("trust", "remove", str(lint))
    assert (again.code, "is not approved" in again.err) == (1, True)


def test_only_skills_are_approved(satchel: Caller, tmp_path: Path, state: Path) -> None:
    said = satchel("trust", "add", str(tmp_path), "--json")
    assert (said.code, said.json["error"]["code"]) == (1, "skill-not-found")
    assert not state.exists()


def test_for_people_the_words_say_what_follows(satchel: Caller, root: Path) -> None:
    assert "Nothing is approved." in satchel("trust").err
    assert "any change in the folder ends this" in satchel("trust", "add", str(root / "lint")).err
    assert satchel("trust", "list").out == f"approved  {root / 'lint'}\n"
    assert "No longer approved" in satchel("trust", "remove", str(root / "lint")).err


async def test_a_session_heeds_what_the_command_approved(satchel: Caller, root: Path, state: Path) -> None:
    from asyncio import to_thread

    await to_thread(satchel, "trust", "add", str(root / "lint"))
    session = SkillSession(root, trust=Trust(approvals=Approvals(state)))
    assert [(await session.activate(name)).kind for name in ("lint", "deploy")] == ["ok", "error"]
