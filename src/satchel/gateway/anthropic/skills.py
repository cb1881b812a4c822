"""Skills in the shape that clients of this format read, of either of its generations."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import UTC, datetime

_OLDER_BETA = "skills-2025-10-02"
_LATEST = "latest"
"""The one version that a skill has here, and the word by which requests name it."""


def skill_item(name: str, modified: float, betas: Collection[str]) -> dict[str, object]:
    """One skill. ``modified`` is in Unix seconds, 0 when unknown; there is no other time to tell.

    Clients of the older beta, known by ``betas``, read ``source`` as a word; the names of both generations are there.
    """
    time = datetime.fromtimestamp(int(modified), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "id": name,
        "type": "skill",
        "display_title": name,
        "display_name": name,
        "source": "custom" if _OLDER_BETA in betas else {"type": "custom"},
        "latest_version": _LATEST,
        "latest_version_id": _LATEST,
        "created_at": time,
        "updated_at": time,
    }


def skill_page(items: Sequence[dict[str, object]]) -> dict[str, object]:
    """All skills as one page."""
    return {"data": [*items], "has_more": False, "next_page": None}
