"""What the owner allowed: which content of which service may run, and what it last asked to hook."""

from __future__ import annotations

import msgspec

from operant.ext.services.declared import Declared
from operant.ext.services.wire import HookWanted
from operant.sdk import Host, PutValue, Record

_NAMESPACE = "services"
MOST = 5
"""Contents of one service that stay allowed."""


class Grant(Record):
    """One service: the contents that were allowed, the newest last, what each declares, and where it hooks.

    The hooks are remembered so that a guard refuses from the first moment of a start, before it has registered.
    """

    digests: tuple[str, ...] = ()
    stopped: bool = False
    hooks: tuple[HookWanted, ...] = ()
    told: dict[str, Declared] = {}

    @property
    def newest(self) -> str:
        """Return the content that was allowed last."""
        return self.digests[-1] if self.digests else ""


class Grants:
    """Keep the grants in the store."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._grants: dict[str, Grant] = {}

    async def load(self) -> None:
        """Read what was allowed."""
        found = await self._host.kept.values(_NAMESPACE)
        self._grants = {name: msgspec.json.decode(value, type=Grant) for name, value in found}

    def of(self, service: str) -> Grant:
        """Return what a service was allowed."""
        return self._grants.get(service, Grant())

    async def allow(self, service: str, digest: str, declared: Declared, *, stopped: bool = False) -> None:
        """Allow a content with what it declares; it becomes the newest."""
        grant = self.of(service)
        digests = (*(one for one in grant.digests if one != digest), digest)[-MOST:]
        told = {one: grant.told[one] for one in digests if one in grant.told} | {digest: declared}
        await self._put(service, msgspec.structs.replace(grant, digests=digests, told=told, stopped=stopped))

    async def revoke(self, service: str) -> None:
        """Forget a service."""
        self._grants.pop(service, None)
        await self._host.kept.write(PutValue(namespace=_NAMESPACE, key=service, value=None))

    async def stop(self, service: str, stopped: bool) -> None:
        """Note that a service is to run no more, or again."""
        await self._put(service, msgspec.structs.replace(self.of(service), stopped=stopped))

    async def remember(self, service: str, hooks: tuple[HookWanted, ...]) -> None:
        """Note where a service hooks."""
        grant = self.of(service)
        if grant.hooks != hooks:
            await self._put(service, msgspec.structs.replace(grant, hooks=hooks))

    async def _put(self, service: str, grant: Grant) -> None:
        self._grants[service] = grant
        await self._host.kept.write(PutValue(namespace=_NAMESPACE, key=service, value=msgspec.json.encode(grant)))
