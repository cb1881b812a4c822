"""What a model may run under the present settings, and what confines it: told from the one record of the backend."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from satchel.cli.console import line, say
from satchel.execution.options import ExecutionOptions, code_refusal, install_refusal, refusal
from satchel.ports.execution import Confinement, Executor
from satchel.settings import Settings
from satchel.wiring.sandbox import find_sandbox


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed:
    """One kind of program. ``refusal`` says why it is not run although it is allowed; ``hint`` what would change it."""

    what: str
    is_on: bool
    detail: str
    refusal: str = ""
    hint: str = ""


def allowed(options: ExecutionOptions, executor: Executor) -> tuple[Allowed, ...]:
    """Scripts, code and installs, whether or not they are allowed."""
    return (_scripts(options, executor), _code(options, executor), _installs(options, executor))


def confined_by(confinement: Confinement) -> str:
    """The backend in a few words, with the gaps as results of tools name them."""
    named = f"{confinement.backend} {confinement.version}".strip()
    by = "without a sandbox" if confinement.backend == "none" else f"confined by {named}"
    return f"{by}. Not confined on this host: {'; '.join(confinement.gaps)}" if confinement.gaps else by


def confines(confinement: Confinement) -> str:
    """What it holds and what it does not."""
    parts = {
        "writes": confinement.writes,
        "network": confinement.network,
        "home": confinement.home,
        "process tree": confinement.process_tree,
    }
    held = ", ".join(name for name, is_held in parts.items() if is_held)
    gaps = f"; open: {'; '.join(confinement.gaps)}" if confinement.gaps else ""
    return f"confines {held or 'nothing'}{gaps}"


def shape(confinement: Confinement) -> dict[str, object]:
    """The record as JSON has it."""
    return {**asdict(confinement), "gaps": list(confinement.gaps)}


def held_by(executor: Executor) -> dict[str, object] | None:
    """The record of what runs programs here as JSON has it, None where nothing runs any."""
    return shape(executor.confinement) if executor.can_run else None


def told(options: ExecutionOptions, executor: Executor, *, only_trouble: bool = False) -> tuple[str, ...]:
    """The lines for people about what is allowed: what confines it, and warnings of what will not run or is open."""
    lines: list[str] = []
    for row in allowed(options, executor):
        if not row.is_on:
            continue
        if row.refusal:
            lines.append(f"WARNING: {row.what}: allowed, and not run here: {line(row.refusal)}")
            lines.append(f"  hint: {line(row.hint)}")
        elif not only_trouble:
            lines.append(f"{row.what:<10} {line(row.detail)}")
        elif row.what == "scripts" and not executor.confinement.is_full:
            lines.append(f"WARNING: {row.what} {line(row.detail)}")
    if options.code and options.unconfined and not executor.confinement.is_full:
        is_bare = executor.confinement.backend == "none"
        what = "may do all that this program may" if is_bare else "is not fully confined"
        lines.append(f"WARNING: --code-exec-unconfined: what a model writes {what}.")
    return tuple(lines)


async def tell(settings: Settings, *, only_trouble: bool = False) -> Executor | None:
    """Says on stderr what may run and what confines it, nothing when nothing may. Returns what would start it."""
    options = settings.execution
    if not (options.scripts or options.code):
        return None
    executor = (await find_sandbox(settings.execution)).executor
    for text in told(options, executor, only_trouble=only_trouble):
        say(text)
    return executor


def _scripts(options: ExecutionOptions, executor: Executor) -> Allowed:
    if not options.scripts:
        return Allowed(
            what="scripts",
            is_on=False,
            detail="scripts of skills are not run",
            hint="--skills-allow-exec lets models run them.",
        )
    given = "".join(f", {' and '.join(names)} given to {skill}" for skill, names in options.grants.items())
    given += "," if given else ""
    return Allowed(
        what="scripts",
        is_on=True,
        detail=f"of skills run{given} {_terms(executor, has_network=options.scripts_network)}",
        refusal=refusal(executor, options.sandbox),
        hint="satchel doctor says how to get a sandbox; --skills-sandbox preferred does with what there is.",
    )


def _code(options: ExecutionOptions, executor: Executor) -> Allowed:
    if not options.code:
        return Allowed(
            what="code",
            is_on=False,
            detail="models run no commands and write no files",
            hint="--code-exec lets them, in a directory of their own.",
        )
    return Allowed(
        what="code",
        is_on=True,
        detail=f"of models runs {_terms(executor, has_network=options.code_network)}",
        refusal=code_refusal(executor, options),
        hint="satchel doctor says how to get a sandbox; --code-exec-unconfined does without.",
    )


def _installs(options: ExecutionOptions, executor: Executor) -> Allowed:
    install = options.install
    if not install.enabled:
        return Allowed(
            what="installs",
            is_on=False,
            detail="no packages are installed",
            hint="--code-exec-allow-install lets models ask for them.",
        )
    names = ", ".join(install.packages) or "any package"
    hosts = ", ".join(install.hosts) or "where pip and npm of this host get theirs"
    bound = "" if executor.confinement.hosts else "; nothing here holds an install to these hosts"
    flag = "--code-exec-allow-network" if options.code else "--skills-allow-network"
    return Allowed(
        what="installs",
        is_on=True,
        detail=f"of {names}, from {hosts}{bound}",
        refusal=install_refusal(executor.confinement, options),
        hint=f"satchel doctor says how to get a sandbox that can; {flag} lets programs and installs reach everything.",
    )


def _terms(executor: Executor, *, has_network: bool) -> str:
    network = "with the network" if has_network else "without a network"
    if not (has_network or executor.confinement.network):
        network = "with the network, which nothing holds back"
    return f"{network}, {confined_by(executor.confinement)}"
