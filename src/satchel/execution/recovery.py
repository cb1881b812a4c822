"""A run that dies of a missing import is repaired: what is missing is installed, and the same thing runs again."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from types import MappingProxyType
from typing import Protocol

from satchel.execution.packages import Package, read_package
from satchel.execution.workspace import Workspace
from satchel.ports.execution import Outcome

MOST_PACKAGES = 5
"""Distinct packages that one call installs for missing imports."""

_LEAST_TIME_S = 1.0
_PYTHON_MISSING = re.compile(
    r"^(?:ModuleNotFoundError: No module named '(?P<imported>[A-Za-z_][\w.]*)'"
    r"|ImportError: Missing optional dependency '(?P<optional>[A-Za-z_][\w.]*)'"
    r"|\S{0,200}python[\w.]{0,20}: No module named (?P<run>[A-Za-z_][\w.]*)\s*$)",
    re.MULTILINE,
)
_NODE_MISSING = re.compile(
    r"^(?:\w{0,60}Error.{0,60}: )?Cannot find (?:module|package) '(?P<name>[^'\s]{1,200})'(?: imported from .*)?$",
    re.MULTILINE,
)
_IMPORT = re.compile(
    r"^ {4}(?:from (?P<module>[A-Za-z_][\w.]{0,200}) import (?P<what>\w{1,100})?"
    r"|import (?P<alone>[A-Za-z_][\w.]{0,200}))",
    re.MULTILINE,
)
_NEXT_FAILURE = "Traceback (most recent call last):"
_NODE_NAME = re.compile(r"(?:@[a-z0-9~-][a-z0-9._~-]*/)?[a-z0-9~-][a-z0-9._~-]*")

PACKAGE_OF_IMPORT: Mapping[str, str] = MappingProxyType(
    {
        "PIL": "pillow", "cv2": "opencv-python-headless", "yaml": "pyyaml", "bs4": "beautifulsoup4",
        "sklearn": "scikit-learn", "skimage": "scikit-image", "dateutil": "python-dateutil", "docx": "python-docx",
        "pptx": "python-pptx", "fitz": "pymupdf", "dotenv": "python-dotenv", "Crypto": "pycryptodome",
        "Cryptodome": "pycryptodomex", "OpenSSL": "pyopenssl", "serial": "pyserial", "usb": "pyusb",
        "jwt": "pyjwt", "magic": "python-magic", "MySQLdb": "mysqlclient", "psycopg2": "psycopg2-binary",
        "git": "gitpython", "github": "pygithub", "gi": "pygobject", "zmq": "pyzmq", "websocket": "websocket-client",
        "slugify": "python-slugify",  "jose": "python-jose",
        "multipart": "python-multipart", "socks": "pysocks", "wx": "wxpython", "ruamel": "ruamel.yaml",
        "ruamel.yaml": "ruamel.yaml", "google.protobuf": "protobuf", "google.generativeai": "google-generativeai",
        "google.genai": "google-genai", "google.cloud.storage": "google-cloud-storage", "attr": "attrs",
        "pkg_resources": "setuptools", "distutils": "setuptools", "odf": "odfpy", "Bio": "biopython", "nacl": "pynacl",
        "faiss": "faiss-cpu", "tabula": "tabula-py", "pythoncom": "pywin32", "telegram": "python-telegram-bot",
        "discord": "discord.py", "barcode": "python-barcode", "snappy": "python-snappy", "vlc": "python-vlc",
        "pdfminer": "pdfminer.six", "mpl_toolkits": "matplotlib", "pylab": "matplotlib", "rest_framework":
        "djangorestframework", "ffmpeg": "ffmpeg-python", "dns": "dnspython", "apt": "", "win32com": "pywin32",
    }
)  # fmt: skip
"""Imports whose package has another name, and dotted ones that a package of their own brings."""

_SHARED = frozenset(("google", "azure", "backports", "jaraco", "opentelemetry", "sphinxcontrib", "zope"))
"""Names below which many packages live. What is missing is what was imported below them, not the name itself."""

_WAS_STANDARD = frozenset(
    (
        "asynchat", "asyncore", "imp", "smtpd", "aifc", "audioop", "cgi", "cgitb", "chunk", "crypt", "imghdr",
        "mailcap", "msilib", "nis", "nntplib", "ossaudiodev", "pipes", "sndhdr", "spwd", "sunau", "telnetlib", "uu",
        "xdrlib", "lib2to3", "binhex", "formatter", "macpath", "parser", "symbol", "asyncio", "tomllib", "zoneinfo",
        "urllib2", "urlparse", "httplib", "StringIO", "cStringIO", "cPickle", "Queue", "ConfigParser", "HTMLParser",
        "Cookie", "cookielib", "SocketServer", "BaseHTTPServer", "SimpleHTTPServer", "commands", "Tkinter",
        "tkMessageBox", "ttk", "thread", "exceptions", "sets", "md5", "sha", "dummy_thread", "htmlentitydefs",
    )
)  # fmt: skip
"""Once, or elsewhere, of the standard library: a package of that name is somebody else's."""

_OF_PROJECTS = frozenset(
    (
        "utils", "util", "helpers", "helper", "config", "configs", "settings", "main", "app", "src", "lib", "libs",
        "common", "core", "models", "model", "test", "tests", "scripts", "script", "data", "tools", "local", "server",
        "client", "db", "database", "constants", "types", "api", "views", "schema", "schemas", "my_module", "mymodule",
        "module", "package", "solution", "example", "examples", "project",
    )
)  # fmt: skip
_NODE_OWN = frozenset(
    (
        "assert", "async_hooks", "buffer", "child_process", "cluster", "console", "constants", "crypto", "dgram", "dns",
        "domain", "events", "fs", "http", "http2", "https", "inspector", "module", "net", "os", "path", "perf_hooks",
        "process", "punycode", "querystring", "readline", "repl", "stream", "string_decoder", "sys", "timers", "tls",
        "trace_events", "tty", "url", "util", "v8", "vm", "wasi", "worker_threads", "zlib",
    )
)  # fmt: skip


