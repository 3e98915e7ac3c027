"""Find the lines of files that match an expression. Run as a program: `python -m operant.kit.seek REQUEST`.

An expression can take for ever and cannot be stopped from within, so it gets a process that can be ended.
"""

from __future__ import annotations

import fnmatch
import functools
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, TextIO

from operant.kit.beneath import Beneath, FileError, Found, Unfit

BAD_REQUEST = 2
_LINE_CHARS = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What to look for and where; `skip` names directories that stay shut.

    `only` are the files below the directory `path` that are looked through, where somebody knows them; None: all.
    """

    root: str
    roots: dict[str, str]
    path: str
    pattern: str
    glob: str
    skip: list[str]
    most_matches: int
    largest_file: int
    only: list[str] | None = None


def seek(request: Request, out: TextIO) -> int:
    """Write matches as `path:line: text`, the last line saying what was not searched; return the exit code."""
    try:
        expression = re.compile(request.pattern)
    except (re.error, OverflowError, RecursionError) as error:
        out.write(f"The pattern is not a regular expression: {error}.\n")
        return BAD_REQUEST
    try:
        with Beneath(request.root, roots=request.roots) as files:
            _write(_matches(files, request, expression), request.most_matches, out)
    except FileError as error:
        out.write(f"{error}\n")
        return BAD_REQUEST
    return 0


def _write(lines: Iterator[str], most: int, out: TextIO) -> None:
    count = 0
    for line in lines:
        if count == most:
            out.write(f"[more than {most} matches; narrow the pattern, path or glob]\n")
            return
        out.write(line)
        out.flush()
        count += 1
    if count == 0:
        out.write("Nothing matches.\n")


def _matches(files: Beneath, request: Request, expression: re.Pattern[str]) -> Iterator[str]:
    for prefix, found in _candidates(files, request):
        if found.size > request.largest_file or not fits(found.path, request.glob):
            continue
        try:
            with found.open() as file:
                text = _text_of(file, request.largest_file)
        except FileError:
            continue  # gone, or not ours to read
        for number, line in enumerate(text.splitlines(), 1):
            if match := expression.search(line):
                yield f"{prefix}{found.path}:{number}: {_around(line, match.start())}\n"


def _candidates(files: Beneath, request: Request) -> Iterator[tuple[str, Found]]:
    name = files.name_of(request.path)
    if files.stat(request.path).kind == "directory":
        prefix = "" if name == "." else f"{name}/"
        if request.only is not None:
            yield from ((prefix, found) for found in _named(files, prefix, request.only))
            return
        for found in files.walk(request.path, frozenset(request.skip)):
            yield prefix, found
        return

    def opened() -> BinaryIO:
        return files.open_read(request.path)

    size = files.stat(request.path).size
    if size > request.largest_file:
        raise Unfit(f"{name} is too large to be searched: {size:,} bytes.")
    yield "", Found(name, size, opened)


def _named(files: Beneath, prefix: str, names: list[str]) -> Iterator[Found]:
    """Yield files by name, in the order of a walk; what is gone or no file is left out."""
    for name in sorted(names, key=lambda name: name.split("/")):
        try:
            entry = files.stat(prefix + name)
        except FileError:
            continue
        if entry.kind == "file":
            yield Found(name, entry.size, functools.partial(files.open_read, prefix + name))


def _text_of(file: BinaryIO, limit: int) -> str:
    pieces: list[bytes] = []
    while limit > 0 and (piece := file.read(limit)):
        if not pieces and b"\0" in piece[:8192]:
            return ""
        pieces.append(piece)
        limit -= len(piece)
    return b"".join(pieces).decode("utf-8", "replace")


def fits(path: str, glob: str) -> bool:
    """Match a glob against a path: without a slash against its last part; `**/` also stands for nothing."""
    if not glob:
        return True
    if "/" not in glob:
        return fnmatch.fnmatchcase(path.rpartition("/")[2], glob)
    return any(fnmatch.fnmatchcase(path, form) for form in (glob, glob.replace("**/", "")))


def _around(line: str, start: int) -> str:
    if len(line) <= _LINE_CHARS:
        return line
    first = max(0, start - _LINE_CHARS // 3)
    last = first + _LINE_CHARS
    return f"{'…' if first else ''}{line[first:last]}{'…' if last < len(line) else ''}"


if __name__ == "__main__":
    sys.stdout.reconfigure(encoding="utf-8", errors="replace")  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType] - a TextIOWrapper here
    sys.exit(seek(Request(**json.loads(sys.argv[1])), sys.stdout))
