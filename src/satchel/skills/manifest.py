"""The bytes of a SKILL.md become a ``Skill``, read leniently: whatever was tolerated is reported."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from satchel.skills.diagnostics import finding, judge
from satchel.skills.dialect import Dialect
from satchel.skills.frontmatter import Frontmatter, FrontmatterError, parse_frontmatter, split_fences
from satchel.skills.model import MANIFEST, Diagnostic, Flags, Skill, SkillRef, YamlValue
from satchel.skills.names import is_legal_name, normalize_name
from satchel.skills.oneline import hidden_characters, one_line
from satchel.skills.tool_patterns import split_patterns

_BOM = b"\xef\xbb\xbf"
_WORDS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
_TEXT_KEYS = ("license", "compatibility", "when-to-use")
_MISSPELLED = {"user-invokable": "user-invocable"}
_HUMP = re.compile(r"(?<=[a-z0-9])[A-Z]")
_MAX_HIDDEN_FINDINGS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What a SKILL.md holds. ``skill`` is None when a finding of severity "error" keeps it from loading."""

    skill: Skill | None
    body: str
    diagnostics: tuple[Diagnostic, ...]


def parse_manifest(
    data: bytes, *, directory: str, dialect: Dialect, path: str = MANIFEST, location: str = "", source: str = ""
) -> Manifest:
    """Reads ``data`` as the SKILL.md of a directory called ``directory`` (its last name only).

    ``path`` stands in the findings; ``location`` and ``source`` go into the record as they are.
    """
    reading = _Reading(directory, dialect, path)
    skill, body = reading.read(data, location, source)
    return Manifest(skill=skill, body=body, diagnostics=tuple(reading.found))


