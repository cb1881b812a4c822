"""Options that several commands share, and how they become settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from satchel.cli.console import line, say

if TYPE_CHECKING:
    # A help page needs the options, and not what they become.
    from satchel.library import Library
    from satchel.settings import Settings

Json = Annotated[bool, Parameter(name="--json", help="Print JSON on stdout.")]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class SkillOptions:
    """Which skills are seen."""

    skills_dir: Annotated[
        tuple[str, ...],
        Parameter(
            name="--skills-dir",
            help="A directory of skills; repeat it for several, the first wins a name. "
            "Without it: .agents/skills here and upwards, and the install directory.",
        ),
    ] = ()
    dialect: Annotated[
        str | None,
        Parameter(name="--dialect", help="The harness by whose rules skills are found and read (portable)."),
    ] = None

    def flags(self) -> dict[str, object]:
        """By long name, as ``settings.load`` takes them."""
        return {"--skills-dir": self.skills_dir, "--dialect": self.dialect}


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class WhichModel:
    """Which model answers."""

    upstream: Annotated[
        tuple[str, ...],
        Parameter(
            name="--upstream",
            help="A model server: [NAME=][KIND:]URL, such as http://localhost:8000/v1 or "
            "ollama:http://localhost:11434. Kinds are openai (without any), responses, ollama, anthropic, and embedded "
            "with weights in place of a URL. Repeat it for several: a model is then asked for by its name or as "
            "NAME/MODEL.",
        ),
    ] = ()
    model_tools: Annotated[
        str | None,
        Parameter(
            name="--model-tools",
            help="Whether models of upstreams are given tools: auto (as their family is known), native or none.",
        ),
    ] = None
    model: Annotated[
        str | None,
        Parameter(
            name="--model",
            help="With --upstream a model's name; else large, small or a GGUF file for the embedded model.",
        ),
    ] = None

    def flags(self) -> dict[str, object]:
        """By long name, as ``settings.load`` takes them."""
        return {"--upstream": self.upstream, "--model-tools": self.model_tools, "--model": self.model}


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ModelOptions(WhichModel):
    """Which model answers, and what it may see."""

    no_skills: Annotated[bool, Parameter(name="--no-skills", help="Turn skills off.")] = False
    skills_no_discovery: Annotated[
        bool, Parameter(name="--skills-no-discovery", help="Offer only the skills that were selected.")
    ] = False
    skills_max_rounds: Annotated[
        int | None,
        Parameter(
            name="--skills-max-rounds",
            help="Rounds of skill lookups and runs in one answer, 1 to 64 (8; 24 with --code-exec).",
        ),
    ] = None

    def flags(self) -> dict[str, object]:
        """By long name, as ``settings.load`` takes them."""
        return {
            **WhichModel.flags(self),
            "--no-skills": self.no_skills or None,
            "--skills-no-discovery": self.skills_no_discovery or None,
            "--skills-max-rounds": self.skills_max_rounds,
        }


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class SandboxOptions:
    """What programs are confined by."""

    skills_sandbox: Annotated[
        str | None,
        Parameter(
            name="--skills-sandbox",
            help="required (without it): nothing runs that is not fully confined. preferred: confined as far as this "
            "host can, and every result says what is not. off: no sandbox.",
        ),
    ] = None
    skills_sandbox_bwrap_floor: Annotated[
        str | None,
        Parameter(
            name="--skills-sandbox-bwrap-floor",
            help="The oldest version of bubblewrap that is used, such as 0.12.0; without it any that passes its tests.",
        ),
    ] = None

    def flags(self) -> dict[str, object]:
        """By long name, as ``settings.load`` takes them."""
        return {
            "--skills-sandbox": self.skills_sandbox,
            "--skills-sandbox-bwrap-floor": self.skills_sandbox_bwrap_floor,
        }


@Parameter(name="*", group="Running programs, which is off until it is allowed")
@dataclass(frozen=True, kw_only=True)
class ExecOptions(SandboxOptions):
    """What a model may run."""

    skills_allow_exec: Annotated[
        bool,
        Parameter(name="--skills-allow-exec", help="Let models run the scripts that skills ship, in a sandbox."),
    ] = False
    skills_allow_network: Annotated[
        bool, Parameter(name="--skills-allow-network", help="Let these scripts reach the network.")
    ] = False
    skills_grant: Annotated[
        tuple[str, ...],
        Parameter(
            name="--skills-grant",
            help="Variables of this program's environment that the scripts of one skill get: SKILL=NAME,NAME; repeat "
            "it for several skills. Without it they get none.",
        ),
    ] = ()
    code_exec: Annotated[
        bool,
        Parameter(
            name="--code-exec",
            help="Let models write and change files and run commands, in a directory of their own and in a sandbox.",
        ),
    ] = False
    code_exec_allow_network: Annotated[
        bool,
        Parameter(
            name="--code-exec-allow-network",
            help="Let these commands reach the network, this machine's own services included.",
        ),
    ] = False
    code_exec_allow_install: Annotated[
        bool,
        Parameter(
            name="--code-exec-allow-install",
            help="Install Python and npm packages that a model asks for, as wheels and without install scripts; "
            "the model's own commands stay without a network.",
        ),
    ] = False
    code_exec_install_domains: Annotated[
        tuple[str, ...],
        Parameter(
            name="--code-exec-install-domains",
            help="The hosts that installs may reach, between commas; without it those that pip and npm use here.",
        ),
    ] = ()
    code_exec_packages: Annotated[
        tuple[str, ...],
        Parameter(
            name="--code-exec-packages",
            help="The packages that may be installed, between commas; without it any.",
        ),
    ] = ()
    code_exec_unconfined: Annotated[
        bool,
        Parameter(
            name="--code-exec-unconfined",
            help="Run a model's commands also where nothing confines them: they may then do all that you may. "
            "Never on a server that others reach.",
        ),
    ] = False
    code_exec_read_first: Annotated[
        bool,
        Parameter(
            name="--code-exec-read-first",
            help="Refuse to change a file that the model has not read, or that has changed since.",
        ),
    ] = False
    code_exec_temperature: Annotated[
        float | None,
        Parameter(
            name="--code-exec-temperature",
            help="The sampling temperature where code may run and the request names none, 0 to 2.",
        ),
    ] = None

    def flags(self) -> dict[str, object]:
        """By long name, as ``settings.load`` takes them."""
        return {
            **SandboxOptions.flags(self),
            "--skills-allow-exec": self.skills_allow_exec or None,
            "--skills-allow-network": self.skills_allow_network or None,
            "--skills-grant": self.skills_grant,
            "--code-exec": self.code_exec or None,
            "--code-exec-allow-network": self.code_exec_allow_network or None,
            "--code-exec-allow-install": self.code_exec_allow_install or None,
            "--code-exec-install-domains": self.code_exec_install_domains,
            "--code-exec-packages": self.code_exec_packages,
            "--code-exec-unconfined": self.code_exec_unconfined or None,
            "--code-exec-read-first": self.code_exec_read_first or None,
            "--code-exec-temperature": self.code_exec_temperature,
        }


def settings_from(*groups: SkillOptions | WhichModel | SandboxOptions, **flags: object) -> Settings:
    """Settings from option groups; what means nothing in them is named on stderr.

    ``flags`` are further flags by their long names without the leading dashes, underscores for the inner ones.
    """
    from satchel.settings import load

    merged: dict[str, object] = {f"--{name.replace('_', '-')}": value for name, value in flags.items()}
    for group in groups:
        merged |= group.flags()
    settings = load(merged)
    for name, near in settings.unknown_variables.items():
        say(f"note: {line(name)} means nothing here" + (f"; did you mean {near}?" if near else "."))
    if any(isinstance(group, ExecOptions) for group in groups):
        for warning in settings.warnings:
            say(f"note: {line(warning)}")
    return settings


def library_from(skills: SkillOptions) -> Library:
    """What the options find."""
    from satchel.wiring.sources import open_library

    return open_library(settings_from(skills))
