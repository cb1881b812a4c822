"""A package registry on the loopback: a simple index with real wheels, and npm documents with real tarballs."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import tarfile
import threading
import zipfile
from collections.abc import Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Self


class Registry:
    """A context manager. ``seen`` are the paths that were asked for."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.held: dict[str, threading.Event] = {}
        self._files: dict[str, bytes] = {}
        self._links: dict[str, list[str]] = {}
        self._documents: dict[str, dict[str, object]] = {}
        registry = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                registry.seen.append(self.path)
                if self.path in registry.held:
                    registry.held[self.path].wait(60)
                body, kind = registry.answer(self.path)
                self.send_response(404 if body is None else 200)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body or b"")))
                self.end_headers()
                self.wfile.write(body or b"")

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                del format, args

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def configured(self) -> dict[str, str]:
        """The variables of a host whose pip and npm use this registry, and nothing else."""
        return {
            "PIP_CONFIG_FILE": "/dev/null",
            "PIP_INDEX_URL": f"{self.address}/simple/",
            "NPM_CONFIG_REGISTRY": f"{self.address}/npm/",
            "NPM_CONFIG_USERCONFIG": "/dev/null",
            "NPM_CONFIG_GLOBALCONFIG": "/dev/null",
        }

    def hold(self, path: str, until: threading.Event) -> None:
        """Keeps whoever asks for ``path`` waiting."""
        self.held[path] = until

    def answer(self, path: str) -> tuple[bytes | None, str]:
        if path.partition("?")[0] in self._files:
            return self._files[path.partition("?")[0]], "application/octet-stream"
        if path.startswith("/simple/"):
            links = self._links.get(path.removeprefix("/simple/").strip("/"))
            rows = "".join(f'<a href="/files/{name}">{name}</a>\n' for name in links or ())
            return (f"<!DOCTYPE html><html><body>{rows}</body></html>".encode() if links else None), "text/html"
        if path.startswith("/npm/"):
            document = self._documents.get(path.removeprefix("/npm/").replace("%2f", "/").replace("%2F", "/"))
            return (json.dumps(document).encode() if document else None), "application/json"
        return None, "text/plain"

    def add_wheel(
        self,
        name: str,
        version: str,
        files: Mapping[str, str],
        *,
        requires: Sequence[str] = (),
        programs: Mapping[str, str] | None = None,
    ) -> None:
        """``programs``: names and what they call, like ``module:function``."""
        folder = f"{name.replace('-', '_')}-{version}.dist-info"
        meta = [
            f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
            *(f"Requires-Dist: {r}\n" for r in requires),
        ]
        entries = {
            **files,
            f"{folder}/METADATA": "".join(meta),
            f"{folder}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        }
        if programs:
            rows = "".join(f"{program} = {target}\n" for program, target in programs.items())
            entries[f"{folder}/entry_points.txt"] = f"[console_scripts]\n{rows}"
        record = "".join(f"{path},sha256={_digest(text)},{len(text.encode())}\n" for path, text in entries.items())
        entries[f"{folder}/RECORD"] = f"{record}{folder}/RECORD,,\n"
        data = io.BytesIO()
        with zipfile.ZipFile(data, "w") as archive:
            for path, text in entries.items():
                archive.writestr(path, text)
        self._add_file(name, f"{name.replace('-', '_')}-{version}-py3-none-any.whl", data.getvalue())

    def add_source(self, name: str, version: str, setup: str, *, more: Mapping[str, str] | None = None) -> None:
        """A source archive, whose ``setup.py`` would run when it were built; ``more`` are files beside it."""
        inside = f"{name}-{version}"
        files = {
            f"{inside}/setup.py": setup,
            f"{inside}/PKG-INFO": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
            **{f"{inside}/{path}": text for path, text in (more or {}).items()},
        }
        self._add_file(name, f"{name}-{version}.tar.gz", _tarball(files))

    def add_module(
        self,
        name: str,
        version: str,
        files: Mapping[str, str],
        *,
        scripts: Mapping[str, str] | None = None,
        programs: Mapping[str, str] | None = None,
        requires: Mapping[str, str] | None = None,
    ) -> None:
        manifest: dict[str, object] = {
            "name": name,
            "version": version,
            "scripts": dict(scripts or {}),
            "bin": dict(programs or {}),
            "dependencies": dict(requires or {}),
        }
        data = _tarball({"package/package.json": json.dumps(manifest), **{f"package/{p}": t for p, t in files.items()}})
        path = f"/tarballs/{name.replace('/', '-')}-{version}.tgz"
        self._files[path] = data
        integrity = f"sha512-{base64.b64encode(hashlib.sha512(data).digest()).decode()}"
        document = self._documents.setdefault(name, {"name": name, "versions": {}, "dist-tags": {}})
        versions, tags = document["versions"], document["dist-tags"]
        assert isinstance(versions, dict)
        assert isinstance(tags, dict)
        versions[version] = {**manifest, "dist": {"tarball": f"{self.address}{path}", "integrity": integrity}}
        tags["latest"] = version

    def add_tree(self, place: str, folder: Path) -> None:
        """All files of a directory, below ``place``: a repository can be cloned so."""
        for path in folder.rglob("*"):
            if path.is_file():
                self._files[f"{place}/{path.relative_to(folder)}"] = path.read_bytes()

    def _add_file(self, project: str, name: str, data: bytes) -> None:
        self._files[f"/files/{name}"] = data
        self._links.setdefault(project, []).append(name)


def _digest(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()


def _tarball(files: Mapping[str, str]) -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as archive:
        for path, text in files.items():
            info = tarfile.TarInfo(path)
            info.size = len(text.encode())
            info.mode = 0o755
            archive.addfile(info, io.BytesIO(text.encode()))
    return data.getvalue()
