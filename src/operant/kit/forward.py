"""Stand at a loopback port inside a sandbox and carry what comes to the proxy's socket, then run a program.

Run as a script, in a Python without `site`: `forward.py PORT SOCKET PROGRAM [ARGUMENT...]`. Programs know proxies by
address only; the sandbox's own loopback is the one address they have. The program takes this process over; the
carrier is a grandchild, so that nobody waits for it, and dies with the sandbox.
"""

from __future__ import annotations

import os
import select
import socket
import sys

_PIECE = 65_536
_MOST = 256


def main(port: int, path: str, argv: list[str]) -> None:
    """Listen, leave the carrying to a grandchild, become the program."""
    server = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.bind(("127.0.0.1", port))
    server.listen(64)
    child = os.fork()
    if child == 0:
        if os.fork() == 0:
            _detach()
            Carrier(server, path).run()
        os._exit(0)
    os.waitpid(child, 0)
    server.close()
    try:
        os.execvp(argv[0], argv)
    except OSError as error:
        os.write(2, f"{argv[0]}: {error.strerror}\n".encode())
        os._exit(127)


def _detach() -> None:
    """Leave the program's group and its streams: signals for it are not for us, and its output ends with it."""
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)


class Carrier:
    """Carry bytes both ways between each caller and the proxy; one direction is a `_Way`."""

    def __init__(self, server: socket.socket, path: str) -> None:
        self._server = server
        self._path = path
        self._poller = select.poll()
        self._poller.register(server.fileno(), select.POLLIN)
        self._ways: dict[int, _Way] = {}

    def run(self) -> None:
        """Carry until the sandbox ends."""
        while True:
            for handle, event in self._poller.poll():
                if handle == self._server.fileno():
                    self._accept()
                elif handle in self._ways:
                    self._carry(self._ways[handle], event)

    def _accept(self) -> None:
        caller, _ = self._server.accept()
        proxy = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            if len(self._ways) >= 2 * _MOST:
                raise OSError
            proxy.connect(self._path)
        except OSError:
            caller.close()
            proxy.close()
            return
        there, back = _Way(caller, proxy), _Way(proxy, caller)
        there.other, back.other = back, there
        for way in (there, back):
            way.source.setblocking(False)
            self._ways[way.source.fileno()] = way
            self._watch(way)

    def _carry(self, way: _Way, event: int) -> None:
        try:
            if event & select.POLLOUT:
                way.other.flush()
            if event & ~select.POLLOUT:
                way.fill()
        except OSError:
            self._drop(way)
            return
        if way.done and way.other.done:
            self._drop(way)
            return
        for one in (way, way.other):
            self._watch(one)

    def _watch(self, way: _Way) -> None:
        """Look at a source only while something is wanted of it: its end would be told again and again."""
        if way.interest:
            self._poller.register(way.source.fileno(), way.interest)
            way.watched = True
        elif way.watched:
            self._poller.unregister(way.source.fileno())
            way.watched = False

    def _drop(self, way: _Way) -> None:
        for one in (way, way.other):
            if one.watched:
                self._poller.unregister(one.source.fileno())
            del self._ways[one.source.fileno()]
            one.source.close()


class _Way:
    """What is read from `source` and not yet written to `target`; nothing more is read before it is."""

    def __init__(self, source: socket.socket, target: socket.socket) -> None:
        self.source = source
        self.target = target
        self.other = self
        self.rest = b""
        self.ended = False
        self.watched = False

    @property
    def done(self) -> bool:
        return self.ended and not self.rest

    @property
    def interest(self) -> int:
        reading = select.POLLIN if not self.rest and not self.ended else 0
        return reading | (select.POLLOUT if self.other.rest else 0)

    def fill(self) -> None:
        if self.rest or self.ended:
            return
        try:
            self.rest = self.source.recv(_PIECE)
        except BlockingIOError:
            return
        self.ended = not self.rest
        self.flush()

    def flush(self) -> None:
        try:
            while self.rest:
                self.rest = self.rest[self.target.send(self.rest) :]
        except BlockingIOError:
            return
        if self.ended:
            self.target.shutdown(socket.SHUT_WR)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], sys.argv[3:])
