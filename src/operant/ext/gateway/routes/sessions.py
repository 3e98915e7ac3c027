"""Conversations: list, read, search, copy, rename, archive, stop and delete them."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from aiohttp import web
from msgspec import Meta

from operant.ext.gateway.api import Call, Nothing, Route, need_read
from operant.ext.gateway.frames import Framer, delta_frame, event_frame, tasks_of, usage_of
from operant.ext.gateway.hub import Hub, Reset, Seen
from operant.ext.gateway.sessions import Previews, moment, shown
from operant.ext.gateway.streams import Stream
from operant.ext.gateway.turns import TurnSummary, turns_of
from operant.sdk import (
    ContextOpened,
    Delta,
    Denied,
    Event,
    Exported,
    Hit,
    Json,
    MessageReceived,
    ModelReplied,
    NotFound,
    Record,
    SessionArchive,
    SessionErase,
    SessionExport,
    SessionFork,
    SessionGet,
    SessionHistory,
    SessionImport,
    SessionInfo,
    SessionList,
    SessionOpen,
    SessionSearch,
    SessionStop,
    SessionUpdate,
    Stopped,
    TaskChanged,
    ToolEnded,
    TurnStarted,
    allowed,
    text_of,
)

Limit = Annotated[int, Meta(ge=1, le=500)]
Seq = Annotated[int, Meta(ge=0, lt=1 << 62)]


class ListQuery(Record):
    """Which sessions: those changed before a time in microseconds (0: now), of an agent, or the archived ones."""

    limit: Limit = 50
    before: Seq = 0
    archived: bool = False
    agent: str = ""


class PageQuery(Record):
    """Which events: those after a seq, so many (0: all), or with `last` the last ones."""

    after: Seq = 0
    limit: Annotated[int, Meta(ge=0, le=10_000)] = 0
    last: Annotated[int, Meta(ge=0, le=10_000)] = 0


class EventsQuery(Record):
    """Which events; with `view=frames` a stream has frames instead of events."""

    after: Seq = 0
    limit: Annotated[int, Meta(ge=0, le=10_000)] = 0
    last: Annotated[int, Meta(ge=0, le=10_000)] = 0
    view: str = "events"


class SearchQuery(Record):
    """What to look for, and where (empty: everywhere)."""

    q: Annotated[str, Meta(min_length=1, max_length=1_000)]
    session: str = ""
    limit: Annotated[int, Meta(ge=1, le=100)] = 20


class SessionPage(Record):
    """Sessions, the last changed first; `next` is the `before` of the page after this one, 0 at the end."""

    sessions: tuple[Json, ...]
    next: int = 0


class EventPage(Record):
    """Events in order; `next` is the `after` of the page after this one, 0 at the end. `first` is the lowest seq here."""

    session_id: str
    events: tuple[Event, ...]
    next: int = 0
    end: int = 0


class HistoryPage(Record):
    """A session as messages of a chat."""

    session_id: str
    messages: tuple[Json, ...]
    token_usage: Json
    next: int = 0


class TaskPage(Record):
    """A session's task tree and where its work stands."""

    session_id: str
    mode: str
    tasks: tuple[Json, ...]
    summary: str
    deep_work_phase: str | None = None


class OpenBody(Record):
    """A new session; an empty key makes one."""

    session_id: str = ""
    agent: str = ""
    title: str = ""


class ChangeBody(Record):
    """What is to change of a session."""

    title: str | None = None
    model: str | None = None
    archived: bool | None = None


class ForkBody(Record):
    """Up to which seq the copy goes (0: all)."""

    upto: Seq = 0
    title: str = ""


class StopBody(Record):
    """Which turn to stop (empty: the one that runs)."""

    turn: str = ""


class TurnPage(Record):
    """The turns of a session, oldest first."""

    session_id: str
    turns: tuple[TurnSummary, ...]


class TurnTrace(Record):
    """One turn, with everything that is on record of it; `opened` is the prompt that held before it began."""

    session_id: str
    turn: TurnSummary
    events: tuple[Event, ...]
    opened: Event | None = None


