"""What a command of Operant is inside a shell: it hands its words over and prints what comes back.

Run as a script under the name of the command, in a Python without `site`. The socket in OPERANT_COMMANDS takes one
line, `{"name", "arguments", "input"}`, and answers with one, `{"output", "error", "code"}`; nothing else. Standard
input is read when one of the arguments is `-`; more of it than fits is refused.
"""

from __future__ import annotations

import json
import os
import socket
import sys

_MOST_INPUT = 512 * 1024
"""Bytes: what as JSON still fits into one line, and into one message to a service."""


def main(name: str, arguments: list[str]) -> int:
    """Hand the words over, print the answer and return its code."""
    given = sys.stdin.buffer.read(_MOST_INPUT + 1) if "-" in arguments else b""
    if len(given) > _MOST_INPUT:
        sys.stderr.write(f"{name}: standard input has more than {_MOST_INPUT >> 10} KiB: hand it over in pieces\n")
        return 65
    words = {"name": name, "arguments": [_text(os.fsencode(one)) for one in arguments], "input": _text(given)}
    try:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.connect(os.environ["OPERANT_COMMANDS"])
    except (OSError, KeyError):
        sys.stderr.write(f"{name}: Operant cannot be reached from here; it is there while a tool of an agent runs\n")
        return 69
    with connection, connection.makefile("rwb") as line:
        line.write(json.dumps(words, ensure_ascii=False).encode() + b"\n")
        line.flush()
        answer = json.loads(line.readline() or b'{"error": "Operant hung up", "code": 70}')
    sys.stdout.write(answer.get("output", ""))
    sys.stderr.write(answer.get("error", ""))
    return answer.get("code", 0)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


if __name__ == "__main__":
    sys.exit(main(sys.argv[0].rpartition("/")[2], sys.argv[1:]))
