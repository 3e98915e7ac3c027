"""Say in ripgrep's words which files a Python expression could match in: more of them perhaps, never fewer.

The two dialects differ in what `\\w` is, in look-around, in classes. So only what must stand there literally is asked
for, and everything between becomes "anything on this line"; who asks looks through the files with the real expression.
"""

from __future__ import annotations

import re

_TOKEN = re.compile(
    r"(?P<escape>\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|N\{[^}]*\}|[0-7]{1,3}|.))"
    r"|(?P<set>\[\^?\]?(?:\\.|[^\]\\])*\])"
    r"|(?P<group>[()])|(?P<bar>\|)|(?P<any>[.^$])|(?P<some>(?:[*+?]|\{\d*,?\d*\})[?+]?)|(?P<plain>.)",
    re.DOTALL,
)
_ANYTHING = "(?-u:.)*"
_SHORTEST = 2
_MEANING = re.compile(r"[.+*?()|\[\]{}^$\\]")


def hint_of(pattern: str) -> str:
    """Return an expression for ripgrep, or nothing where no words are certain."""
    if "(?" in pattern and re.search(r"\(\?[aiLmsux-]+[:)]", pattern):
        return ""  # flags change what letters and spaces stand for
    branches: list[list[str]] = [[""]]
    depth = 0
    for match in _TOKEN.finditer(pattern):
        kind, token = match.lastgroup or "", match[0]
        if kind == "group":
            depth += 1 if token == "(" else -1
            branches[-1].append("")
        elif depth:
            continue
        elif kind == "bar":
            branches.append([""])
        elif kind == "some":
            _loosen(branches[-1])
        elif literal := _literal(kind, token):
            branches[-1][-1] += literal
        else:
            branches[-1].append("")
    said = [_joined(pieces) for pieces in branches]
    return "|".join(said) if depth == 0 and all(said) else ""


def _literal(kind: str, token: str) -> str:
    """Return the character that a token stands for, or nothing."""
    if kind == "plain":
        return token if token.isprintable() and token != "\ufffd" else ""
    return token[1] if kind == "escape" and len(token) == 2 and not token[1].isalnum() and token.isprintable() else ""


def _loosen(pieces: list[str]) -> None:
    """Drop the last character, which may be there often or not at all."""
    pieces[-1] = pieces[-1][:-1]
    pieces.append("")


def _joined(pieces: list[str]) -> str:
    if max(map(len, pieces)) < _SHORTEST:
        return ""
    return _ANYTHING.join(_MEANING.sub(lambda match: "\\" + match[0], piece) for piece in pieces if piece)
