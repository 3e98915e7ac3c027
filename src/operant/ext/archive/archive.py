"""Fork, export and import sessions."""

from __future__ import annotations

import base64
import binascii
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

from operant.sdk import (
    BlobRef,
    Conflict,
    ContextOpened,
    Event,
    Exported,
    Host,
    Invalid,
    MessageReceived,
    ModelReplied,
    NotFound,
    Principal,
    SessionCopy,
    SessionExport,
    SessionFork,
    SessionGet,
    SessionHistory,
    SessionImport,
    SessionInfo,
    ToolEnded,
)

FORMAT = "operant-session/1"


class Archive:
    """Carry out the calls that copy sessions."""

    def __init__(self, host: Host) -> None:
        self._host = host

    async def fork(self, who: Principal, call: SessionFork) -> SessionInfo:
        """Copy a session's history, up to the last turn that had ended there."""
        source = await self._host.call(SessionGet(session=call.session))
        events = await self._host.call(SessionHistory(session=call.session))
        upto = call.upto or events[-1].seq
        ends = [event.seq for event in events if event.type == "turn.ended" and event.seq <= upto]
        kept = tuple(event for event in events if ends and event.seq <= ends[-1])
        return await self._host.call(SessionCopy(source=source, events=kept, title=call.title))

    async def export(self, who: Principal, call: SessionExport) -> Exported:
        """Return a whole session as data."""
        info = await self._host.call(SessionGet(session=call.session))
        events = await self._host.call(SessionHistory(session=call.session))
        blobs = {
            digest: base64.b64encode(await self._host.blobs.get_blob(digest)).decode()
            for digest in sorted(_digests(events))
        }
        return Exported(format=FORMAT, session=info, events=events, blobs=blobs)

    async def bring(self, who: Principal, call: SessionImport) -> SessionInfo:
        """Make a session of exported data."""
        exported = call.exported
        if exported.format != FORMAT:
            raise Invalid(f"This is not a session export: its format is {exported.format!r}.", f"It must be {FORMAT}.")
        key = call.session or exported.session.key
        try:
            await self._host.call(SessionGet(session=key))
        except NotFound:
            for digest, data in exported.blobs.items():
                await self._keep(digest, data)
            return await self._host.call(SessionCopy(source=exported.session, events=exported.events, session=key))
        raise Conflict(f"There is already a session {key}.", "Import it under another key.")

    async def _keep(self, digest: str, data: str) -> None:
        try:
            ref = await self._host.blobs.put_blob(base64.b64decode(data, validate=True))
        except binascii.Error as error:
            raise Invalid(f"The blob {digest[:12]} in the export is not base64.") from error
        if ref.digest != digest:
            raise Invalid(f"The blob {digest[:12]} in the export is not what its name says.")


def _digests(events: Sequence[Event]) -> set[str]:
    found: set[str] = set()
    for event in events:
        match event.body:
            case ContextOpened() as body:
                found |= {body.system.digest, body.tools.digest}
            case MessageReceived() | ModelReplied() as body:
                found |= {part.digest for part in body.parts if isinstance(part, BlobRef)}
            case ToolEnded() as body:
                found |= {part.digest for part in (*body.parts, *body.artifacts) if isinstance(part, BlobRef)}
            case _:
                continue
    return found


@asynccontextmanager
async def setup(host: Host, settings: None) -> AsyncGenerator[None]:
    """Offer forks, exports and imports."""
    archive = Archive(host)
    host.syscall(SessionFork, archive.fork)
    host.syscall(SessionExport, archive.export)
    host.syscall(SessionImport, archive.bring)
    yield
