"""Take back what a turn of a session did to files."""

from __future__ import annotations

import itertools
from typing import Annotated, NamedTuple

from operant.ext.tools.changes import CannotChange, ChangeNote, Changes, Draft, FileNote, made
from operant.ext.tools.seen import digest_of
from operant.kit.beneath import FileError
from operant.sdk import CallContext, FunctionTool, ToolResult, failed, tool

_NAME = "undo_changes"
_SHOWN = 100


class Standing(NamedTuple):
    """A file that a turn changed: its note, and whether it is as the turn left it, as before it, or neither."""

    file: FileNote
    state: str


def undo_tools(changes: Changes) -> tuple[FunctionTool, ...]:
    """Make the tool `undo_changes`."""
    undo = Undo(changes)

    @tool(effect="idempotent", timeout_s=120, deferred=True)
    async def undo_changes(
        call: CallContext,
        back: Annotated[int, "1: the last turn that changed files, 2: the one before"] = 1,
        dry_run: Annotated[bool, "only list"] = False,
        force: Annotated[bool, "also files that somebody changed since"] = False,
    ) -> str | ToolResult:
        """Take back what one turn of this session did to files with file tools; an undo can be undone."""
        if dry_run:
            return await undo.listed(call, max(back, 1))
        return await made(changes, call, _NAME, lambda draft: undo.drafted(draft, call, max(back, 1), force=force))

    return (undo_changes,)


class Undo:
    """Find what a turn did to files and draft the opposite."""

    def __init__(self, changes: Changes) -> None:
        self._changes = changes

    async def listed(self, call: CallContext, back: int) -> str | ToolResult:
        """Say what an undo would do."""
        try:
            standing = await self._standing(call, back)
        except (CannotChange, FileError) as error:
            return failed(str(error))
        lines = [_would(one) for one in standing[:_SHOWN]]
        if len(standing) > _SHOWN:
            lines.append(f"[and {len(standing) - _SHOWN} more files]")
        return "\n".join(lines)

    async def drafted(self, draft: Draft, call: CallContext, back: int, *, force: bool) -> str:
        """Draft the files as they were before a turn. Raises `CannotChange` and `FileError`."""
        standing = await self._standing(call, back)
        others = [one.file.name for one in standing if one.state == "other"]
        if others and not force:
            named = ", ".join(others[:_SHOWN])
            raise CannotChange(f"Changed since: {named}. Nothing was undone; with force=true they are undone as well.")
        undone = [one.file for one in standing if one.state != "before"]
        for file in undone:
            content = await self._changes.content(file)
            await draft.take(file.name, force=True)
            draft.put(file.name, content, file.mode or None)
        if not undone:
            return "All files are as they were before."
        return "\n".join(_was(file) for file in undone[:_SHOWN])

    async def _standing(self, call: CallContext, back: int) -> list[Standing]:
        notes = [note for note in await self._changes.notes(call.session) if note.key != call.key]
        turns = [list(group) for _, group in itertools.groupby(notes, _unit)]
        if back > len(turns):
            raise CannotChange(f"{len(turns)} turns of this session have changed files; there is nothing to undo.")
        files = _folded(turns[-back])
        return [Standing(file, await self._state(call, file)) for file in files]

    async def _state(self, call: CallContext, file: FileNote) -> str:
        _, there = await self._changes.hold(call, file.name)
        digest = digest_of(there.data) if there else ""
        return {file.after: "after", file.before: "before"}.get(digest, "other")


def _unit(note: ChangeNote) -> str:
    """Name what is taken back together: the notes of a turn, and each undo for itself."""
    return note.id if note.tool == _NAME else note.turn


def _folded(notes: list[ChangeNote]) -> list[FileNote]:
    """Join the notes of a turn: what each file was before the first change and after the last."""
    folded: dict[str, FileNote] = {}
    for file in itertools.chain.from_iterable(note.files for note in notes):
        first = folded.get(file.name, file)
        folded[file.name] = FileNote(name=file.name, before=first.before, after=file.after, mode=first.mode)
    return [file for file in folded.values() if file.before != file.after]


def _would(one: Standing) -> str:
    state = {"other": " (changed since: only with force)", "before": " (is so already)"}.get(one.state, "")
    return f"{'restore' if one.file.before else 'delete'} {one.file.name}{state}"


def _was(file: FileNote) -> str:
    return f"{'Restored' if file.before else 'Deleted'} {file.name}."
