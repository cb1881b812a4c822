"""From an entry of a registry to a skill with its body, or to the error that the seed has for what is wrong."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Literal, cast

from satchel.activation.permission import contained, in_worker
from satchel.activation.registry import FilesystemSkillRegistry
from satchel.activation.reply import Code, RefusedError, refused, shown
from satchel.activation.trust import Standing
from satchel.errors import SatchelError, SkillError, StoreError
from satchel.ports.skills import SkillEntry, SkillRegistry
from satchel.skills.diagnostics import RULES
from satchel.skills.dialect import Dialect
from satchel.skills.model import MANIFEST, LoadedSkill, Skill
from satchel.skills.substitute import place_variables, substitute_skill

By = Literal["model", "user", "program"]
"""Who asks for a skill. A model may not have what ``disable-model-invocation`` keeps from it, a user not what
``user-invocable: false`` does; the host's own program may have everything that is trusted."""

_FORMAT = (
    "frontmatter must be valid YAML between two `---` lines at the top of the file. See agentskills.io/specification."
)
_CODES: Mapping[str, Code] = {
    "name-directory-mismatch": "NAME_MISMATCH",
    "symlink-outside": "OUTSIDE_WORKSPACE",
    "symlink-dangling": "IO_ERROR",
    "manifest-unreadable": "IO_ERROR",
    "too-many-files": "IO_ERROR",
    "skill-too-large": "IO_ERROR",
}
_MESSAGES: Mapping[Code, str] = {
    "NAME_MISMATCH": 'skill "{}" declares another name than its directory has.',
    "OUTSIDE_WORKSPACE": 'skill "{}" lies outside every skill root.',
    "IO_ERROR": 'skill "{}" cannot be read.',
    "INVALID_FRONTMATTER": 'skill "{}" has invalid frontmatter.',
}


def require_usable(entry: SkillEntry) -> Skill:
    """The entry's skill. Raises ``RefusedError`` with what was found when it was discovered."""
    if entry.skill is None:
        raise _broken(entry.name, [item.to_dict() for item in entry.diagnostics], entry.location)
    return entry.skill


def require_caller(skill: Skill, by: By) -> None:
    """Raises ``RefusedError`` DISABLED for a skill that is not for the one who asks."""
    if by == "model" and not skill.flags.model_invocable:
        message = f'skill "{skill.name}" is for the user to start, not for a model.'
        hint = f"Do not call it again; the user can write /{skill.name}."
        raise refused(skill.name, "DISABLED", message, reason="disable-model-invocation is true", hint=hint)
    if by == "user" and not skill.flags.user_may_name:
        message = f'skill "{skill.name}" is not for the user to start.'
        raise refused(skill.name, "DISABLED", message, reason="user-invocable is false")


def instructions_of(
    loaded: LoadedSkill,
    arguments: str | dict[str, str] | None,
    *,
    dialect: Dialect,
    session: str,
    environ: Mapping[str, str],
) -> str:
    """The body with arguments and variables in place. Raises ``RefusedError`` INVALID_PARAM for too much of them."""
    variables = place_variables(dialect, directory=loaded.location, session=session)
    try:
        return substitute_skill(loaded, arguments, dialect=dialect, variables=variables, environ=environ).text
    except SkillError as error:
        raise refused(loaded.name, "INVALID_PARAM", error.message, hint=error.hint) from error


async def load_entry(
    registry: SkillRegistry, entry: SkillEntry, look: Callable[[str], Standing]
) -> tuple[LoadedSkill, Standing]:
    """Body and files as they are now, and what ``look`` finds of the place for the digest. Raises ``RefusedError``."""
    if isinstance(registry, FilesystemSkillRegistry):
        # Both in one thread: every change of threads costs more than the reading.
        found = await in_worker(partial(_read, registry, entry, look))
        if isinstance(found, tuple):
            return found
        raise _failed(entry, found, "")
    result, failure = await contained(partial(_loaded, registry, entry.name))
    if not isinstance(result, LoadedSkill):
        raise _failed(entry, result, failure)
    try:
        return result, await asyncio.to_thread(_looked_at, entry, result, look)
    except SatchelError as error:
        raise _failed(entry, error, "") from error


