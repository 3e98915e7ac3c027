"""Change files all at once or not at all, note what they were before, and find a change done after a restart.

A change is drafted in memory, then noted durably (which files, and the digests of what they say before and after; what
they said before is kept as blobs of the same digests), then written file by file, each atomically. The one note serves
three: a failure in the middle is rolled back by it, a call that is repeated after a restart finds its work by it, and
`undo_changes` takes a turn back by it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple

import msgspec

from operant.ext.tools.seen import Seen, digest_of
from operant.ext.tools.workspace import Workspaces
from operant.kit.beneath import NOTHING, Absent, Beneath, FileError, Version
from operant.sdk import (
    BlobRef,
    CallContext,
    Damaged,
    Host,
    KvDelete,
    KvList,
    KvSet,
    NotFound,
    Record,
    Text,
    ToolResult,
    failed,
)

_NAMESPACE = "files"
_KEPT_S = 30 * 86_400.0
UNKNOWN = "?"
"""The digest of what is about to be written and not known yet."""


class CannotChange(Exception):
    """Say in one sentence why nothing was written."""


class HalfDone(FileError):
    """A change failed in the middle, and what was done of it could not all be taken back."""


class Held(NamedTuple):
    """A file as it is: its bytes, which state of it they are, and its permissions."""

    data: bytes
    version: Version
    mode: int


class Pending(NamedTuple):
    """What is there under a name, and what shall be: None for no file."""

    name: str
    held: Held | None
    after: bytes | None
    mode: int | None = None


class FileNote(Record):
    """What became of a file: digests of before and after, empty where there is no file."""

    name: str
    before: str = ""
    after: str = ""
    mode: int = 0


class ChangeNote(Record):
    """The note of one call's changes."""

    id: str
    key: str
    turn: str
    tool: str
    files: tuple[FileNote, ...]


class Changes:
    """Keep the notes of changes and carry changes out."""

    def __init__(self, host: Host, workspaces: Workspaces, largest: int) -> None:
        self._host = host
        self._seen = Seen(host)
        self._workspaces = workspaces
        self._largest = largest

    def draft(self, call: CallContext, tool: str) -> Draft:
        """Begin to change files."""
        return Draft(self, call, tool)

    async def hold(self, call: CallContext, path: str) -> tuple[str, Held | None]:
        """Return the one name of a path and what is there. Raises `FileError`."""
        return await self._workspaces.use(call.agent, lambda files: held(files, path, self._largest))

    async def known(self, call: CallContext, name: str) -> str:
        """Return the digest of the file as this session saw it last, or nothing."""
        return await self._seen.digest(call.session, name)

    async def notes(self, session: str) -> list[ChangeNote]:
        """Return the notes of a session, oldest first."""
        values = await self._host.call(KvList(namespace=_NAMESPACE, prefix=_prefix(session)))
        return [msgspec.json.decode(values[key], type=ChangeNote) for key in sorted(values)]

    async def note(self, call: CallContext, note: ChangeNote) -> None:
        """Keep a note, durably."""
        value = msgspec.json.encode(note).decode()
        key = f"{_prefix(call.session)}{note.id}"
        await self._host.call(KvSet(namespace=_NAMESPACE, key=key, value=value, ttl_s=_KEPT_S))

    async def forget(self, call: CallContext, note: ChangeNote) -> None:
        """Drop the note of what was not done."""
        await self._host.call(KvDelete(namespace=_NAMESPACE, key=f"{_prefix(call.session)}{note.id}"))

    def new_note(self, call: CallContext, tool: str, files: tuple[FileNote, ...]) -> ChangeNote:
        """Make a note that is not kept yet."""
        return ChangeNote(id=self._host.ids.new(), key=call.key, turn=call.turn, tool=tool, files=files)

    async def content(self, file: FileNote) -> bytes | None:
        """Return what a file said before. Raises `CannotChange` when it is no longer kept."""
        if not file.before:
            return None
        try:
            return await self._host.blobs.get_blob(file.before)
        except (NotFound, Damaged) as error:
            raise CannotChange(f"What {file.name} said before is no longer kept; nothing was written.") from error

    async def carry_out(self, call: CallContext, tool: str, pending: list[Pending]) -> tuple[BlobRef, ...]:
        """Note the changes, then make them: all or none. Return blobs of what was before. Raises `FileError`."""
        blobs = [
            await self._host.blobs.put_blob(one.held.data, name=one.name) for one in pending if one.held is not None
        ]
        note = self.new_note(call, tool, tuple(_noted(one) for one in pending))
        await self.note(call, note)
        try:
            await self._workspaces.use(call.agent, lambda files: _write_all(files, pending))
        except HalfDone:
            raise
        except FileError:
            await self.forget(call, note)
            raise
        for one in pending:
            await self._seen.remember(call.session, one.name, one.after)
        return tuple(blobs)

    async def settled(self, call: CallContext) -> str:
        """Name the files that this call changed before a restart; what it left half done is taken back first.

        Raises `CannotChange` when somebody else has been at the files since.
        """
        note = next((note for note in reversed(await self.notes(call.session)) if note.key == call.key), None)
        if not call.repeated or note is None:
            return ""
        now = {file.name: (await self.hold(call, file.name))[1] for file in note.files}
        states = {_state(file, now[file.name]) for file in note.files}
        if states == {"after"}:
            for file in note.files:
                there = now[file.name]
                await self._seen.remember(call.session, file.name, there.data if there else None)
            return ", ".join(file.name for file in note.files)
        if "other" in states:
            raise CannotChange("A restart came between, and the files have changed since. Read them again first.")
        back = [file for file in note.files if _state(file, now[file.name]) == "after"]
        pending = [Pending(file.name, now[file.name], await self.content(file), file.mode) for file in back]
        await self._workspaces.use(call.agent, lambda files: _write_all(files, pending))
        for one in pending:
            await self._seen.remember(call.session, one.name, one.after)
        await self.forget(call, note)
        return ""


