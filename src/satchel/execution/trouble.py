"""Why an installer failed, as one sentence with the next step. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from satchel.execution.packages import shorten
from satchel.execution.pip_start import REFUSED
from satchel.ports.execution import Outcome

# Quantifiers are bounded: what an installer prints may be as long as it likes.
_REFUSED_HOST = re.compile(r"(?P<host>[A-Za-z0-9.:\[\]-]{1,260}) is not among the hosts that may be reached")
_REFUSED_ADDRESS = re.compile(r"The address of (?P<host>[A-Za-z0-9.:\[\]-]{1,260}) may not be reached")
_NO_MATCH = re.compile(r"No matching distribution found for (?P<name>\S+)")
_VERSIONS = re.compile(r"\(from versions: (?P<versions>[^)]*)\)")
_NPM_CODE = re.compile(r"^npm (?:error|ERR!) code (?P<code>[A-Z0-9]+)", re.MULTILINE)
_OFFLINE = re.compile(
    r"ENOTFOUND|ECONNREFUSED|ETIMEDOUT|EAI_AGAIN|NewConnectionError|ProxyError|Network is unreachable"
    r"|Tunnel connection failed"
)
NO_GIT = "/nonexistent/git-of-nobody"
"""What npm is to call for git: nothing. Versions that cannot be told to use no repository fail with its name."""

_LAST_LINES = 4
_MOST_VERSIONS = 8


def explained(tool: str, specs: Sequence[str], outcome: Outcome, hosts: Sequence[str], *, has_secret: bool) -> str:
    """``has_secret``: the registry of this host is configured with a password, which is never passed on."""
    asked = f"`{tool} install {' '.join(specs[:6])}{' ...' if len(specs) > 6 else ''}`"  # noqa: PLR2004 - a line
    if outcome.exit_code is None:
        why = {"deadline": "it took too long", "memory": "it used too much memory", "written": "it wrote too much"}
        reason = why.get(outcome.stopped, "it was stopped")
        return f"{asked} failed: {reason} ({outcome.duration_s:.0f} s). Ask for fewer or smaller packages."
    text = f"{outcome.stdout.text}\n{outcome.stderr.text}"
    return f"{asked} failed: {_reason(tool, text, hosts, has_secret=has_secret)}"


def unreachable(host: str, hosts: Sequence[str]) -> str:
    """Of a host that an install may not reach."""
    return (
        f"{host} may not be reached from here (allowed: {', '.join(hosts) or 'none'}). "
        "The operator can allow it; use what is installed instead."
    )


def _reason(tool: str, text: str, hosts: Sequence[str], *, has_secret: bool) -> str:
    refused = _REFUSED_HOST.search(text) or _REFUSED_ADDRESS.search(text)
    if refused:
        return unreachable(refused["host"], hosts)
    if has_secret and re.search(r"\b401\b|\b403\b|E401|E403", text):
        return "the registry of this host wants a password, and none is passed on. Use what is installed instead."
    if REFUSED in text:
        return "it wants something built from its sources, and the host builds nothing. Use another package."
    if "EALLOWGIT" in text or NO_GIT in text:
        return "it wants something from a repository, and only packages of the registry are installed. Use another one."
    if re.search(r"ResolutionImpossible|ERESOLVE", text):
        return "the versions exclude each other. Ask for the packages together, with fewer version bounds."
    code = _NPM_CODE.search(text)
    if code and code["code"] in {"E404", "ETARGET"}:
        return "the registry has no such package or version. Check the name, or leave the version out."
    match = _NO_MATCH.search(text)
    if match and not _OFFLINE.search(text):
        listed = _VERSIONS.search(text)
        versions = [version.strip() for version in listed["versions"].split(",")] if listed else []
        known = [version for version in versions if version and version != "none"][-_MOST_VERSIONS:]
        if known:
            return f"no version of {match['name']} fits; there are {', '.join(known)}. Ask for one of these."
        return (
            f"no wheel of {match['name']} for this Python is in the registry, and the host builds nothing. "
            "Check the name, or use another package."
        )
    if _OFFLINE.search(text):
        return "the registry cannot be reached. Use what is installed instead."
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    problems = [line for line in lines if re.match(r"ERROR:|npm (?:error|ERR!)", line)] or lines
    said = " ".join(shorten(line) for line in problems[:_LAST_LINES])
    return f"{said or 'it said nothing.'} Check the name and the version of what you asked for with {tool}."