class Sessions:
    """Answer the routes about sessions."""

    def __init__(self, hub: Hub, previews: Previews) -> None:
        self._hub = hub
        self._previews = previews

    def routes(self) -> list[Route]:
        """Return the routes."""
        one = "/api/sessions/{session}"
        tag = "sessions"
        events = {"text/event-stream": "Those events and everything that comes after them, as it comes."}
        return [
            Route("GET", "/api/sessions", self.list, "List sessions, the last changed first.", tag, ListQuery, None, SessionPage),
            Route("POST", "/api/sessions", self.open, "Open a session.", tag, body=OpenBody, returns=Json, status=201),
            Route("GET", "/api/sessions/search", self.search, "Find events by words, best first.", tag, SearchQuery, None, tuple[Hit, ...]),
            Route("POST", "/api/sessions/import", self.load, "Make a session of exported data.", tag, body=SessionImport, returns=Json, status=201),
            Route("GET", one, self.get, "Show one session.", tag, returns=Json),
            Route("PATCH", one, self.change, "Rename a session, archive it, or let another model answer it.", tag, body=ChangeBody, returns=Json),
            Route("DELETE", one, self.erase, "Delete a session for ever; what runs in it is stopped first.", tag, returns=Json),
            Route("GET", f"{one}/history", self.history, "Show a session as messages of a chat.", tag, PageQuery, None, HistoryPage),
            Route("GET", f"{one}/events", self.events, "Show a session as it is on record, at once or as a stream.", tag, EventsQuery, None, EventPage, also=events),
            Route("GET", f"{one}/tasks", self.tasks, "Show a session's task tree.", tag, returns=TaskPage),
            Route("GET", f"{one}/turns", self.turns, "List a session's turns.", tag, returns=TurnPage),
            Route("GET", f"{one}/turns/{{turn}}", self.trace, "Show everything that is on record of a turn.", tag, returns=TurnTrace),
            Route("GET", f"{one}/export", self.export, "Return a whole session as data.", tag, returns=Exported),
            Route("POST", f"{one}/fork", self.fork, "Copy a session up to a seq into a new one.", tag, body=ForkBody, returns=Json, status=201),
            Route("POST", f"{one}/stop", self.stop, "Stop the running turn.", tag, body=StopBody, returns=Stopped),
        ]  # fmt: skip

    # ------------------------------------------------------------------ one and all

    async def list(self, call: Call[ListQuery, None]) -> SessionPage:
        """List sessions."""
        query = call.query
        found = await call.client.call(
            SessionList(limit=query.limit, before=query.before, archived=query.archived, agent=query.agent)
        )
        sessions = tuple([await self._shown(call, info) for info in found])
        return SessionPage(sessions=sessions, next=found[-1].updated if len(found) == query.limit else 0)

    async def open(self, call: Call[Nothing, OpenBody]) -> Json:
        """Open a session."""
        body = call.body
        info = await call.client.call(SessionOpen(session=body.session_id, agent=body.agent, title=body.title))
        return await self._shown(call, info)

    async def get(self, call: Call[Nothing, None]) -> Json:
        """Show one session."""
        return await self._shown(call, await call.client.call(SessionGet(session=call.path("session"))))

    async def change(self, call: Call[Nothing, ChangeBody]) -> Json:
        """Change a session."""
        key, body = call.path("session"), call.body
        info = await call.client.call(SessionGet(session=key))
        if body.title is not None or body.model is not None:
            info = await call.client.call(SessionUpdate(session=key, title=body.title, model=body.model))
        if body.archived is not None:
            info = await call.client.call(SessionArchive(session=key, archived=body.archived))
        return await self._shown(call, info)

    async def erase(self, call: Call[Nothing, None]) -> Json:
        """Delete a session."""
        key = call.path("session")
        await call.client.call(SessionErase(session=key))
        self._hub.reset(key)
        return {"status": "deleted", "session_id": key}

    async def fork(self, call: Call[Nothing, ForkBody]) -> Json:
        """Copy a session."""
        body = call.body
        return await self._shown(
            call, await call.client.call(SessionFork(session=call.path("session"), upto=body.upto, title=body.title))
        )

    async def stop(self, call: Call[Nothing, StopBody]) -> Stopped:
        """Stop a turn."""
        return await call.client.call(SessionStop(session=call.path("session"), turn=call.body.turn))

    async def search(self, call: Call[SearchQuery, None]) -> tuple[Hit, ...]:
        """Find events."""
        query = call.query
        return await call.client.call(SessionSearch(query=query.q, session=query.session, limit=query.limit))

    async def export(self, call: Call[Nothing, None]) -> web.Response:
        """Return a session as data."""
        data = msgspec.json.encode(await call.client.call(SessionExport(session=call.path("session"))))
        name = "".join(letter if letter.isalnum() else "-" for letter in call.path("session"))[:80]
        headers = {"Content-Disposition": f'attachment; filename="{name}.json"'}
        return web.Response(body=data, content_type="application/json", headers=headers)

    async def load(self, call: Call[Nothing, SessionImport]) -> Json:
        """Make a session of exported data. It says what a person has allowed, so not everybody may write it."""
        if not allowed(call.principal, "admin"):
            raise Denied("This token may not import sessions.", "It needs 'admin'.")
        return await self._shown(call, await call.client.call(call.body))

    # ------------------------------------------------------------------ what is in one

    async def history(self, call: Call[PageQuery, None]) -> HistoryPage:
        """Show a session as a chat."""
        page = await self._page(call, call.query)
        info = await call.client.call(SessionGet(session=page.session_id))
        messages = tuple(said for event in page.events if (said := _message(event)))
        return HistoryPage(
            session_id=page.session_id, messages=messages, token_usage=usage_of(info.usage), next=page.next
        )

    async def events(self, call: Call[EventsQuery, None]) -> EventPage | web.StreamResponse:
        """Show a session as it is."""
        if "text/event-stream" in call.request.headers.get("Accept", ""):
            return await self._follow(call)
        query = call.query
        return await self._page(call, PageQuery(after=query.after, limit=query.limit, last=query.last))

    async def tasks(self, call: Call[Nothing, None]) -> TaskPage:
        """Show a task tree."""
        key = call.path("session")
        events = await call.client.call(SessionHistory(session=key))
        tasks = {event.body.id: event.body for event in events if isinstance(event.body, TaskChanged)}
        started = [event.body.mode for event in events if isinstance(event.body, TurnStarted)]
        info = await call.client.call(SessionGet(session=key))
        deep = bool(started) and started[-1] == "deep"
        phase = ("working" if info.state == "open" else "idle") if deep else None
        told = tasks_of(tasks)
        return TaskPage(
            session_id=key,
            mode="deep_work" if deep else "bounded",
            tasks=tuple(told["tasks"]),
            summary=told["summary"],
            deep_work_phase=phase,
        )

    async def turns(self, call: Call[Nothing, None]) -> TurnPage:
        """List turns."""
        key = call.path("session")
        return TurnPage(session_id=key, turns=turns_of(await call.client.call(SessionHistory(session=key))))

    async def trace(self, call: Call[Nothing, None]) -> TurnTrace:
        """Show a turn."""
        key, turn = call.path("session"), call.path("turn")
        events = await call.client.call(SessionHistory(session=key))
        own = tuple(event for event in events if event.turn == turn)
        found = [one for one in turns_of(own) if one.turn == turn]
        if not found:
            raise NotFound(f"There is no turn {turn!r} in {key}.", f"GET /api/sessions/{key}/turns lists them.")
        opened = [one for one in events if isinstance(one.body, ContextOpened) and one.seq < own[0].seq]
        return TurnTrace(session_id=key, turn=found[0], events=own, opened=opened[-1] if opened else None)

    # ------------------------------------------------------------------ inside

    async def _shown(self, call: Call[Any, Any], info: SessionInfo) -> Json:
        return await shown(call.client, self._previews, info)

    async def _page(self, call: Call[Any, None], query: PageQuery) -> EventPage:
        key = call.path("session")
        after = query.after
        end = (await call.client.call(SessionGet(session=key))).events
        if query.last:
            after = max(after, end - query.last)
        events = await call.client.call(SessionHistory(session=key, after=after, limit=query.limit))
        full = bool(query.limit) and len(events) == query.limit and events[-1].seq < end
        return EventPage(session_id=key, events=events, next=events[-1].seq if full else 0, end=end)

    async def _follow(self, call: Call[EventsQuery, None]) -> web.StreamResponse:
        """Stream a session; who comes back says in `Last-Event-ID` how far they got."""
        need_read(call.principal)
        came = call.request.headers.get("Last-Event-ID", "")
        after = int(came) if came.isdigit() else call.query.after
        framer = Framer() if call.query.view == "frames" else None
        with self._hub.viewer(call.path("session"), after) as viewer:
            async with Stream(call.request) as stream:
                async for seen in viewer.seen():
                    await stream.all(_framed(framer, seen))
        return stream.response


def _framed(framer: Framer | None, seen: Seen) -> list[Json]:
    if isinstance(seen, Reset):
        return [{"type": "cleared"}]
    if isinstance(seen, Delta):
        return [delta_frame(seen)]
    return framer.frames(seen) if framer else [event_frame(seen)]


def _message(event: Event) -> Json | None:
    """Say an event as a message of a chat, where it is one."""
    body = event.body
    when = moment(event.at)
    if isinstance(body, MessageReceived):
        return {"role": "user", "content": text_of(body.parts), "timestamp": when, "seq": event.seq}
    if isinstance(body, ModelReplied) and body.purpose == "turn":
        return {"role": "assistant", "content": text_of(body.parts), "timestamp": when, "seq": event.seq}
    if isinstance(body, ToolEnded):
        text = text_of(body.parts)
        return {"role": "tool", "content": text, "timestamp": when, "seq": event.seq,
                "tool_call_id": body.call_id, "tool_name": body.name}  # fmt: skip
    return None