class Installs(Protocol):
    """What the recovery needs of an installer."""

    async def add(self, package: Package, workspace: Workspace, *, deadline_s: float) -> str:
        """Installs it; "" when it is there now, else a sentence why not."""
        ...


def missing_package(outcome: Outcome, *, own: Callable[[str], bool] = lambda _: False) -> Package | None:
    """What a failed run could not import, as the package that has it; None when it did not die of that.

    The standard library, names that belong to a project itself, and what ``own`` says lies in the workspace are never
    taken for a package: whoever registered such a name is not who was meant.
    """
    if not outcome.exit_code:
        return None
    for text in (outcome.stderr.text, outcome.stdout.text):
        python = _last(_PYTHON_MISSING, text)
        # What was raised after it, is what the run died of.
        if python and _NEXT_FAILURE not in text[python.end() :]:
            name = python["imported"] or python["optional"] or python["run"]
            return _python_package(_below(name, text[: python.start()]), own)
        node = _last(_NODE_MISSING, text)
        if node:
            return _node_package(node["name"], own)
    return None


def _below(name: str, trace: str) -> str:
    """What was imported, by the last line of the program in front of the error, where a name is shared by packages."""
    if name not in _SHARED:
        return name
    line = _last(_IMPORT, trace)
    module = (line["module"] or line["alone"]) if line else ""
    if module.partition(".")[0] != name:
        return name
    return f"{module}.{line['what']}" if line and line["what"] else module


def _last(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    found = list(pattern.finditer(text))
    return found[-1] if found else None


async def _nothing() -> Collection[str]:
    return ()


async def _wanted(outcome: Outcome, own: Callable[[], Awaitable[Collection[str] | None]]) -> Package | None:
    if missing_package(outcome) is None:
        return None
    names = await own()
    return None if names is None else missing_package(outcome, own=names.__contains__)


async def rerun_with_installs(
    run: Callable[[float], Awaitable[Outcome]],
    installs: Installs,
    workspace: Workspace,
    *,
    deadline_s: float,
    own: Callable[[], Awaitable[Collection[str] | None]] = _nothing,
    clock: Callable[[], float] = time.monotonic,
) -> tuple[Outcome, tuple[str, ...]]:
    """Runs, and again after each missing import that could be installed. ``run`` is told how many seconds are left.

    ``own`` is asked after a run for what lies beside the program: it may have been made by the run itself. None: it
    cannot be told, and so nothing is installed.
    At most five packages, never the same twice, all within ``deadline_s``. The notes say what was done and stand in
    front of the result; the outcome is that of the last run.
    """
    end = clock() + deadline_s
    outcome = await run(deadline_s)
    tried: set[tuple[str, str]] = set()
    notes: list[str] = []
    while (package := await _wanted(outcome, own)) is not None:
        if package.key in tried:
            notes.append(f"{package.name} was installed and its import is still missing: check the name of the import.")
            break
        if len(tried) == MOST_PACKAGES:
            notes.append(
                f"{MOST_PACKAGES} missing packages were installed in this call and {package.name} is missing, too: "
                f"install it with `{_command(package)}` and run again."
            )
            break
        left = end - clock()
        if left < _LEAST_TIME_S:
            notes.append(f"{package.name} is missing and no time is left: install it with `{_command(package)}` first.")
            break
        tried.add(package.key)
        failure = await installs.add(package, workspace, deadline_s=left)
        if failure:
            notes.append(f"The run needs {package.name}, which could not be installed. {failure}")
            break
        left = end - clock()
        if left < _LEAST_TIME_S:
            notes.append(
                f"{package.name} was missing and is installed now; no time was left to run again: run it again."
            )
            break
        notes.append(f"{package.name} was missing: the host installed it and ran this again.")
        outcome = await run(left)
    return outcome, tuple(notes)


def _python_package(module: str, own: Callable[[str], bool]) -> Package | None:
    parts = module.split(".")
    for length in range(len(parts), 0, -1):
        name = PACKAGE_OF_IMPORT.get(".".join(parts[:length]))
        if name is not None:
            return Package(ecosystem="python", name=name, spec=name) if name else None
    top = parts[0]
    if top in _SHARED or top in _WAS_STANDARD:
        return None
    # A dotted name means that its parent is there, so no package of that name would help.
    is_fit = len(parts) == 1 and not top.startswith("_") and top.lower() not in _OF_PROJECTS
    if not is_fit or top in sys.stdlib_module_names or own(top):
        return None
    package = read_package("python", top)
    return package if isinstance(package, Package) else None


def _node_package(name: str, own: Callable[[str], bool]) -> Package | None:
    if name.startswith((".", "/", "node:", "file:")) or "\\" in name:
        return None
    parts = name.split("/")
    base = "/".join(parts[:2]) if name.startswith("@") else parts[0]
    if not _NODE_NAME.fullmatch(base) or base in _NODE_OWN or base in _OF_PROJECTS or own(base):
        return None
    return Package(ecosystem="node", name=base, spec=base)


def _command(package: Package) -> str:
    return f"{'pip' if package.ecosystem == 'python' else 'npm'} install {package.spec}"
