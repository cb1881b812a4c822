"""Progress of a download, for people."""

from __future__ import annotations

import sys
import time


class DownloadProgress:
    """Draws one line that is rewritten on a terminal, or a line now and then elsewhere."""

    def __init__(self) -> None:
        self._is_terminal = sys.stderr.isatty()
        self._drawn = 0.0
        self._began = time.monotonic()
        self._source = ""

    def __call__(self, source: str, done: int, total: int) -> None:
        """``done`` of ``total`` bytes have come from ``source``."""
        now = time.monotonic()
        is_new = source != self._source
        if not is_new and done < total and now - self._drawn < (0.1 if self._is_terminal else 5.0):
            return
        self._drawn, self._source = now, source
        share = f"{100 * done // total:3d} %" if total else ""
        line = f"model  {share}  {done / 1e6:,.0f} of {total / 1e6:,.0f} MB from {source}, {now - self._began:.0f} s"
        sys.stderr.write(f"\r\x1b[K{line}" if self._is_terminal else line + "\n")
        sys.stderr.flush()

    def finish(self) -> None:
        """Ends the rewritten line."""
        if self._is_terminal and self._drawn:
            sys.stderr.write("\n")
