"""How a tool call looks in an editor: its kind, its title, the files it is about, and what it changes there."""

from __future__ import annotations

import os.path
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

from acp import text_block, tool_content, tool_diff_content
from acp.schema import (
    ContentToolCallContent,
    FileEditToolCallContent,
    TerminalToolCallContent,
    ToolCallLocation,
    ToolKind,
)

from operant.cli.calls import short, whole
from operant.kernel.records import Json

Content = ContentToolCallContent | FileEditToolCallContent | TerminalToolCallContent

_KINDS: dict[str, ToolKind] = {
    "read_file": "read",
    "read_output": "read",
    "read_skill": "read",
    "read_process": "read",
    "list_files": "read",
    "write_file": "edit",
    "edit_file": "edit",
    "edit_files": "edit",
    "edit_notebook": "edit",
    "apply_patch": "edit",
    "undo_changes": "edit",
    "extract_archive": "edit",
    "move_file": "move",
    "delete_file": "delete",
    "search_files": "search",
    "search_history": "search",
    "tool_search": "search",
    "web_search": "search",
    "web_fetch": "fetch",
    "shell": "execute",
    "start_process": "execute",
    "write_process": "execute",
    "run_skill": "execute",
}
_PATHS = ("path", "source", "target", "from", "to", "old_path", "new_path", "cwd")
_TITLE = 120


@dataclass(frozen=True)
class Act:
    """A tool call as an editor is told of it."""

    title: str
    kind: ToolKind
    locations: list[ToolCallLocation]
    content: list[Content]


def act(name: str, arguments: Json, workspace: str) -> Act:
    """Say what a call is; paths are those of this machine."""
    words = short(arguments, _TITLE)
    paths = dict.fromkeys(_paths(arguments, workspace))
    return Act(
        title=f"{name} {words}".strip(),
        kind=_KINDS.get(name, "other"),
        locations=[ToolCallLocation(path=path) for path in paths],
        content=list(_changes(name, arguments, workspace)),
    )


def fenced(text: str, language: str = "") -> str:
    """Put text in a code block that it cannot end."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}{language}\n{text}\n{fence}"


def words(text: str) -> Content:
    """Return text as the content of a call."""
    return tool_content(text_block(text))


def in_full(arguments: Json, question: str) -> Content:
    """Say everything that somebody who decides must see; what cannot be seen is written out."""
    shown = fenced("\n".join(whole(arguments)))
    return words(f"{question}\n\n{shown}" if question else shown)


def _changes(name: str, arguments: Json, workspace: str) -> Iterator[Content]:
    """Return what a call changes in files, as far as its arguments tell."""
    path, new = arguments.get("path"), arguments.get("new")
    if name == "write_file" and isinstance(path, str):
        yield tool_diff_content(_place(path, workspace), str(arguments.get("content", "")))
    elif name == "edit_file" and isinstance(path, str):
        yield tool_diff_content(_place(path, workspace), str(new or ""), str(arguments.get("old", "")))
    elif name == "edit_files":
        for edit in _records(arguments.get("edits")):
            yield from _changes("edit_file", edit, workspace)
    elif name == "apply_patch":
        yield words(fenced(str(arguments.get("patch", "")), "diff"))


def _paths(arguments: Json, workspace: str) -> Iterator[str]:
    for name in _PATHS:
        value = arguments.get(name)
        if isinstance(value, str) and value:
            yield _place(value, workspace)
    for edit in _records(arguments.get("edits")):
        yield from _paths(edit, workspace)


def _records(value: object) -> list[Json]:
    if not isinstance(value, list):
        return []
    return [cast("Json", one) for one in cast("list[Any]", value) if isinstance(one, dict)]


def _place(path: str, workspace: str) -> str:
    return os.path.normpath(os.path.join(workspace, path))  # noqa: PTH118 - words are joined, no file is looked at
