"""What reading many skills costs, here and in other libraries, as a multiple of only reading their files.

    .venv/bin/python benchmarks/skills.py [--sizes 1000,10000] [--runs 5] [--python PATH ...] [--json]

The floor, measured in the same process right before each load, lists the directory and reads every SKILL.md as bytes;
the second floor reads them as text. A load is cold for the library and warm for the disk, and ends when the name, the
description, the frontmatter and the findings of every skill have been read. All times are CPU times, medians.

Peers are looked for in this interpreter and in those that ``--python`` names; one that is nowhere is listed as such.
What a peer calls loading is often less: only this library lists each skill's directory and judges what it reads.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

TARGETS = {"load x floor at 10,000": 2.5, "body ms": 0.5, "import ms": 60.0}
PROSE = (
    "deploy review report invoice merge branch table chart customer order release canary budget audit query index "
    "schema migrate translate extract convert document layout network cluster service alert backup restore license"
)
WORDS = PROSE.split()
Load = Callable[[Path], Callable[[], int]]


def generate(root: Path, count: int) -> None:
    """Skills of the kinds that public collections hold: every second one quoted, every fourth not ASCII, and so on."""
    rng = random.Random(count)  # noqa: S311

    def words(least: int, most: int) -> str:
        return " ".join(rng.choices(WORDS, k=rng.randint(least, most)))

    for number in range(count):
        name = f"{rng.choice(WORDS)}-{rng.choice(WORDS)}-{number:05d}"
        text = f"{words(12, 35).capitalize()}. Use when the user asks for {words(3, 8)}."
        if number % 4 == 1:
            text = f"{text[:-1]} — “{words(1, 3)}”."
        forms = (text, f'"{text}"', f"'{text}'", f">\n  {text}\n  {words(8, 12)}")
        lines = ["---", f"name: {name}", f"description: {forms[(0, 1, 0, 1, 0, 2, 0, 3)[number % 8]]}"]
        if number % 3 == 0:
            lines.append("license: MIT")
        if number % 4 == 0:
            lines += ["metadata:", "  author: example-org", '  version: "1.0"']
        if number % 7 == 0:
            lines.append("allowed-tools: Read Grep Bash(git log:*)")
        lines += ["---", "", f"# {name}", ""]
        lines += [words(8, 16) + "." for _ in range(rng.randint(20, 70))]
        folder = root / name
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def floor(root: Path) -> None:
    for entry in os.scandir(root):
        with open(f"{entry.path}/SKILL.md", "rb") as file:  # noqa: PTH123
            file.read()


def text_floor(root: Path) -> None:
    for entry in os.scandir(root):
        with open(f"{entry.path}/SKILL.md", encoding="utf-8") as file:  # noqa: PTH123
            file.read()


def satchel(root: Path) -> Callable[[], int]:
    discover = import_module("satchel").discover

    def load() -> int:
        count = 0
        for skill in discover([root]).skills:
            count += all(item is not None for item in (skill.name, skill.description, skill.frontmatter))
            count -= any(found.severity == "error" for found in skill.diagnostics)
        return count

    return load


def skills_ref(root: Path) -> Callable[[], int]:
    read = import_module("skills_ref").read_properties
    return lambda: _described(read(folder) for folder in sorted(root.iterdir()))


def strands(root: Path) -> Callable[[], int]:
    read = import_module("strands.vended_plugins.skills").Skill.from_directory
    return lambda: _described(read(root))


def deepagents(root: Path) -> Callable[[], int]:
    backend = import_module("deepagents.backends.filesystem").FilesystemBackend(root_dir=root.parent)
    listed: Any = vars(import_module("deepagents.middleware.skills"))["_list_skills"]
    return lambda: sum(1 for skill in listed(backend, f"/{root.name}/") if skill["name"] and skill["description"])


def openai_agents(root: Path) -> Callable[[], int]:
    skills = import_module("agents.sandbox.capabilities.skills")
    directory = import_module("agents.sandbox.entries").LocalDir(src=Path(root.name))
    os.chdir(root.parent)
    source = skills.LocalDirLazySkillSource(source=directory)
    return lambda: _described(source.list_skill_metadata(skills_path="skills"))


def google_adk(root: Path) -> Callable[[], int]:
    read = import_module("google.adk.skills").list_skills_in_dir
    return lambda: _described(read(root).values())


LOADS: dict[str, Load] = {
    "satchel": satchel,
    "skills-ref": skills_ref,
    "strands-agents": strands,
    "deepagents": deepagents,
    "openai-agents": openai_agents,
    "google-adk": google_adk,
}


def _described(skills: Iterable[Any]) -> int:
    return sum(1 for skill in skills if skill.name and skill.description)


def cpu_ms(work: Callable[[], object], *, tidy: bool = True) -> float:
    if tidy:
        gc.collect()
    started = time.process_time()
    kept = work()
    spent = time.process_time() - started
    del kept
    return spent * 1000


def worker(name: str, root: Path, warm: Path, runs: int) -> dict[str, object]:
    """In a process of its own: the load of one library, each run between two floors."""
    LOADS[name](warm)()
    load = LOADS[name](root)
    count = load() if runs > 1 else -1
    rows: list[dict[str, float]] = []
    for _ in range(runs):
        low, text, spent = cpu_ms(lambda: floor(root)), cpu_ms(lambda: text_floor(root)), cpu_ms(load)
        rows.append(
            {"floor_ms": low, "text_floor_ms": text, "load_ms": spent, "x": spent / low, "x_text": spent / text}
        )
    medians = {key: round(statistics.median(row[key] for row in rows), 2) for key in rows[0]}
    result: dict[str, object] = {"version": version(name), "skills": count, **medians}
    if name == "satchel":
        result |= bodies(root)
    return result


def bodies(root: Path) -> dict[str, float]:
    library = import_module("satchel").discover([root])
    names = [skill.name for skill in library.skills]
    first = cpu_ms(lambda: library.load(names[0]).body)
    chosen = random.Random(1).choices(names, k=200)  # noqa: S311
    return {
        "first_body_ms": round(first, 3),
        "body_ms": round(
            statistics.median(cpu_ms(lambda name=name: library.load(name).body, tidy=False) for name in chosen), 3
        ),
    }


def measured(name: str, root: Path, warm: Path, runs: int, pythons: Sequence[str]) -> dict[str, object] | None:
    """What the first interpreter that has the library says; None when none has it."""
    for python in pythons:
        command = [python, __file__, "--worker", name, "--roots", str(root), str(warm), "--runs", str(runs)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return json.loads(done.stdout.splitlines()[-1])
        if "ModuleNotFoundError" not in done.stderr and "PackageNotFoundError" not in done.stderr:
            print(done.stderr, file=sys.stderr)
    return None


def import_ms(code: str, runs: int = 15) -> float:
    """CPU of ``code`` in a new interpreter, over that of a bare one."""

    def once(line: str) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", line], check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000

    once(code)
    pairs = [(once(code), once("pass")) for _ in range(runs)]
    return round(statistics.median(loaded - bare for loaded, bare in pairs), 1)


def report(sizes: Sequence[int], runs: int, pythons: Sequence[str]) -> dict[str, Any]:
    tables: dict[str, dict[str, object]] = {}
    with tempfile.TemporaryDirectory() as folder:
        warm = Path(folder, "warm")
        generate(warm, 20)
        for size in sizes:
            root = Path(folder, f"skills-{size}")
            generate(root, size)
            tables[str(size)] = {
                name: measured(name, root, warm, runs, [sys.executable] if name == "satchel" else pythons)
                for name in LOADS
            }
    return {
        "python": platform.python_version(),
        "runs": runs,
        "loads": tables,
        "import_ms": import_ms("import satchel"),
        "import_discover_ms": import_ms("from satchel import discover"),
        "targets": TARGETS,
    }


def show(result: dict[str, Any]) -> None:
    for size, rows in result["loads"].items():
        print(f"\n{int(size):,} skills (Python {result['python']}, medians of {result['runs']}, CPU)")
        print(f"{'':<16}{'version':<12}{'load ms':>10}{'floor ms':>10}{'x floor':>9}{'x text floor':>14}{'skills':>9}")
        for name, row in rows.items():
            if row is None:
                print(f"{name:<16}not installed")
                continue
            print(
                f"{name:<16}{row['version']:<12}{row['load_ms']:>10.1f}{row['floor_ms']:>10.1f}{row['x']:>9.2f}"
                f"{row['x_text']:>14.2f}{row['skills']:>9}"
            )
        own = rows["satchel"]
        print(
            f"one body {own['body_ms']:.3f} ms (target {TARGETS['body ms']}), the first {own['first_body_ms']:.3f} ms"
        )
    print(f"\nimport satchel {result['import_ms']:.1f} ms over bare Python (target {TARGETS['import ms']:.0f})")
    print(f"from satchel import discover {result['import_discover_ms']:.1f} ms over bare Python")
    print(f"target of a cold load of 10,000: {TARGETS['load x floor at 10,000']} x floor")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="1000,10000")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--python", action="append", default=[], metavar="PATH", help="an interpreter with peers")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--worker", choices=LOADS, help=argparse.SUPPRESS)
    parser.add_argument("--roots", nargs=2, type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        root, warm = options.roots
        print(json.dumps(worker(options.worker, root, warm, options.runs)))
        return 0
    sizes = [int(size) for size in options.sizes.split(",")]
    result = report(sizes, options.runs, [sys.executable, *options.python])
    if options.json:
        print(json.dumps(result, indent=2))
    else:
        show(result)
    return 0


if __name__ == "__main__":
    sys.exit(main())