class Draft:
    """Changes of one call: read and written in memory, then carried out together."""

    def __init__(self, changes: Changes, call: CallContext, tool: str) -> None:
        self._changes = changes
        self._call = call
        self._tool = tool
        self._pending: dict[str, Pending] = {}

    async def take(self, path: str, *, unless: bytes | None = None, force: bool = False) -> Pending:
        """Return a file as it is drafted. Raises `CannotChange` when it is not as this session saw it last.

        It may differ if it says `unless` already, or with `force`.
        """
        name, there = await self._changes.hold(self._call, path)
        if name in self._pending:
            return self._pending[name]
        known = await self._changes.known(self._call, name)
        if there and known and not force and known != digest_of(there.data) and there.data != unless:
            raise CannotChange(f"{name} changed since you last saw it. Read it again first; nothing was written.")
        self._pending[name] = Pending(name, there, there.data if there else None)
        return self._pending[name]

    async def read(self, path: str) -> tuple[str, bytes]:
        """Return the name and the drafted bytes of a file. Raises `Absent` where there is none."""
        pending = await self.take(path)
        if pending.after is None:
            raise Absent(f"{pending.name!r} does not exist.")
        return pending.name, pending.after

    def put(self, name: str, data: bytes | None, mode: int | None = None) -> None:
        """Draft what a file that was taken shall say; None removes it."""
        self._pending[name] = self._pending[name]._replace(after=data, mode=mode)

    def mode(self, name: str) -> int | None:
        """Return the permissions of a file that was taken."""
        there = self._pending[name].held
        return there.mode if there else None

    async def commit(self) -> tuple[BlobRef, ...]:
        """Carry the changes out. Raises `FileError`."""
        changed = [one for one in self._pending.values() if one.after != (one.held.data if one.held else None)]
        return await self._changes.carry_out(self._call, self._tool, changed) if changed else ()


async def made(changes: Changes, call: CallContext, tool: str, work: Callable[[Draft], Awaitable[str]]) -> ToolResult:
    """Run a tool that changes files: `work` drafts the changes and returns what is said of them."""
    try:
        if call.repeated and (names := await changes.settled(call)):
            return ToolResult(parts=(Text(text=f"Changed {names} (before a restart)."),))
        draft = changes.draft(call, tool)
        said = await work(draft)
        blobs = await draft.commit()
    except (FileError, CannotChange) as error:
        return failed(str(error))
    return ToolResult(parts=(Text(text=said),), artifacts=blobs)


def held(files: Beneath, path: str, limit: int) -> tuple[str, Held | None]:
    """Return the one name of a path, and what is there if anything is. Raises `FileError`."""
    name = files.need_writable(path)
    try:
        mode = files.permissions(path)
        data, version = files.read(path, limit)
    except Absent:
        return name, None
    return name, Held(data, version, mode)


def _write_all(files: Beneath, pending: list[Pending]) -> None:
    """Write every file, or, when one cannot be, put back those that were."""
    done: list[Pending] = []
    try:
        for one in pending:
            _write(files, one)
            done.append(one)
    except FileError as error:
        stuck = [one.name for one in reversed(done) if not _taken_back(files, one)]
        if stuck:
            told = f"{error} Written before that, and could not be put back: {', '.join(stuck)}."
            raise HalfDone(told) from error
        if done:
            raise FileError(f"{error} Nothing was changed.") from error
        raise


def _write(files: Beneath, one: Pending) -> None:
    expect = one.held.version if one.held else NOTHING
    if one.after is None:
        files.remove(one.name, expect=expect)
    else:
        files.write_atomic(one.name, one.after, expect=expect, mode=one.mode)


def _taken_back(files: Beneath, one: Pending) -> bool:
    """Undo one write, unless somebody was there in between; tell whether the file is as it was."""
    try:
        _, now = held(files, one.name, max(len(one.after or b""), 1))
        if (now.data if now else None) != one.after:
            return False
        before = one.held
        _write(files, Pending(one.name, now, before.data if before else None, before.mode if before else None))
    except FileError:
        return False
    return True


def _noted(one: Pending) -> FileNote:
    return FileNote(
        name=one.name,
        before=digest_of(one.held.data) if one.held else "",
        after="" if one.after is None else digest_of(one.after),
        mode=one.held.mode if one.held else 0,
    )


def _state(file: FileNote, there: Held | None) -> str:
    """Tell which of its two states a file is in."""
    digest = digest_of(there.data) if there else ""
    return {file.after: "after", file.before: "before"}.get(digest, "other")


def _prefix(session: str) -> str:
    return f"change:{digest_of(session.encode('utf-8', 'surrogatepass'))[:32]}:"
