"""The bytes of a SKILL.md become a ``Skill``, read leniently: whatever was tolerated is reported."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from typing import Literal, NamedTuple

from satchel.skills.diagnostics import finding, judge
from satchel.skills.dialect import Dialect
from satchel.skills.fields import WORDS, Argument, parse_arguments, parse_version
from satchel.skills.frontmatter import Frontmatter, read_plain
from satchel.skills.manifest_text import ManifestText, open_manifest
from satchel.skills.model import MANIFEST, Diagnostic, Flags, Skill, YamlValue, new_skill
from satchel.skills.names import is_legal_name, normalize_name
from satchel.skills.oneline import one_line
from satchel.skills.spelling import RESTRICTING, read_keys
from satchel.skills.tool_patterns import split_patterns

_TEXTS = ("license", "compatibility", "when-to-use", "version", "argument-hint")
_TEXT_KEYS = frozenset(_TEXTS)
_HARMLESS = frozenset({"paths", "arguments"})
_SHAPED = (RESTRICTING | _HARMLESS) - {"allowed-tools"}
_Listed = Literal["allowed-tools", "disallowed-tools", "paths", "arguments"]
_ANYBODY = Flags()
_NO_LIMIT = 1 << 30
_MARKUP = re.compile(r"<[A-Za-z/!?][^<>]{0,200}>")


class Manifest(NamedTuple):
    """What a SKILL.md holds. ``skill`` is None when a finding of severity "error" keeps it from loading."""

    skill: Skill | None
    body: str
    diagnostics: tuple[Diagnostic, ...]


def parse_manifest(
    data: bytes,
    *,
    directory: str,
    dialect: Dialect,
    path: str = MANIFEST,
    location: str = "",
    source: str = "",
    opened: Callable[[bytes, str], ManifestText] = open_manifest,
) -> Manifest:
    """Reads ``data`` as the SKILL.md of a directory called ``directory`` (its last name only).

    ``path`` stands in the findings; ``location`` and ``source`` go into the record as they are. ``opened`` opens the
    file: ``ManifestTexts.open`` where several rows judge the same one.
    """
    reading = _Reading(directory, dialect, path)
    skill, body = reading.read(data, location, source, opened)
    return Manifest(skill, body, tuple(reading.found))


def parse_head(
    data: bytes, *, directory: str, dialect: Dialect, path: str, location: str, source: str
) -> tuple[Skill | None, tuple[Diagnostic, ...]]:
    """``parse_manifest`` without the body, which saves most of the time for most files."""
    reading = _Reading(directory, dialect, path)
    front = read_plain(data) if len(data) <= dialect.limits.manifest_bytes else None
    skill = reading.judge(front, location, source) if front else reading.read(data, location, source, open_manifest)[0]
    return skill, tuple(reading.found)


def parse_values(
    values: Mapping[str, YamlValue], body: str, *, directory: str, dialect: Dialect, source: str = ""
) -> Manifest:
    """The same judgement on frontmatter and body that are known already, without a file. The body stays as given."""
    reading = _Reading(directory, dialect, "")
    reading.judge_body(body)
    skill = reading.judge(Frontmatter(dict(values)), "", source)
    return Manifest(skill=skill, body=body, diagnostics=tuple(reading.found))


class _Reading:
    _front: Frontmatter | None = None
    # By key as it is called here; read from ``_front`` when a finding needs it.
    _lines: Mapping[str, int] | None = None
    _repaired: Collection[str] = ()
    # The values as they count: see ``Keys``.
    _counted: Mapping[str, YamlValue] = {}
    _unread: Collection[str] = ()
    _broken = False

    def __init__(self, directory: str, dialect: Dialect, path: str) -> None:
        self._directory = directory
        self._dialect = dialect
        self._path = path
        self.found: list[Diagnostic] = []

    def read(
        self, data: bytes, location: str, source: str, opened: Callable[[bytes, str], ManifestText]
    ) -> tuple[Skill | None, str]:
        longest = self._dialect.limits.manifest_bytes
        if len(data) > longest:
            message = f"The file is larger than {longest} bytes."
            self.found.append(finding("manifest-too-large", self._path, message))
            return None, ""
        text = opened(data, self._path)
        if text.front is None:
            # Without a mapping there is nothing to be lenient with, whatever the dialect says.
            self.found += text.found
            return None, ""
        for found in text.found:
            self._keep(found)
        body = text.body
        self.judge_body(body)
        if self._dialect.body_newlines == "lf" and "\r" in body:
            body = body.replace("\r\n", "\n").replace("\r", "\n")
        if self._dialect.body_edges == "trim":
            body = body.strip()
        return self.judge(text.front, location, source), body

    def judge_body(self, body: str) -> None:
        """Reports a body that says nothing."""
        if not body or body.isspace():
            self._add("body-empty", "There are no instructions after the frontmatter.")

    def judge(self, front: Frontmatter, location: str, source: str) -> Skill | None:
        """The skill that ``front`` describes, None when a finding refuses it."""
        values = self._canonical(front)
        return None if values is None else self._skill(values, location, source)

    def _add(self, rule: str, message: str, *, key: str = "", line: int = 0, hint: str | None = None) -> None:
        self._keep(finding(rule, self._path, message, line=line or self._line(key, 0), hint=hint))

    def _keep(self, found: Diagnostic) -> None:
        judged = judge(found, self._dialect)
        if judged is not None:
            self.found.append(judged)
            self._broken = self._broken or judged.severity == "error"

    def _canonical(self, front: Frontmatter) -> dict[str, YamlValue] | None:
        """The values by key, see ``Keys``; None when two spellings disagree."""
        for line, key in front.repaired.items():
            self._add("yaml-repaired", f'The value of "{key}" was read as plain text.', line=line)
        self._front, self._lines = front, None
        if not front.repaired and front.values.keys() <= self._dialect.understands:
            self._counted = front.values
            # A hint may be rewritten, and other rows may read the same values.
            return dict(front.values) if "argument-hint" in front.values else front.values
        keys = read_keys(front, self._dialect)
        self._lines, self._repaired, self._counted = keys.lines, keys.repaired, keys.counted
        self._unread = keys.unread
        for note in keys.notes:
            if note.rule == "yaml-duplicate-key":
                # Whatever the dialect says: nobody knows which of them is meant.
                self.found.append(finding(note.rule, self._path, note.message, line=note.line))
                return None
            self._add(note.rule, note.message, line=note.line)
        return keys.values

    def _skill(self, values: dict[str, YamlValue], location: str, source: str) -> Skill | None:
        name = self._name(values)
        description, summary = self._description(values)
        allowed = disallowed = paths = ()
        arguments: tuple[Argument, ...] = ()
        flags = _ANYBODY
        if not _TEXT_KEYS.isdisjoint(values):
            self._texts(values)
        if "metadata" in values:
            self._metadata(values)
        counted = self._counted
        if "allowed-tools" in counted:
            allowed = self._items(counted, "allowed-tools")
        if not _SHAPED.isdisjoint(counted):
            disallowed = self._items(counted, "disallowed-tools")
            paths = self._items(counted, "paths")
            arguments = self._arguments(counted)
            flags = self._flags(counted)
        if self._broken:
            return None
        return new_skill(
            source,
            name,
            description=description,
            summary=summary,
            frontmatter=values,
            allowed_tools=allowed,
            disallowed_tools=disallowed,
            arguments=arguments,
            paths=paths,
            flags=flags,
            location=location,
            diagnostics=tuple(self.found),
        )

    def _name(self, values: Mapping[str, YamlValue]) -> str:
        dialect = self._dialect
        rule = dialect.name_from
        declared = values.get("name", "")
        longest = dialect.limits.name or _NO_LIMIT
        if declared == self._directory and not dialect.reserved and is_legal_name(self._directory, longest):
            return self._directory  # whatever the rule, it comes to this
        if not isinstance(declared, str):
            self._add("field-shape", "The name is not text.", key="name")
            declared = ""
        declared = declared.strip()
        folder = one_line(self._directory)
        if rule == "directory":
            name, expected = folder, declared
        elif rule in {"declared-verbatim", "verbatim-or-directory"}:
            name, expected = one_line(declared), folder
            if not name and rule == "verbatim-or-directory" and folder:
                self._add("name-missing", f"There is no name; the directory's, {_shown(folder)}, is used.", key="name")
                name = folder
        else:
            name, expected = self._legal_name(declared, folder), folder
        if not name:
            reason = f"is not usable: {_shown(declared)}" if declared else "is missing"
            if rule not in {"declared", "declared-verbatim"}:
                reason += f", and the directory's, {_shown(folder)}, is not usable as a fallback"
            self._add("name-unusable", f"The name {reason}.", key="name")
            return name
        if dialect.limits.name is not None and len(name) > dialect.limits.name:
            message = f"The name has {len(name)} characters; {dialect.limits.name} are allowed."
            self._add("name-long", message, key="name")
        for word in sorted(dialect.reserved):
            if word in name:
                self._add("name-reserved", f'The name holds "{word}", which the service keeps for itself.', key="name")
        if declared and expected and name != expected:
            same = normalize_name(name, longest) == normalize_name(expected, longest) != ""
            message = f"The name {_shown(name)} differs from {_shown(expected)}, the directory's."
            if rule == "directory":
                message = f"The name {_shown(expected)} differs from {_shown(name)}, the directory's."
            self._add("directory-name-form" if same else "name-directory-mismatch", message, key="name")
        return name

    def _legal_name(self, declared: str, folder: str) -> str:
        """The declared name made legal, or what takes its place; "" when nothing does."""
        limit = self._dialect.limits.name or _NO_LIMIT
        rule = self._dialect.name_from
        if is_legal_name(declared, limit):
            return declared
        name = "" if rule == "legal-or-directory" else normalize_name(declared, limit)
        if name:
            self._add("name-normalized", f'The name {_shown(declared)} was changed to "{name}".', key="name")
        elif rule != "declared" and (name := normalize_name(folder, limit)):
            if declared:
                message = f'The name {_shown(declared)} cannot be used; the directory\'s, "{name}", is.'
                self._add("name-normalized", message, key="name")
            else:
                self._add("name-missing", f'There is no name; the directory\'s, "{name}", is used.', key="name")
        return name

    def _description(self, values: Mapping[str, YamlValue]) -> tuple[str, str]:
        """``(as written, on one line and as short as the dialect keeps it)``."""
        value = values.get("description")
        summary = one_line(value) if isinstance(value, str) else ""
        if not isinstance(value, str) or not summary:
            reason = "is missing" if value is None else "is blank" if isinstance(value, str) else "is not text"
            line = self._line("description", 1)
            self._add("description-missing", f"The description {reason}.", key="description", line=line)
            return "", ""
        self._bounded("description", value, self._dialect.limits.description)
        if "description-markup" in self._dialect.refuses:
            # Where nothing hangs on it, the lint looks for tags.
            markup = _MARKUP.search(value)
            if markup:
                message = f"The description holds {_shown(markup.group())}, which reads like a tag."
                self._add("description-markup", message, key="description")
        return value, summary if self._dialect.description_cut is None else summary[: self._dialect.description_cut]

    def _line(self, key: str, otherwise: int) -> int:
        if self._lines is None:
            self._lines = self._front.lines if self._front else {}
        return self._lines.get(key, otherwise)

    def _bounded(self, key: str, value: str, limit: int | None) -> None:
        if limit is not None and len(value) > limit and (length := len(value.strip())) > limit:
            self._add(f"{key}-long", f"The {key} has {length} characters; {limit} are allowed.", key=key)

    def _texts(self, values: dict[str, YamlValue]) -> None:
        for key in _TEXTS:
            value = values.get(key)
            if value is None or key not in self._dialect.understands:
                continue
            if key == "argument-hint" and isinstance(value, list) and all(isinstance(item, str) for item in value):
                values[key] = value = " ".join(f"[{item}]" for item in value)
                self._add("field-shape", f'"{key}" is a YAML list; it was read as text.', key=key)
            if not isinstance(value, str):
                self._add("field-shape", f'"{key}" is not text and does not count.', key=key)
            elif key == "compatibility":
                self._bounded(key, value, self._dialect.limits.compatibility)
            elif key == "argument-hint":
                self._bounded(key, value, self._dialect.limits.argument_hint)
            elif key == "version" and value and parse_version(value) is None:
                self._add("version-invalid", f"The version {_shown(value)} is not a semantic version.", key=key)

    def _metadata(self, values: Mapping[str, YamlValue]) -> None:
        value = values.get("metadata", "") if "metadata" in self._dialect.understands else ""
        if value == "":
            return
        if not isinstance(value, Mapping):
            self._add("field-shape", '"metadata" is not a mapping and does not count.', key="metadata")
            return
        for key, item in value.items():
            if not isinstance(item, str):
                self._add("metadata-not-text", f"metadata.{key[:80]} is not text.", key="metadata")

    def _items(self, values: Mapping[str, YamlValue], key: _Listed) -> tuple[str, ...]:
        """The texts of a list that may also be written as one text."""
        value = values.get(key)
        if value is None or key not in self._dialect.understands:
            return ()
        wrong = "field-shape" if key in _HARMLESS else "field-shape-unsafe"
        if isinstance(value, str):
            if key in self._repaired and value.startswith(("[", "{")):
                # Taken as text, it would name other items than its author meant.
                self._add(wrong, f'"{key}" is a list that is not valid YAML.', key=key)
                return ()
            mode = self._dialect.text_as_list
            if mode == "refuse" and key not in self._unread:
                self._add(wrong, f'"{key}" is text, and only a list is read here.', key=key)
                return ()
            if mode == "one":
                return (value.strip(),) if value.strip() else ()
            return split_patterns(value, commas=mode != "blanks", bracket="{" if key == "paths" else "(")
        if isinstance(value, Mapping) or not all(isinstance(item, str) for item in value):
            self._add(wrong, f'"{key}" is neither text nor a list of texts.', key=key)
            return ()
        return tuple(item.strip() for item in value if isinstance(item, str) and item.strip())

    def _arguments(self, values: Mapping[str, YamlValue]) -> tuple[Argument, ...]:
        value = values.get("arguments")
        if value is None or "arguments" not in self._dialect.understands:
            return ()
        names = self._items(values, "arguments") if isinstance(value, str) else ()
        arguments, wrong = parse_arguments(value, names)
        for message in wrong:
            self._add("field-shape", f'"arguments": {message}', key="arguments")
        return arguments

    def _flags(self, values: Mapping[str, YamlValue]) -> Flags:
        model, user = True, True
        if self._dialect.model_flag == "enforce":
            model = not self._switch(values, "disable-model-invocation", absent=False)
        if self._dialect.user_flag != "ignore":
            user = self._switch(values, "user-invocable", absent=True)
        if model and user:
            return _ANYBODY
        hidden_only = not user and self._dialect.user_flag == "hide"
        return Flags(model_invocable=model, user_invocable=user, hidden_only=hidden_only)

    def _switch(self, values: Mapping[str, YamlValue], key: str, *, absent: bool) -> bool:
        value = values.get(key)
        if value is None:
            return absent
        word = value.strip().lower() if isinstance(value, str) else ""
        if word not in WORDS:
            self._add("field-shape-unsafe", f'"{key}" is neither true nor false.', key=key)
            return absent
        return WORDS[word]


def _shown(text: str) -> str:
    return f'"{one_line(text)[:80]}"'
