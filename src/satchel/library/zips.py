"""One skill in a ZIP archive, read in pieces. Nothing that the archive says of itself is believed.

Names go through the guard that confines every read, sizes are counted while they come out, and an archive that could
mean more than one skill is refused.
"""

from __future__ import annotations

import io
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import BinaryIO

from satchel.errors import BundleError, PathError
from satchel.pathguard import split_path
from satchel.skills.files import is_manifest
from satchel.skills.model import MANIFEST
from satchel.skills.oneline import one_line

_END = struct.Struct("<4s4H2LH")
_END_MARK = b"PK\x05\x06"
_WIDE_MARK = b"PK\x06\x07"
_WIDE_BYTES = 20
_LONGEST_COMMENT = 0xFFFF
_ENTRY_BYTES = 512
"""The directory of an archive may take so much for each entry that is allowed; real ones take a third."""
_DEEPEST = 32
_LONGEST_NAME = 1024
_CHUNK = 256 * 1024
_IS_ENCRYPTED = 0x1
_NOT_A_SKILL = "__MACOSX"
_METHODS = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})
_DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError, OSError)


@dataclass(frozen=True, slots=True, kw_only=True)
class ZipLimits:
    """``entry_bytes`` and ``total_bytes`` count what comes out; ``ratio`` is how often more than what went in."""

    entries: int = 4096
    entry_bytes: int = 64 * 1024 * 1024
    total_bytes: int = 256 * 1024 * 1024
    ratio: int = 200


class ZippedSkill:
    """The skill in an archive: at its top, or in its only folder that has a SKILL.md.

    ``folder`` is that folder's name, "" at the top. ``files`` are paths inside the skill, with forward slashes; links,
    devices and what lies beside the skill's folder are left out. The bytes read count over the whole life of this.

    Raises:
        BundleError: the archive is damaged, unsafe or larger than ``limits`` allow, or does not hold exactly one skill.
    """

    def __init__(self, file: BinaryIO, *, limits: ZipLimits = ZipLimits()) -> None:
        self._limits = limits
        self._size = _checked_size(file, limits)
        self._read = 0
        self._packed = 0
        try:
            self._archive = zipfile.ZipFile(file)
        except _DAMAGE as error:
            raise _damaged() from error
        entries = self._named()
        self.folder = _folder_of(entries)
        start = f"{self.folder}/" if self.folder else ""
        self._entries = {path.removeprefix(start): info for path, info in entries.items() if path.startswith(start)}
        self.files = tuple(sorted(self._entries))

    def chunks(self, path: str) -> Iterator[bytes]:
        """The bytes of one of ``files``, piece by piece. Raises ``BundleError`` as soon as they are too many."""
        info, limits = self._entries[path], self._limits
        self._packed += min(info.compress_size, self._size)
        size = 0
        try:
            with self._archive.open(info) as entry:
                while chunk := entry.read(_CHUNK):
                    size += len(chunk)
                    self._read += len(chunk)
                    if size > limits.entry_bytes or self._read > limits.total_bytes:
                        raise _too_large(limits)
                    if self._read > limits.ratio * max(1, self._packed):
                        message = f"The archive unpacks to more than {limits.ratio} times its size."
                        raise BundleError("bundle-too-large", message)
                    yield chunk
        except _DAMAGE as error:
            raise _damaged() from error

    def _named(self) -> Mapping[str, zipfile.ZipInfo]:
        infos = [info for info in self._archive.infolist() if not info.orig_filename.endswith(("/", "\\"))]
        if len(infos) > self._limits.entries:
            raise _too_many(self._limits)
        named: dict[str, zipfile.ZipInfo] = {}
        taken: set[str] = set()
        for info in infos:
            path = _safe_path(info)
            if path.partition("/")[0] == _NOT_A_SKILL or not _is_file(info):
                continue
            if path.casefold() in taken:
                raise _unsafe(f'holds "{_shown(path)}" twice')
            if info.flag_bits & _IS_ENCRYPTED or info.compress_type not in _METHODS:
                raise _unsafe(f'packs "{_shown(path)}" in a way that is not read here')
            taken.add(path.casefold())
            named[path] = info
        for path in taken:
            parents = path.split("/")
            if any("/".join(parents[:depth]) in taken for depth in range(1, len(parents))):
                raise _unsafe(f'has a file where "{_shown(path)}" needs a folder')
        if not named:
            raise BundleError("bundle-no-skill", "The archive is empty.")
        return named


