"""Whether a skill may enter the conversation: sensitive places, the fence, trust and the host's word, in this order."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Collection
from dataclasses import dataclass
from functools import partial

from satchel.activation.permission import Answer, PermissionHook, ask, contained, permission_request
from satchel.activation.reply import RefusedError, refused
from satchel.activation.trust import Standing, Trust, standing
from satchel.errors import SkillError, StoreError
from satchel.library.approvals import Approvals
from satchel.ports.skills import SkillEntry
from satchel.ports.state import AuditEntry, AuditLog
from satchel.skills.model import LoadedSkill

logger = logging.getLogger("satchel.activation")

_AUDITED = frozenset({"DISABLED", "SENSITIVE", "OUTSIDE_WORKSPACE", "NOT_TRUSTED", "PERMISSION_DENIED"})
# Without the command that approves: a model with a shell would run it.
_NO_OTHER_WAY = "Go on without this skill, and do not try another way to load it. Only the user can approve it."


@dataclass(frozen=True, slots=True, kw_only=True)
class Passed:
    """A skill that was let in: by whose word, and whether its tools were consented to."""

    who: str
    consent: bool = False
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """The host's rules for one session, and its audit log."""

    session: str
    permission: PermissionHook | None
    trust: Trust
    audit: AuditLog | None
    workspace: Collection[str]
    sensitive: Collection[str]
    unsafe_without_hook: bool
    timeout_s: float

    def look(self, entry: SkillEntry, digest: str) -> Standing:
        """What the skill's place says of it. Looks at the disk; raises ``StoreError``."""
        return standing(entry, digest, self.trust, workspace=self.workspace, sensitive=self.sensitive)

    async def judge(self, entry: SkillEntry, loaded: LoadedSkill, place: Standing, *, by: str) -> Passed:
        """Lets the skill in, or raises ``RefusedError``."""
        digest = loaded.ref.digest
        if self.permission is None:
            passed = self._without_hook(entry, place, digest)
        else:
            passed = await self._asked(entry, loaded, place, self.permission)
        failure = await self.record(
            event="activate", decision="allow", who=passed.who, by=by, skill=entry.name, digest=digest
        )
        if failure:
            message = f'the activation of skill "{entry.name}" could not be recorded.'
            raise refused(entry.name, "PERMISSION_DENIED", message, reason=failure, digest=digest)
        return passed

    def _without_hook(self, entry: SkillEntry, place: Standing, digest: str) -> Passed:
        name = entry.name
        if place.sensitive:
            message = f'skill "{name}" lies in a sensitive place.'
            reason = f"the path matches {place.sensitive} and no permission hook is configured"
            raise refused(name, "SENSITIVE", message, path=entry.dir, reason=reason, digest=digest)
        if not place.is_fenced:
            message = f'skill "{name}" lies outside every skill root.'
            reason = "the resolved directory is in none of the configured roots and no permission hook is configured"
            raise refused(name, "OUTSIDE_WORKSPACE", message, path=entry.dir, reason=reason, digest=digest)
        if place.trusted_by:
            return Passed(who=place.trusted_by)
        if self.trust.untrusted_project_skills == "hook_required":
            if self.unsafe_without_hook:
                return Passed(who="unsafe-flag")
            raise self._not_trusted(entry, digest, "no permission hook is configured")
        return Passed(who="policy", warnings=self._warnings(entry))

    async def _asked(self, entry: SkillEntry, loaded: LoadedSkill, place: Standing, hook: PermissionHook) -> Passed:
        needs_approval = not place.trusted_by and self.trust.untrusted_project_skills == "hook_required"
        request = permission_request(
            loaded.skill,
            root_index=entry.root_index,
            reason="untrusted_project_skill" if needs_approval else "normal",
        )
        answer = await ask(hook, request, timeout_s=self.timeout_s)
        if not answer.allows:
            raise self._refused_by_hook(entry, answer, loaded.ref.digest, needs_approval=needs_approval)
        warnings = () if place.trusted_by or needs_approval else self._warnings(entry)
        if self.trust.remember and answer.verdict == "allow" and self.trust.approvals and not place.trusted_by:
            warnings += await self._remembered(self.trust.approvals, place.directory, loaded.ref.digest)
        return Passed(who="hook", consent=answer.verdict == "allow_tools", warnings=warnings)

    def _refused_by_hook(self, entry: SkillEntry, answer: Answer, digest: str, *, needs_approval: bool) -> RefusedError:
        reason = answer.reason or f'the permission hook answered "{answer.verdict}"'
        if needs_approval:
            return self._not_trusted(entry, digest, reason, who="hook")
        message = f'the activation of skill "{entry.name}" was denied.'
        hint = "Go on without this skill, and do not try another way to load it."
        return refused(
            entry.name,
            "PERMISSION_DENIED",
            message,
            path=entry.dir,
            reason=reason,
            hint=hint,
            who="hook",
            digest=digest,
        )

    def _not_trusted(self, entry: SkillEntry, digest: str, reason: str, *, who: str = "policy") -> RefusedError:
        return refused(
            entry.name,
            "NOT_TRUSTED",
            f'skill "{entry.name}" comes from a root that is not trusted.',
            path=entry.dir,
            reason=reason,
            hint=_NO_OTHER_WAY,
            who=who,
            digest=digest,
        )

    def _warnings(self, entry: SkillEntry) -> tuple[str, ...]:
        if self.trust.untrusted_project_skills != "warn":
            return ()
        warning = f'The skill "{entry.name}" comes from a root that is not trusted: {entry.dir or "no directory"}'
        logger.warning("%s", warning)
        return (warning,)

    async def _remembered(self, approvals: Approvals, directory: str, digest: str) -> tuple[str, ...]:
        if not directory:
            return ()
        try:
            await asyncio.to_thread(approvals.add, directory, manifest=digest)
        except (StoreError, SkillError) as error:
            logger.warning("an approval was not kept: %s", error.message)
            return (f"The approval was not kept: {error.message}",)
        return ()

    async def record_refusal(self, refusal: RefusedError, *, by: str) -> None:
        """Puts a refusal that somebody decided into the log; it stands whether or not that works."""
        reply = refusal.reply
        if reply.code not in _AUDITED:
            return
        failure = await self.record(
            event="activate",
            decision="deny",
            who=refusal.who,
            by=by,
            skill=reply.name,
            digest=refusal.digest,
            code=reply.code,
            reason=reply.reason,
        )
        if failure:
            logger.warning("a refusal of the skill %s was not recorded: %s", reply.name, failure)

    async def record(self, **fields: str) -> str:
        """Puts one decision into the log; "" when that worked or there is none, else what went wrong."""
        if self.audit is None:
            return ""
        entry = AuditEntry(time=time.time(), session=self.session, **fields)  # pyright: ignore[reportArgumentType] - the callers' literals
        _, failure = await contained(partial(self.audit.append, entry), self.timeout_s)
        return f"the audit log {failure}" if failure else ""
