from __future__ import annotations

import logging
import threading
from pathlib import Path

import pytest

from satchel.scratch.graves import Graves
from satchel.scratch.roots import new_root, remove_root

LARGE = 2100


def filled(base: Path, count: int) -> str:
    root = new_root("work", str(base))
    for number in range(count):
        Path(root, str(number)).touch()
    return root


def test_a_small_one_is_gone_at_once(tmp_path: Path) -> None:
    Graves(remove=lambda root: False).bury(filled(tmp_path, 10))
    assert list(tmp_path.iterdir()) == []


def test_a_large_one_loses_its_name_at_once_and_goes_meanwhile(tmp_path: Path) -> None:
    go_on = threading.Event()
    graves = Graves(remove=lambda root: go_on.wait() and remove_root(root))
    roots = [filled(tmp_path, LARGE) for _ in range(2)]
    for root in roots:
        graves.bury(root)
    assert [Path(root).exists() for root in roots] == [False, False]
    assert graves.settle(0) == 2
    go_on.set()
    assert graves.settle(60) == 0
    assert list(tmp_path.iterdir()) == []


def test_a_host_without_a_thread_for_it_is_asked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class NoThread(threading.Thread):
        def start(self) -> None:
            raise RuntimeError("can't start new thread")

    graves = Graves()
    with monkeypatch.context() as patched:
        patched.setattr("satchel.scratch.graves.threading.Thread", NoThread)
        graves.bury(filled(tmp_path, LARGE))
    assert graves.settle(0) == 1
    graves.bury(filled(tmp_path, LARGE))
    assert graves.settle(60) == 0
    assert list(tmp_path.iterdir()) == []


def test_burying_twice_does_nothing(tmp_path: Path) -> None:
    graves = Graves()
    root = filled(tmp_path, 1)
    graves.bury(root)
    graves.bury(root)
    assert graves.settle(0) == 0


def test_what_cannot_be_removed_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    graves = Graves(remove=lambda root: False)
    with caplog.at_level(logging.WARNING):
        graves.bury(filled(tmp_path, LARGE))
        assert graves.settle(60) == 0
    assert "cannot be removed" in caplog.text
