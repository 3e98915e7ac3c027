"""Values by key, in namespaces of their own."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from operant.sdk import Host, Invalid, KvDelete, KvGet, KvList, KvSet, Principal, PutValue


class Values:
    """Carry out the calls about values."""

    def __init__(self, host: Host) -> None:
        self._host = host

    async def get(self, who: Principal, call: KvGet) -> str | None:
        """Return a value."""
        value = await self._host.kept.value(_space(call.namespace), call.key)
        return None if value is None else value.decode()

    async def set(self, who: Principal, call: KvSet) -> None:
        """Set a value."""
        if call.ttl_s < 0:
            raise Invalid("A value cannot live for less than no time.", "Leave ttl out, or make it positive.")
        until = self._host.clock.now() + int(call.ttl_s * 1_000_000) if call.ttl_s else 0
        value = call.value.encode()
        await self._host.kept.write(
            PutValue(namespace=_space(call.namespace), key=call.key, value=value, expires=until)
        )

    async def delete(self, who: Principal, call: KvDelete) -> None:
        """Delete a value."""
        await self._host.kept.write(PutValue(namespace=_space(call.namespace), key=call.key, value=None))

    async def list(self, who: Principal, call: KvList) -> dict[str, str]:
        """List values by key."""
        found = await self._host.kept.values(_space(call.namespace), call.prefix)
        return {key: value.decode() for key, value in found}


def _space(namespace: str) -> str:
    if not namespace:
        raise Invalid("A value needs a namespace.", "Give it one, such as the name of the job that it belongs to.")
    return f"kv:{namespace}"


@asynccontextmanager
async def setup(host: Host, settings: None) -> AsyncGenerator[None]:
    """Offer the values."""
    values = Values(host)
    host.syscall(KvGet, values.get)
    host.syscall(KvSet, values.set)
    host.syscall(KvDelete, values.delete)
    host.syscall(KvList, values.list)
    yield
