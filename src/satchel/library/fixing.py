"""Writing safe repairs into SKILL.md files: planned first, shown as a diff, then written in one step each."""

# ruff: noqa: PTH105, PTH108, PTH118, PTH119, PTH120 - see the walk.

from __future__ import annotations

import contextlib
import difflib
import os
import stat
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass

from satchel.errors import PathError
from satchel.library.checking import StrPath, skills_at
from satchel.library.open import read_manifest
from satchel.pathguard import is_inside
from satchel.skills.dialect import Dialect
from satchel.skills.dialects import find_dialect
from satchel.skills.fix import fix_manifest


@dataclass(frozen=True, slots=True, kw_only=True)
class Fix:
    """A SKILL.md (``path``, canonical) whose bytes would become ``after``. ``directory`` is its skill's."""

    directory: str
    path: str
    before: bytes
    after: bytes

    def diff(self) -> str:
        """A unified diff with both names of the file, ending with a line end."""
        name = self.path.lstrip("/\\").replace("\\", "/")
        lines = difflib.unified_diff(_lines(self.before), _lines(self.after), f"a/{name}", f"b/{name}")
        return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)

    def write(self) -> None:
        """Replaces the file in one step; its permissions stay.

        Raises:
            PathError: "path-refused" when it has changed since it was read, or cannot be written.
        """
        try:
            with open(self.path, "rb") as file:  # noqa: PTH123 - the path is canonical and was checked
                status = os.fstat(file.fileno())
                if file.read() != self.before or not stat.S_ISREG(status.st_mode):
                    raise PathError("path-refused", f"{self.path} has changed in the meantime and was left alone.")
            _replace(self.path, self.after, stat.S_IMODE(status.st_mode))
        except OSError as error:
            raise PathError("path-refused", f"{self.path} cannot be written: {error.strerror}.") from error


def plan_fixes(path: StrPath, *, dialect: str | Dialect = "portable") -> Iterator[Fix]:
    """What would change in the skills at or below ``path``.

    A SKILL.md that is a link is changed where it really lies, and only when that is inside its skill.

    Raises:
        SkillError: "skill-not-found" when there is nothing to look at.
        SetupError: "setting-invalid" for a dialect that is not known.
    """
    row = find_dialect(dialect)
    for place in skills_at(path, row).places:
        manifest, before, _ = read_manifest(place, row, "check")
        real = os.path.realpath(os.path.join(place.directory, place.manifest))
        if manifest.skill is None or not is_inside(real, place.directory):
            continue
        after = fix_manifest(before, directory=os.path.basename(place.directory), dialect=row)
        if after != before:
            yield Fix(directory=place.directory, path=real, before=before, after=after)


def _replace(path: str, data: bytes, mode: int) -> None:
    descriptor, temporary = tempfile.mkstemp(dir=os.path.dirname(path), prefix=".SKILL.md.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, mode)  # noqa: PTH101
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def _lines(data: bytes) -> list[str]:
    """Lines with their line feeds; other line ends stay part of the line."""
    text = data.decode("utf-8", "replace")
    return [line + "\n" for line in text.split("\n")[:-1]] + (
        [text.rpartition("\n")[2]] if not text.endswith("\n") else []
    )
