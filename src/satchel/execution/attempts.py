"""Which commands failed before. Models send the same failing command again, with another blank in it, and hope."""

from __future__ import annotations

import hashlib

MAX_REMEMBERED = 200
_BLANKS = {ord(blank): None for blank in " \t\n\r\f\v"}


class Attempts:
    """Failures by command, compared without any whitespace. After 200 commands it starts afresh."""

    def __init__(self) -> None:
        self._failed: dict[bytes, int] = {}

    def record(self, command: str, *, failed: bool) -> int:
        """How often exactly this command has failed in a row, this time included; 0 when it went well."""
        key = _key(command)
        if not failed:
            self._failed.pop(key, None)
            return 0
        if key not in self._failed and len(self._failed) >= MAX_REMEMBERED:
            self._failed.clear()
        self._failed[key] = self._failed.get(key, 0) + 1
        return self._failed[key]

    def forget(self) -> None:
        """Files were changed: to try again is no repetition."""
        self._failed.clear()


def repeat_warning(count: int) -> str:
    """What is said of a command that failed ``count`` times, "" for the first."""
    if count < 2:  # noqa: PLR2004
        return ""
    return (
        f"This same command has now failed {count} times in a row. Sent again it will fail again: "
        "change a file, the command or the approach first."
    )


def _key(command: str) -> bytes:
    bare = command.translate(_BLANKS).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(bare, digest_size=16).digest()
