"""The owner's own token, in a file for them alone."""

from __future__ import annotations

import secrets
from pathlib import Path

from operant.kit.files import write_private

_SHORTEST = 32


def own_token(path: Path) -> str:
    """Return the token in a file; make it where there is none. Raises `OSError`."""
    try:
        token = path.read_text("ascii").strip()
    except (FileNotFoundError, UnicodeDecodeError):
        token = ""
    if len(token) >= _SHORTEST:
        return token
    token = new_token()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_private(path, token.encode() + b"\n")
    return token


def new_token() -> str:
    """Return a token that nobody can guess; what it begins with tells scanners of secrets what it is."""
    return f"opr_{secrets.token_urlsafe(32)}"
