"""A model server that says what a script tells it, over real HTTP, strictly and fast."""

from __future__ import annotations

import asyncio
import subprocess  # noqa: TID251 - a test server, not a tool: nothing of it reaches an agent
from collections import Counter
from collections.abc import AsyncGenerator, Coroutine, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, cast

import msgspec

from operant.kernel.crew import Crew
from operant.kit.clock import SystemClock
from operant.sdk.testing import openai_wire as wire
from operant.sdk.testing.script import Chosen, Step, choose, read

_STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n"
_BLANK = b"\r\n"
_END = b"0\r\n\r\n"


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


class _Function(msgspec.Struct):
    name: str
    arguments: str


class _Call(msgspec.Struct):
    id: str
    function: _Function


class _Message(msgspec.Struct):
    role: str
    content: str | list[dict[str, Any]] | None = None
    tool_calls: list[_Call] | None = None

    def __post_init__(self) -> None:
        if self.content is None and self.role in {"system", "developer", "user", "tool"}:
            raise ValueError(f"expected a string or parts as the content of role '{self.role}', got null")


class _Options(msgspec.Struct):
    include_usage: bool | None = None


class _Shape(msgspec.Struct):
    """The types a chat request must have before anybody looks at what it says."""

    model: str = ""
    messages: list[_Message] = []
    stream: bool | None = None
    stream_options: _Options | None = None


class _Reply(msgspec.Struct):
    """An answer on its way: what comes first, the pieces in which it can break, and what says that it is whole."""

    head: bytes
    pieces: list[bytes]
    chunked: bool

    def frame(self, piece: bytes) -> bytes:
        return b"%x\r\n%s\r\n" % (len(piece), piece) if self.chunked else piece

    @property
    def end(self) -> bytes:
        return _END if self.chunked else b""


