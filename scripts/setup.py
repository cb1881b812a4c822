"""Makes ``.venv`` out of a lock file: ``setup.py run`` for use, ``setup.py dev`` for work on Satchel.

Needs python3 (3.11 or newer), pip and a package index; no venv module. Nothing is installed into the system's Python:
uv goes to ``.tools``, everything else to ``.venv``, both inside the project. Written so that a Python 3.7 can still
read it and say that it is too old.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parent.parent
TOOLS = ROOT / ".tools"
VENV = ROOT / ".venv"
UV = TOOLS / "bin" / "uv"
KINDS = ("dev", "run")

NETWORK = (
    "Check the network and the package index that pip uses (python3 -m pip config list); behind a proxy set "
    "HTTPS_PROXY, for a mirror set PIP_INDEX_URL. Then run the same command again."
)


def say(text: str) -> None:
    print(f"setup: {text}", file=sys.stderr, flush=True)


def stop(what: str, then: str) -> NoReturn:
    say(what)
    say(then)
    sys.exit(1)


def run(command: list[str], failure: str, then: str, env: dict[str, str] | None = None) -> None:
    try:
        code = subprocess.call(command, cwd=str(ROOT), env=env)
    except OSError as error:
        stop(f"{failure}: {error}", then)
    if code:
        stop(f"{failure} (exit code {code}; the program's own words stand above).", then)


def check_python() -> None:
    if sys.version_info < (3, 11):  # noqa: UP036 - an older Python has to be told so
        stop(
            f"Satchel needs Python 3.11 or newer, and {sys.executable} is Python {platform.python_version()}.",
            "Install a newer one and name it: make run PYTHON=python3.12",
        )
    if os.name == "nt":
        stop("This setup is for Linux and macOS.", "On Windows use WSL, or pip install '.[all]' in an environment.")


def digest(*names: str) -> str:
    """Changes with the named files, with the Python behind the environment, and when the project is moved."""
    seen = hashlib.sha256(f"{sys.version}|{sys.executable}|{ROOT}".encode())
    for name in names:
        seen.update((ROOT / name).read_bytes())
    return seen.hexdigest()


def is_stamped(stamp: Path, wanted: str) -> bool:
    return stamp.is_file() and stamp.read_text(encoding="ascii") == wanted


def make_tools() -> None:
    wanted = digest("locks/tools.txt")
    stamp = TOOLS / "stamp"
    if is_stamped(stamp, wanted) and UV.exists():
        return
    if importlib.util.find_spec("pip") is None:
        stop(
            f"{sys.executable} has no pip.",
            "Install it (Debian, Ubuntu: apt-get install python3-pip; elsewhere: python3 -m ensurepip --user).",
        )
    say("uv into .tools, as locks/tools.txt names it")
    shutil.rmtree(str(TOOLS), ignore_errors=True)
    command = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "install", "--no-deps"]
    command += ["--only-binary", ":all:", "--require-hashes", "--target", str(TOOLS), "-r", "locks/tools.txt"]
    run(command, "uv could not be installed", NETWORK, {**os.environ, "PIP_ROOT_USER_ACTION": "ignore"})
    stamp.write_text(wanted, encoding="ascii")


def uv_environment() -> dict[str, str]:
    """No Python but the one that runs this; the system's certificates; pip's index where pip was given one."""
    env = {**os.environ, "UV_PYTHON_DOWNLOADS": "never", "UV_SYSTEM_CERTS": "1"}
    env.pop("VIRTUAL_ENV", None)
    if not env.get("UV_DEFAULT_INDEX"):
        command = [sys.executable, "-m", "pip", "config", "get", "global.index-url"]
        asked = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
        index = env.get("PIP_INDEX_URL") or asked.stdout.decode(errors="replace").strip()
        if index:
            env["UV_DEFAULT_INDEX"] = index
    return env


def make_environment(kind: str) -> bool:
    """Returns whether anything had to be done. An environment for work serves for use as well."""
    wanted = {name: digest(f"locks/{name}.txt", "locks/build.txt", "pyproject.toml") for name in KINDS}
    stamps = {name: VENV / f"stamp-{name}" for name in KINDS}
    is_ready = any(is_stamped(stamps[name], wanted[name]) for name in {kind, "dev"})
    if not is_ready or kind == "dev":
        make_tools()
    if is_ready:
        return False
    env = uv_environment()
    python = str(VENV / "bin" / "python")
    say(f"packages into .venv, as locks/{kind}.txt names them (a minute or two the first time)")
    command = [str(UV), "venv", "--quiet", "--clear", "--python", sys.executable, str(VENV)]
    run(command, ".venv could not be made", "Delete .venv and run the same command again.", env)
    command = [str(UV), "pip", "sync", "--quiet", "--require-hashes", "--python", python, f"locks/{kind}.txt"]
    run(command, "The packages could not be installed", NETWORK, env)
    command = [str(UV), "pip", "install", "--quiet", "--no-deps", "--python", python]
    command += ["--build-constraints", "locks/build.txt", "--editable", "."]
    run(command, "Satchel could not be installed into .venv", NETWORK, env)
    stamps[kind].write_text(wanted[kind], encoding="ascii")
    return True


def succeeds(command: list[str]) -> bool:
    try:
        ended = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False
        )
    except OSError:
        return False
    return ended.returncode == 0


def look_for_bubblewrap() -> None:
    """Installed where nobody has to be asked; elsewhere what is missing is said. Never a reason to stop."""
    if not sys.platform.startswith("linux") or shutil.which("bwrap"):
        return
    sudo = [] if os.geteuid() == 0 else ["sudo", "-n"]
    if shutil.which("apt-get") and (not sudo or succeeds([*sudo, "true"])):
        say("bubblewrap, by apt-get")
        apt = [*sudo, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get"]
        install = [*apt, "install", "--yes", "--no-install-recommends", "bubblewrap"]
        if succeeds(install) or (succeeds([*apt, "update"]) and succeeds(install)):
            return
        say("apt-get could not install it")
    say("bubblewrap (the program bwrap) is missing. Without it scripts are confined only where the kernel lets us.")
    say("To install it: sudo apt-get install bubblewrap (dnf and pacman have it under the same name).")


def main() -> None:
    kind = sys.argv[1] if len(sys.argv) == 2 else ""
    if kind not in KINDS:
        stop("Usage: setup.py run|dev", "'run' is enough to use Satchel; 'dev' adds what its tests and checks need.")
    check_python()
    is_new = make_environment(kind)
    if is_new or os.environ.get("REQUIRE_SANDBOX"):
        look_for_bubblewrap()
    if is_new:
        say("done")


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        say("interrupted; run the same command again")
        sys.exit(130)
