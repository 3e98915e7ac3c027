"""Remember which state of a file a session has last seen, so that a change by somebody else is noticed."""

from __future__ import annotations

import hashlib

from operant.sdk import Host, KvGet, KvSet

_NAMESPACE = "files"
_DAY_S = 86_400.0
_KEPT_S = 30 * _DAY_S


class Seen:
    """Digests of files by session and name, and of edits by call; they survive a restart."""

    def __init__(self, host: Host) -> None:
        self._host = host

    async def digest(self, session: str, name: str) -> str:
        """Return the digest of what the session last read or wrote under a name, or nothing."""
        return await self._get(_key(session, name))

    async def remember(self, session: str, name: str, data: bytes) -> None:
        """Keep what the session now knows of a file."""
        key, digest = _key(session, name), digest_of(data)
        if await self._get(key) != digest:  # reading is frequent, and a write is an fsync
            await self._set(key, digest, _KEPT_S)

    async def intended(self, call_key: str) -> str:
        """Return the digest that an edit of this key was about to write."""
        return await self._get(f"edit:{call_key}")

    async def intend(self, call_key: str, data: bytes) -> None:
        """Keep what an edit is about to write, so that its repetition finds it done."""
        await self._set(f"edit:{call_key}", digest_of(data), _DAY_S)

    async def _get(self, key: str) -> str:
        return await self._host.call(KvGet(namespace=_NAMESPACE, key=key)) or ""

    async def _set(self, key: str, value: str, ttl_s: float) -> None:
        await self._host.call(KvSet(namespace=_NAMESPACE, key=key, value=value, ttl_s=ttl_s))


def digest_of(data: bytes) -> str:
    """Return the SHA-256 of some bytes."""
    return hashlib.sha256(data).hexdigest()


def _key(session: str, name: str) -> str:
    return f"seen:{session}:{digest_of(name.encode('utf-8', 'surrogatepass'))[:32]}"
