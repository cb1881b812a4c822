from __future__ import annotations

import asyncio
import json
import os
import stat
from pathlib import Path

import pytest

from satchel.errors import StoreError
from satchel.ports.state import AuditEntry
from satchel.stores.jsonl import JsonlAudit


def entry(number: int) -> AuditEntry:
    return AuditEntry(time=1.5, session="s", event="activate", decision="deny", who="hook", skill=f"n{number}\n\u2028é")


async def test_each_decision_is_one_line_behind_the_earlier_ones(tmp_path: Path) -> None:
    log = JsonlAudit(tmp_path / "audit.jsonl")
    await log.append(entry(0))
    await asyncio.gather(*(JsonlAudit(log.path).append(entry(number)) for number in range(1, 40)))
    lines = [json.loads(line) for line in (tmp_path / "audit.jsonl").read_text(encoding="utf-8").split("\n")[:-1]]
    assert sorted(line["skill"] for line in lines) == sorted(entry(number).skill for number in range(40))
    assert lines[0] == {
        "time": 1.5,
        "session": "s",
        "event": "activate",
        "decision": "deny",
        "who": "hook",
        "by": "model",
        "skill": "n0\n\u2028é",
        "digest": "",
        "tool": "",
        "code": "",
        "reason": "",
    }
    assert stat.S_IMODE((tmp_path / "audit.jsonl").stat().st_mode) == 0o600


async def test_a_log_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    with pytest.raises(StoreError) as caught:
        await JsonlAudit(tmp_path / "missing" / "audit.jsonl").append(entry(0))
    assert caught.value.code == "store-unavailable"


async def test_half_a_line_does_not_take_the_next_one_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = JsonlAudit(tmp_path / "audit.jsonl")
    write = os.write

    def short(descriptor: int, data: bytes) -> int:
        return write(descriptor, data[:9] if data.startswith(b"{") else data)

    with monkeypatch.context() as full:
        full.setattr(os, "write", short)
        with pytest.raises(StoreError):
            await log.append(entry(0))
    await log.append(entry(1))
    half, whole = (tmp_path / "audit.jsonl").read_text(encoding="utf-8").split("\n")[:-1]
    assert whole.startswith(half)
    assert json.loads(whole) == entry(1).to_dict()
