"""What an operator allows: which programs may run, how they are held, what they may install."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from satchel.errors import SetupError
from satchel.ports.execution import Confinement, Executor

SandboxMode = Literal["required", "preferred", "off"]

INTERPRETERS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {".py": ("python",), ".js": ("node",), ".mjs": ("node",), ".sh": ("bash",), ".bash": ("bash",)}
)
"""The program, with options of its own, that runs a file with that ending."""

SCRIPT_TIMEOUT_S = 60.0
OUTPUT_BYTES = 32 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallOptions:
    """Whether the host installs packages for a workspace.

    ``hosts`` are the names that an install may reach; empty means those that pip and npm are configured to use here.
    ``packages`` is the allow-list of names, empty for any. ``public_only`` refuses hosts whose names lead into a
    private network, where a registry of one's own often is.
    """

    enabled: bool = False
    hosts: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    public_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionOptions:
    """``scripts`` allows skills' scripts, ``code`` the shell and the file tools. Everything is off until it is allowed.

    ``sandbox``: "required" refuses to run without a full sandbox, "preferred" runs with what there is and says so,
    "off" looks for none. ``unconfined`` lets code, not scripts, run without one. ``bwrap_floor`` is the oldest version
    of bubblewrap that is accepted, "" for any that passes its tests. ``interpreters`` maps a file's ending to the
    command that runs it; taking an entry out refuses such files.

    ``grants`` names host variables by skill: the scripts of that skill get them. Keys of model providers are refused
    there until ``grants_provider_keys``.

    ``read_first``: a file that exists is changed only by a conversation that has read it as it is now; anything else is
    refused with NOT_READ_THIS_SESSION or STALE_READ.

    Raises ``SetupError`` setting-invalid for code without a sandbox where ``unconfined`` does not say so.
    """

    scripts: bool = False
    code: bool = False
    sandbox: SandboxMode = "required"
    scripts_network: bool = False
    code_network: bool = False
    unconfined: bool = False
    read_first: bool = False
    install: InstallOptions = InstallOptions()
    temperature: float | None = None
    bwrap_floor: str = ""
    interpreters: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: INTERPRETERS)
    script_timeout_s: float = SCRIPT_TIMEOUT_S
    shell_timeout_s: float = 120.0
    longest_shell_timeout_s: float = 600.0
    install_timeout_s: float = 300.0
    output_bytes: int = OUTPUT_BYTES
    grants: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    grants_provider_keys: bool = False

    def __post_init__(self) -> None:
        if self.code and self.sandbox == "off" and not self.unconfined:
            raise SetupError(
                "setting-invalid",
                'sandbox="off" would run what a model writes without a sandbox, and unconfined is missing.',
                hint="Leave the sandbox on, or say unconfined=True too.",
                data={"key": "execution.unconfined"},
            )


def install_refusal(confinement: Confinement, options: ExecutionOptions) -> str:
    """Why the host performs no install, "" when it may.

    What a registry lists may name any address, so an install gets no more of the network than what it is for: the
    hosts of its registry where a backend can hold it to them, all of it only where programs have that anyway.
    """
    has_network = options.code_network if options.code else options.scripts_network
    if confinement.hosts or has_network or not confinement.network:
        return ""
    return (
        f"Installing packages is not possible here: {confinement.backend} cannot hold an install to the hosts of its "
        "registry. The operator can let programs reach the network, or use a sandbox that can."
    )


def code_refusal(executor: Executor, options: ExecutionOptions) -> str:
    """Why what a model wrote may not be started, "" when it may.

    The modes of ``sandbox`` are about scripts that somebody wrote and installed. Only ``unconfined`` does without for
    code (seed 001, "Running scripts").
    """
    return _unavailable(executor) if options.unconfined else refusal(executor, "required")


def refusal(executor: Executor, mode: SandboxMode) -> str:
    """Why no script may be started under ``mode``, "" when it may. A gap is never taken for a sandbox."""
    if reason := _unavailable(executor):
        return reason
    # A word that is none of the modes is taken for the strictest.
    if mode in {"preferred", "off"} or executor.confinement.is_full:
        return ""
    gaps = "; ".join(executor.confinement.gaps)
    return f"This host has no OS sandbox that holds everything ({gaps}), and one is required."


def _unavailable(executor: Executor) -> str:
    """What cannot run is refused, also by a backend that does not say why."""
    return "" if executor.can_run else executor.unavailable_reason or "Nothing can run on this host now."
