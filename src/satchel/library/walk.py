"""Finding skill directories below roots: breadth first, each real directory once, links only where they stay inside."""

# ruff: noqa: PTH112, PTH118, PTH119 - thousands of directories are listed here; strings and scandir are what that needs.

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from satchel.errors import PathError
from satchel.pathguard import Directories, is_inside, read_listed
from satchel.skills.diagnostics import RULES, finding, judge
from satchel.skills.dialect import HIDDEN, Dialect
from satchel.skills.files import is_manifest
from satchel.skills.model import MANIFEST, Diagnostic


class Place(NamedTuple):
    """A skill's directory (canonical), the name of its SKILL.md in it, and what is odd about that.

    ``root`` is the index, in ``Found.roots``, of the root that it was found below. A tuple, because it is made in a
    quarter of the time that a frozen dataclass takes, and thousands are.
    """

    directory: str
    manifest: str = MANIFEST
    root: int = 0
    findings: tuple[Diagnostic, ...] = ()

    @property
    def path(self) -> str:
        """Of the SKILL.md."""
        directory = self.directory
        return directory + self.manifest if directory.endswith(os.sep) else f"{directory}{os.sep}{self.manifest}"


@dataclass(slots=True, kw_only=True)
class Found:
    """The canonical roots that exist, skill directories in order of precedence, and what was wrong on the way.

    ``left_out`` are those of the disabled directories that are skills.
    """

    roots: tuple[str, ...] = ()
    places: list[Place] = field(default_factory=list[Place])
    diagnostics: list[Diagnostic] = field(default_factory=list[Diagnostic])
    left_out: set[str] = field(default_factory=set[str])


Visit = Callable[[Place, bytes | None], None]
"""Takes a skill as it is found, and what its SKILL.md holds, None when that could not be read on the way."""


def find_skills(
    roots: Sequence[str], dialect: Dialect, *, disabled: Collection[str] = (), visit: Visit | None = None
) -> Found:
    """Looks below absolute ``roots`` in order; ``disabled`` are canonical directories that are left out.

    A missing root, a ceiling that was reached, a link that was not followed and a SKILL.md that was seen where the
    dialect does not look are findings. A directory whose SKILL.md is a link to nothing or out of the roots, or is
    itself a directory, is a place with an error.
    """
    return _Walk(roots, dialect, disabled, visit).run()


