"""Make text from models, tools and files harmless to a terminal."""

from __future__ import annotations

import re

_SEQUENCE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # cursor, colours, modes
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"  # titles, links, clipboard
    r"|\x1b[ -/]*[0-~]"
)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_CONTROL_IN_JSON = re.compile("[\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")
# Marks that turn the direction of writing, and tags that nobody sees: they make words look like other words.
_DECEITFUL = re.compile("[\u200e\u200f\u2028-\u202e\u2066-\u2069\U000e0000-\U000e007f]")
_UNSEEN = re.compile(
    "[\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u2060-\u2065\u3164\ufe00-\ufe0f\ufeff\uffa0]"
)


def inert(text: str) -> str:
    """Return the text without anything that a terminal would obey; line ends and tabs stay."""
    text = _SEQUENCE.sub("", text.replace("\r\n", "\n"))
    return _DECEITFUL.sub("", _CONTROL.sub("", text))


def exposed(text: str) -> str:
    """Return the text with everything unseen written out, for a person who must decide about exactly this."""
    for pattern in (_CONTROL, _DECEITFUL, _UNSEEN):
        text = pattern.sub(lambda match: _escape(match[0]), text)
    return text


def quoted(text: str) -> str:
    """Return JSON with what it may hold raw, and a terminal would obey, written as escapes; it means the same."""
    return _CONTROL_IN_JSON.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def one_line(text: str, width: int) -> str:
    """Return harmless text as one line of at most `width` characters."""
    line = " ".join(inert(text).split())
    return line if len(line) <= width else line[: max(width - 1, 0)] + "…"


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
