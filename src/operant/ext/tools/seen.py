"""Remember which state of a file a session has last seen, so that a change by somebody else is noticed."""

from __future__ import annotations

import hashlib

from operant.sdk import Host, KvGet, KvSet

_NAMESPACE = "files"
_KEPT_S = 30 * 86_400.0


class Seen:
    """Digests of files by session and name; they survive a restart."""

    def __init__(self, host: Host) -> None:
        self._host = host

    async def digest(self, session: str, name: str) -> str:
        """Return the digest of what the session last read or wrote under a name, or nothing."""
        return await self._host.call(KvGet(namespace=_NAMESPACE, key=_key(session, name))) or ""

    async def remember(self, session: str, name: str, data: bytes | None) -> None:
        """Keep what the session now knows of a file; None: that there is none."""
        await self.remember_digest(session, name, "" if data is None else digest_of(data))

    async def remember_digest(self, session: str, name: str, digest: str) -> None:
        """Keep the digest of what the session now knows of a file."""
        if await self.digest(session, name) != digest:  # reading is frequent, and a write is an fsync
            await self._host.call(KvSet(namespace=_NAMESPACE, key=_key(session, name), value=digest, ttl_s=_KEPT_S))


def digest_of(data: bytes) -> str:
    """Return the SHA-256 of some bytes."""
    return hashlib.sha256(data).hexdigest()


def _key(session: str, name: str) -> str:
    return f"seen:{session}:{digest_of(name.encode('utf-8', 'surrogatepass'))[:32]}"
