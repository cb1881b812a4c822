"""The program of the API probe: standard library only, for any Python that a session has. It is never imported here.

It takes one question as JSON and the directories from which nothing is imported, and prints a list of answers:
``{"place", "names", "signature"}``.
"""

PROBE = r'''
import sys
import os  # any Python has loaded it by now, from its own library
work = [path.rstrip("/") + "/" for path in sys.argv[2:]]

def is_own(path):
    return any((path or "").startswith(root) for root in work)

sys.path[:] = [p for p in sys.path if p and not is_own(os.path.realpath(p) + "/")]
import json
question = json.loads(sys.argv[1])
import importlib, importlib.util, inspect, re
answers_to = os.dup(1)
os.dup2(2, 1)  # what a module prints when it is imported is no answer

WORD = r"[A-Za-z_]\w*"
IMPORTS = re.compile(r"(?:^|;)[ \t]*(?:from[ \t]+([\w.]+)[ \t]+import[ \t]+([^\n#]*)|import[ \t]+([\w., \t]+))", re.M)

def sources():
    for path in question["files"]:
        real = os.path.realpath(path)
        if is_own(real) and os.path.isfile(real) and os.path.getsize(real) <= 1 << 20:
            with open(real, encoding="utf-8", errors="replace") as file:
                yield file.read()

def load(name):
    try:
        top = importlib.util.find_spec(name.partition(".")[0])
        if top is None or is_own(os.path.realpath(top.origin or "")):
            return None
        return importlib.import_module(name)
    except BaseException:
        return None

def public(names):
    names = sorted({name for name in names if isinstance(name, str)})
    return [name for name in names if not name.startswith("_")] or names

def of_module(module):
    names = set(dir(module))
    if getattr(module, "__path__", None):
        import pkgutil
        names.update(one.name for one in pkgutil.iter_modules(module.__path__))
    return public(names)

def candidates():
    """Modules that the program itself imports, the defined names of the program."""
    modules, defined = list(question["modules"]), set(question["defined"])
    for text in sources():
        defined.update(re.findall(r"^[ \t]*(?:class|def|async def)[ \t]+(%s)" % WORD, text, re.M))
        for module, names, plain in IMPORTS.findall(text):
            if module:
                modules.append(module)
                modules += [module + "." + name.split()[0] for name in names.strip("() \t").split(",") if name.strip()]
            modules += [name.split()[0] for name in plain.split(",") if name.strip()]
    return list(dict.fromkeys(modules))[:40], defined

def loaded(modules):
    for name in modules:
        load(name)
    tops = {name.partition(".")[0] for name in modules}
    mine = [m for n, m in list(sys.modules.items()) if m is not None and n.partition(".")[0] in tops]
    return [m for m in mine if not is_own(getattr(m, "__file__", None) or "")]

def members(module):
    try:
        return list(vars(module).values())
    except Exception:
        return []

def classes(name):
    import builtins
    built_in = getattr(builtins, name, None)
    if isinstance(built_in, type):
        return [built_in]
    modules, defined = candidates()
    if name.rpartition(".")[2] in defined:
        return []
    found = []
    for module in loaded(modules):
        for value in members(module):
            if isinstance(value, type) and name in (value.__name__, value.__module__ + "." + value.__qualname__):
                if value not in found:
                    found.append(value)
    return found

def functions(name):
    modules, defined = candidates()
    parts = name.split(".")
    if parts[0] in defined:
        return []
    found = []
    for module in loaded(modules):
        for holder in [module] + [v for v in members(module) if isinstance(v, type)]:
            value = None
            if holder is module and len(parts) == 1:
                value = vars(module).get(parts[0])
            elif isinstance(holder, type) and len(parts) == 1 and parts[0] == holder.__name__:
                value = holder
            elif isinstance(holder, type) and len(parts) > 1 and holder.__qualname__ == ".".join(parts[:-1]):
                value = holder if parts[-1] == "__init__" else inspect.getattr_static(holder, parts[-1], None)
                value = getattr(value, "__func__", value)
            if callable(value) and value not in found:
                found.append(value)
    return found

def place(value):
    return "%s.%s" % (getattr(value, "__module__", "") or "", getattr(value, "__qualname__", "?"))

answers = []
kind, owner, wanted = question["kind"], question["owner"], question["wanted"]
if kind == "module":
    module = load(owner)
    if module is not None and not is_own(getattr(module, "__file__", None) or ""):
        names = of_module(module)
        if wanted not in names and not hasattr(module, wanted):
            answers.append({"place": "module " + owner, "names": names})
elif kind == "object":
    found = [value for value in classes(owner) if not hasattr(value, wanted)]
    found = [value for value in found if value is not type(None)]
    for value in found[:2]:
        where = value.__name__ if value.__module__ == "builtins" else place(value)
        answers.append({"place": where, "names": public(dir(value))})
else:
    for value in functions(owner)[:8]:
        try:
            signature = inspect.signature(value)
        except (TypeError, ValueError):
            continue
        kinds = [p.kind for p in signature.parameters.values()]
        if wanted in signature.parameters or inspect.Parameter.VAR_KEYWORD in kinds:
            continue
        names = [name for name in signature.parameters if name != "self"]
        if names and len(answers) < 2:
            answers.append({"place": place(value), "names": names, "signature": str(signature)})
os.write(answers_to, ("\n" + json.dumps(answers) + "\n").encode())
'''
