"""The format of scenario files, as ``docs/guides/evals.md`` describes it, and how they are found and read."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, ValidationError, model_validator

from satchel.errors import SetupError

BUILTIN = Path(__file__).parent / "scenarios"
"""The scenarios SK1 to SK8, which come with the package."""


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


def _said(value: object) -> object:
    return {"text": value} if isinstance(value, str) else value


class Say(_Record):
    """What the user says next. ``force`` is the tool that a guided model must call for it, "" for none.

    Models that call tools by themselves are never forced.
    """

    text: str
    force: str = ""


class Check(_Record):
    """One thing that must be true of a conversation; see ``satchel.evals.checks``."""

    kind: Literal[
        "called", "never_called", "code", "not_bypassed", "answer", "lacks", "active", "asked", "ran", "never_ran"
    ]
    tool: str = "skill"
    arguments: Mapping[str, JsonValue] = Field(default_factory=dict)
    code: str = ""
    any_of: tuple[str, ...] = ()
    times: int | None = None
    at_most: int | None = None


class Shell(_Record):
    """A shell in the host's sandbox. ``allow`` are the patterns of commands that the permission hook lets through.

    ``before`` are commands that prepare its directory, which is empty otherwise.
    """

    allow: tuple[str, ...] = ()
    before: tuple[str, ...] = ()


class Find(_Record):
    """A piece of the request: the last match of a regular expression in its ``system``, ``user`` or ``result`` text.

    The first group when there is one, else the whole match.
    """

    part: Literal["system", "user", "result"]
    pattern: str


class Step(_Record):
    """One generation of the double: a call, or an answer. ``{name}`` stands for what ``finds`` found in the request."""

    call: str = ""
    arguments: Mapping[str, JsonValue] = Field(default_factory=dict)
    answer: str = ""
    finds: Mapping[str, Find] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if bool(self.call) == bool(self.answer):
            raise ValueError('a step has either "call" or "answer"')
        return self


class Case(_Record):
    """One conversation. ``values`` take the place of ``@name@`` in the scenario.

    In a scenario of the catalogue, ``skill`` is the one that holds the ``answer`` (alternatives); without it the
    question needs no skill. ``needs`` is what the case cannot do without: "shell" lets the skill's scripts run.
    """

    id: str
    say: Annotated[tuple[Annotated[Say, BeforeValidator(_said)], ...], Field(min_length=1)]
    values: Mapping[str, str] = Field(default_factory=dict)
    skill: str = ""
    answer: tuple[str, ...] = ()
    needs: Literal["", "shell"] = ""


class Scenario(_Record):
    """One scenario file.

    ``surface`` "session" is a ``SkillSession`` with its ``skill`` tool, graded by ``checks``; "catalogue" is the
    gateway's way with ``skills_list`` and ``skills_read``, graded in the arms. ``folder`` holds the skill folders,
    relative to the file, and ``skills`` names those that count (all without it). ``values`` are drawn anew from the
    seed of a run and take the place of ``@name@`` in skills, commands and checks. ``situation`` is what must have come
    about for a model's run to say anything.
    """

    id: str
    title: str
    surface: Literal["session", "catalogue"] = "session"
    folder: str = "skills"
    skills: tuple[str, ...] = ()
    values: Mapping[str, Literal["number", "code", "word"]] = Field(default_factory=dict)
    permission: Literal["allow", "none"] = "allow"
    shell: Shell | None = None
    situation: tuple[Check, ...] = ()
    checks: tuple[Check, ...] = ()
    contract: tuple[Step, ...] = ()
    guided: str = ""
    """Why a guided model cannot do this; "" when it can."""
    cases: Annotated[tuple[Case, ...], Field(min_length=1)]

    def of(self, case: Case, values: Mapping[str, str]) -> Scenario:
        """The scenario with its values, and those of one of its cases, in their places."""
        placed = dict(values) | {name: place(text, values) for name, text in case.values.items()}
        dump = self.model_dump(exclude={"cases"}) | {"cases": [case.model_dump()]}
        return Scenario.model_validate(_placed(dump, placed))


def place(text: str, values: Mapping[str, str]) -> str:
    """The text with each ``@name@`` replaced."""
    for name, value in values.items():
        text = text.replace(f"@{name}@", value)
    return text


def _placed(value: object, values: Mapping[str, str]) -> object:
    if isinstance(value, str):
        return place(value, values)
    if isinstance(value, Mapping):
        fields = cast("Mapping[str, object]", value)
        return {key: _placed(item, values) for key, item in fields.items()}
    if isinstance(value, (list, tuple)):
        return [_placed(item, values) for item in cast("Iterable[object]", value)]
    return value


def read_scenario(path: Path) -> Scenario:
    """One file. Raises ``SetupError`` "setting-invalid" that says what is wrong and where."""
    raw = read_json(path)
    try:
        return Scenario.model_validate(raw)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the file"
        raise SetupError(
            "setting-invalid", f"{path}: {where}: {first['msg']}.", hint="The format: docs/guides/evals.md."
        ) from error


def read_json(path: Path) -> Any:
    """The JSON of a file. Raises ``SetupError`` "setting-invalid"."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise SetupError("setting-invalid", f"Cannot read {path}: {error.strerror or error}.") from error
    except UnicodeDecodeError as error:
        raise SetupError("setting-invalid", f"{path} is not UTF-8 text (byte {error.start}).") from error
    return parse_json(text, path)


def parse_json(text: str, path: Path) -> Any:
    """The JSON that ``path`` holds. Raises ``SetupError`` "setting-invalid"."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SetupError("setting-invalid", f"{path} is not JSON: {error}.") from error


def scenario_files(directory: Path) -> Iterator[Path]:
    """The scenario files directly in a directory."""
    yield from sorted(path for path in directory.glob("*.json") if path.is_file())