def _looked_at(entry: SkillEntry, loaded: LoadedSkill, look: Callable[[str], Standing]) -> Standing:
    """What the entry's place says, which counts for ``loaded`` only when that lies there.

    A registry that looked again in the meantime may have another skill of the name, from a root that nobody trusts.
    """
    if loaded.location != entry.dir and not (
        loaded.location and entry.dir and os.path.realpath(loaded.location) == os.path.realpath(entry.dir)
    ):
        hint = "The host must look for skills again."
        raise SkillError("skill-not-found", "another skill of this name has taken its place", hint=hint)
    return look(loaded.ref.digest)


def _failed(entry: SkillEntry, result: object, failure: str) -> RefusedError:
    if isinstance(result, StoreError):
        message = f'the approvals that decide about skill "{entry.name}" cannot be read.'
        return refused(entry.name, "NOT_TRUSTED", message, reason=result.message)
    if isinstance(result, SkillError):
        found = result.data.get("diagnostics")
        items = cast("list[Mapping[str, object]]", found) if isinstance(found, list) else []
        return _broken(entry.name, items, entry.dir, otherwise=result)
    if isinstance(result, SatchelError):
        return _unreadable(entry, result.message, result.hint)
    if result is not None:
        return _unreadable(entry, f"its registry gave a {type(result).__name__}, which is no skill")
    return _unreadable(entry, f"its registry {failure}" if failure else "it is not there any more")


def _read(
    registry: FilesystemSkillRegistry, entry: SkillEntry, look: Callable[[str], Standing]
) -> tuple[LoadedSkill, Standing] | SatchelError | None:
    try:
        loaded = registry.load_now(entry.name)
        return None if loaded is None else (loaded, _looked_at(entry, loaded, look))
    except SatchelError as error:
        return error


async def _loaded(registry: SkillRegistry, name: str) -> LoadedSkill | SatchelError | None:
    try:
        return await registry.load(name)
    except SatchelError as error:
        return error


def _unreadable(entry: SkillEntry, reason: str, hint: str = "") -> RefusedError:
    message = _MESSAGES["IO_ERROR"].format(shown(entry.name))
    return refused(entry.name, "IO_ERROR", message, path=_manifest(entry.dir), reason=reason, hint=hint)


def _broken(
    name: str, found: Sequence[Mapping[str, object]], location: str, *, otherwise: SkillError | None = None
) -> RefusedError:
    """The error for the first finding that makes a skill unusable."""
    errors = [item for item in found if item.get("severity") == "error"] or list(found)
    if not errors:
        reason, hint = (otherwise.message, otherwise.hint) if otherwise else ("", "")
        message = _MESSAGES["IO_ERROR"].format(shown(name))
        return refused(name, "IO_ERROR", message, path=_manifest(location), reason=reason, hint=hint)
    first = errors[0]
    rule, hint = str(first.get("rule")), str(first.get("hint"))
    code = _CODES.get(rule, "INVALID_FRONTMATTER")
    if rule == "manifest-unreadable" and hint == RULES["symlink-outside"].hint:
        code = "OUTSIDE_WORKSPACE"
    message = _MESSAGES[code].format(shown(name))
    if rule.startswith(("yaml-", "frontmatter-")):
        message, hint = f'skill "{shown(name)}" has malformed YAML frontmatter.', _FORMAT
    line = first.get("line")
    reason = str(first.get("message")) + (f" (line {line})" if line else "")
    path = str(first.get("path") or "") or _manifest(location)
    return refused(name, code, message, path=path, reason=reason, hint=hint)


def _manifest(directory: str) -> str:
    return f"{directory}/{MANIFEST}" if directory else ""
