"""Running modules of ours in a child that has nothing but the standard library, quickly and without a path to them."""

from __future__ import annotations

import importlib.util
import marshal
import os
import sys
from collections.abc import Mapping
from functools import cache
from importlib.abc import InspectLoader
from types import CodeType

# The modules are put where their imports of each other look first, so that their packages need not be there.
_START = """
import marshal, sys
with open(int(sys.argv[1]), "rb") as handed:
    modules, plan = marshal.load(handed)
for name, code in modules:
    parent, _, last = name.rpartition(".")
    package = sys.modules.setdefault(parent, type(sys)(parent))
    module = sys.modules[name] = type(sys)(name)
    setattr(package, last, module)
    exec(code, module.__dict__)
module.main(plan, int(sys.argv[2]))
"""


def command(plan: int, status: int) -> tuple[str, ...]:
    """Runs ``main(plan, status)`` of the last module that ``handed`` put into the descriptor ``plan``."""
    return (sys.executable, "-I", "-S", "-c", _START, str(plan), str(status))


def handed(modules: tuple[str, ...], plan: Mapping[str, object]) -> int:
    """A descriptor, at its beginning, with the code of ``modules`` in order and a plan of plain values. Linux only."""
    content = marshal.dumps(([(name, _code(name)) for name in modules], dict(plan)))
    handle = os.memfd_create("plan", os.MFD_CLOEXEC)
    try:
        with os.fdopen(os.dup(handle), "wb") as file:
            file.write(content)
        os.lseek(handle, 0, os.SEEK_SET)
    except OSError:
        os.close(handle)
        raise
    return handle


@cache
def _code(name: str) -> CodeType:
    spec = importlib.util.find_spec(name)
    loader = spec.loader if spec else None
    code = loader.get_code(name) if isinstance(loader, InspectLoader) else None
    if code is None:
        raise ModuleNotFoundError(name=name)
    return code
