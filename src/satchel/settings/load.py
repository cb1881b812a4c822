"""Reads settings: a flag wins over the environment, the environment over the default."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Literal, TypeVar, cast

from pydantic import AfterValidator, BeforeValidator, Field, TypeAdapter, ValidationError

from satchel.engine.limits import LoopLimits, usual_rounds
from satchel.errors import SetupError
from satchel.execution.options import ExecutionOptions, InstallOptions
from satchel.gateway.options import ServerOptions
from satchel.library.options import SkillsOptions
from satchel.ports.models import EmbeddedOptions, UpstreamOptions
from satchel.settings import execution
from satchel.settings.row import Row
from satchel.settings.upstreams import KEY_VARIABLE, Upstream, read_upstreams, variable_of, with_keys
from satchel.skills.dialects import DIALECTS
from satchel.skills.names import near_names

Record = TypeVar("Record")


def _several(value: object) -> object:
    return (value,) if isinstance(value, str) else value


def _dialect(value: str) -> str:
    if value not in DIALECTS:
        meant = "".join(f"did you mean {near}? " for near in near_names(value, DIALECTS, 1))
        raise ValueError(f"{meant}it is none of {', '.join(sorted(DIALECTS))}")
    return value


_SKILLS, _EMBEDDED, _UPSTREAM, _SERVER = (
    SkillsOptions(),
    EmbeddedOptions(),
    UpstreamOptions(),
    ServerOptions(),
)

_OFF = frozenset({"0", "false", "no", "off"})
"""What a variable says to leave a switch off. A zero alone would have "false" allow what it means to forbid."""

_Ceiling = Annotated[int, Field(ge=1)]
_DAY_S = 86400

TABLE: tuple[Row, ...] = (
    Row(
        key="skills.dirs",
        type=tuple[str, ...],
        default=_SKILLS.dirs,
        flag="--skills-dir",
        variable="SATCHEL_SKILLS_DIR",
        separator=os.pathsep,
    ),
    Row(
        key="skills.dialect",
        type=Annotated[str, AfterValidator(_dialect)],
        default=_SKILLS.dialect,
        flag="--dialect",
        variable="SATCHEL_DIALECT",
    ),
    Row(
        key="skills.disabled",
        type=tuple[str, ...],
        default=_SKILLS.disabled,
        variable="SATCHEL_SKILLS_DISABLED",
        separator=os.pathsep,
    ),
    *(
        Row(key=f"skills.{name}", type=_Ceiling, default=None, variable=f"SATCHEL_SKILLS_{name.upper()}")
        for name in ("max_skills", "max_files", "max_skill_bytes", "max_manifest_bytes")
    ),
    Row(
        key="skills.enabled",
        type=bool,
        default=_SKILLS.enabled,
        flag="--no-skills",
        variable="SATCHEL_NO_SKILLS",
        inverted=True,
    ),
    Row(
        key="skills.discovery",
        type=bool,
        default=_SKILLS.discovery,
        flag="--skills-no-discovery",
        variable="SATCHEL_SKILLS_NO_DISCOVERY",
        inverted=True,
    ),
    Row(key="models.default", type=str, default="", flag="--model", variable="SATCHEL_MODEL"),
    Row(
        key="models.upstreams",
        type=Annotated[tuple[str, ...], BeforeValidator(_several)],
        default=(),
        flag="--upstream",
        variable="SATCHEL_UPSTREAM",
        separator=" ",
        is_secret=True,
    ),
    Row(key="models.upstream_key", type=str, default="", variable=KEY_VARIABLE, is_secret=True),
    Row(
        key="models.tools",
        type=Literal["auto", "native", "none"],
        default=_UPSTREAM.tools,
        flag="--model-tools",
        variable="SATCHEL_MODEL_TOOLS",
    ),
    Row(
        key="models.silence_s",
        type=Annotated[float, Field(gt=0, le=_DAY_S)],
        default=_UPSTREAM.silence_s,
        variable="SATCHEL_UPSTREAM_SILENCE_S",
    ),
    Row(key="models.embedded.weights", type=str, default=_EMBEDDED.weights, variable="SATCHEL_GGUF"),
    Row(key="models.embedded.cache_dir", type=str, default=_EMBEDDED.cache_dir, variable="SATCHEL_CACHE_DIR"),
    Row(
        key="models.embedded.threads",
        type=Annotated[int, Field(ge=0, le=256)],
        default=_EMBEDDED.threads,
        variable="SATCHEL_THREADS",
    ),
    Row(
        key="loop.max_rounds",
        type=Annotated[int, Field(ge=1, le=64)],
        default=None,
        flag="--skills-max-rounds",
        variable="SATCHEL_SKILLS_MAX_ROUNDS",
    ),
    *execution.ROWS,
    Row(key="server.host", type=str, default=_SERVER.host, flag="--host", variable="SATCHEL_HOST"),
    Row(
        key="server.port",
        type=Annotated[int, Field(ge=0, le=65535)],
        default=_SERVER.port,
        flag="--port",
        variable="SATCHEL_PORT",
    ),
    Row(
        key="server.ollama_port",
        type=Annotated[int, Field(ge=0, le=65535)],
        default=_SERVER.ollama_port,
        flag="--ollama-port",
        variable="SATCHEL_OLLAMA_PORT",
    ),
    Row(
        key="server.heartbeat_s",
        type=Annotated[float, Field(ge=0, le=_DAY_S)],
        default=_SERVER.heartbeat_s,
        variable="SATCHEL_HEARTBEAT_S",
    ),
    Row(
        key="server.keys",
        type=tuple[str, ...],
        default=_SERVER.keys,
        variable="SATCHEL_KEYS",
        separator=",",
        is_secret=True,
        is_never_empty=True,
    ),
    Row(
        key="server.session_idle_s",
        type=Annotated[float, Field(ge=1)],
        default=_SERVER.session_idle_s,
        variable="SATCHEL_SESSION_IDLE_S",
    ),
)

# Read where no Settings exist yet: by the command line itself and by the Makefile.
_OTHER_VARIABLES = frozenset({"SATCHEL_DEBUG"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the program runs with. ``origins`` maps a dotted key to "default", a variable's name or a flag.

    ``model`` is what requests ask for when they name no model. ``upstreams`` are all named; there is none when the
    embedded model serves alone.
    ``unknown_variables`` are set SATCHEL_ variables that mean nothing, each with the nearest one that
    does, or "". ``warnings`` are sentences about settings of ``execution`` that do not do what they seem to.
    """

    skills: SkillsOptions
    model: str
    upstreams: tuple[Upstream, ...]
    embedded: EmbeddedOptions
    loop: LoopLimits
    execution: ExecutionOptions
    server: ServerOptions
    origins: Mapping[str, str] = field(default_factory=dict[str, str])
    unknown_variables: Mapping[str, str] = field(default_factory=dict[str, str])
    warnings: tuple[str, ...] = ()