class _Reading:
    def __init__(self, directory: str, dialect: Dialect, path: str) -> None:
        self._directory = directory
        self._dialect = dialect
        self._path = path
        self._lines: Mapping[str, int] = {}
        self._repaired: set[str] = set()
        self.found: list[Diagnostic] = []
        self._broken = False

    def read(self, data: bytes, location: str, source: str) -> tuple[Skill | None, str]:
        text = self._decode(data)
        if text is None:
            return None, ""
        try:
            fenced = split_fences(text)
            front = parse_frontmatter(fenced.yaml)
        except FrontmatterError as error:
            # Without a mapping there is nothing to be lenient with, whatever the dialect says.
            self.found.append(finding(error.rule, self._path, error.message, line=error.line, column=error.column))
            return None, ""
        self._note_hidden(text)
        values = self._canonical(front)
        if values is None:
            return None, ""
        skill = self._skill(values, location, source)
        if not fenced.body.strip():
            self._add("body-empty", "The file has no instructions after its frontmatter.")
        return skill, fenced.body

    def _add(self, rule: str, message: str, *, key: str = "", line: int = 0, hint: str | None = None) -> None:
        raw = finding(rule, self._path, message, line=line or self._lines.get(key, 0), hint=hint)
        judged = judge(raw, self._dialect)
        if judged is not None:
            self.found.append(judged)
            self._broken = self._broken or judged.severity == "error"

    def _decode(self, data: bytes) -> str | None:
        if len(data) > self._dialect.limits.manifest_bytes:
            message = f"The file is larger than {self._dialect.limits.manifest_bytes} bytes."
            self.found.append(finding("manifest-too-large", self._path, message))
            return None
        if data.startswith((b"\xff\xfe", b"\xfe\xff")):
            message = "The file is UTF-16 text, not UTF-8 (byte offset 0)."
            self.found.append(finding("encoding-invalid", self._path, message))
            return None
        skipped = len(_BOM) if data.startswith(_BOM) else 0
        try:
            return data[skipped:].decode("utf-8")
        except UnicodeDecodeError as error:
            offset = error.start + skipped
            line = data.count(b"\n", 0, offset) + 1
            message = f"The file is not valid UTF-8: byte 0x{data[offset]:02x} at byte offset {offset}."
            self.found.append(finding("encoding-invalid", self._path, message, line=line))
            return None

    def _note_hidden(self, text: str) -> None:
        for line, codes in hidden_characters(text, max_lines=_MAX_HIDDEN_FINDINGS).items():
            shown = ", ".join(dict.fromkeys(codes[:64]))
            self._add("hidden-characters", f"{len(codes)} invisible character(s): {shown[:160]}.", line=line)

    def _canonical(self, front: Frontmatter) -> dict[str, YamlValue] | None:
        """The values under the canonical spelling of every known key; None when two spellings disagree."""
        for line, key in front.repaired.items():
            self._add("yaml-repaired", f'The value of "{key}" was read as plain text.', line=line)
        values: dict[str, YamlValue] = {}
        lines: dict[str, int] = {}
        for key, value in front.values.items():
            known = self._known(key)
            name = known or key
            if name in values:
                if values[name] != value:
                    message = f'"{key[:80]}" and another spelling of "{name}" have different values.'
                    found = finding("yaml-duplicate-key", self._path, message, line=front.lines[key])
                    self.found.append(found)
                    return None
                continue
            values[name] = value
            lines[name] = front.lines[key]
            if key in front.repaired.values():
                self._repaired.add(name)
            if known is None:
                self._add("key-unknown", f'"{key[:80]}" is not a known key.', line=lines[name])
            elif known != key:
                self._add("key-spelling", f'"{key}" is read as "{known}".', line=lines[name])
        self._lines = lines
        return values

    def _known(self, key: str) -> str | None:
        understands = self._dialect.understands
        if key in understands:
            return key
        if not key or not key[0].islower():
            return None
        kebab = _HUMP.sub(lambda hump: "-" + hump.group().lower(), key).replace("_", "-")
        kebab = _MISSPELLED.get(kebab, kebab)
        return kebab if kebab in understands else None

    def _skill(self, values: dict[str, YamlValue], location: str, source: str) -> Skill | None:
        name = self._name(values)
        description = self._description(values)
        self._texts(values)
        self._metadata(values.get("metadata"))
        allowed = self._tools(values, "allowed-tools")
        self._tools(values, "disallowed-tools")
        flags = Flags(
            model_invocable=not self._switch(values, "disable-model-invocation", absent=False)
            or self._dialect.model_flag == "ignore",
            user_invocable=self._switch(values, "user-invocable", absent=True) or self._dialect.user_flag == "ignore",
        )
        if self._broken:
            return None
        summary = one_line(description)
        return Skill(
            ref=SkillRef(source=source, name=name),
            description=description,
            summary=summary if self._dialect.description_cut is None else summary[: self._dialect.description_cut],
            frontmatter=values,
            allowed_tools=allowed,
            flags=flags,
            location=location,
            diagnostics=tuple(self.found),
        )

    def _name(self, values: Mapping[str, YamlValue]) -> str:
        limit = self._dialect.limits.name
        rule = self._dialect.name_from
        fallback = normalize_name(self._directory, limit)
        declared = values.get("name", "")
        if not isinstance(declared, str):
            self._add("field-shape", "The name is not text.", key="name")
            declared = ""
        declared = declared.strip()
        if rule == "directory":
            if declared and declared != fallback:
                self._add("name-directory-mismatch", f'The name {_shown(declared)} is not "{fallback}".', key="name")
            return self._usable(fallback)
        if rule == "declared-verbatim":
            return self._usable(declared)
        name = declared if is_legal_name(declared, limit) else normalize_name(declared, limit)
        if not name and rule == "declared-or-directory" and fallback:
            message = f'The name {_shown(declared)} cannot be used; the directory\'s, "{fallback}", is.'
            if declared:
                self._add("name-normalized", message, key="name")
            else:
                self._add("name-missing", f'There is no name; the directory\'s, "{fallback}", is used.', key="name")
            return fallback
        if not name:
            return self._usable(name)
        if name != declared:
            self._add("name-normalized", f'The name {_shown(declared)} was changed to "{name}".', key="name")
        if name != fallback:
            message = f'The name "{name}" differs from the directory\'s, {_shown(self._directory)}.'
            self._add("name-directory-mismatch", message, key="name")
        return name

    def _usable(self, name: str) -> str:
        if not name:
            self._add("name-unusable", "Neither a name nor the directory gives a usable skill name.", key="name")
        return name

    def _description(self, values: Mapping[str, YamlValue]) -> str:
        value = values.get("description")
        if not isinstance(value, str) or not one_line(value):
            reason = "is missing" if value is None else "is blank" if isinstance(value, str) else "is not text"
            self._add("description-missing", f"The description {reason}.", key="description", line=self._line(1))
            return ""
        self._bounded("description", value, self._dialect.limits.description)
        return value

    def _line(self, otherwise: int) -> int:
        return self._lines.get("description", otherwise)

    def _bounded(self, key: Literal["description", "compatibility"], value: str, limit: int | None) -> None:
        length = len(value.strip())
        if limit is not None and length > limit:
            self._add(f"{key}-long", f"The {key} has {length} characters; {limit} are allowed.", key=key)

    def _texts(self, values: dict[str, YamlValue]) -> None:
        for key in _TEXT_KEYS:
            value = values.get(key, "")
            if not isinstance(value, str):
                self._add("field-shape", f'"{key}" is not text and does not count.', key=key)
            elif key == "compatibility":
                self._bounded("compatibility", value, self._dialect.limits.compatibility)
        hint = values.get("argument-hint", "")
        if isinstance(hint, list) and all(isinstance(item, str) for item in hint):
            values["argument-hint"] = " ".join(f"[{item}]" for item in hint)
            self._add("field-shape", '"argument-hint" is a YAML list; it was read as text.', key="argument-hint")
        elif not isinstance(hint, str):
            self._add("field-shape", '"argument-hint" is not text and does not count.', key="argument-hint")

    def _metadata(self, value: YamlValue | None) -> None:
        if value is None or value == "":
            return
        if not isinstance(value, Mapping):
            self._add("field-shape", '"metadata" is not a mapping and does not count.', key="metadata")
            return
        for key, item in value.items():
            if not isinstance(item, str):
                self._add("metadata-not-text", f"metadata.{key[:80]} is not text.", key="metadata")

    def _tools(self, values: Mapping[str, YamlValue], key: str) -> tuple[str, ...]:
        value = values.get(key, "")
        patterns: list[str] = []
        if isinstance(value, str):
            if key not in self._repaired or not value.startswith(("[", "{")):
                return split_patterns(value)
            # A list that is not YAML, taken as text, would name other tools than its author meant.
            self._add("field-shape-unsafe", f'"{key}" is a list that is not valid YAML.', key=key)
        elif isinstance(value, Mapping) or not all(isinstance(item, str) for item in value):
            self._add("field-shape-unsafe", f'"{key}" is neither text nor a list of texts.', key=key)
        else:
            patterns = [item.strip() for item in value if isinstance(item, str) and item.strip()]
        return tuple(patterns)

    def _switch(self, values: Mapping[str, YamlValue], key: str, *, absent: bool) -> bool:
        value = values.get(key)
        if value is None:
            return absent
        word = value.strip().lower() if isinstance(value, str) else ""
        if word not in _WORDS:
            self._add("field-shape-unsafe", f'"{key}" is neither true nor false.', key=key)
            return absent
        return _WORDS[word]


def _shown(text: str) -> str:
    return f'"{one_line(text)[:80]}"'
