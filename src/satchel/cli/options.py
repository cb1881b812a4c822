"""Options that several commands share, and how they become settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from cyclopts import Parameter

from satchel.cli.console import line, say
from satchel.settings import Settings, load

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
        int | None, Parameter(name="--skills-max-rounds", help="Rounds of skill lookups in one answer, 1 to 64 (8).")
    ] = None

    def flags(self) -> dict[str, object]:
        """By long name, as ``settings.load`` takes them."""
        return {
            **WhichModel.flags(self),
            "--no-skills": self.no_skills or None,
            "--skills-no-discovery": self.skills_no_discovery or None,
            "--skills-max-rounds": self.skills_max_rounds,
        }


def settings_from(*groups: SkillOptions | WhichModel, **flags: object) -> Settings:
    """Settings from option groups; a variable that means nothing is named on stderr.

    ``flags`` are further flags by their long names without the leading dashes, underscores for the inner ones.
    """
    merged: dict[str, object] = {f"--{name.replace('_', '-')}": value for name, value in flags.items()}
    for group in groups:
        merged |= group.flags()
    settings = load(merged)
    for name, near in settings.unknown_variables.items():
        say(f"note: {line(name)} means nothing here" + (f"; did you mean {near}?" if near else "."))
    return settings
