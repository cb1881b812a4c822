"""What a Python of a session is, in the words that the host's pip chooses wheels by. Pure.

It is asked without a network, and its answer is a stranger's: only words of the right form are passed on.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

PROBE = """
import sys
sys.path.append(sys.argv[1])
from pip._vendor.packaging.tags import sys_tags
tags = list(sys_tags())
own = tags[0].interpreter
shared = ("abi3", "abi3t", "none")
print(".".join(map(str, sys.version_info[:3])))
print(own[:2])
print(*dict.fromkeys(tag.abi for tag in tags if tag.interpreter == own and tag.abi not in shared))
print(*dict.fromkeys(tag.platform for tag in tags if tag.platform != "any"))
"""
"""Run by that Python, with the directory of a pip as its argument: prints version, implementation, ABIs, platforms."""

_ANSWER = re.compile(
    r"(?P<version>3\.[0-9]{1,2}\.[0-9]{1,2})\n(?P<implementation>cp|pp)\n"
    r"(?P<abis>[a-z0-9_]{1,40}(?: [a-z0-9_]{1,40}){0,7})\n"
    r"(?P<platforms>[a-z0-9_]{1,60}(?: [a-z0-9_]{1,60}){0,199})\n?"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """``version`` like "3.12.1"; ``implementation`` is "cp" or "pp"; the rest are tags of wheels, best first."""

    version: str
    implementation: str
    abis: tuple[str, ...]
    platforms: tuple[str, ...]

    @property
    def options(self) -> tuple[str, ...]:
        """Those of ``pip download``."""
        return (
            f"--python-version={self.version}",
            f"--implementation={self.implementation}",
            *(f"--abi={abi}" for abi in self.abis),
            *(f"--platform={platform}" for platform in self.platforms),
        )


def read_target(answer: str) -> Target | None:
    """What ``PROBE`` printed, None when it is anything else."""
    match = _ANSWER.fullmatch(answer)
    if match is None:
        return None
    return Target(
        version=match["version"],
        implementation=match["implementation"],
        abis=tuple(match["abis"].split()),
        platforms=tuple(match["platforms"].split()),
    )
