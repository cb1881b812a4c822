"""Speaking HTTP to model servers: one session, bodies in bounded pieces, and what failures mean.

Everything that a server sends is bounded: an answer here, an error body, a message in ``framing``.
"""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from types import SimpleNamespace
from typing import cast
from urllib.parse import urlsplit

import aiohttp

from satchel.chat.codec.failures import masked, read_failure
from satchel.chat.messages import Json
from satchel.errors import SetupError, UpstreamError
from satchel.ports.models import UpstreamOptions
from satchel.upstream.framing import too_large

MAX_ANSWER_BYTES = 64 * 1024 * 1024
MAX_ERROR_BYTES = 64 * 1024

_ACCEPTED = "text/event-stream, application/x-ndjson, application/json"
_PIECE_BYTES = 16 * 1024
_LARGE = 512 * 1024
_KEEP_ALIVE_S = 3.0  # shorter than what servers allow, so that few requests meet a connection about to close


def without_key(error: UpstreamError, key: str) -> UpstreamError:
    """The error with the key struck out of what the server said."""
    message = masked(error.message, key)
    data = {name: value for name, value in error.data.items() if masked(str(value), key) == str(value)}
    if message == error.message and len(data) == len(error.data):
        return error
    return UpstreamError(error.code, message, hint=error.hint, data=data, retryable=error.retryable)


def cut_off() -> UpstreamError:
    """The error for a connection that ended before the answer did."""
    return UpstreamError(
        "upstream-cut-off",
        "The model server closed the connection before its answer was complete.",
        hint="Try again; if it persists, see the model server's own log.",
        retryable=True,
    )


def read_json(data: bytes) -> Json:
    """JSON text from a server. Raises ``UpstreamError`` (upstream-garbled)."""
    try:
        return cast("Json", _DECODER.decode(data.decode(json.detect_encoding(data), "surrogatepass")))
    except (ValueError, RecursionError) as error:
        raise UpstreamError(
            "upstream-garbled",
            "The model server sent something that is not JSON.",
            hint="Check that the address is the base of an API of this kind.",
        ) from error


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)


def _coding(response: aiohttp.ClientResponse) -> str:
    """What the body is wrapped into; "" when it is plain."""
    coding = ",".join(response.headers.getall("Content-Encoding", [])).strip().lower()
    return "" if coding == "identity" else coding


async def _note_reuse(session: aiohttp.ClientSession, context: SimpleNamespace, params: object) -> None:
    del session, params
    if context.trace_request_ctx is not None:
        context.trace_request_ctx["is_reused"] = True


def _payload(body: bytes | None) -> bytes | io.BytesIO | None:
    """A large body goes out in pieces, between which others get their turn."""
    return io.BytesIO(body) if body is not None and len(body) > _LARGE else body


