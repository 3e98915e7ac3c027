"""Read Jupyter notebooks: cells with their numbers, and what they printed as text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, BinaryIO, cast

from operant.kit.documents.markup import html_text
from operant.kit.documents.request import Answer, CannotRead

_ESCAPES = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_OUTPUT_CHARS = 4_000


def read_notebook(file: BinaryIO) -> Answer:
    """Return the cells of a notebook as text. Raises `CannotRead`."""
    try:
        book: Any = json.load(file)
    except (ValueError, RecursionError) as error:
        raise CannotRead(f"It is not a notebook: {error}.") from error
    cells: Any = cast("dict[str, Any]", book).get("cells") if isinstance(book, dict) else None
    if not isinstance(cells, list):
        raise CannotRead("It is not a notebook with cells (nbformat 4).")
    lines: list[str] = []
    for number, cell in enumerate(cast("list[Any]", cells), 1):
        lines += _cell(number, _fields(cell))
    text = "\n".join(lines) or "[no cells]"
    return Answer(kind="text", body=text.encode("utf-8", "replace"))


def _cell(number: int, cell: dict[str, Any]) -> Iterator[str]:
    count = cell.get("execution_count")
    ran = f" [{count}]" if isinstance(count, int) else ""
    yield f"--- cell {number}: {cell.get('cell_type', 'unknown')}{ran}"
    yield _joined(cell.get("source"))
    outputs: Any = cell.get("outputs")
    for output in cast("list[Any]", outputs) if isinstance(outputs, list) else []:
        text = _ESCAPES.sub("", _output(_fields(output))).rstrip()
        if text:
            cut = f"\n[{len(text) - _OUTPUT_CHARS:,} more characters]" if len(text) > _OUTPUT_CHARS else ""
            yield f"--- output of cell {number}\n{text[:_OUTPUT_CHARS]}{cut}"


def _output(output: dict[str, Any]) -> str:
    if output.get("output_type") == "stream":
        return _joined(output.get("text"))
    if output.get("output_type") == "error":
        return _joined(output.get("traceback"), "\n") or f"{output.get('ename')}: {output.get('evalue')}"
    data = _fields(output.get("data"))
    if "text/plain" in data:
        text = _joined(data["text/plain"])
    elif "text/html" in data:
        text = html_text(_joined(data["text/html"]).encode())
    else:
        text = ""
    others = [kind for kind in data if kind not in ("text/plain", "text/html")]
    return f"{text}\n[also {', '.join(others)}]".lstrip("\n") if others else text


def _fields(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _joined(value: Any, between: str = "") -> str:
    """Return text that is written as a string or as a list of lines."""
    if isinstance(value, list):
        return between.join(str(line) for line in cast("list[Any]", value))
    return value if isinstance(value, str) else ""
