"""A model server that says what a script tells it, over real HTTP, strictly and fast."""

from __future__ import annotations

import asyncio
import subprocess  # noqa: TID251 - a test server, not a tool: nothing of it reaches an agent
from collections import Counter
from collections.abc import AsyncGenerator, Coroutine, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, cast

import msgspec

from operant.kernel.crew import Crew
from operant.kit.clock import SystemClock
from operant.sdk.testing.replies import Reply, head, replied
from operant.sdk.testing.script import Chosen, Step, choose, read
from operant.sdk.testing.wires.routes import Routes
from operant.sdk.testing.wires.wire import Answer, Request, Wire, Wrong


class Logged(msgspec.Struct):
    """A request that was served; `common_prefix` is what it shares with the one before in its conversation.

    Sizes are in bytes, `at` is in microseconds since 1970. Refused requests are not among them.
    """

    body: dict[str, Any]
    size: int
    common_prefix: int
    aborted: bool = False
    path: str = ""
    at: int = 0


class ScriptedServer:
    """Scripts by name, and a log of what was asked."""

    def __init__(self, scripts: Mapping[str, Any] | None = None, *, keep_log: bool = True) -> None:
        self.scripts: dict[str, list[Step]] = {name: read(steps) for name, steps in (scripts or {}).items()}
        self.requests: list[Logged] = []
        self.root = ""
        self.url = ""
        self.routes = Routes()
        self.asked: Counter[str] = Counter()
        self.keep_log = keep_log
        self.closing = False
        self.connections: set[asyncio.Transport] = set()
        self._clock = SystemClock()
        self._last: dict[str, bytes] = {}
        self._crew = Crew()

    def script(self, name: str, steps: Any) -> None:
        """Add or change a script; what `times` counted for it starts again. Raises `msgspec.ValidationError`."""
        self.scripts[name] = read(steps)
        for key in [key for key in self.asked if key.startswith(f"{name}/")]:
            del self.asked[key]

    @asynccontextmanager
    async def serving(self, port: int = 0) -> AsyncGenerator[int]:
        """Listen on loopback while the context is open, and yield the port; no connection outlives it."""
        loop = asyncio.get_running_loop()
        async with self._crew:
            server = await loop.create_server(lambda: _Connection(self), "127.0.0.1", port)
            taken = server.sockets[0].getsockname()[1]
            self.root = f"http://127.0.0.1:{taken}"
            self.url = f"{self.root}/v1"
            try:
                yield taken
            finally:
                self.closing = True
                server.close()
                for transport in tuple(self.connections):
                    transport.abort()

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None] | None:
        """Answer slowly, beside everything else."""
        return self._crew.spawn(work)

    def chosen(self, messages: Sequence[Mapping[str, Any]]) -> Chosen:
        """Find the answer, and count that it was asked for: faults end after `times`."""
        chosen = choose(messages, self.scripts)
        self.asked[chosen.key] += 1
        if chosen.step.times is not None and self.asked[chosen.key] > chosen.step.times:
            chosen.step = chosen.step.healthy()
        return chosen

    def log(self, request: Request, raw: bytes, messages: Sequence[Mapping[str, Any]]) -> Logged:
        """Note a request, and how much of it the one before had."""
        if not self.keep_log:
            return Logged(body={}, size=len(raw), common_prefix=0)
        first = next((one for one in messages if one.get("role") == "user"), None)
        key = msgspec.json.encode(first).decode()
        shared = _common(self._last.get(key, b""), raw)
        logged = Logged(body=request.body, size=len(raw), common_prefix=shared, path=request.path, at=self._clock.now())
        self._last[key] = raw
        self.requests.append(logged)
        return logged


def _common(before: bytes, now: bytes) -> int:
    low, high = 0, min(len(before), len(now))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if before[:middle] == now[:middle] else (low, middle - 1)
    return low


