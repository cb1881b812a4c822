"""How pip is started for packages of a session: the program, for any Python from 3.8 on. It is never imported here.

It is called with the virtual environment, the program that pip has for being run in another one, and pip's arguments.
Two packages must not meet in it: what an earlier install brought is listed, but neither imported nor run by it - no
``.pth`` line, no ``sitecustomize``, no interpreter that a package put in place of another. And nothing is started, so
that nothing is built: a wheel may ask for a source archive by its address, which pip's own options do not refuse.
"""

REFUSED = "nothing is built or run by an install"
"""What pip prints where it would have started a program."""

START = f"""
import sys
from importlib.machinery import PathFinder

folder, runner, *arguments = sys.argv[1:]
own = list(sys.path)

class Own(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return PathFinder.find_spec(name, own if path is None else path, target)

def refuse(event, details):
    if event not in ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork", "os.forkpty"):
        return
    # How a Python on musl asks for its version.
    if event != "subprocess.Popen" or not str(details[0]).rpartition("/")[2].startswith("ld-musl"):
        raise PermissionError({REFUSED!r})

sys.meta_path[:] = [Own if finder is PathFinder else finder for finder in sys.meta_path]
sys.prefix = sys.exec_prefix = folder
sys.executable = folder + "/bin/python"
import runpy
import sysconfig
sys.path += dict.fromkeys((sysconfig.get_path("purelib"), sysconfig.get_path("platlib")))
sys.addaudithook(refuse)
sys.argv = [runner, *arguments]
runpy.run_path(runner, run_name="__main__")
"""

FETCH = f"""
import platform
import sys
from types import SimpleNamespace

version, implementation = sys.argv[1:3]
del sys.argv[1:3]
parts = version.split(".")
name = {{"cp": "CPython", "pp": "PyPy"}}[implementation]
numbers = dict(zip(("major", "minor", "micro"), map(int, parts)), releaselevel="final", serial=0)
own = dict(vars(sys.implementation), name=name.lower(), version=SimpleNamespace(**numbers))
sys.implementation = SimpleNamespace(**own)
platform.python_version = lambda: version
platform.python_version_tuple = lambda: tuple(parts)
platform.python_implementation = lambda: name
if name == "PyPy":
    sys.pypy_version_info = sys.version_info
{START}"""
"""As ``START``, to fetch for another Python, whose version and implementation come first.

pip's options for that choose among wheels and judge what they require of Python. The conditions behind a dependency
are always judged by what the Python that runs pip says of itself, so it says what the other one would.
"""
