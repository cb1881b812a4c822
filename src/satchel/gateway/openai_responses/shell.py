"""Skills that a request names in the vendor's own way: in the environment of its shell tool.

Such an entry only selects skills here. The shell itself is a hosted tool of the vendor; it goes on to a model server
of the same format when it carries no skills, and ends here when it does.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import cast

from satchel.chat.messages import Json
from satchel.errors import BundleError, SkillError
from satchel.gateway.fields import MAX_SKILLS, refused
from satchel.library.inline import INLINE_LIMITS, InlineSkill, read_inline

MAX_INLINE = 16
"""Most archives in one request. All of them together may unpack to what one may."""

_Object = dict[str, Json]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """An archive in a request: where it stands there, the name beside it, and its base64 text."""

    place: str
    name: str
    data: str


@dataclass(slots=True)
class ShellSkills:
    """What the tools of a request say of skills.

    ``names`` and ``bundles`` are what they select; ``others`` are the tools without the entries that did, ``shown``
    all tools as the answer repeats them, archives left out.
    """

    names: list[str] = field(default_factory=list[str])
    bundles: list[Bundle] = field(default_factory=list[Bundle])
    others: list[_Object] = field(default_factory=list[_Object])
    shown: list[_Object] = field(default_factory=list[_Object])

    @property
    def has_taken(self) -> bool:
        """Whether an entry ended here."""
        return len(self.others) < len(self.shown)


def read_tools(tools: Sequence[_Object]) -> ShellSkills:
    """Sorts the tools of a request. Raises ``RequestError`` that names the place of an entry that cannot be read."""
    found = ShellSkills()
    for position, tool in enumerate(tools):
        environment = tool.get("environment")
        entries = environment.get("skills") if isinstance(environment, dict) else None
        if tool.get("type") != "shell" or not isinstance(environment, dict) or not entries or _is_local(environment):
            found.others.append(tool)
            found.shown.append(tool)
            continue
        place = f"tools[{position}].environment.skills"
        if not isinstance(entries, list):
            raise refused(place, "Input should be a valid list.")
        shown = [_read_entry(entry, f"{place}[{number}]", found) for number, entry in enumerate(entries)]
        found.shown.append({**tool, "environment": {**environment, "skills": cast("list[Json]", shown)}})
        if len(found.names) > MAX_SKILLS:
            raise refused(place, f"At most {MAX_SKILLS} skills can be named.")
        if len(found.bundles) > MAX_INLINE:
            raise refused(place, f"At most {MAX_INLINE} skills can come with a request.")
    return found


def open_bundles(bundles: Sequence[Bundle]) -> tuple[InlineSkill, ...]:
    """The skills in the archives; takes its time, so not for the event loop. Raises ``RequestError``."""
    skills: dict[str, InlineSkill] = {}
    room = INLINE_LIMITS.total_bytes
    for bundle in bundles:
        try:
            data = base64.b64decode(bundle.data, validate=True)
            skill = read_inline(data, name=bundle.name, limits=replace(INLINE_LIMITS, total_bytes=room))
        except (binascii.Error, ValueError):
            raise refused(f"{bundle.place}.source.data", "Input should be base64.") from None
        except (BundleError, SkillError) as error:
            said = " ".join(part for part in (error.message, error.hint) if part)
            raise refused(f"{bundle.place}.source.data", said) from error
        room -= skill.bytes
        name = skill.loaded.name
        if name.casefold() in skills:
            raise refused(bundle.place, f'Another skill of this request is called "{name}" too.')
        skills[name.casefold()] = skill
    return tuple(skills.values())


def _is_local(environment: _Object) -> bool:
    """Whether the client runs the shell itself; its skills then lie on its own disk."""
    return environment.get("type") == "local"


def _read_entry(entry: Json, place: str, found: ShellSkills) -> _Object:
    if not isinstance(entry, dict):
        raise refused(place, "Input should be a valid dictionary.")
    match entry.get("type"):
        case "skill_reference":
            name = _text(entry, "skill_id", place)
            version = entry.get("version")
            if version is not None and version not in ("", "latest"):
                raise refused(
                    f"{place}.version",
                    f'"{name}" exists here in one version only: leave the version out, or ask for "latest".',
                )
            found.names.append(name)
            return entry
        case "inline":
            source = entry.get("source")
            if not isinstance(source, dict):
                raise refused(f"{place}.source", "Input should be a valid dictionary.")
            if source.get("type") != "base64" or source.get("media_type") != "application/zip":
                raise refused(f"{place}.source", 'Input should have the type "base64" and hold "application/zip".')
            bundle = Bundle(
                place=place, name=_text(entry, "name", place), data=_text(source, "data", f"{place}.source")
            )
            found.bundles.append(bundle)
            return {**entry, "source": {**source, "data": ""}}
        case _:
            raise refused(f"{place}.type", 'Input should be "skill_reference" or "inline".')


def _text(entry: _Object, key: str, place: str) -> str:
    value = entry.get(key)
    if not isinstance(value, str) or not value:
        raise refused(f"{place}.{key}", "Input should be a string that is not empty.")
    return value
