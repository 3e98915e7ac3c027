"""Read unified diffs and apply them to bytes: where the context stands and nowhere else."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

_HUNK = re.compile(r"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_OCTAL = re.compile(rb"\\([0-7]{3}|.)")
_ESCAPES = {b"n": b"\n", b"t": b"\t", b"r": b"\r"}
_REFUSED = {
    "GIT binary patch": "Binary patches are not applied.",
    "Binary files": "Binary patches are not applied.",
    "copy from": "Copies are not made by patches.",
    "old mode": "File modes are not changed by patches.",
    "new mode": "File modes are not changed by patches.",
    "new file mode 12": "Symbolic links are not made by patches.",
    "new file mode 16": "Submodules are not made by patches.",
    "deleted file mode 12": "Symbolic links are not removed by patches.",
}


class BadPatch(Exception):
    """Say in one sentence why a patch cannot be applied."""


@dataclass(frozen=True, slots=True)
class Hunk:
    """One change: where it stands, its lines as (mark, text), and whether the last new one ends the file bare."""

    start: int
    lines: tuple[tuple[str, str], ...]
    bare_new: bool = False

    @property
    def old(self) -> list[bytes]:
        """Return what must be there, without line ends."""
        return [text.removesuffix("\r").encode("utf-8", "replace") for mark, text in self.lines if mark != "+"]


@dataclass(frozen=True, slots=True)
class FilePatch:
    """What a patch does to one file; `old` is empty for a new file, `new` for one that is deleted."""

    old: str
    new: str
    hunks: tuple[Hunk, ...]


@dataclass(slots=True)
class _Header:
    """What was read so far of one file's part of a patch."""

    old: str | None = None
    new: str | None = None
    git: tuple[str, str] | None = None
    of_git: bool = False
    hunks: list[Hunk] = field(default_factory=list[Hunk])

    def finished(self) -> FilePatch:
        old, new = self.old, self.new
        if self.git and (old is None or new is None):
            old, new = (self.git[0] if old is None else old), (self.git[1] if new is None else new)
        if old is None or new is None:
            raise BadPatch("A part of the patch does not name its file (`--- a/file` and `+++ b/file`).")
        if not old and not new:
            raise BadPatch("A part of the patch has /dev/null on both sides.")
        if old.startswith("a/") and (new.startswith("b/") or not new):
            old = old[2:]
            new = new[2:]
        elif not old and new.startswith("b/"):
            new = new[2:]
        if old == new and not self.hunks:
            raise BadPatch(f"The patch does not say what changes in {old}.")
        return FilePatch(old, new, tuple(self.hunks))


def read_patch(text: str) -> tuple[FilePatch, ...]:
    """Read a unified diff, as of `diff -u` or git. Raises `BadPatch`."""
    lines = text.split("\n")
    if lines and not lines[-1]:
        lines.pop()
    files = [header.finished() for header in _headers(lines)]
    if not files:
        raise BadPatch("This is no unified diff: it has no `--- a/file` and `+++ b/file` lines with hunks below.")
    return tuple(files)


def patched(name: str, data: bytes, hunks: tuple[Hunk, ...]) -> tuple[bytes, str]:
    """Return bytes with hunks applied, and words about those that stood elsewhere. Raises `BadPatch`."""
    lines = _split(data)
    newline = b"\r\n" if data.count(b"\r\n") * 2 > data.count(b"\n") else b"\n"
    bodies = [line.rstrip(b"\n").removesuffix(b"\r") for line in lines]
    made: list[bytes] = []
    done = 0
    moved: list[str] = []
    drift = 0
    for number, hunk in enumerate(hunks, 1):
        old = hunk.old
        expected = max(hunk.start - 1, 0) + drift
        at = _place(name, number, hunk, bodies, done, expected)
        if at != expected:
            moved.append(f"hunk {number} at line {at + 1}")
            drift += at - expected
        made += lines[done:at]
        made += _new_lines(hunk, lines[at : at + len(old)], newline)
        done = at + len(old)
    made += lines[done:]
    return _joined(made, newline), f" ({', '.join(moved)})" if moved else ""