class Endpoint:
    """A model server's address and the one session that speaks to it, made in the running loop when first used.

    ``shown`` is the address for messages. ``optional`` is a last segment of it, such as "/v1", that may be left out.
    """

    def __init__(self, options: UpstreamOptions, *, optional: str = "") -> None:
        try:
            parts = urlsplit(options.url)
            is_usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and (parts.port or 1) > 0
        except ValueError:
            parts, is_usable = urlsplit(""), False
        if not is_usable or "@" in parts.netloc:
            raise SetupError(
                "setting-invalid",
                "The address of a model server must be an http or https URL without a user name.",
                hint="For example http://127.0.0.1:8080/v1; the key has a setting of its own.",
            )
        self._options = options
        self.shown = f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/').removesuffix(optional)}"
        self._query = parts.query
        self._session: aiohttp.ClientSession | None = None
        self._is_closed = False

    async def request(
        self, method: str, path: str, *, headers: Mapping[str, str], body: bytes | None = None
    ) -> aiohttp.ClientResponse:
        """An answer of any status with its body unread. ``path`` may have a query. Raises ``UpstreamError``.

        Redirects are not followed: the key among ``headers`` is meant for this address alone.
        """
        if not all(value.isascii() and value.isprintable() for value in headers.values()):
            raise UpstreamError("upstream-auth", "The key has characters that cannot be sent.")
        headers = {**headers, "Accept": _ACCEPTED, "Accept-Encoding": "identity"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        joint = "&" if "?" in path else "?"
        url = f"{self.shown}{path}{joint}{self._query}" if self._query else f"{self.shown}{path}"
        with self.explained():
            response = await self._ask(method, url, body, headers)
        if response.status == HTTPStatus.OK and _coding(response):
            response.close()
            raise UpstreamError(
                "upstream-garbled",
                f"The model server at {self.shown} compresses its answers.",
                hint="Turn compression off there, or in the proxy before it.",
            )
        return response

    async def _ask(
        self, method: str, url: str, body: bytes | None, headers: Mapping[str, str]
    ) -> aiohttp.ClientResponse:
        seen: dict[str, bool] = {}
        try:
            return await self._open().request(
                method, url, data=_payload(body), headers=headers, allow_redirects=False, trace_request_ctx=seen
            )
        except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError, ConnectionResetError):
            if not seen.get("is_reused"):
                raise
        # The server had given up a connection that lay idle, just as the request went out on it: it was not taken.
        fresh = {**headers, "Connection": "close"}
        return await self._open().request(method, url, data=_payload(body), headers=fresh, allow_redirects=False)

    async def pieces(self, response: aiohttp.ClientResponse) -> AsyncGenerator[bytes]:
        """The body as it comes, read only when asked for. Raises ``UpstreamError``, also beyond the bound."""
        total = 0
        with self.explained():
            while piece := await response.content.read(_PIECE_BYTES):
                total += len(piece)
                if total > MAX_ANSWER_BYTES:
                    raise too_large()
                yield piece
                if len(piece) == _PIECE_BYTES:
                    # More is there already: whoever else uses the loop gets a turn in between.
                    await asyncio.sleep(0)

    async def failure(self, response: aiohttp.ClientResponse, *, model: str = "", secret: str = "") -> UpstreamError:
        """The error that an answer with a bad status means."""
        raw = await self.said(response)
        retry_after = response.headers.get("Retry-After", "")
        return read_failure(raw, status=response.status, retry_after=retry_after, model=model, secret=secret)

    async def said(self, response: aiohttp.ClientResponse) -> Json:
        """What a bad answer says, as JSON or as text; reads at most ``MAX_ERROR_BYTES`` of it, once for all."""
        data = b""
        try:
            while len(data) < MAX_ERROR_BYTES and not _coding(response):
                with self.explained():
                    piece = await response.content.read(MAX_ERROR_BYTES - len(data))
                if not piece:
                    break
                data += piece
        except UpstreamError as error:
            data += f" ({error.message})".encode()
        try:
            return read_json(data)
        except UpstreamError:
            return data.decode("utf-8", "replace")

    @contextmanager
    def explained(self) -> Generator[None]:
        """Turns what can go wrong on the wire into ``UpstreamError``."""
        try:
            yield
        except TimeoutError as error:
            raise UpstreamError(
                "upstream-timeout",
                f"The model server at {self.shown} did not answer in time.",
                hint="Try again, or allow it more time (SATCHEL_UPSTREAM_SILENCE_S).",
                retryable=True,
            ) from error
        except aiohttp.ClientConnectorError as error:
            raise UpstreamError(
                "upstream-unreachable",
                f"The model server at {self.shown} cannot be reached: {error.os_error.strerror or error.os_error}.",
                hint=f"Is it running, and is {self.shown} its address?",
                retryable=True,
            ) from error
        except (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError, ConnectionError) as error:
            raise cut_off() from error
        except aiohttp.ClientError as error:
            raise UpstreamError(
                "upstream-garbled",
                f"What answers at {self.shown} does not speak HTTP as expected.",
                hint="Check the address.",
            ) from error

    def _open(self) -> aiohttp.ClientSession:
        if self._is_closed:
            raise RuntimeError("this client is closed")
        if self._session is None:
            timeout = aiohttp.ClientTimeout(
                total=None,
                connect=self._options.connect_s,
                sock_connect=self._options.connect_s,
                sock_read=self._options.silence_s,
            )
            connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=_KEEP_ALIVE_S)
            trace = aiohttp.TraceConfig()
            trace.on_connection_reuseconn.append(_note_reuse)
            # A few compressed bytes could hold an answer beyond every bound, so none is unpacked.
            self._session = aiohttp.ClientSession(
                timeout=timeout,
                connector=connector,
                trust_env=False,
                auto_decompress=False,
                trace_configs=[trace],
            )
        return self._session

    async def aclose(self) -> None:
        """Closes every connection."""
        self._is_closed = True
        if self._session is not None:
            await self._session.close()
            self._session = None
