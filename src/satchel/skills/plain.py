"""Skills made from plain values in a program, without a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from satchel.errors import SkillError
from satchel.skills.dialect import Dialect
from satchel.skills.dialects import find_dialect
from satchel.skills.fields import YamlValue
from satchel.skills.manifest import parse_values
from satchel.skills.model import LoadedSkill

SOURCE = "inline"


def inline(
    *,
    name: str,
    description: str,
    instructions: str,
    when_to_use: str = "",
    allowed_tools: str | Sequence[str] = (),
    frontmatter: Mapping[str, YamlValue] | None = None,
    dialect: str | Dialect = "portable",
    source: str = SOURCE,
) -> LoadedSkill:
    """A skill without files, whose body is ``instructions`` exactly as given.

    ``frontmatter`` holds any further fields as a SKILL.md would, with every scalar as text. The fields are judged as
    the row judges those of a file; a name that it takes from the directory is the given one.

    Raises:
        SkillError: "skill-invalid", with the findings in ``data["diagnostics"]``.
    """
    row = find_dialect(dialect)
    values: dict[str, YamlValue] = {"name": name, "description": description}
    if when_to_use:
        values["when-to-use"] = when_to_use
    if allowed_tools:
        values["allowed-tools"] = allowed_tools if isinstance(allowed_tools, str) else list(allowed_tools)
    values = {**(frontmatter or {}), **values}
    manifest = parse_values(values, instructions, directory=name, dialect=row, source=source)
    if manifest.skill is None:
        first = next(found for found in manifest.diagnostics if found.severity == "error")
        raise SkillError(
            "skill-invalid",
            f"The skill cannot be used: {first.message}",
            hint=first.hint,
            data={"diagnostics": [found.to_dict() for found in manifest.diagnostics]},
        )
    return LoadedSkill(
        skill=manifest.skill, body=instructions, manifest_bytes=len(instructions.encode("utf-8", "replace"))
    )
