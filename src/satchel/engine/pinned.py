"""The skills of one conversation, as its first turn found them."""

from __future__ import annotations

from satchel.ports.skills import SkillSource
from satchel.skills.catalog import Catalog
from satchel.skills.model import LoadedSkill, SkillRef


class PinnedSkills:
    """A catalogue, and every skill that was selected from it as it was when it was first loaded.

    What stands in front of the conversation is made of these alone, so it is the same bytes in every turn, whatever
    becomes of the skills. What the model reads later is read as it is then.
    """

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self._loaded: dict[SkillRef, LoadedSkill] = {}

    @property
    def size_bytes(self) -> int:
        """About what is held for this conversation alone."""
        return sum(2 * item.manifest_bytes + 256 * len(item.files) for item in self._loaded.values())

    async def load(self, ref: SkillRef, source: SkillSource) -> LoadedSkill:
        """The skill, from ``source`` the first time. Raises ``SkillError``."""
        loaded = self._loaded.get(ref)
        if loaded is None:
            loaded = self._loaded[ref] = await source.load(ref)
        return loaded
