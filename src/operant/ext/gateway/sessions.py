"""Sessions as the protocol shows them."""

from __future__ import annotations

from collections import OrderedDict

from operant.ext.gateway.frames import usage_of
from operant.sdk import (
    Client,
    Event,
    Json,
    MessageReceived,
    NotFound,
    SessionArchive,
    SessionErase,
    SessionFork,
    SessionHistory,
    SessionInfo,
    SessionUpdate,
    text_of,
)

_PREVIEW = 80
_FIRST = 6
"""Events among which a session's first message is."""
_KEPT = 2_000


class Previews:
    """The beginning of each session's first message; it never changes, so it is read once."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str, int], str] = OrderedDict()

    async def of(self, client: Client, info: SessionInfo) -> str:
        """Return a session's preview."""
        key = (info.key, info.created)
        known = self._known.get(key)
        if known is None:
            events = await client.call(SessionHistory(session=info.key, limit=_FIRST))
            known = _first(events)
            if known:
                self._known[key] = known
            if len(self._known) > _KEPT:
                self._known.popitem(last=False)
        return known


def _first(events: tuple[Event, ...]) -> str:
    said = (text_of(event.body.parts) for event in events if isinstance(event.body, MessageReceived))
    return " ".join(next(said, "").split())[:_PREVIEW]


async def shown(client: Client, previews: Previews, info: SessionInfo) -> Json:
    """Say a session with the names that clients know, and ours."""
    preview = await previews.of(client, info)
    return {
        "session_id": info.key,
        "title": info.title or preview,
        "preview": preview,
        "agent": info.agent,
        "channel": info.channel,
        "model": info.model,
        "state": info.state,
        "parent": info.parent,
        "messages": info.events,
        "created_at": moment(info.created),
        "last_activity": moment(info.updated),
        "updated": info.updated,
        "token_usage": usage_of(info.usage),
    }


def moment(microseconds: int) -> str:
    """Say a time as ISO 8601 in UTC."""
    from datetime import UTC, datetime

    return datetime.fromtimestamp(microseconds / 1_000_000, UTC).isoformat().replace("+00:00", "Z")


async def clear(client: Client, session: str) -> bool:
    """Begin a session anew; a copy of what was goes to the archive. Tell whether there was anything."""
    try:
        copy = await client.call(SessionFork(session=session))
    except NotFound:
        return False
    await client.call(SessionUpdate(session=copy.key, title=f"{session}, before it was cleared"))
    await client.call(SessionArchive(session=copy.key))
    await client.call(SessionErase(session=session))
    return True
