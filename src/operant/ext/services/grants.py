"""What the owner allowed: which content of which service may run, and what it last asked to hook."""

from __future__ import annotations

import msgspec

from operant.ext.services.wire import HookWanted
from operant.sdk import Host, PutValue, Record

_NAMESPACE = "services"


class Grant(Record):
    """One service: the contents that were allowed, the newest last, and where it hooks when it runs.

    The hooks are remembered so that a guard refuses from the first moment of a start, before it has registered.
    """

    digests: tuple[str, ...] = ()
    stopped: bool = False
    hooks: tuple[HookWanted, ...] = ()

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

    async def allow(self, service: str, digest: str) -> None:
        """Allow a content; it becomes the newest."""
        grant = self.of(service)
        others = tuple(one for one in grant.digests if one != digest)
        await self._put(service, msgspec.structs.replace(grant, digests=(*others, digest)[-5:], stopped=False))

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