def _headers(lines: list[str]) -> Iterator[_Header]:
    """Yield the parts of a patch, file by file; what stands between them, such as a commit message, is skipped."""
    header: _Header | None = None
    at = 0
    while at < len(lines):
        line = lines[at]
        if line.startswith("diff --git ") or (_names_follow(lines, at) and _has_names(header)):
            if header is not None:
                yield header
            of_git = line.startswith("diff")
            header = _Header(git=_git_names(line) if of_git else None, of_git=of_git)
        if header is not None:
            at = _take(header, lines, at)
        at += 1
    if header is not None:
        yield header


def _has_names(header: _Header | None) -> bool:
    return header is None or (header.new is not None and (bool(header.hunks) or not header.of_git))


def _take(header: _Header, lines: list[str], at: int) -> int:
    """Take one line of a file's part, or a whole hunk; return where the last line taken stands."""
    line = lines[at]
    if refusal := next((words for start, words in _REFUSED.items() if line.startswith(start)), ""):
        raise BadPatch(refusal)
    if _names_follow(lines, at):
        header.old, header.new = _name(line[4:]), _name(lines[at + 1][4:])
        return at + 1
    if line.startswith("@@"):
        hunk, last = _read_hunk(lines, at)
        header.hunks.append(hunk)
        return last
    if line.startswith("new file mode"):
        header.old = ""
    elif line.startswith("deleted file mode"):
        header.new = ""
    elif line.startswith("rename from "):
        header.old = "a/" + _name(line[12:])
    elif line.startswith("rename to "):
        header.new = "b/" + _name(line[10:])
    return at


def _read_hunk(lines: list[str], at: int) -> tuple[Hunk, int]:
    """Read a hunk to the next header: models miscount, and what decides is the text. Return its last line as well."""
    match = _HUNK.match(lines[at])
    if match is None:
        raise BadPatch(f"Line {at + 1} of the patch is no hunk header such as `@@ -3,7 +3,8 @@`: {lines[at][:80]!r}.")
    start = int(match[1]) + (1 if match[2] == "0" else 0)
    taken, bare, last = _hunk_lines(lines, at, int(match[2] or 1) + int(match[4] or 1))
    if not any(mark != " " for mark, _ in taken):
        raise BadPatch(f"The hunk in line {at + 1} of the patch changes nothing.")
    return Hunk(start, tuple(taken), any(mark != "-" for mark in bare)), last


def _hunk_lines(lines: list[str], at: int, wanted: int) -> tuple[list[tuple[str, str]], list[str], int]:
    """Return a hunk's lines, the marks of those that end the file bare, and where the last line stands."""
    taken: list[tuple[str, str]] = []
    bare: list[str] = []
    last = at
    for number in range(at + 1, len(lines)):
        line = lines[number]
        if _ends_hunk(lines, number, full=_weight(taken) >= wanted):
            break
        if line.startswith("\\"):
            bare.append(taken[-1][0] if taken else " ")
        else:
            taken.append((line[:1] or " ", line[1:]))
        last = number
    while taken and taken[-1] == (" ", "") and _weight(taken) > wanted:
        taken.pop()  # empty lines between this hunk and what follows
    return taken, bare, last


def _weight(taken: list[tuple[str, str]]) -> int:
    """Count old and new lines, as the numbers in a hunk's header do together."""
    return sum(2 if mark == " " else 1 for mark, _ in taken)


def _ends_hunk(lines: list[str], at: int, *, full: bool) -> bool:
    line = lines[at]
    if line.startswith(("@@ ", "diff --git ")):
        return True
    if _names_follow(lines, at) and (full or "".join(lines[at + 2 : at + 3]).startswith("@@ ")):
        return True
    if line[:1] in (" ", "+", "-", "\\", ""):
        return full and line == "-- "  # the signature below a mailed patch
    return True


