"""What an activation answers: one record, and the texts of seed 000, section 3."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from typing import Literal

from satchel.chat.arguments import writable
from satchel.chat.messages import Json
from satchel.skills.fields import YamlValue
from satchel.skills.model import LoadedSkill
from satchel.skills.oneline import one_line

Kind = Literal["ok", "already_loaded", "not_found", "error"]
Code = Literal[
    "INVALID_PARAM",
    "NOT_FOUND",
    "SENSITIVE",
    "OUTSIDE_WORKSPACE",
    "INVALID_FRONTMATTER",
    "NAME_MISMATCH",
    "DISABLED",
    "NOT_TRUSTED",
    "PERMISSION_DENIED",
    "IO_ERROR",
]

Bodies = Literal["result", "system"]
"""Where the instructions of active skills stand: in the result that activates each, or in the system prompt."""

RESOURCES_A_FOLDER = 10
_FOLDERS = ("scripts", "references", "assets")
_BARE = re.compile(r"[A-Za-z0-9_./-]+")
_SHOWN = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class Activation:
    """The answer to one activation. ``output`` is what the model reads; the other fields say the same as data.

    Of kind "ok": ``dir``, ``body`` (with its arguments in place), ``frontmatter``, ``resources``, ``bytes`` (of the
    body), ``at_turn`` and ``digest``. "already_loaded" has ``at_turn``, "not_found" ``siblings`` and the code
    NOT_FOUND, "error" a ``code`` with ``message``, ``path``, ``reason`` and ``hint``. ``warnings`` are for the host.
    """

    kind: Kind
    name: str
    output: str
    code: Code | Literal[""] = ""
    message: str = ""
    path: str = ""
    reason: str = ""
    hint: str = ""
    dir: str = ""
    body: str = ""
    frontmatter: Mapping[str, YamlValue] = field(default_factory=dict[str, YamlValue])
    resources: tuple[str, ...] = ()
    bytes: int = 0
    at_turn: int = 0
    digest: str = ""
    siblings: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether the skill's instructions are in the conversation, by this call or an earlier one."""
        return self.kind in {"ok", "already_loaded"}

    def to_dict(self) -> dict[str, Json]:
        """JSON-safe, with the keys that the seed gives to each kind."""
        shared: dict[str, Json] = {"kind": self.kind, "name": self.name}
        if self.kind == "ok":
            shared |= {
                "dir": self.dir,
                "body": self.body,
                "frontmatter": plain(self.frontmatter),
                "resources": list(self.resources),
                "bytes": self.bytes,
                "at_turn": self.at_turn,
            }
        elif self.kind == "already_loaded":
            shared["at_turn"] = self.at_turn
        elif self.kind == "not_found":
            shared |= {"code": self.code, "siblings": list(self.siblings)}
        else:
            shared |= {"code": self.code, "message": self.message}
            extra = {"path": self.path, "reason": self.reason, "hint": self.hint}
            shared |= {key: text for key, text in extra.items() if text}
        return shared | {"output": self.output}


class RefusedError(Exception):
    """Ends an activation inside the session.

    ``reply`` is what the caller gets; ``who`` decided that, about a SKILL.md with this ``digest``.
    """

    def __init__(self, reply: Activation, *, who: str = "policy", digest: str = "") -> None:
        super().__init__(reply.output)
        self.reply = reply
        self.who = who
        self.digest = digest


def refused(
    name: str,
    code: Code,
    message: str,
    *,
    path: str = "",
    reason: str = "",
    hint: str = "",
    who: str = "policy",
    digest: str = "",
) -> RefusedError:
    """An error of the tool as the seed writes it: ``Error [CODE]: message`` and a line each for what is known."""
    lines = [f"Error [{code}]: {message}"]
    lines += [f"{label}: {one_line(text)}" for label, text in _labelled(path, reason, hint) if text]
    return RefusedError(
        Activation(
            kind="error",
            name=name,
            output="\n".join(lines),
            code=code,
            message=message,
            path=path,
            reason=reason,
            hint=hint,
        ),
        who=who,
        digest=digest,
    )


def _labelled(path: str, reason: str, hint: str) -> tuple[tuple[str, str], ...]:
    return ("Path", path), ("Reason", reason), ("Hint", hint)


def not_found(name: str, siblings: Sequence[str]) -> Activation:
    """No skill has the name."""
    said = shown(name)
    if siblings:
        meant = ", ".join(map(shown, siblings))
        text = f'(No skill matches "{said}". Did you mean: {meant}? Run with a listed name from the catalog.)'
    else:
        text = f'(No skill matches "{said}". Check the catalog for installed skill names.)'
    return Activation(kind="not_found", name=name, output=text, code="NOT_FOUND", siblings=tuple(siblings))


def no_such_tool(name: str) -> str:
    """For a call to another tool than a session's."""
    return f'Error [NOT_FOUND]: there is no tool called "{shown(name)}".\nHint: The tool is called skill.'


