"""llama.cpp's own HTTP server inside this process: on loopback, on a free port, behind a random key, silent."""

from __future__ import annotations

import gc
import importlib
import os
import secrets
import threading
from pathlib import Path
from typing import Any

from satchel.errors import SetupError, WeightsError
from satchel.ports.models import EmbeddedOptions
from satchel.upstream.embedded.threads import in_thread

_MAX_THREADS = 8
_BATCH_TOKENS = 128  # small batches: a caller that hangs up frees the engine at the end of one
_PROMPT_CACHE_MIB = 512
_HTTP_THREADS = 4
_SILENT = -1
_READ_BYTES = 8 * 1024 * 1024


class LocalServer:
    """A running engine. ``url`` is the base address of its OpenAI-compatible API, ``key`` opens it."""

    def __init__(self, engine: object, url: str, key: str) -> None:
        self._engine: object | None = engine
        self.url = url
        self.key = key

    async def aclose(self) -> None:
        """Stops the engine and frees its memory. Connections must be closed before: it waits for their requests."""
        await in_thread(self._release)

    def _release(self) -> None:
        # Its destructor stops the engine's threads.
        self._engine = None
        gc.collect(0)


async def start_server(weights: Path, options: EmbeddedOptions) -> LocalServer:
    """Loads the model, which takes seconds. A cancellation before the engine has the file ends at once.

    Raises:
        SetupError: extra-missing, when xllamacpp is not installed.
        WeightsError: weights-corrupt, when the engine refuses the file; weights-missing, when it cannot be read.
    """
    stop = threading.Event()
    return await in_thread(lambda: _start(weights, options, stop), stop=stop)


def _start(weights: Path, options: EmbeddedOptions, stop: threading.Event) -> LocalServer:
    # Spinning OpenMP threads starve everything else on a busy machine; the runtime reads this when it is loaded.
    os.environ.setdefault("GOMP_SPINCOUNT", "0")
    try:
        llama: Any = importlib.import_module("xllamacpp")
    except ImportError as error:
        raise SetupError(
            "extra-missing",
            f"The embedded model needs the package xllamacpp: {error}.",
            hint="pip install 'satchel[embedded]', or name a model server with --upstream.",
            data={"extra": "embedded", "package": "xllamacpp"},
        ) from error
    _warm(weights, stop)
    key = secrets.token_urlsafe(32)
    params: Any = llama.CommonParams()
    params.model.path = str(weights)
    params.n_ctx = options.context_tokens
    params.n_batch = params.n_ubatch = _BATCH_TOKENS
    params.n_parallel = 1
    params.cache_ram_mib = _PROMPT_CACHE_MIB
    params.n_threads_http = _HTTP_THREADS
    params.cpuparams.n_threads = options.threads or _threads()
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = [key]
    params.verbosity = _SILENT
    params.ui = False
    params.endpoint_slots = False
    params.warmup = False  # it would happen while the interpreter is held
    try:
        engine: Any = llama.Server(params)
    except (RuntimeError, ValueError) as error:
        raise WeightsError(
            "weights-corrupt",
            f"llama.cpp could not load {weights}.",
            hint="It must be a chat model that this llama.cpp knows, and fit into memory; "
            "`satchel model verify` reads the file again.",
            data={"path": str(weights), "context_tokens": options.context_tokens},
        ) from error
    return LocalServer(engine, f"{engine.listening_address}/v1", key)


def _warm(weights: Path, stop: threading.Event) -> None:
    """Brings the file into the page cache first: the engine loads it without letting the interpreter run."""
    buffer = bytearray(_READ_BYTES)
    try:
        with weights.open("rb", buffering=0) as file:
            while not stop.is_set() and file.readinto(buffer):
                pass
    except OSError as error:
        raise WeightsError(
            "weights-missing",
            f"The model file {weights} cannot be read: {error.strerror or error}.",
            hint="Fetch it with `satchel model fetch`, or set SATCHEL_GGUF to a GGUF file.",
        ) from error
    if stop.is_set():
        raise InterruptedError("the load was cancelled")


def _threads() -> int:
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(_MAX_THREADS, usable)
