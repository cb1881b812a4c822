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
import sys
from importlib.machinery import PathFinder

version, implementation = sys.argv[1:3]
del sys.argv[1:3]
name = {{"cp": "CPython", "pp": "PyPy"}}[implementation]
said = {{
    "python_version": version.rpartition(".")[0],
    "python_full_version": version,
    "implementation_name": name.lower(),
    "implementation_version": version,
    "platform_python_implementation": name,
}}

class Markers:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name != "pip._vendor.packaging.markers":
            return None
        spec = PathFinder.find_spec(name, path, target)
        load = spec.loader.exec_module

        def exec_module(module):
            load(module)
            own = module.default_environment
            module.default_environment = lambda: {{**own(), **said}}

        spec.loader.exec_module = exec_module
        return spec

sys.meta_path.insert(0, Markers)
{START}"""
"""As ``START``, to fetch for another Python, whose version and implementation come first.

pip's options for that choose among wheels and judge what they require of Python. The conditions behind a dependency
are always judged by the Python that runs pip, so they are told what the other one is.
"""
