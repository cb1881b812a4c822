"""Skill records into the bodies of the HTTP interface."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from satchel.gateway.skills_api.wire import FileBody, LoadErrorBody, SkillBody, SkillDetailBody
from satchel.skills.model import Diagnostic, LoadedSkill, Skill, YamlValue

_NOT_BUNDLED = ("manifest", "license")


def skill_body(loaded: LoadedSkill) -> SkillBody:
    """A skill that could be read."""
    return SkillBody.model_validate(_fields(loaded.skill) | _read_fields(loaded))


def detail_body(loaded: LoadedSkill) -> SkillDetailBody:
    """The same with its instructions."""
    return SkillDetailBody.model_validate(_fields(loaded.skill) | _read_fields(loaded) | {"instructions": loaded.body})


def unread_body(skill: Skill, why: str) -> SkillBody:
    """A skill that is in the catalogue but can no longer be read; ``why`` joins its warnings."""
    fields = _fields(skill)
    return SkillBody.model_validate(fields | {"files": [], "bytes": 0, "warnings": [*_warnings(skill), why]})


def load_errors(findings: Iterable[Diagnostic]) -> list[LoadErrorBody]:
    """Those of the findings that kept something from being a skill."""
    return [
        LoadErrorBody(path=finding.path, message=finding.message) for finding in findings if finding.severity == "error"
    ]


def _fields(skill: Skill) -> dict[str, object]:
    metadata = skill.frontmatter.get("metadata")
    return {
        "id": skill.name,
        "name": skill.name,
        "description": skill.description,
        "license": skill.text("license") or None,
        "compatibility": skill.text("compatibility") or None,
        "metadata": _plain(metadata) if isinstance(metadata, Mapping) else {},
        "allowed_tools": list(skill.allowed_tools),
        "origin": "discovered",
        "warnings": _warnings(skill),
        "modified": None,
    }


def _read_fields(loaded: LoadedSkill) -> dict[str, object]:
    bundled = [file for file in loaded.files if file.kind not in _NOT_BUNDLED]
    others = sum(file.bytes for file in loaded.files if file.kind != "manifest")
    return {
        "files": [FileBody(path=file.path, bytes=file.bytes, kind=file.kind, text=file.is_text) for file in bundled],
        "bytes": loaded.manifest_bytes + others,
        "modified": _timestamp(loaded.modified),
    }


def _warnings(skill: Skill) -> list[str]:
    return [finding.message for finding in skill.diagnostics if finding.severity != "note"]


def _timestamp(seconds: float) -> str | None:
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if seconds else None


def _plain(value: YamlValue) -> object:
    """The value in the containers that JSON has."""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        return {key: _plain(child) for key, child in value.items()}
    return [_plain(child) for child in value]
