"""Directories that are gone for everybody at once, and are removed while others work."""

# ruff: noqa: PTH104, PTH118, PTH120 - plain strings, as in the path guard.

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import threading
from collections import deque
from collections.abc import Callable

from satchel.scratch.removing import Effort
from satchel.scratch.roots import remove_root

logger = logging.getLogger("satchel.scratch")

_AT_ONCE = 2000
"""Entries that whoever buries removes himself; nobody waits for more."""


class Graves:
    """A thread that removes one after the other what is too large to be waited for; there is none while nothing is.

    ``remove`` returns whether all is gone.
    """

    def __init__(self, remove: Callable[[str], bool] = remove_root) -> None:
        self._remove = remove
        self._changed = threading.Condition()
        self._waiting: deque[str] = deque()
        self._is_digging = False

    def bury(self, root: str) -> None:
        """Removes a directory of ``new_root``: a small one now; a large one gets another name and goes meanwhile."""
        grave = os.path.join(os.path.dirname(root), f"gone-{secrets.token_hex(8)}")
        try:
            os.rename(root, grave)
        except OSError:  # it is gone, or a program still has it open where that is in the way
            grave = root
        if remove_root(grave, Effort(_AT_ONCE)):
            return
        with self._changed:
            self._waiting.append(grave)
            if not self._is_digging:
                with contextlib.suppress(RuntimeError):  # the host has no thread left: the next burial tries again
                    threading.Thread(target=self._dig, name="satchel-grave", daemon=True).start()
                    self._is_digging = True

    def settle(self, timeout_s: float) -> int:
        """Waits until all is removed, at most so long; how many are not."""
        with self._changed:
            self._changed.wait_for(lambda: not self._waiting, timeout_s)
            return len(self._waiting)

    def _dig(self) -> None:
        while True:
            with self._changed:
                if not self._waiting:
                    self._is_digging = False
                    return
                grave = self._waiting[0]
            is_gone = False
            with contextlib.suppress(OSError):
                is_gone = self._remove(grave)
            if not is_gone:
                logger.warning("Something in %s cannot be removed.", grave)
            with self._changed:
                self._waiting.popleft()
                self._changed.notify_all()


graves = Graves()
"""Those of this process."""


def bury(root: str) -> None:
    """``Graves.bury`` in those of this process."""
    graves.bury(root)


def settle(timeout_s: float) -> int:
    """``Graves.settle`` of those of this process."""
    return graves.settle(timeout_s)
