"""Two skills to serve."""

from __future__ import annotations

from satchel.skills.model import Diagnostic, LoadedSkill, Skill, SkillFile, SkillRef
from tests.gateway.serving import Shelf

INVOICE = LoadedSkill(
    skill=Skill(
        ref=SkillRef(source="shelf", name="invoice"),
        description="Numbers invoices.\nUse for bills.",
        summary="Numbers invoices. Use for bills.",
        frontmatter={"license": "MIT", "metadata": {"owner": "billing", "tags": ("a", "b")}},
        allowed_tools=("Read",),
        location="/srv/private/invoice",
        diagnostics=(
            Diagnostic(rule="name", severity="warning", path="SKILL.md", message="The name was normalised."),
            Diagnostic(rule="extra", severity="note", path="SKILL.md", message="Only a note."),
        ),
    ),
    body="# Invoices\nThe secret prefix is ZX-9.\n",
    manifest_bytes=120,
    files=(
        SkillFile(path="SKILL.md", kind="manifest", bytes=120, is_text=True),
        SkillFile(path="LICENSE", kind="license", bytes=10, is_text=True),
        SkillFile(path="scripts/check.py", kind="script", bytes=30, is_text=True),
    ),
    modified=1_700_000_000.5,
)
DEPLOY = LoadedSkill(
    skill=Skill(ref=SkillRef(source="shelf", name="deploy"), description="Rolls out.", summary="Rolls out."),
    body="Canary first.",
    manifest_bytes=40,
)


def shelf(**options: tuple[str, ...]) -> Shelf:
    return Shelf(INVOICE, DEPLOY, **options)
