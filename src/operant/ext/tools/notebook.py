"""Change cells of Jupyter notebooks."""

from __future__ import annotations

import json
import re
from typing import Annotated, Any, Literal, cast

from operant.ext.tools.changes import CannotChange, Changes, Draft, made
from operant.ext.tools.seen import digest_of
from operant.sdk import CallContext, FunctionTool, Record, ToolResult, tool

Kind = Literal["code", "markdown", "raw"]
_INDENT = re.compile(rb"^\{\r?\n( +|\t+)\"")


class CellEdit(Record):
    """What to do with a cell: replace its source, put a new one before it (`insert`), or delete it (no source)."""

    path: str
    cell: int
    source: str | None
    insert: Kind | None
    key: str


def notebook_tools(changes: Changes) -> tuple[FunctionTool, ...]:
    """Make the tool `edit_notebook`."""

    @tool(effect="idempotent", timeout_s=60, deferred=True)
    async def edit_notebook(
        path: str,
        cell: Annotated[int, "number as read_file shows it, from 1"],
        call: CallContext,
        source: Annotated[str | None, "null deletes the cell"] = None,
        insert: Annotated[Kind | None, "a new cell of this kind, before `cell`"] = None,
    ) -> ToolResult:
        """Replace, insert or delete a cell of a Jupyter notebook."""
        edit = CellEdit(path=path, cell=cell, source=source, insert=insert, key=call.key)
        return await made(changes, call, "edit_notebook", lambda draft: _edited(draft, edit))

    return (edit_notebook,)


async def _edited(draft: Draft, edit: CellEdit) -> str:
    name, data = await draft.read(edit.path)
    changed, said = edited_cells(name, data, edit)
    draft.put(name, changed)
    return said


def edited_cells(name: str, data: bytes, edit: CellEdit) -> tuple[bytes, str]:
    """Return a notebook with a cell changed, and words. Raises `CannotChange`."""
    book = _read(name, data)
    cells: list[dict[str, Any]] = book["cells"]
    last = len(cells) + (1 if edit.insert else 0)
    if not 1 <= edit.cell <= last:
        raise CannotChange(f"{name} has {len(cells)} cells; there is no cell {edit.cell}. Nothing was written.")
    if edit.insert:
        cells.insert(edit.cell - 1, _new_cell(book, edit))
        said = f"Inserted a {edit.insert} cell as number {edit.cell} of {name}; it has {len(cells)} cells now."
    elif edit.source is None:
        del cells[edit.cell - 1]
        said = f"Deleted cell {edit.cell} of {name}; it has {len(cells)} cells now."
    else:
        _replace_source(cells[edit.cell - 1], edit.source)
        said = f"Replaced cell {edit.cell} of {name}."
    return _written(data, book), said


def _read(name: str, data: bytes) -> dict[str, Any]:
    try:
        book: Any = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise CannotChange(f"{name} is not a notebook: {error}. Nothing was written.") from error
    cells: Any = cast("dict[str, Any]", book).get("cells") if isinstance(book, dict) else None
    if not isinstance(cells, list) or not all(isinstance(cell, dict) for cell in cast("list[Any]", cells)):
        raise CannotChange(f"{name} is not a notebook with cells (nbformat 4). Nothing was written.")
    return cast("dict[str, Any]", book)


def _written(before: bytes, book: dict[str, Any]) -> bytes:
    """Write a notebook the way it was written, so that a difference shows the change and no more."""
    match = _INDENT.match(before)
    indent: str | None = match[1].decode() if match else None
    ascii_only = before.isascii() and b"\\u" in before
    text = json.dumps(book, indent=indent, ensure_ascii=ascii_only)
    return text.encode("utf-8", "surrogatepass") + (b"\n" if before.endswith(b"\n") else b"")


def _new_cell(book: dict[str, Any], edit: CellEdit) -> dict[str, Any]:
    cell: dict[str, Any] = {"cell_type": edit.insert, "metadata": {}, "source": _lines(edit.source or "")}
    if edit.insert == "code":
        cell |= {"execution_count": None, "outputs": []}
    if (book.get("nbformat"), book.get("nbformat_minor", 0)) >= (4, 5):
        cell["id"] = digest_of(edit.key.encode())[:8]  # the same when the call is repeated
    return cell


def _replace_source(cell: dict[str, Any], source: str) -> None:
    cell["source"] = _lines(source) if isinstance(cell.get("source"), list) else source
    if cell.get("cell_type") == "code":  # what the old source printed is not what the new one would
        cell["outputs"] = []
        cell["execution_count"] = None


def _lines(source: str) -> list[str]:
    return [line + "\n" for line in source.split("\n")[:-1]] + [last for last in source.split("\n")[-1:] if last]
