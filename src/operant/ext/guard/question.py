"""The words in which a person is asked about a call, with nothing in them that looks like something else."""

from __future__ import annotations

import unicodedata

import msgspec

from operant.sdk import Json

_SHOWN_CHARS = 400
_PLAIN = frozenset({"Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Nd", "Nl", "No"})
_encoder = msgspec.json.Encoder(order="deterministic")


def question_about(agent: str, tool: str, argument: str | None, arguments: Json) -> str:
    """Ask whether an agent may make a call; characters that hide or reorder text are spelt out."""
    words = _encoder.encode(arguments).decode() if argument is None else argument
    return f"May {agent} use {visible(tool)}? {_cut(visible(words))}".rstrip()


def visible(text: str) -> str:
    """Spell out what cannot be seen: control and format characters, odd spaces, unassigned ones."""
    return "".join(char if _shows(char) else f"\\u{{{ord(char):x}}}" for char in text)


def _shows(char: str) -> bool:
    if " " <= char <= "~":
        return True
    category = unicodedata.category(char)
    return category in _PLAIN or category[0] in "PS"


def _cut(text: str) -> str:
    if len(text) <= _SHOWN_CHARS:
        return text
    half = _SHOWN_CHARS // 2
    return f"{text[:half]} … ({len(text) - 2 * half} characters more) … {text[-half:]}"
