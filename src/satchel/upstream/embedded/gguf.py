"""The header of a GGUF file, read far enough to tell whether the file is one and whether it is whole."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import BinaryIO

from satchel.errors import WeightsError

_MAGIC = b"GGUF"
_VERSIONS = frozenset({2, 3})
_MAX_ENTRIES = 1_000_000
_MAX_ITEMS = 20_000_000
_DEFAULT_ALIGNMENT = 32
_STRING, _ARRAY = 8, 9
_SCALAR_BYTES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
_INTEGERS = {0: "<B", 2: "<H", 4: "<I", 5: "<i", 10: "<Q", 11: "<q"}

# Values in a block and bytes of a block, by tensor type; a type that is missing here counts as empty.
_BLOCKS = {
    0: (1, 4),
    1: (1, 2),
    2: (32, 18),
    3: (32, 20),
    6: (32, 22),
    7: (32, 24),
    8: (32, 34),
    10: (256, 84),
    11: (256, 110),
    12: (256, 144),
    13: (256, 176),
    14: (256, 210),
    30: (1, 2),
}


class _DamagedError(ValueError):
    """The bytes are not what a header would hold."""


def check_gguf(path: Path) -> None:
    """Returns when the file is a GGUF file that is not cut off, as far as its header tells.

    Raises:
        WeightsError: weights-missing when it cannot be read, weights-corrupt otherwise.
    """
    try:
        with path.open("rb") as file:
            size = path.stat().st_size
            needed = _needed_bytes(file, size)
    except OSError as error:
        raise WeightsError(
            "weights-missing",
            f"The model file {path} cannot be read: {error.strerror or error}.",
            hint="Give the path of a GGUF file, or leave it out to use the default model.",
        ) from error
    except _DamagedError as error:
        raise WeightsError(
            "weights-corrupt",
            f"{path} is not a usable GGUF file: {error}.",
            hint="Download it again, or name another GGUF file with a chat template.",
        ) from error
    if size < needed:
        raise WeightsError(
            "weights-corrupt",
            f"{path} is cut off: it has {size:,} bytes and its header speaks of {needed:,}.",
            hint="Download it again.",
            data={"bytes": size, "needed": needed},
        )


def _needed_bytes(file: BinaryIO, size: int) -> int:
    """How many bytes the tensors that the header lists reach to."""
    reader = _Reader(file, size)
    if reader.take(len(_MAGIC)) != _MAGIC:
        raise _DamagedError("it does not begin with the letters GGUF")
    version = reader.number("<I")
    if version not in _VERSIONS:
        raise _DamagedError(f"its version {version} is unknown")
    tensors = reader.count(_MAX_ENTRIES)
    alignment = _DEFAULT_ALIGNMENT
    for _ in range(reader.count(_MAX_ENTRIES)):
        key = reader.text()
        kind = reader.number("<I")
        if key == b"general.alignment" and kind in _INTEGERS:
            alignment = max(1, reader.number(_INTEGERS[kind]))
        else:
            reader.skip_value(kind)
    ends = [reader.tensor_end() for _ in range(tensors)]
    start = -(-reader.position // alignment) * alignment
    return start + max(ends, default=0)


class _Reader:
    """Takes values off the front of a file and never believes a length beyond its size."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file = file
        self._size = size
        self.position = 0

    def take(self, length: int) -> bytes:
        self._advance(length)
        data = self._file.read(length)
        if len(data) != length:
            raise _DamagedError("it ends inside its header")
        return data

    def skip(self, length: int) -> None:
        self._advance(length)
        self._file.seek(length, 1)

    def number(self, form: str) -> int:
        return int(struct.unpack(form, self.take(struct.calcsize(form)))[0])

    def count(self, limit: int) -> int:
        value = self.number("<Q")
        if value > limit:
            raise _DamagedError("its header holds an impossible count")
        return value

    def text(self) -> bytes:
        return self.take(self.number("<Q"))

    def skip_value(self, kind: int) -> None:
        if kind == _STRING:
            self.skip(self.number("<Q"))
        elif kind == _ARRAY:
            self._skip_array()
        else:
            self.skip(_scalar_bytes(kind))

    def _skip_array(self) -> None:
        kind = self.number("<I")
        items = self.count(_MAX_ITEMS)
        if kind == _STRING:
            for _ in range(items):
                self.skip(self.number("<Q"))
        else:
            self.skip(items * _scalar_bytes(kind))

    def tensor_end(self) -> int:
        """Where the next listed tensor ends, counted from the start of the data."""
        self.skip(self.number("<Q"))
        dimensions = self.number("<I")
        values = 1
        for _ in range(min(dimensions, 8)):
            values *= self.number("<Q")
        kind = self.number("<I")
        offset = self.number("<Q")
        block, block_bytes = _BLOCKS.get(kind, (1, 0))
        return offset + -(-values // block) * block_bytes

    def _advance(self, length: int) -> None:
        self.position += length
        if self.position > self._size:
            raise _DamagedError("it ends inside its header")


def _scalar_bytes(kind: int) -> int:
    size = _SCALAR_BYTES.get(kind)
    if size is None:
        raise _DamagedError(f"its header holds a value of the unknown type {kind}")
    return size
