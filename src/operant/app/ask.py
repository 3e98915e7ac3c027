"""Ask a running system one thing, with nothing but a socket and JSON: commands start in milliseconds by it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from operant.kernel.errors import Invalid, Unavailable, by_code
from operant.kit.endpoint import NobodyThere, dial
from operant.kit.text import HALVED


def ask(socket_path: Path, method: str, params: dict[str, Any], timeout_s: float = 30.0) -> dict[str, Any] | None:
    """Make a syscall and return `{"result": ...}`, or None when no system listens there.

    Blocks. Raises the error that the system answered with, `Invalid` for text that cannot be written, and
    `Unavailable` when it went away.
    """
    try:
        connection = dial(socket_path, timeout_s)
    except NobodyThere:
        return None
    except OSError as error:
        raise Unavailable(f"The socket {socket_path} cannot be used: {error}.") from error
    try:
        with connection, connection.makefile("rb") as answers:
            connection.sendall(_line({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}))
            line = answers.readline()
    except OSError as error:
        raise Unavailable(f"The system does not answer: {error}.", "See: operant logs.") from error
    if not line.endswith(b"\n"):
        raise Unavailable("The system went away before it answered.", "Try again.")
    answer = json.loads(line)
    if "error" not in answer:
        return {"result": answer["result"]}
    fault: dict[str, Any] = answer["error"]
    data: dict[str, str] = fault.get("data") or {}
    raise by_code(data.get("code", ""))(fault["message"], data.get("hint", ""))


def _line(request: dict[str, Any]) -> bytes:
    try:
        return json.dumps(request, ensure_ascii=False).encode() + b"\n"
    except UnicodeEncodeError as error:
        raise Invalid(HALVED, "Give it as UTF-8.") from error