class _Walk:
    def __init__(self, roots: Sequence[str], dialect: Dialect, disabled: Collection[str], visit: Visit | None) -> None:
        self._given = roots
        self._visit = visit
        self._open = Directories()
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
        self._limits = dialect.limits
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
        try:
            for index, root in enumerate(existing):
                self._root_index = index
                self._root(root)
        finally:
            self._open.close()
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
            if not deeper:
                continue
            if deepest is None or depth < deepest:
                waiting.extend((name, depth + 1) for name in deeper)
            else:
                self._too_deep(path, deeper)

    def _directory(self, path: str, depth: int) -> list[str]:
        """The directories to look into next; registers ``path`` when it is a skill."""
        if not Directories.usable:
            return self._listed(path, depth, -1)
        try:
            descriptor = self._open.open(path)
        except (OSError, PathError) as error:
            self._unreadable(path, error)
            return []
        try:
            return self._listed(path, depth, descriptor)
        finally:
            os.close(descriptor)

    def _listed(self, path: str, depth: int, descriptor: int) -> list[str]:
        folders: list[str] = []
        links: list[str] = []
        manifests: dict[str, bool] = {}
        misnamed: list[str] = []
        skipped: list[str] = []
        room = self._limits.entries - self._entries
        count = 0
        try:
            with os.scandir(path if descriptor < 0 else descriptor) as entries:
                for entry in entries:
                    count += 1
                    if count > room:
                        break
                    name = entry.name
                    if name == MANIFEST or (len(name) == len(MANIFEST) and is_manifest(name)):
                        if entry.is_dir(follow_symlinks=False):
                            misnamed.append(name)
                        else:
                            manifests[name] = entry.is_symlink()
                    elif name in self._skips or (self._skips_hidden and name.startswith(".")):
                        if entry.is_dir(follow_symlinks=False):
                            skipped.append(name)
                    elif entry.is_symlink():
                        links.append(name)
                    elif entry.is_dir(follow_symlinks=False):
                        folders.append(name)
        except OSError as error:
            self._unreadable(path, error)
            return []
        finally:
            self._entries += count
        if skipped:
            self._not_entered(path, skipped)
        if manifests and depth < self._dialect.min_depth:
            message = f"{path} is itself a skill; skills are looked for in the directories below it."
            self._note("skill-is-root", path, message)
        elif manifests:
            self._register(path, manifests, descriptor)
            if self._dialect.nested == "stop":
                return []
        elif misnamed and depth >= self._dialect.min_depth:
            self._refuse(path, min(misnamed), "it is a directory.")
        inside = os.path.join(path, "")
        targets = {name: inside + name for name in folders}
        for name in sorted(links):
            target = self._follow(inside + name)
            if target is not None and os.path.isdir(target):
                targets[name] = target
        return [targets[name] for name in sorted(targets)]

    def _follow(self, link: str) -> str | None:
        """The canonical target of a link that stays inside some root."""
        target = os.path.realpath(link)
        if not self._is_inside(target):
            if os.path.isdir(target):
                self._note("symlink-outside", link, f"The link {link} leads out of every root and is not followed.")
            return None
        if not os.path.lexists(target):
            self._note("symlink-dangling", link, f"The link {link} leads to nothing.")
            return None
        return target

    def _is_inside(self, target: str) -> bool:
        return any(is_inside(target, root) for root in self._roots)

    def _register(self, directory: str, manifests: Mapping[str, bool], descriptor: int) -> None:
        """Takes the directory as a skill; ``manifests`` are its SKILL.md and whether that is a link."""
        name = MANIFEST if MANIFEST in manifests else min(manifests)
        odd = self._odd(directory, name, manifests) if name != MANIFEST or len(manifests) > 1 else ()
        is_plain = not odd
        if manifests[name]:
            is_plain = False
            target = os.path.realpath(os.path.join(directory, name))
            if not self._is_inside(target):
                hint = RULES["symlink-outside"].hint
                self._refuse(directory, name, "it is a link that leads out of every root.", hint=hint)
                return
            if not os.path.lexists(target):
                # No skill was lost that is anywhere, so this is a warning; the folder is a failed skill all the same.
                link = os.path.join(directory, name)
                self._take(directory, name, (finding("symlink-dangling", link, f"The link {link} leads to nothing."),))
                return
            if is_manifest(os.path.basename(target)) and not self._is_left_out(directory):
                # The skill is where its SKILL.md really lies; so it is one skill however many links lead to it.
                directory, name = os.path.split(target)
        self._take(directory, name, odd, descriptor if is_plain else -1)

    def _refuse(self, directory: str, name: str, reason: str, *, hint: str | None = None) -> None:
        """Takes the directory as a skill that cannot be used."""
        path = os.path.join(directory, name)
        self._take(
            directory, name, (finding("manifest-unreadable", path, f"{name} cannot be read: {reason}", hint=hint),)
        )

    def _is_left_out(self, directory: str) -> bool:
        if directory not in self._disabled:
            return False
        self._found.left_out.add(directory)
        return True

    def _take(self, directory: str, name: str, odd: tuple[Diagnostic, ...], descriptor: int = -1) -> None:
        """Registers a skill once; what it holds is read here when its directory is open in ``descriptor``."""
        if directory in self._registered or (self._disabled and self._is_left_out(directory)):
            return
        ceiling = self._limits.skills
        if ceiling is not None and len(self._found.places) >= ceiling:
            self._is_full = True
            return
        self._registered.add(directory)
        place = Place(directory, name, self._root_index, odd)
        self._found.places.append(place)
        if self._visit is not None:
            limit = self._limits.manifest_bytes
            self._visit(place, read_listed(descriptor, name, limit) if descriptor >= 0 else None)

    def _odd(self, directory: str, name: str, manifests: Iterable[str]) -> tuple[Diagnostic, ...]:
        path = os.path.join(directory, name)
        names = sorted(manifests)
        found: list[Diagnostic] = []
        if len(names) > 1:
            found.append(
                finding("manifest-twice", path, f"The directory holds {' and '.join(names)}; it must hold one.")
            )
        if name != MANIFEST:
            found.append(finding("manifest-case", path, f"The file is called {name}, not {MANIFEST}."))
        return tuple(judged for item in found if (judged := judge(item, self._dialect)) is not None)

    def _not_entered(self, path: str, names: list[str]) -> None:
        for directory in (os.path.join(path, name) for name in sorted(names)):
            if os.path.lexists(os.path.join(directory, MANIFEST)):
                message = f"{directory} holds a SKILL.md, but directories of that name are not looked into."
                self._note("skill-not-entered", directory, message)

    def _too_deep(self, directory: str, deeper: list[str]) -> None:
        skills = [path for path in deeper if os.path.lexists(os.path.join(path, MANIFEST))]
        if skills:
            message = f"{len(skills)} skill(s) below {directory}, {skills[0]} for one, lie deeper than is looked for."
            self._note("skill-too-deep", directory, message)

    def _unreadable(self, path: str, error: OSError | PathError) -> None:
        reason = error.message if isinstance(error, PathError) else f"{error.strerror}."
        self._note("directory-unreadable", path, f"{path} cannot be listed: {reason}")

    def _note(self, rule: str, path: str, message: str) -> None:
        found = judge(finding(rule, path, message), self._dialect)
        if found is not None:
            self._found.diagnostics.append(found)
