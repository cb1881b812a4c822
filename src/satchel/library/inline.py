"""A skill that comes with a request as a ZIP archive. It lives in memory, for that request only."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace

from satchel.errors import PathError, SkillError
from satchel.library.open import binary_file, page_of
from satchel.library.zips import ZipLimits, unzip
from satchel.pathguard import split_path
from satchel.skills.dialect import Dialect
from satchel.skills.dialects import PORTABLE
from satchel.skills.files import classify, is_manifest, looks_like_text, text_by_name
from satchel.skills.manifest import parse_manifest
from satchel.skills.model import MANIFEST, REQUEST_SOURCE, LoadedSkill, Page, SkillFile

INLINE_LIMITS = ZipLimits(entry_bytes=8 * 1024 * 1024, total_bytes=8 * 1024 * 1024)


@dataclass(frozen=True, slots=True, kw_only=True)
class InlineSkill:
    """``texts`` holds the text files by their paths, SKILL.md among them; of other files only the index is kept."""

    loaded: LoadedSkill
    texts: Mapping[str, bytes]

    @property
    def bytes(self) -> int:
        """The size of all its files."""
        return sum(file.bytes for file in self.loaded.files)

    def read(self, path: str, *, offset: int = 0, max_bytes: int) -> Page:
        """At most ``max_bytes`` of a text file; "" and "SKILL.md" name the skill's own. Raises ``PathError``."""
        name = "/".join(split_path(path))
        if not name or is_manifest(name):
            name = MANIFEST
        data = self.texts.get(name)
        if data is not None:
            return page_of(data, name, offset=offset, max_bytes=max_bytes)
        for file in self.loaded.files:
            if file.path == name:
                raise binary_file(name, file.bytes)
            if file.path.startswith(name + "/"):
                raise PathError("not-a-file", f'"{name}" is a directory.')
        raise PathError("path-not-found", f'There is no file "{name}" in this skill.')


def read_inline(
    data: bytes, *, name: str = "", dialect: Dialect = PORTABLE, limits: ZipLimits = INLINE_LIMITS
) -> InlineSkill:
    """The skill in the archive ``data``. ``name`` counts where the archive itself names no folder.

    Raises:
        BundleError: the archive is refused.
        SkillError: "skill-invalid" when its SKILL.md cannot be used.
    """
    folder, files = unzip(data, limits=limits)
    files = {path: content for path, content in files.items() if not _is_hidden(path)}
    manifest_path = next(path for path in files if is_manifest(path))
    raw = files.pop(manifest_path)
    manifest = parse_manifest(raw, directory=folder or name, dialect=dialect, source=REQUEST_SOURCE)
    if manifest.skill is None:
        first = next(found for found in manifest.diagnostics if found.severity == "error")
        where = f" (line {first.line})" if first.line else ""
        raise SkillError("skill-invalid", f"The {MANIFEST} cannot be used: {first.message}{where}", hint=first.hint)
    described = [_described(path, content) for path, content in sorted(files.items())]
    own = SkillFile(path=MANIFEST, kind="manifest", bytes=len(raw), is_text=True)
    digest = f"sha256:{hashlib.sha256(raw).hexdigest()}"
    skill = replace(manifest.skill, ref=replace(manifest.skill.ref, digest=digest))
    return InlineSkill(
        loaded=LoadedSkill(skill=skill, body=manifest.body, manifest_bytes=len(raw), files=(own, *described)),
        texts={MANIFEST: raw} | {file.path: files[file.path] for file in described if file.is_text},
    )


def _is_hidden(path: str) -> bool:
    return any(segment.startswith(".") for segment in path.split("/"))


def _described(path: str, content: bytes) -> SkillFile:
    is_text = text_by_name(path) is not False and looks_like_text(content)
    return SkillFile(path=path, kind=classify(path, is_text=is_text), bytes=len(content), is_text=is_text)
