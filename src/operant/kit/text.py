"""Make text from programs and files safe to show, and short enough to read."""

from __future__ import annotations

import re

_ESCAPES = re.compile(
    # One that does not end takes no text with it, and looking for its end takes no time to speak of.
    r"\x1b\][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)"  # OSC: titles, links, the clipboard
    r"|\x1b[PX^_][^\x1b]{0,4096}\x1b\\"  # DCS, SOS, PM, APC
    r"|\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor, screen
    r"|\x9b[0-?]*[ -/]*[@-~]"
    r"|\x1b[ -/]*[0-~]"  # two bytes and a bit
)
_NEWLINES = re.compile(r"\r+\n|\r")
# What neither ends a line nor shows: C0, DEL, C1, half a code point, bidirectional overrides (text that reads
# otherwise than it is), and tag characters (text that a model reads and a person does not see).
_HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]")
_HEAD_SHARE = 0.7
HALVED = (
    "A text in it has half a character (a lone surrogate, as of a name that is not UTF-8), which cannot be written."
)
"""What whoever gives such a text is told."""


def plain(text: str) -> str:
    """Return text without terminal sequences; each control character becomes one that can be seen."""
    if "\x1b" in text or "\x9b" in text:
        text = _ESCAPES.sub("", text)
    if "\r" in text:
        text = _NEWLINES.sub("\n", text)
    return _HIDDEN.sub(_seen, text)


def shorten(text: str, limit: int, middle: str) -> str:
    """Keep the beginning and the end of a text that is longer than `limit` characters, with `middle` between."""
    return text if len(text) <= limit else join_ends(text, text, limit, middle)


def join_ends(head: str, tail: str, limit: int, middle: str) -> str:
    """Make at most `limit` characters of the beginning of `head`, a line `middle`, and the end of `tail`."""
    room = max(limit - len(middle) - 2, 0)
    first = int(room * _HEAD_SHARE)
    last = room - first
    return f"{head[:first]}\n{middle}\n{tail[len(tail) - last :] if last else ''}"


def whole_characters(data: bytes) -> bytes:
    """Return UTF-8 without the beginning of a character that is cut off at its end."""
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte < 0x80:
            break
        if byte >= 0xC0:
            needs = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return data if back >= needs else data[:-back]
    return data


def _seen(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return chr(0x2400 + code)
    return "\u2421" if code == 0x7F else "\ufffd"
