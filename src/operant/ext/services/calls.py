"""The syscalls about services: those of the owner, and those of the services themselves."""

from __future__ import annotations

import asyncio
from typing import Annotated

from msgspec import Meta

from operant.ext.services.clerk import OWN, own_service
from operant.ext.services.roster import Roster
from operant.ext.services.timers import LONGEST_S
from operant.sdk import (
    Conflict,
    Denied,
    Host,
    NotFound,
    Principal,
    PutValue,
    ServiceGrant,
    ServiceInfo,
    ServiceList,
    ServiceLogs,
    ServiceRevoke,
    SkillReload,
    SkillStart,
    SkillStop,
    Syscall,
)


class ServiceCalls:
    """What the owner does with services."""

    def __init__(self, roster: Roster) -> None:
        self._roster = roster

    async def list(self, who: Principal, call: ServiceList) -> tuple[ServiceInfo, ...]:
        """List services."""
        await self._roster.known()
        return tuple(self._roster.told(post) for post in self._roster.posts)

    async def grant(self, who: Principal, call: ServiceGrant) -> ServiceInfo:
        """Let a content run."""
        await self._roster.known()
        await self._roster.look()
        post = self._roster.post(call.service)
        if call.digest and call.digest != post.digest:
            raise Conflict(f"{call.service} has changed since you looked.", "Look again, then grant what is there now.")
        if not post.digest:
            raise Conflict(f"{call.service} cannot run: {post.fault}")
        await self._roster.grants.allow(call.service, post.digest, post.told)
        return await self._directed(call.service)

    async def revoke(self, who: Principal, call: ServiceRevoke) -> ServiceInfo:
        """Take it back."""
        await self._roster.known()
        if self._roster.trusts(self._roster.post(call.service).told):
            raise Conflict(f"{call.service} is trusted.", "Take it out of services.trusted, or stop it.")
        await self._roster.grants.revoke(call.service)
        revoked = await self._directed(call.service)
        await self._roster.tidy(self._roster.post(call.service))
        return revoked

    async def start(self, who: Principal, call: SkillStart) -> ServiceInfo:
        """Start a service."""
        await self._roster.known()
        post = self._roster.post(call.skill)
        if not self._roster.grants.of(call.skill).digests:
            raise Conflict(f"{call.skill} was not allowed to run.", f"`operant skill grant {call.skill}` allows it.")
        await self._roster.grants.stop(call.skill, False)
        if post.keeper.current is None:
            post.keeper.again()
        return await self._directed(call.skill)

    async def stop(self, who: Principal, call: SkillStop) -> ServiceInfo:
        """Stop a service."""
        await self._roster.known()
        self._roster.post(call.skill)
        await self._roster.grants.stop(call.skill, True)
        return await self._directed(call.skill)

    async def reload(self, who: Principal, call: SkillReload) -> tuple[ServiceInfo, ...]:
        """Look again."""
        await self._roster.known()
        await self._roster.look()
        if call.skill:
            self._roster.post(call.skill).keeper.again()
        return await self.list(who, ServiceList())

    async def logs(self, who: Principal, call: ServiceLogs) -> tuple[str, ...]:
        """Return the last lines."""
        await self._roster.known()
        return await asyncio.to_thread(self._roster.post(call.service).journal.tail, call.lines)

    async def _directed(self, service: str) -> ServiceInfo:
        post = self._roster.post(service)
        await self._roster.direct(post)
        await post.keeper.settled()
        return self._roster.told(post)


class StateGet(Syscall[str | None]):
    """Return a value that this service keeps, or null."""

    call = "service.state.get"
    capability = OWN
    returns = str | None
    key: str


class StateSet(Syscall[None]):
    """Keep a value for this service alone; `ttl_s` is how long, 0 for good."""

    call = "service.state.set"
    capability = OWN
    key: str
    value: str
    ttl_s: Annotated[float, Meta(le=LONGEST_S)] = 0.0


class StateDelete(Syscall[None]):
    """Forget a value of this service."""

    call = "service.state.delete"
    capability = OWN
    key: str


class StateList(Syscall[dict[str, str]]):
    """List the values of this service whose keys begin so."""

    call = "service.state.list"
    capability = OWN
    returns = dict[str, str]
    prefix: str = ""


class SecretGet(Syscall[str]):
    """Return a secret that the skill names in `operant.secrets`; it is in no environment and no log."""

    call = "service.secret"
    capability = OWN
    returns = str
    name: str


class OwnCalls:
    """What services do for themselves."""

    def __init__(self, host: Host, roster: Roster) -> None:
        self._host = host
        self._roster = roster

    async def get(self, who: Principal, call: StateGet) -> str | None:
        """Return a value."""
        value = await self._host.kept.value(_space(who), call.key)
        return None if value is None else value.decode()

    async def set(self, who: Principal, call: StateSet) -> None:
        """Keep a value."""
        until = self._host.clock.now() + int(call.ttl_s * 1e6) if call.ttl_s > 0 else 0
        await self._host.kept.write(
            PutValue(namespace=_space(who), key=call.key, value=call.value.encode(), expires=until)
        )

    async def delete(self, who: Principal, call: StateDelete) -> None:
        """Forget a value."""
        await self._host.kept.write(PutValue(namespace=_space(who), key=call.key, value=None))

    async def list(self, who: Principal, call: StateList) -> dict[str, str]:
        """List values."""
        found = await self._host.kept.values(_space(who), call.prefix)
        return {key: value.decode() for key, value in found}

    async def secret(self, who: Principal, call: SecretGet) -> str:
        """Return a secret, and see to it that the service's log never has it."""
        post = self._roster.post(own_service(who))
        allowed = post.keeper.allowed
        if allowed is None or call.name not in allowed.secrets:
            raise Denied(f"{who.id} may not read {call.name}.", "The skill names it in `operant.secrets`.")
        value = self._host.variable(call.name)
        if value is None:
            raise NotFound(f"The variable {call.name} is not set.", "Set it in the environment or in env_file.")
        post.journal.hide(value)
        return value


def _space(who: Principal) -> str:
    return f"service:{own_service(who)}"