def unzip(data: bytes, *, limits: ZipLimits) -> tuple[str, dict[str, bytes]]:
    """``(folder, every file by its path)`` of a small archive in memory. Raises ``BundleError``."""
    skill = ZippedSkill(io.BytesIO(data), limits=limits)
    return skill.folder, {path: b"".join(skill.chunks(path)) for path in skill.files}


def _checked_size(file: BinaryIO, limits: ZipLimits) -> int:
    """The archive's size, once its directory is known to be small enough to be read at all."""
    size = file.seek(0, io.SEEK_END)
    start = max(0, size - _END.size - _LONGEST_COMMENT - _WIDE_BYTES)
    file.seek(start)
    tail = file.read(size - start)
    at = tail.rfind(_END_MARK)
    if at < 0 or len(tail) - at < _END.size:
        raise _damaged()
    if tail[max(0, at - _WIDE_BYTES) :].startswith(_WIDE_MARK):
        raise _unsafe("uses the form for more than 4 GB")
    _, _, _, _, entries, directory, _, _ = _END.unpack_from(tail, at)
    if entries > 2 * limits.entries or directory > limits.entries * _ENTRY_BYTES:
        raise _too_many(limits)
    file.seek(0)
    return size


def _safe_path(info: zipfile.ZipInfo) -> str:
    try:
        segments = split_path(info.orig_filename)
    except PathError as error:
        raise BundleError("bundle-unsafe", f"The archive is refused: {error.message}") from error
    if not segments:
        raise _unsafe("has an entry without a name")
    if len(segments) > _DEEPEST or len(info.orig_filename) > _LONGEST_NAME:
        raise _unsafe(f'has a name that is too long ("{_shown(info.orig_filename)}")')
    return "/".join(segments)


def _is_file(info: zipfile.ZipInfo) -> bool:
    """Whether the entry is an ordinary file; archives that do not say so mean one."""
    kind = stat.S_IFMT(info.external_attr >> 16)
    return kind in {0, stat.S_IFREG}


def _folder_of(entries: Mapping[str, object]) -> str:
    manifests = [path.rpartition("/")[0] for path in entries if is_manifest(path.rpartition("/")[2])]
    if "" in manifests:
        return ""
    folders = sorted(folder for folder in manifests if "/" not in folder)
    if len(folders) == 1:
        return folders[0]
    if folders:
        listed = ", ".join(_shown(folder) for folder in folders[:5])
        raise BundleError(
            "bundle-many-skills",
            f"The archive holds {len(folders)} skills ({listed}).",
            hint="Send an archive for each.",
        )
    hint = f"{MANIFEST} lies too deep: it belongs at the top or in the one folder there." if manifests else ""
    raise BundleError("bundle-no-skill", f"The archive has no {MANIFEST} where one is looked for.", hint=hint)


def _shown(path: str) -> str:
    return one_line(path)[:80]


def _unsafe(what: str) -> BundleError:
    return BundleError("bundle-unsafe", f"The archive is refused: it {what}.")


def _damaged() -> BundleError:
    return BundleError("bundle-unsafe", "This is not a ZIP archive, or it is damaged.")


def _too_many(limits: ZipLimits) -> BundleError:
    return BundleError("bundle-too-large", f"The archive holds more than {limits.entries} files.")


def _too_large(limits: ZipLimits) -> BundleError:
    return BundleError(
        "bundle-too-large",
        f"The archive unpacks to more than {limits.total_bytes} bytes, or one file in it to more than "
        f"{limits.entry_bytes}.",
    )