class _Connection(asyncio.Protocol):
    """One keep-alive connection; requests are answered one after the other."""

    def __init__(self, server: ScriptedServer) -> None:
        self._server = server
        self._buffer = bytearray()
        self._needed = 0
        self._work: asyncio.Task[None] | None = None
        self._logged: Logged | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._server.connections.add(self._transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._server.connections.discard(self._transport)
        if self._work is None:
            return
        if self._logged is not None:
            self._logged.aborted = not self._server.closing
        self._work.cancel()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        self._advance()

    def _advance(self) -> None:
        """Answer what has arrived whole; a slow answer makes the next request wait."""
        while self._work is None and not self._transport.is_closing():
            try:
                taken = self._taken()
            except ValueError as error:
                self._refuse(self._server.routes.usual, 400, f"not an HTTP request with a length: {error}")
                return self._transport.close()
            if taken is None:
                return None
            self._route(*taken)
        return None

    def _taken(self) -> tuple[str, Request, bytes] | None:
        """Take one request out of the buffer, None until it is whole. Raises `ValueError` for what is none."""
        end = self._buffer.find(b"\r\n\r\n") if len(self._buffer) >= self._needed else -1
        if end < 0:
            return None
        first, *lines = bytes(self._buffer[:end]).split(b"\r\n")
        method, target, _ = first.decode("latin-1").split(" ", 2)
        fields = {name.strip().lower(): value for name, _, value in (line.partition(b":") for line in lines)}
        if b"transfer-encoding" in fields:
            raise ValueError("chunked requests are not read")
        start = end + 4
        self._needed = start + int(fields.get(b"content-length", b"0"))
        if len(self._buffer) < self._needed:
            return None
        raw = bytes(self._buffer[start : self._needed])
        del self._buffer[: self._needed]
        self._needed = 0
        path, _, query = target.partition("?")
        return method, Request(path=path, query=query, headers=fields, body={}, size=len(raw)), raw

    def _route(self, method: str, request: Request, raw: bytes) -> None:
        wire = self._server.routes.find(request.path) if method == "POST" else None
        if wire is not None:
            return self._complete(wire, request, raw)
        match method, request.path:
            case "PUT", path if path.startswith("/script/"):
                return self._learn(path.removeprefix("/script/"), raw)
            case "GET", "/requests":
                return self._send(200, msgspec.json.encode(self._server.requests))
            case "DELETE", "/requests":
                self._server.requests.clear()
                return self._send(200, b"{}")
            case _:
                return self._list(method, request)

    def _list(self, method: str, request: Request) -> None:
        wire = self._server.routes.near(request.path)
        try:
            found = self._server.routes.models(request) if method == "GET" else None
            if found is None:
                raise Wrong(f"no route {method} {request.path}", 404)
        except Wrong as wrong:
            return self._refuse(wire, wrong.status, wrong.sentence)
        return self._send(200, found)

    def _learn(self, name: str, raw: bytes) -> None:
        try:
            self._server.script(name, msgspec.json.decode(raw))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            return self._refuse(self._server.routes.usual, 400, f"not a script: {error}")
        return self._send(200, b"{}")

    def _complete(self, wire: Wire, request: Request, raw: bytes) -> None:
        try:
            request.body = msgspec.json.decode(raw, type=dict[str, Any])
            wire.check(request)
        except Wrong as wrong:
            return self._refuse(wire, wrong.status, wrong.sentence)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            return self._refuse(wire, 400, f"invalid request: {error}")
        messages = wire.conversation(request.body)
        chosen = self._server.chosen(messages)
        self._logged = self._server.log(request, raw, messages)
        reply, step = replied(wire, Answer(request, chosen, self._logged.common_prefix)), chosen.step
        waits = step.delay_ms or step.first_delay_ms or step.chunk_delay_ms
        if waits or step.hang or step.stall_after is not None or (step.split_utf8 and reply.chunked):
            self._work = self._server.spawn(self._slowly(reply, step))
            return None
        sent = b"".join(reply.frame(one) for one in reply.pieces[: step.cut_after])
        if step.cut_after is None:
            self._transport.write(reply.head + sent + reply.end)
            return None
        self._transport.write(reply.head + sent)
        return self._transport.close()

    async def _slowly(self, reply: Reply, step: Step) -> None:
        """Send piece by piece; whoever is asleep here is cancelled when the client leaves."""
        if step.hang:
            await asyncio.Event().wait()
        await asyncio.sleep(step.delay_ms / 1000)
        self._transport.write(reply.head)
        await asyncio.sleep(step.first_delay_ms / 1000)
        for at, piece in enumerate(reply.pieces):
            if at in {step.stall_after, step.cut_after}:
                break
            if at:
                await asyncio.sleep(step.chunk_delay_ms / 1000)
            await self._put(reply, piece, apart=step.split_utf8 and reply.chunked)
        if step.stall_after is not None and (step.cut_after is None or step.stall_after <= step.cut_after):
            await asyncio.Event().wait()
        self._work = None
        if step.cut_after is not None:
            return self._transport.close()
        self._transport.write(reply.end)
        return self._advance()

    async def _put(self, reply: Reply, piece: bytes, *, apart: bool) -> None:
        """Send a piece; `apart` sends each byte by itself, and lets the client run in between."""
        if not apart:
            return self._transport.write(reply.frame(piece))
        for byte in piece:
            self._transport.write(reply.frame(bytes([byte])))
            await asyncio.sleep(0)
        return None

    def _refuse(self, wire: Wire, status: int, sentence: str) -> None:
        self._send(status, wire.refusal(status, sentence))

    def _send(self, status: int, body: bytes) -> None:
        self._transport.write(head(status, len(body), {}) + body)


@asynccontextmanager
async def scripted_server(scripts: Mapping[str, Any] | None = None) -> AsyncGenerator[ScriptedServer]:
    """Serve in this process."""
    server = ScriptedServer(scripts)
    async with server.serving():
        yield server


class Spawned(msgspec.Struct):
    """A server in a process of its own."""

    url: str
    pid: int


@contextmanager
def spawned_server(scripts: Mapping[str, Any] | None = None, *, keep_log: bool = False) -> Generator[Spawned]:
    """Serve in a process of its own, so that it takes nothing from the one that is measured or killed."""
    import sys
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "scripts.json")  # an argument may have 128 KiB on Linux
        file.write_bytes(msgspec.json.encode(scripts or {}))
        arguments = [sys.executable, "-m", "operant.sdk.testing", "--script", str(file), *(["--log"] * keep_log)]
        with _running(arguments) as spawned:
            yield spawned


@contextmanager
def _running(arguments: list[str]) -> Generator[Spawned]:
    """Run a server that says its port, until the context is left."""
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            if not line:
                raise RuntimeError("The scripted server did not start; it said why on standard error.")
            yield Spawned(url=f"http://127.0.0.1:{msgspec.json.decode(line)['port']}/v1", pid=process.pid)
        finally:
            process.stdin.close()
            _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Wait until a server has ended by itself, and end it when it does not."""
    try:
        process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        process.kill()
