"""The syscalls about services: those of the owner, and those of the services themselves."""

from __future__ import annotations

import asyncio
from typing import Annotated

import msgspec
from msgspec import Meta

from operant.ext.services.clerk import OWN, own_service
from operant.ext.services.roster import Post, Roster
from operant.ext.services.timers import LONGEST_S
from operant.ext.services.wire import LONGEST
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

MOST_VALUES = 1_000
"""Values on one page."""
_PAGE_BYTES = LONGEST - (1 << 10)
_AT_ONCE = 50
"""Values that are read at a time: each may be as large as a message."""


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
        if self._roster.trusts((await self._post(call.service)).told):
            raise Conflict(f"{call.service} is trusted.", "Take it out of services.trusted, or stop it.")
        await self._roster.grants.revoke(call.service)
        revoked = await self._directed(call.service)
        await self._roster.tidy(self._roster.post(call.service))
        return revoked

    async def start(self, who: Principal, call: SkillStart) -> ServiceInfo:
        """Start a service."""
        post = await self._post(call.skill)
        if not self._roster.grants.of(call.skill).digests:
            raise Conflict(f"{call.skill} was not allowed to run.", f"`operant skill grant {call.skill}` allows it.")
        await self._roster.grants.stop(call.skill, False)
        if post.keeper.current is None:
            post.keeper.again()
        return await self._directed(call.skill)

    async def stop(self, who: Principal, call: SkillStop) -> ServiceInfo:
        """Stop a service."""
        await self._post(call.skill)
        await self._roster.grants.stop(call.skill, True)
        return await self._directed(call.skill)

    async def reload(self, who: Principal, call: SkillReload) -> tuple[ServiceInfo, ...]:
        """Look again."""
        await self._roster.known()
        await self._roster.look()
        if call.skill:
            keeper = self._roster.post(call.skill).keeper
            keeper.again()
            await keeper.settled()
        return await self.list(who, ServiceList())

    async def logs(self, who: Principal, call: ServiceLogs) -> tuple[str, ...]:
        """Return the last lines."""
        return await asyncio.to_thread((await self._post(call.service)).journal.tail, call.lines)

    async def _post(self, service: str) -> Post:
        """Return a service, also one that came into being a moment ago. Raises `NotFound`."""
        await self._roster.known()
        try:
            return self._roster.post(service)
        except NotFound:
            await self._roster.look()
            return self._roster.post(service)

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


class StateList(Syscall[dict[str, str | dict[str, str] | None]]):
    """List the values of this service whose keys begin so: all, `{key: value}`, or with `after` or `limit` a page.

    A page is `{"values": {key: value}, "next"}`: the values after the key `after`, 1,000 at most, and as many as fit
    into one message; `next` is the `after` of the page that follows, null when there is none.
    """

    call = "service.state.list"
    capability = OWN
    returns = dict[str, str | dict[str, str] | None]
    prefix: str = ""
    after: str | None = None
    limit: Annotated[int, Meta(ge=1, le=MOST_VALUES)] | None = None


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

    async def list(self, who: Principal, call: StateList) -> dict[str, str | dict[str, str] | None]:
        """List values, or a page of them."""
        if call.limit is None and call.after is None:
            return {key: value.decode() for key, value in await self._host.kept.values(_space(who), call.prefix)}
        values, more = await self._page(_space(who), call.prefix, call.after, call.limit or MOST_VALUES)
        return {"values": values, "next": next(reversed(values)) if more else None}

    async def _page(self, space: str, prefix: str, after: str | None, limit: int) -> tuple[dict[str, str], bool]:
        """Return the values of a page, one at least where there are any, and whether there are more."""
        values: dict[str, str] = {}
        size = 0
        while some := await self._host.kept.values(space, prefix, after, _AT_ONCE):
            for key, value in some:
                values[key] = value.decode()
                size += len(msgspec.json.encode((key, values[key])))
                if len(values) > limit or (size > _PAGE_BYTES and len(values) > 1):
                    del values[key]
                    return values, True
                after = key
        return values, False

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
