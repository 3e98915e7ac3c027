"""A store in memory that holds the contract of `Store`, for tests that are not about storage."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Sequence
from datetime import UTC, datetime

import msgspec

from operant.kernel.errors import Conflict, NotFound, StoreStopped
from operant.kernel.ports import (
    Accept,
    Append,
    Clock,
    Decline,
    Erase,
    Hand,
    Head,
    Health,
    Operation,
    Postpone,
    PutValue,
    Snapshot,
)
from operant.kernel.records import (
    BlobRef,
    ContextCompacted,
    Damage,
    Event,
    Hit,
    InboxItem,
    MessageDelivered,
    MessageFailed,
    MessageQueued,
    MessageReceived,
    ModelFailed,
    ModelReplied,
    Note,
    OutboxItem,
    SessionChanged,
    SessionInfo,
    SessionOpened,
    ToolEnded,
    TurnEnded,
    TurnStarted,
    Usage,
    UsageRow,
    text_of,
)

_WORD = re.compile(r"\w+")
_replace = msgspec.structs.replace


class MemoryStore:
    """Keep everything in dictionaries; `stopped` is a reason to refuse every write."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._events: dict[str, list[Event]] = {}
        self._info: dict[str, SessionInfo] = {}
        self._open: set[str] = set()
        self._inbox: dict[str, InboxItem] = {}
        self._outbox: dict[str, OutboxItem] = {}
        self._snapshots: dict[str, Snapshot] = {}
        self._values: dict[tuple[str, str], tuple[bytes, int]] = {}
        self._blobs: dict[str, bytes] = {}
        self._usage: dict[tuple[str, ...], UsageRow] = {}
        self._again = asyncio.Event()
        self.stopped = ""

    # ------------------------------------------------------------------ writing

    def submit(self, *operations: Operation) -> asyncio.Future[None]:
        """Start a write."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        try:
            self._check(operations)
            for operation in operations:
                self._carry_out(operation)
        except (Conflict, StoreStopped) as error:
            future.set_exception(error)
        else:
            future.set_result(None)
        return future

    async def write(self, *operations: Operation) -> None:
        """Carry out all operations or none."""
        await self.submit(*operations)

    def resume(self) -> None:
        """Accept again."""
        self.stopped = ""
        self._again.set()

    def _check(self, operations: Sequence[Operation]) -> None:
        if self.stopped:
            self._again.clear()
            raise StoreStopped(self.stopped)
        ends: dict[str, int] = {}
        for operation in operations:
            if isinstance(operation, Accept):
                self._check_new(operation.item)
            elif isinstance(operation, Append):
                self._check_next(operation, ends)

    def _check_new(self, item: InboxItem) -> None:
        where = item.address
        known = item.external_id and _find(self._inbox, where.channel, where.account, item.external_id)
        if item.id in self._inbox or known:
            raise Conflict(f"The message {item.external_id or item.id} was accepted before.")

    def _check_next(self, append: Append, ends: dict[str, int]) -> None:
        for event in append.events:
            end = ends.get(event.session, len(self._events.get(event.session, ())))
            if event.seq != end + 1:
                raise Conflict(f"{event.session} ends at {end}, not before {event.seq}.")
            ends[event.session] = event.seq
            body = event.body
            if isinstance(body, MessageQueued) and body.outbox_id in self._outbox and not append.copied:
                raise Conflict(f"The message {body.outbox_id} was queued before.")

    def _carry_out(self, operation: Operation) -> None:
        match operation:
            case Append():
                for event in operation.events:
                    self._events.setdefault(event.session, []).append(event)
                    self._project(operation, event)
            case Accept(item=item):
                self._inbox[item.id] = item
            case Decline() if operation.inbox_id in self._inbox:
                found = self._inbox[operation.inbox_id]
                self._inbox[found.id] = _replace(found, state="rejected", reason=operation.reason)
            case Hand() | Postpone():
                self._moved(operation)
            case Snapshot():
                self._snapshots[operation.session] = operation
            case PutValue():
                self._put(operation)
            case Erase(session=key):
                self._erase(key)
            case _:
                return

    def _moved(self, operation: Hand | Postpone) -> None:
        letter = self._outbox.get(operation.outbox_id)
        if letter is None:
            return
        if isinstance(operation, Hand):
            self._outbox[letter.id] = _replace(letter, state="handed", attempts=operation.attempts)
            return
        self._outbox[letter.id] = _replace(
            letter,
            state="waiting",
            next_at=operation.next_at,
            attempts=operation.attempts,
            error=operation.error,
            expires=letter.expires if operation.expires is None else operation.expires,
        )

    def _put(self, operation: PutValue) -> None:
        place = operation.namespace, operation.key
        if operation.value is None:
            self._values.pop(place, None)
        else:
            self._values[place] = (operation.value, operation.expires)

    def _project(self, append: Append, event: Event) -> None:
        key, body = event.session, event.body
        info = self._info.get(key) or SessionInfo(key=key, agent=append.agent, created=event.at)
        info = _replace(info, updated=event.at, events=event.seq)
        if isinstance(body, SessionOpened):
            where = {name: getattr(body, name) for name in ("agent", "channel", "chat", "thread", "title", "parent")}
            info = _replace(info, **where)
        elif isinstance(body, SessionChanged):
            info = _changed(info, body)
        elif not append.copied:
            info = self._counted(append, event, info)
        self._info[key] = info

    def _counted(self, append: Append, event: Event, info: SessionInfo) -> SessionInfo:
        """Project what a copy of the event must not do again."""
        match event.body:
            case TurnStarted():
                self._open.add(event.session)
            case TurnEnded():
                self._open.discard(event.session)
            case MessageReceived(inbox_id=inbox_id) if inbox_id in self._inbox:
                self._inbox[inbox_id] = _replace(self._inbox[inbox_id], state="received", seq=event.seq)
            case MessageQueued() | MessageDelivered() | MessageFailed() as body:
                self._post(event, body)
            case ModelReplied() | ModelFailed() as body:
                self._count(append, event, body)
                return _replace(info, usage=info.usage + body.usage)
            case _:
                pass
        return info

    def _post(self, event: Event, body: MessageQueued | MessageDelivered | MessageFailed) -> None:
        if isinstance(body, MessageQueued):
            self._outbox[body.outbox_id] = OutboxItem(
                id=body.outbox_id,
                session=event.session,
                parts=body.parts,
                address=body.address,
                queued=event.at,
                reply_to=body.reply_to,
                expires=body.expires,
            )
            return
        letter = self._outbox.get(body.outbox_id)
        if letter is not None and isinstance(body, MessageDelivered):
            self._outbox[letter.id] = _replace(letter, state="delivered", platform_id=body.platform_id)
        elif letter is not None and isinstance(body, MessageFailed):
            self._outbox[letter.id] = _replace(letter, state="dead", error=body.error, attempts=body.attempts)

    def _count(self, append: Append, event: Event, body: ModelReplied | ModelFailed) -> None:
        day = _day(event.at)
        key = (day, event.session, append.agent, append.user, body.model, append.purse)
        before = self._usage[key].usage if key in self._usage else Usage()
        self._usage[key] = UsageRow(
            day=day,
            session=event.session,
            agent=append.agent,
            user=append.user,
            model=body.model,
            purse=append.purse,
            usage=before + body.usage,
        )

    def _erase(self, key: str) -> None:
        self._events.pop(key, None)
        self._info.pop(key, None)
        self._snapshots.pop(key, None)
        self._open.discard(key)
        self._usage = _without_name(self._usage, key)
        self._inbox = {one.id: one for one in self._inbox.values() if one.session != key}
        self._outbox = {one.id: one for one in self._outbox.values() if one.session != key}

    # ------------------------------------------------------------------ reading

    async def head(self, session: str) -> Head | None:
        """Return where a session ends."""
        if session not in self._info:
            return None
        return Head(info=self._shown(session), seq=len(self._events[session]), snapshot=self._snapshots.get(session))

    async def events(self, session: str, after: int = 0, limit: int = 0) -> Sequence[Event]:
        """Return events in order."""
        found = self._events.get(session, [])[after:]
        return found[:limit] if limit else list(found)

    async def sessions(
        self, *, limit: int = 50, before: int = 0, archived: bool = False, agent: str = ""
    ) -> Sequence[SessionInfo]:
        """List sessions, the last changed first."""
        found = [self._shown(key) for key in self._info]
        kept = [
            one
            for one in found
            if (one.state == "archived") == archived
            and (not agent or one.agent == agent)
            and (not before or one.updated < before)
        ]
        return sorted(kept, key=lambda one: -one.updated)[:limit]

    async def unfinished(self) -> Sequence[str]:
        """List sessions with work to do."""
        waiting = {one.session for one in self._inbox.values() if one.state == "waiting"}
        return sorted(self._open | waiting)

    async def accepted(self, channel: str, account: str, external_id: str) -> InboxItem | None:
        """Find an accepted message."""
        return _find(self._inbox, channel, account, external_id) if external_id else None

    async def inbox(self, session: str) -> Sequence[InboxItem]:
        """List waiting items."""
        return [one for one in self._inbox.values() if one.session == session and one.state == "waiting"]

    async def inbox_item(self, inbox_id: str) -> InboxItem | None:
        """Return one inbox item."""
        return self._inbox.get(inbox_id)

    async def outbox(
        self, *, states: tuple[str, ...] = ("waiting", "handed"), session: str = "", limit: int = 0
    ) -> Sequence[OutboxItem]:
        """List outbox items."""
        found = [
            one for one in self._outbox.values() if one.state in states and (not session or one.session == session)
        ]
        return found[:limit] if limit else found

    async def outbox_item(self, outbox_id: str) -> OutboxItem | None:
        """Return one outbox item."""
        return self._outbox.get(outbox_id)

    async def search(self, query: str, *, session: str = "", limit: int = 20) -> Sequence[Hit]:
        """Find events that have any of the words."""
        words = set(_WORD.findall(query.casefold()))
        hits: list[Hit] = []
        for key, events in self._events.items():
            for event in events if session in ("", key) else ():
                text = _text_of(event)
                if words & set(_WORD.findall(text.casefold())):
                    hits.append(Hit(session=key, seq=event.seq, at=event.at, type=event.type, text=text))
        return hits[:limit]

    async def usage(self, since_day: str = "") -> Sequence[UsageRow]:
        """Return usage from a day on."""
        return [row for row in self._usage.values() if row.day >= since_day]

    async def value(self, namespace: str, key: str) -> bytes | None:
        """Return a value that has not expired."""
        value, expires = self._values.get((namespace, key), (None, 0))
        return None if expires and expires <= self._clock.now() else value

    async def values(
        self, namespace: str, prefix: str = "", after: str | None = None, limit: int = 0
    ) -> Sequence[tuple[str, bytes]]:
        """List values by key."""
        keys = sorted(key for space, key in self._values if space == namespace and key.startswith(prefix))
        found = [(key, await self.value(namespace, key)) for key in keys if after is None or key > after]
        return [(key, value) for key, value in found if value is not None][: limit or None]

    async def put_blob(self, data: bytes, media_type: str = "application/octet-stream", name: str = "") -> BlobRef:
        """Keep bytes."""
        digest = hashlib.sha256(data).hexdigest()
        self._blobs[digest] = data
        return BlobRef(digest=digest, size=len(data), media_type=media_type, name=name)

    async def get_blob(self, digest: str, offset: int = 0, limit: int = 0) -> bytes:
        """Return bytes."""
        if digest not in self._blobs:
            raise NotFound(f"There is no blob {digest[:12]}.")
        data = self._blobs[digest][offset:]
        return data[:limit] if limit else data

    async def damages(self) -> Sequence[Damage]:
        """List no damage: memory has none."""
        return []

    @property
    def health(self) -> Health:
        """Tell whether writes are accepted."""
        return Health(accepting=not self.stopped, reason=self.stopped)

    async def recovered(self) -> None:
        """Return when writes are accepted again."""
        self._again.clear()
        await self._again.wait()

    def _shown(self, key: str) -> SessionInfo:
        info = self._info[key]
        return _replace(info, state="open") if info.state == "idle" and key in self._open else info


def _changed(info: SessionInfo, body: SessionChanged) -> SessionInfo:
    if body.title is not None:
        info = _replace(info, title=body.title)
    if body.model is not None:
        info = _replace(info, model=body.model)
    if body.archived is not None:
        info = _replace(info, state="archived" if body.archived else "idle")
    return info


def _find(inbox: dict[str, InboxItem], channel: str, account: str, external_id: str) -> InboxItem | None:
    for one in inbox.values():
        if (one.address.channel, one.address.account, one.external_id) == (channel, account, external_id):
            return one
    return None


def _without_name(usage: dict[tuple[str, ...], UsageRow], key: str) -> dict[tuple[str, ...], UsageRow]:
    """Keep what an erased session cost, without its name."""
    kept: dict[tuple[str, ...], UsageRow] = {}
    for (day, session, *rest), row in usage.items():
        place = (day, "" if session == key else session, *rest)
        before = kept[place].usage if place in kept else Usage()
        kept[place] = _replace(row, session=place[1], usage=before + row.usage)
    return kept


def _text_of(event: Event) -> str:
    """Return the words by which an event is found."""
    match event.body:
        case MessageReceived() | ModelReplied() | ToolEnded() as body:
            return text_of(body.parts)
        case Note() as body:
            return body.text
        case ContextCompacted() as body:
            return body.summary
        case _:
            return ""


def _day(at: int) -> str:
    return datetime.fromtimestamp(at / 1_000_000, UTC).strftime("%Y-%m-%d")