def _names_follow(lines: list[str], at: int) -> bool:
    return lines[at].startswith("--- ") and at + 1 < len(lines) and lines[at + 1].startswith("+++ ")


def _place(name: str, number: int, hunk: Hunk, bodies: list[bytes], first: int, expected: int) -> int:
    """Return where a hunk's old lines stand: where it says, or at the one other place that there is."""
    old = hunk.old
    if not old:
        if bodies and not (first <= expected <= len(bodies)):
            raise BadPatch(f"Hunk {number} of {name} has no lines of context, and the file has no line {expected + 1}.")
        return expected if bodies else 0
    if expected >= first and bodies[expected : expected + len(old)] == old:
        return expected
    places = [at for at in range(first, len(bodies) - len(old) + 1) if bodies[at : at + len(old)] == old]
    if len(places) == 1:
        return places[0]
    if places:
        found = ", ".join(str(at + 1) for at in places[:5])
        raise BadPatch(f"Hunk {number} of {name} is not where it says, and fits in several places (lines {found}).")
    raise BadPatch(f"Hunk {number} of {name} does not fit: {_why(bodies, old, expected)}")


def _why(bodies: list[bytes], old: list[bytes], expected: int) -> str:
    """Name the first line that differs from what the patch says."""
    for offset, wanted in enumerate(old):
        there = bodies[expected + offset] if 0 <= expected + offset < len(bodies) else None
        if there != wanted:
            has = "the file ends" if there is None else f"the file has {there.decode('utf-8', 'replace')[:120]!r}"
            return f"line {expected + offset + 1} should be {wanted.decode('utf-8', 'replace')[:120]!r}, but {has}."
    return "these lines overlap those of the hunk before."


def _new_lines(hunk: Hunk, old: list[bytes], newline: bytes) -> list[bytes]:
    """Return what replaces the old lines; context keeps its own line ends."""
    made: list[bytes] = []
    at = 0
    for mark, text in hunk.lines:
        if mark == "+":
            made.append(text.removesuffix("\r").encode("utf-8", "replace") + newline)
        elif mark == " ":
            made.append(old[at])
        at += mark != "+"
    if hunk.bare_new and made:
        made[-1] = made[-1].rstrip(b"\r\n")
    return made


def _joined(lines: list[bytes], newline: bytes) -> bytes:
    """Join lines; only the last one may be without an end."""
    ended = [line if line.endswith(b"\n") else line + newline for line in lines[:-1]]
    return b"".join((*ended, *lines[-1:]))


def _split(data: bytes) -> list[bytes]:
    lines = [line + b"\n" for line in data.split(b"\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]


def _git_names(line: str) -> tuple[str, str] | None:
    """Return the two names in `diff --git a/x b/x`, where they can be told apart."""
    rest = line[len("diff --git ") :]
    if rest.startswith('"'):
        found = re.findall(r'"((?:[^"\\]|\\.)*)"', rest)
        return (_unquoted(found[0]), _unquoted(found[1])) if len(found) == 2 else None
    half = len(rest) // 2
    if rest[:2] == "a/" and rest[half + 1 : half + 3] == "b/" and rest[2:half] == rest[half + 3 :]:
        return rest[:half], rest[half + 1 :]
    return None


def _name(text: str) -> str:
    """Return a file name as it stands in a header, empty for /dev/null."""
    text = text.removesuffix("\r")
    if text.startswith('"') and '"' in text[1:]:
        return _unquoted(text[1 : text.rindex('"')])
    name = text.split("\t", 1)[0].rstrip()
    return "" if name == "/dev/null" else name


def _unquoted(text: str) -> str:
    def plain(match: re.Match[bytes]) -> bytes:
        code = match[1]
        return bytes([int(code, 8) & 0xFF]) if len(code) == 3 else _ESCAPES.get(code, code)

    return _OCTAL.sub(plain, text.encode("utf-8", "replace")).decode("utf-8", "replace")
