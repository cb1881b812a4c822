"""One tree of the option records that lower layers declare. Every value knows where it came from."""

from satchel.settings.load import Settings, load

__all__ = ["Settings", "load"]