class ScriptedServer:
    """Scripts by name, and a log of what was asked."""

    def __init__(self, scripts: Mapping[str, Any] | None = None, *, keep_log: bool = True) -> None:
        self.scripts: dict[str, list[Step]] = {name: read(steps) for name, steps in (scripts or {}).items()}
        self.requests: list[Logged] = []
        self.url = ""
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
            self.url = f"http://127.0.0.1:{taken}/v1"
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

    def chosen(self, messages: list[dict[str, Any]]) -> Chosen:
        """Find the answer, and count that it was asked for: faults end after `times`."""
        chosen = choose(messages, self.scripts)
        self.asked[chosen.key] += 1
        if chosen.step.times is not None and self.asked[chosen.key] > chosen.step.times:
            chosen.step = chosen.step.healthy()
        return chosen

    def log(self, path: str, body: dict[str, Any], raw: bytes) -> Logged:
        """Note a request, and how much of it the one before had."""
        if not self.keep_log:
            return Logged(body={}, size=len(raw), common_prefix=0)
        first = next((one for one in body["messages"] if one.get("role") == "user"), None)
        key = msgspec.json.encode(first).decode()
        shared = _common(self._last.get(key, b""), raw)
        logged = Logged(body=body, size=len(raw), common_prefix=shared, path=path, at=self._clock.now())
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
                request = self._taken()
            except ValueError as error:
                self._send(400, wire.refusal(400, f"not an HTTP request with a length: {error}"))
                return self._transport.close()
            if request is None:
                return None
            self._route(*request)
        return None

    def _taken(self) -> tuple[str, str, bytes] | None:
        """Take one request out of the buffer, None until it is whole. Raises `ValueError` for what is none."""
        end = self._buffer.find(b"\r\n\r\n") if len(self._buffer) >= self._needed else -1
        if end < 0:
            return None
        first, *lines = bytes(self._buffer[:end]).split(b"\r\n")
        method, path, _ = first.decode("latin-1").split(" ", 2)
        fields = {name.strip().lower(): value for name, _, value in (line.partition(b":") for line in lines)}
        if b"transfer-encoding" in fields:
            raise ValueError("chunked requests are not read")
        start = end + 4
        self._needed = start + int(fields.get(b"content-length", b"0"))
        if len(self._buffer) < self._needed:
            return None
        body = bytes(self._buffer[start : self._needed])
        del self._buffer[: self._needed]
        self._needed = 0
        return method, path, body

    def _route(self, method: str, path: str, body: bytes) -> None:
        match method, path:
            case "POST", "/v1/chat/completions":
                self._complete(path, body)
            case "GET", "/v1/models":
                models = [{"id": "one", "object": "model", "created": 1, "owned_by": "operant"}]
                self._send(200, msgspec.json.encode({"object": "list", "data": models}))
            case "PUT", _ if path.startswith("/script/"):
                self._learn(path.removeprefix("/script/"), body)
            case "GET", "/requests":
                self._send(200, msgspec.json.encode(self._server.requests))
            case "DELETE", "/requests":
                self._server.requests.clear()
                self._send(200, b"{}")
            case _:
                self._send(404, wire.refusal(404, f"no route {method} {path}"))

    def _learn(self, name: str, body: bytes) -> None:
        try:
            self._server.script(name, msgspec.json.decode(body))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            return self._send(400, wire.refusal(400, f"not a script: {error}"))
        return self._send(200, b"{}")

    def _complete(self, path: str, raw: bytes) -> None:
        try:
            body: dict[str, Any] = msgspec.json.decode(raw, type=dict[str, Any])
            msgspec.convert(body, _Shape)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            return self._send(400, wire.refusal(400, f"invalid request: {error}"))
        wrong = wire.fault(body)
        if wrong:
            return self._send(400, wire.refusal(400, wrong))
        chosen = self._server.chosen(body["messages"])
        self._logged = self._server.log(path, body, raw)
        reply, step = self._reply(body, chosen, self._logged), chosen.step
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

    def _reply(self, body: dict[str, Any], chosen: Chosen, logged: Logged) -> _Reply:
        step = chosen.step
        headers = dict(step.headers)
        if step.retry_after is not None:
            headers["Retry-After"] = str(step.retry_after)
        if step.status != 200 or step.body is not None:
            failed = step.body.encode() if step.body is not None else wire.refusal(step.status, "scripted failure")
            return _broken(step, _head(step.status, len(failed), headers), failed)
        counted = wire.usage(chosen, logged.size, logged.common_prefix)
        if not body.get("stream"):
            said = wire.whole(chosen, body["model"], counted)
            return _broken(step, _head(200, len(said), headers), said)
        options: dict[str, Any] = body.get("stream_options") or {}
        events = wire.chunks(chosen, body["model"], counted, bool(options.get("include_usage")))
        if step.duplicate_chunk:
            events.insert(len(events) - 1, events[-1])
        if not step.no_done:
            events.append(b"[DONE]")
        newline = b"\r\n" if step.crlf else b"\n"
        head = _STREAM + _fields(headers) + _BLANK
        return _Reply(head=head, pieces=[b"data: " + one + newline + newline for one in events], chunked=True)

    async def _slowly(self, reply: _Reply, step: Step) -> None:
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

    async def _put(self, reply: _Reply, piece: bytes, *, apart: bool) -> None:
        """Send a piece; `apart` sends each byte by itself, and lets the client run in between."""
        if not apart:
            return self._transport.write(reply.frame(piece))
        for byte in piece:
            self._transport.write(reply.frame(bytes([byte])))
            await asyncio.sleep(0)
        return None

    def _send(self, status: int, body: bytes) -> None:
        self._transport.write(_head(status, len(body), {}) + body)


def _head(status: int, size: int, headers: Mapping[str, str]) -> bytes:
    kind = b"" if any(name.lower() == "content-type" for name in headers) else b"Content-Type: application/json\r\n"
    return b"HTTP/1.1 %d X\r\n%s%sContent-Length: %d\r\n\r\n" % (status, kind, _fields(headers), size)


def _fields(headers: Mapping[str, str]) -> bytes:
    return "".join(f"{name}: {value}\r\n" for name, value in headers.items()).encode()


def _broken(step: Step, head: bytes, body: bytes) -> _Reply:
    """Cut a reply in one piece in two where the script wants to leave it half said."""
    if step.cut_after is None and step.stall_after is None:
        return _Reply(head=head, pieces=[body], chunked=False)
    # Empty pieces in between: however late the fault is, the second half never goes out.
    half = len(body) // 2
    last = min(one for one in (step.cut_after, step.stall_after) if one is not None)
    return _Reply(head=head, pieces=[body[:half], *[b""] * last, body[half:]], chunked=False)


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
