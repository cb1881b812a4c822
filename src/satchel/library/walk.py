"""Finding skill directories below roots: breadth first, each real directory once, links only where they stay inside."""

# ruff: noqa: PTH112, PTH114, PTH118, PTH119 - thousands of directories are listed here; strings and scandir are what that needs.

from __future__ import annotations

import os
from collections import deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from satchel.pathguard import is_inside
from satchel.skills.diagnostics import finding, judge
from satchel.skills.dialect import HIDDEN, Dialect
from satchel.skills.files import is_manifest
from satchel.skills.model import MANIFEST, Diagnostic


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A skill's directory (canonical), the name of its SKILL.md in it, and what is odd about that.

    ``root`` is the index, in ``Found.roots``, of the root that it was found below.
    """

    directory: str
    manifest: str = MANIFEST
    root: int = 0
    findings: tuple[Diagnostic, ...] = ()


@dataclass(slots=True, kw_only=True)
class Found:
    """The canonical roots that exist, skill directories in order of precedence, and what was wrong on the way."""

    roots: tuple[str, ...] = ()
    places: list[Place] = field(default_factory=list[Place])
    diagnostics: list[Diagnostic] = field(default_factory=list[Diagnostic])


def find_skills(roots: Sequence[str], dialect: Dialect, *, disabled: Collection[str] = ()) -> Found:
    """Looks below absolute ``roots`` in order; ``disabled`` are canonical directories that are left out.

    A missing root, a ceiling that was reached, a link that was not followed and a SKILL.md that was seen where the
    dialect does not look are findings.
    """
    return _Walk(roots, dialect, disabled).run()


class _Walk:
    def __init__(self, roots: Sequence[str], dialect: Dialect, disabled: Collection[str]) -> None:
        self._given = roots
        self._dialect = dialect
        self._disabled = frozenset(disabled)
        self._roots: list[str] = []
        self._seen: set[str] = set()
        self._registered: set[str] = set()
        self._found = Found()
        self._root_index = 0
        self._is_full = False
        self._directories = 0
        self._entries = 0
        self._skips = dialect.skips - {HIDDEN}
        self._skips_hidden = HIDDEN in dialect.skips

    def run(self) -> Found:
        existing: list[str] = []
        for given in self._given:
            try:
                real = os.path.realpath(given)
            except ValueError:
                self._note("root-missing", given, f"The skills directory {given!r} is not a possible path.")
                continue
            if not os.path.isdir(real):
                reason = "is not a directory" if os.path.lexists(real) else "does not exist"
                self._note("root-missing", given, f"The skills directory {given} {reason}.")
            elif real not in existing:
                existing.append(real)
        self._roots = existing
        self._found.roots = tuple(existing)
        for index, root in enumerate(existing):
            self._root_index = index
            self._root(root)
        return self._found

    def _root(self, root: str) -> None:
        limits = self._dialect.limits
        deepest = self._dialect.max_depth
        self._directories = self._entries = 0
        self._is_full = False
        waiting = deque([(root, 0)])
        while waiting:
            path, depth = waiting.popleft()
            if path in self._seen:
                continue
            self._seen.add(path)
            self._directories += 1
            deeper = self._directory(path, depth)
            if self._directories >= limits.directories or self._entries >= limits.entries:
                if waiting or deeper or self._entries > limits.entries:
                    ceiling = f"{limits.directories} directories or {limits.entries} entries"
                    self._note("root-too-large", root, f"Only the first {ceiling} below {root} were looked at.")
                return
            if self._is_full:
                self._note("too-many-skills", root, f"Only the first {limits.skills} skills are registered.")
                return
            if deepest is None or depth < deepest:
                waiting.extend((name, depth + 1) for name in deeper)
            else:
                self._too_deep(path, deeper)

    def _directory(self, path: str, depth: int) -> list[str]:
        """The directories to look into next; registers ``path`` when it is a skill."""
        deeper: list[str] = []
        links: list[str] = []
        manifests: list[str] = []
        skipped: list[str] = []
        try:
            with os.scandir(path) as entries:
                for entry in entries:
                    self._entries += 1
                    if self._entries > self._dialect.limits.entries:
                        break
                    name = entry.name
                    if is_manifest(name):
                        if not entry.is_dir(follow_symlinks=False):
                            manifests.append(name)
                    elif name in self._skips or (self._skips_hidden and name.startswith(".")):
                        if entry.is_dir(follow_symlinks=False):
                            skipped.append(entry.path)
                    elif entry.is_symlink():
                        links.append(entry.path)
                    elif entry.is_dir(follow_symlinks=False):
                        deeper.append(entry.path)
        except OSError as error:
            self._note("directory-unreadable", path, f"{path} cannot be listed: {error.strerror}.")
            return []
        for skip in sorted(skipped):
            self._not_entered(skip)
        if manifests and depth < self._dialect.min_depth:
            message = f"{path} is itself a skill; skills are looked for in the directories below it."
            self._note("skill-is-root", path, message)
        elif manifests:
            self._register(path, sorted(manifests))
            if self._dialect.nested == "stop":
                return []
        targets = {path: path for path in deeper}
        for link in sorted(links):
            target = self._follow(link)
            if target is not None and os.path.isdir(target):
                targets[link] = target
        return [targets[path] for path in sorted(targets)]

    def _follow(self, link: str) -> str | None:
        """The canonical target of a link that stays inside some root."""
        target = os.path.realpath(link)
        if not any(is_inside(target, root) for root in self._roots):
            if os.path.isdir(target) or is_manifest(os.path.basename(link)):
                self._note("symlink-outside", link, f"The link {link} leads out of every root and is not followed.")
            return None
        if not os.path.lexists(target):
            self._note("symlink-dangling", link, f"The link {link} leads to nothing.")
            return None
        return target

    def _register(self, directory: str, manifests: list[str]) -> None:
        name = MANIFEST if MANIFEST in manifests else manifests[0]
        path = os.path.join(directory, name)
        odd: list[Diagnostic | None] = []
        if len(manifests) > 1:
            message = f"The directory holds {' and '.join(manifests)}; it must hold one."
            odd.append(judge(finding("manifest-twice", path, message), self._dialect))
        if name != MANIFEST:
            message = f"The file is called {name}, not {MANIFEST}."
            odd.append(judge(finding("manifest-case", path, message), self._dialect))
        if os.path.islink(path):
            target = self._follow(path)
            if target is None:
                return
            if is_manifest(os.path.basename(target)):
                # The skill is where its SKILL.md really lies; so it is one skill however many links lead to it.
                directory, name = os.path.split(target)
        if directory in self._registered or directory in self._disabled:
            return
        ceiling = self._dialect.limits.skills
        if ceiling is not None and len(self._found.places) >= ceiling:
            self._is_full = True
            return
        self._registered.add(directory)
        findings = tuple(item for item in odd if item is not None)
        place = Place(directory=directory, manifest=name, root=self._root_index, findings=findings)
        self._found.places.append(place)

    def _not_entered(self, directory: str) -> None:
        if os.path.lexists(os.path.join(directory, MANIFEST)):
            message = f"{directory} holds a SKILL.md, but directories of that name are not looked into."
            self._note("skill-not-entered", directory, message)

    def _too_deep(self, directory: str, deeper: list[str]) -> None:
        skills = [path for path in deeper if os.path.lexists(os.path.join(path, MANIFEST))]
        if skills:
            message = f"{len(skills)} skill(s) below {directory}, {skills[0]} for one, lie deeper than is looked for."
            self._note("skill-too-deep", directory, message)

    def _note(self, rule: str, path: str, message: str) -> None:
        found = judge(finding(rule, path, message), self._dialect)
        if found is not None:
            self._found.diagnostics.append(found)
