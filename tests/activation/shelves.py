"""Skills on disk, and sessions over them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from satchel.activation.permission import Decision
from satchel.activation.reply import Activation
from satchel.activation.session import SkillSession
from satchel.library import discover
from satchel.ports.state import AuditEntry

D = "description: Sample skill for tests."


def put(root: Path, name: str, *lines: str, body: str = "Body.\n", files: dict[str, str] | None = None) -> Path:
    """A skill folder; ``lines`` are further lines of the frontmatter."""
    folder = root / name
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text("\n".join(["---", f"name: {name}", D, *lines, "---", body]), encoding="utf-8")
    for path, text in (files or {}).items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    return folder


def allow(request: object) -> Decision:
    del request
    return "allow"


def session_over(root: Path, *, dialect: str = "agent-sh", **options: Any) -> SkillSession:
    """A session whose hook allows everything, unless told otherwise."""
    chosen: dict[str, Any] = {"permission": allow, **options}
    return SkillSession(discover([root], dialect=dialect), **chosen)


def brief(reply: Activation) -> tuple[str, str]:
    return reply.kind, reply.code


class ListAudit:
    """An audit log in memory."""

    def __init__(self) -> None:
        self.entries: list[AuditEntry] = []

    async def append(self, entry: AuditEntry) -> None:
        self.entries.append(entry)

    @property
    def decisions(self) -> list[tuple[str, str, str, str]]:
        return [(item.skill or item.tool, item.decision, item.who, item.code) for item in self.entries]
