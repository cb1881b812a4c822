"""The shell of this host that command lines are written for."""

from __future__ import annotations

import os

from satchel.ports.execution import Shell

_PLACES = ("/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash")

# Where systems have it; None without. Looked for once, so that an executor may be made and asked anywhere.
BASH = next((Shell(program=path) for path in _PLACES if os.access(path, os.X_OK)), None)
