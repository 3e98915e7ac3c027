"""The socket that programs of one user meet at: a Unix socket that only they may open.

On Windows it is a loopback port whose number and token stand in a private file; that part is untried.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import sys
from collections.abc import Generator
from pathlib import Path

_LONGEST = 100
"""Bytes of a path that the address of a Unix socket has room for on every system."""


class NobodyThere(Exception):
    """Nobody listens at an endpoint."""


def listen(path: Path) -> socket.socket:
    """Bind an endpoint that only this user may open. Call it holding a lock: what is there is taken for dead.

    Raises `OSError`.
    """
    if sys.platform == "win32":
        return _listen_loopback(path)
    path.unlink(missing_ok=True)
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with _short(path) as address:
            server.bind(address)
        path.chmod(0o600)
        server.listen(128)
        server.setblocking(False)
    except BaseException:
        server.close()
        raise
    return server


def dial(path: Path, timeout_s: float = 5.0) -> socket.socket:
    """Connect to an endpoint, blocking for a moment. Raises `NobodyThere`, or `OSError`."""
    if sys.platform == "win32":
        return _dial_loopback(path, timeout_s)
    client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        client.settimeout(timeout_s)
        with _short(path) as address:
            client.connect(address)
    except (FileNotFoundError, ConnectionRefusedError) as error:
        client.close()
        raise NobodyThere(str(path)) from error
    except BaseException:
        client.close()
        raise
    return client


def same_user(connection: socket.socket) -> bool:
    """Tell whether the other end is a process of this user, or of root, where the system can tell."""
    if not hasattr(socket, "SO_PEERCRED"):
        return True  # the rights of the socket's file and directory are the check
    return _credentials(connection)[1] in (os.getuid(), 0)


def peer_process(connection: socket.socket) -> int:
    """Return the process at the other end, as this process sees it; 0 where the system does not tell."""
    return _credentials(connection)[0] if hasattr(socket, "SO_PEERCRED") else 0


def _credentials(connection: socket.socket) -> tuple[int, int, int]:
    size = struct.calcsize("3i")
    pid, uid, gid = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
    return pid, uid, gid


@contextlib.contextmanager
def _short(path: Path) -> Generator[str]:
    """Give a path that fits into an address: a long one by way of a handle on its directory."""
    if len(os.fsencode(path)) <= _LONGEST:
        yield str(path)
        return
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        short = f"/proc/self/fd/{directory}/{path.name}"
        if not Path(short).parent.exists():
            raise OSError(f"the path of the socket is longer than {_LONGEST} bytes")
        yield short
    finally:
        os.close(directory)


if sys.platform == "win32":  # untried: written from the documentation

    def _listen_loopback(path: Path) -> socket.socket:
        import secrets

        server = socket.create_server(("127.0.0.1", 0))
        server.setblocking(False)
        path.write_text(f"{server.getsockname()[1]} {secrets.token_hex(32)}", "utf-8")
        return server

    def _dial_loopback(path: Path, timeout_s: float) -> socket.socket:
        try:
            port, token = path.read_text("utf-8").split()
            client = socket.create_connection(("127.0.0.1", int(port)), timeout_s)
        except (FileNotFoundError, ConnectionRefusedError, ValueError) as error:
            raise NobodyThere(str(path)) from error
        client.sendall(token.encode() + b"\n")
        return client


def greeting(path: Path) -> bytes:
    """Return the line that a client must begin with; empty where the system itself tells who it is."""
    if sys.platform != "win32":
        return b""
    return path.read_text("utf-8").split()[1].encode() + b"\n"