def already_loaded(name: str, at_turn: int) -> Activation:
    """The skill's instructions are in the conversation."""
    text = (
        f'(Skill "{shown(name)}" is already active in this session. Body was loaded at turn {at_turn}. '
        "No new content was added.)"
    )
    return Activation(kind="already_loaded", name=name, output=text, at_turn=at_turn)


def without_tools(reply: Activation, missing: Sequence[str]) -> Activation:
    """The reply of an activated skill that counts on tools which are not there; the model and the host are told."""
    if not missing:
        return reply
    names = ", ".join(missing)
    told = f"(It names tools that you do not have: {names}. Do not call them; say what cannot be done without them.)"
    warning = f'The skill "{reply.name}" names tools that are not there: {names}.'
    return replace(reply, output=f"{reply.output}\n{told}", warnings=(*reply.warnings, warning))


def opening(name: str, directory: str, nonce: str) -> str:
    """The tag that begins a skill. Nobody who wrote the skill or its arguments knows the nonce."""
    return f'<skill name="{escape(writable(name))}" dir="{escape(writable(directory))}" nonce="{nonce}">'


def block(
    *,
    name: str,
    directory: str,
    nonce: str,
    frontmatter: Mapping[str, YamlValue],
    body: str,
    resources: Sequence[str],
) -> str:
    """The ``<skill>`` block. ``body`` is verbatim, its own closing tags too."""
    parts = [
        opening(name, directory, nonce),
        "<frontmatter>",
        yaml_text(frontmatter),
        "</frontmatter>",
        "<instructions>",
        body,
        "</instructions>",
    ]
    if resources:
        parts += ["<resources>", *resources, "</resources>"]
    return "\n".join((*parts, "</skill>"))


def behind_block(name: str, directory: str, size: int) -> str:
    """The line behind a block that is given for the first time."""
    told = f'(Skill "{shown(name)}" activated. Body is {size} bytes.'
    if directory:
        told += (
            " Scripts available via bash(<skill-dir>/scripts/<name>)."
            " References via read(<skill-dir>/references/<name>)."
        )
    return told + ")"


def resources_of(loaded: LoadedSkill) -> tuple[str, ...]:
    """What lies directly in scripts/, references/ and assets/: ten names of each, then how many more there are."""
    listed: list[str] = []
    for folder in _FOLDERS:
        names: dict[str, None] = {}
        for file in loaded.files:
            first, slash, rest = file.path.partition("/")
            if slash and first == folder:
                inner, deeper, _ = rest.partition("/")
                names[f"{folder}/{one_line(inner)}{deeper}"] = None
        ordered = sorted(names)
        listed += ordered[:RESOURCES_A_FOLDER]
        if len(ordered) > RESOURCES_A_FOLDER:
            listed.append(f"{folder}/(... {len(ordered) - RESOURCES_A_FOLDER} more)")
    return tuple(listed)


def with_shadowed(frontmatter: Mapping[str, YamlValue], shadowed: Sequence[str]) -> dict[str, YamlValue]:
    """The frontmatter, with the directories that lost the name in ``metadata.shadowed``."""
    values = dict(frontmatter)
    if shadowed:
        metadata = values.get("metadata")
        kept = dict(metadata) if isinstance(metadata, Mapping) else {}
        values["metadata"] = {**kept, "shadowed": tuple(shadowed)}
    return values


def yaml_text(values: Mapping[str, YamlValue], indent: str = "") -> str:
    """The fields as YAML again: plain words bare, other text quoted or, of several lines, as a block."""
    lines: list[str] = []
    for key, value in values.items():
        label = f"{indent}{_scalar(key)}:"
        if isinstance(value, Mapping):
            inner = yaml_text(value, indent + "  ")
            lines.append(f"{label}\n{inner}" if inner else f"{label} {{}}")
        elif isinstance(value, str) and "\n" in value and not _needs_quotes(value):
            lines.append(f"{label} |")
            lines += [f"{indent}  {line}".rstrip() for line in value.rstrip("\n").split("\n")]
        else:
            lines.append(f"{label} {_flow(value)}")
    return "\n".join(lines)


def _needs_quotes(text: str) -> bool:
    """Whether a block of lines would not give the same text back."""
    return text[:1].isspace() or any(not (char.isprintable() or char == "\n") for char in text)


def _flow(value: YamlValue) -> str:
    if isinstance(value, str):
        return _scalar(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_scalar(key)}: {_flow(item)}" for key, item in value.items()) + "}"
    return "[" + ", ".join(_flow(item) for item in value) + "]"


def _scalar(text: str) -> str:
    return text if _BARE.fullmatch(text) else json.dumps(text, ensure_ascii=False)


def plain(value: YamlValue) -> Json:
    """The value in the types that JSON has."""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value]


def shown(name: str) -> str:
    """A name that somebody asked for, on one line and not for long."""
    line = one_line(name)
    return line if len(line) <= _SHOWN else line[:_SHOWN] + "..."
