"""What a client makes of what a server tells of its own turn."""

from __future__ import annotations

from typing import Any

from satchel.chat.events import Usage
from satchel.client.server import ServerEvents
from satchel.engine.events import TextDelta, TurnDone

DONE = TurnDone(finish="stop", usage=Usage(), usage_by_round=(Usage(),), rounds=1)


def told(**summary: Any) -> TurnDone:
    events = ServerEvents(())
    events.feed(TextDelta(text="", extra={"openai-chat": {"satchel": summary}}))
    done = events.feed(DONE)[-1]
    assert isinstance(done, TurnDone)
    return done


def test_files_that_no_call_names_come_with_the_end() -> None:
    call = {"tool": "shell", "ok": True, "files": ["a"], "run": "run_1"}
    done = told(invocations=[call], artifacts=[{"run": "run_1", "files": ["a", "job.out"]}])
    assert (done.files, done.run) == (("job.out",), "run_1")
    done = told(invocations=[call], artifacts=[{"run": "run_1", "files": ["a"]}])
    assert (done.files, done.run) == ((), "")
    assert (told().files, told().run) == ((), "")


def test_what_no_call_names_and_cannot_be_had_comes_with_the_end() -> None:
    large, odd = ({"path": path, "reason": "is odd"} for path in ("large", "~odd"))
    call = {"tool": "shell", "ok": True, "not_kept": [large]}
    done = told(invocations=[call], artifacts=[{"run": "run_1", "files": [], "not_kept": [large, odd]}])
    assert ([item.path for item in done.not_kept], done.files, done.run) == (["~odd"], (), "run_1")