def load(flags: Mapping[str, object] | None = None, environ: Mapping[str, str] | None = None) -> Settings:
    """Settings from flags (by their long names; None means not given) and environment variables.

    Raises ``SetupError`` that names the flag or variable of a value that cannot be used.
    """
    environ = os.environ if environ is None else environ
    flags = flags or {}
    values: dict[str, object] = {}
    origins: dict[str, str] = {}
    for row in TABLE:
        values[row.key], origins[row.key] = _value(row, flags, environ)
    warnings = execution.check(values, origins)
    if values["loop.max_rounds"] is None:
        values["loop.max_rounds"] = usual_rounds(has_code=bool(values["execution.code"]))
    embedded = _record(EmbeddedOptions, "models.embedded", values)
    install = _record(InstallOptions, "execution.install", values)
    upstreams = _upstreams(values, origins, embedded, environ)
    return Settings(
        skills=_record(SkillsOptions, "skills", values),
        model=str(values["models.default"]),
        upstreams=upstreams,
        embedded=embedded,
        loop=_record(LoopLimits, "loop", values),
        execution=replace(_record(ExecutionOptions, "execution", values), install=install),
        server=_record(ServerOptions, "server", values),
        origins=origins,
        unknown_variables=_unknown(environ, upstreams),
        warnings=warnings,
    )


def _upstreams(
    values: Mapping[str, object], origins: dict[str, str], embedded: EmbeddedOptions, environ: Mapping[str, str]
) -> tuple[Upstream, ...]:
    """The model servers with their keys; notes where each key came from."""
    common = replace(
        _UPSTREAM,
        tools=cast("Literal['auto', 'native', 'none']", values["models.tools"]),
        silence_s=cast("float", values["models.silence_s"]),
    )
    given = cast("tuple[str, ...]", values["models.upstreams"])
    read = read_upstreams(given, origin=origins["models.upstreams"], common=common, embedded=embedded)
    keyed, sources = with_keys(read, str(values["models.upstream_key"]), environ)
    origins.update({f"models.upstream_key.{name}": variable for name, variable in sources.items()})
    return keyed


def _value(row: Row, flags: Mapping[str, object], environ: Mapping[str, str]) -> tuple[object, str]:
    given = flags.get(row.flag) if row.flag else None
    if given not in (None, (), []):
        origin, value = row.flag, given
    elif environ.get(row.variable, "") != "" or (row.is_never_empty and row.variable in environ):
        origin, raw = row.variable, environ[row.variable]
        value = raw.split(row.separator.strip() or None) if row.separator else raw
        if row.type is bool:
            value = raw.strip().lower() not in _OFF
    else:
        return row.default, "default"
    if row.inverted:
        return not value, origin
    if _has_blank(value):
        raise SetupError(
            "setting-invalid",
            f"{origin} is empty or has an empty element.",
            hint="Leave it out, or give it a value.",
            data={"key": row.key},
        )
    try:
        return TypeAdapter[object](row.type).validate_python(value), origin
    except ValidationError as error:
        problem = error.errors()[0]
        reason = problem["msg"].removeprefix("Value error, ")
        told = " ".join(map(str, cast("Sequence[object]", value))) if isinstance(value, (list, tuple)) else value
        shown = "" if row.is_secret else f" {told!r}"
        raise SetupError(
            "setting-invalid",
            f"{origin}{shown} cannot be used: {reason[:1].lower()}{reason[1:]}.",
            hint=f"docs/reference/cli.md says what {origin} takes.",
            data={"key": row.key},
        ) from None


def _has_blank(value: object) -> bool:
    parts = cast("Sequence[object]", value) if isinstance(value, (list, tuple)) else (value,)
    return not parts or any(isinstance(part, str) and not part.strip() for part in parts)


def _record(kind: type[Record], prefix: str, values: Mapping[str, object]) -> Record:
    known = {key.removeprefix(prefix + "."): value for key, value in values.items() if key.startswith(prefix + ".")}
    return kind(**{key: value for key, value in known.items() if "." not in key})


def _unknown(environ: Mapping[str, str], upstreams: Sequence[Upstream]) -> dict[str, str]:
    known = {row.variable for row in TABLE if row.variable} | _OTHER_VARIABLES
    known |= {variable_of(options.name) for options in upstreams if isinstance(options, UpstreamOptions)}
    strange = [name for name in environ if name.startswith("SATCHEL_") and name not in known]
    return {name: next(iter(near_names(name, sorted(known))), "") for name in sorted(strange)}
