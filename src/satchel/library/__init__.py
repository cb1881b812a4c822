"""Skills on disk: finding directories, reading them, and the live handle over both."""

from satchel.library.library import Library, discover
from satchel.library.open import load_skill

__all__ = ["Library", "discover", "load_skill"]
