"""A model server that says what a script tells it, over real HTTP, strictly and fast."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Coroutine, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any, cast

import msgspec

from operant.kernel.crew import Crew
from operant.sdk.testing import openai_wire as wire
from operant.sdk.testing.script import Chosen, Step, choose, read

_OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
_STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
_END = b"0\r\n\r\n"


class Logged(msgspec.Struct):
    """A request that was served; `common_prefix` is what it shares with the one before in its conversation."""

    body: dict[str, Any]
    size: int
    common_prefix: int
    aborted: bool = False


class ScriptedServer:
    """Scripts by name, and a log of what was asked."""

    def __init__(self, scripts: Mapping[str, Any] | None = None, *, keep_log: bool = True) -> None:
        self.scripts: dict[str, list[Step]] = {name: read(steps) for name, steps in (scripts or {}).items()}
        self.requests: list[Logged] = []
        self.url = ""
        self.asked: Counter[str] = Counter()
        self.keep_log = keep_log
        self._last: dict[str, bytes] = {}
        self._crew = Crew()

    def script(self, name: str, steps: Any) -> None:
        """Add or change a script."""
        self.scripts[name] = read(steps)

    @asynccontextmanager
    async def serving(self, port: int = 0) -> AsyncGenerator[int]:
        """Listen on loopback while the context is open, and yield the port."""
        loop = asyncio.get_running_loop()
        async with self._crew:
            server = await loop.create_server(lambda: _Connection(self), "127.0.0.1", port)
            taken = server.sockets[0].getsockname()[1]
            self.url = f"http://127.0.0.1:{taken}/v1"
            try:
                yield taken
            finally:
                server.close()

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None] | None:
        """Answer slowly, beside everything else."""
        return self._crew.spawn(work)

    def log(self, body: dict[str, Any], raw: bytes) -> Logged:
        """Note a request, and how much of it the one before had."""
        if not self.keep_log:
            return Logged(body={}, size=len(raw), common_prefix=0)
        key = msgspec.json.encode(next((one for one in body["messages"] if one.get("role") == "user"), None)).decode()
        start = raw.find(b'"messages"')
        logged = Logged(body=body, size=len(raw), common_prefix=_common(self._last.get(key, b""), raw[: len(raw)]))
        self._last[key] = raw if start >= 0 else b""
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
        self._buffer = b""
        self._work: asyncio.Task[None] | None = None
        self._logged: Logged | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._work is not None and not self._work.done():
            if self._logged is not None:
                self._logged.aborted = True
            self._work.cancel()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, split, rest = self._buffer.partition(b"\r\n\r\n")
        if not split:
            return
        lines = head.split(b"\r\n")
        length = next((int(line[15:]) for line in lines[1:] if line.lower().startswith(b"content-length:")), 0)
        if len(rest) < length:
            return
        self._buffer = rest[length:]
        method, path, _ = lines[0].decode().split(" ", 2)
        self._route(method, path, rest[:length])

    def _route(self, method: str, path: str, body: bytes) -> None:
        if method == "POST" and path == "/v1/chat/completions":
            self._complete(body)
        elif path == "/v1/models":
            models = [{"id": "one", "object": "model", "created": 1, "owned_by": "operant"}]
            self._send(200, msgspec.json.encode({"object": "list", "data": models}))
        elif method == "PUT" and path.startswith("/script/"):
            self._server.script(path.removeprefix("/script/"), msgspec.json.decode(body))
            self._send(200, b"{}")
        elif path == "/requests":
            self._send(200, msgspec.json.encode(self._server.requests))
        else:
            self._send(404, wire.refusal(404, f"no route {method} {path}"))

    def _complete(self, raw: bytes) -> None:
        try:
            body: dict[str, Any] = msgspec.json.decode(raw, type=dict[str, Any])
        except msgspec.DecodeError as error:
            return self._send(400, wire.refusal(400, f"invalid JSON: {error}"))
        wrong = wire.fault(body)
        if wrong:
            return self._send(400, wire.refusal(400, wrong))
        chosen = choose(body["messages"], self._server.scripts)
        self._server.asked[chosen.key] += 1
        step = chosen.step
        if step.times is not None and self._server.asked[chosen.key] > step.times:
            step = Step(
                text=step.text, chunks=step.chunks, reasoning=step.reasoning, calls=step.calls, finish=step.finish
            )
            chosen = Chosen(step=step, key=chosen.key, words=chosen.words, depth=chosen.depth)
        self._logged = self._server.log(body, raw)
        if step.hang or step.delay_ms or step.chunk_delay_ms or step.stall_after is not None:
            self._work = self._server.spawn(self._slowly(body, chosen, raw))
            return None
        return self._answer(body, chosen, raw)

    def _answer(self, body: dict[str, Any], chosen: Chosen, raw: bytes) -> None:
        step = chosen.step
        if step.status != 200:
            headers = dict(step.headers)
            if step.retry_after is not None:
                headers["Retry-After"] = step.retry_after
            said = step.body.encode() if step.body is not None else wire.refusal(step.status, "scripted failure")
            return self._send(step.status, said, headers)
        pieces = self._pieces(body, chosen, raw)
        if pieces is None:
            return None
        if step.cut_after is not None:
            self._transport.write(_STREAM + b"".join(_framed(one) for one in pieces[: step.cut_after]))
            return self._transport.close()
        self._transport.write(_STREAM + b"".join(_framed(one) for one in pieces) + _END)
        return None

    def _pieces(self, body: dict[str, Any], chosen: Chosen, raw: bytes) -> list[bytes] | None:
        """Return the server-sent events of a reply; a reply that is not streamed is sent at once."""
        cached = self._logged.common_prefix if self._logged else 0
        counted = wire.usage(chosen, len(raw), cached)
        if not body.get("stream"):
            self._send(200, wire.whole(chosen, body["model"], counted))
            return None
        step, newline = chosen.step, b"\r\n" if chosen.step.crlf else b"\n"
        options: dict[str, Any] = body.get("stream_options") or {}
        with_usage = bool(options.get("include_usage"))
        made = wire.chunks(chosen, body["model"], counted, with_usage)
        if step.duplicate_chunk:
            made.insert(len(made) - 1, made[-1])
        if not step.no_done:
            made.append(b"[DONE]")
        events = [b"data: " + one + newline + newline for one in made]
        return [bytes([byte]) for one in events for byte in one] if step.split_utf8 else events

    async def _slowly(self, body: dict[str, Any], chosen: Chosen, raw: bytes) -> None:
        step = chosen.step
        if step.hang:
            await asyncio.Event().wait()
        await asyncio.sleep(step.delay_ms / 1000)
        if step.status != 200 or not (step.chunk_delay_ms or step.stall_after is not None):
            return self._answer(body, chosen, raw)
        pieces = self._pieces(body, chosen, raw)
        if pieces is None:
            return None
        self._transport.write(_STREAM)
        for at, piece in enumerate(pieces):
            if step.stall_after == at:
                await asyncio.Event().wait()
            if step.cut_after == at:
                return self._transport.close()
            self._transport.write(_framed(piece))
            await asyncio.sleep(step.chunk_delay_ms / 1000)
        self._transport.write(_END)
        return None

    def _send(self, status: int, body: bytes, headers: Mapping[str, str] | None = None) -> None:
        more = "".join(f"{name}: {value}\r\n" for name, value in (headers or {}).items())
        head = f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\n{more}Content-Length: {len(body)}\r\n\r\n"
        self._transport.write(head.encode() + body)


def _framed(piece: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(piece), piece)


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
    import subprocess  # noqa: TID251 - a test server, not a tool: nothing of it reaches an agent
    import sys

    arguments = [sys.executable, "-m", "operant.sdk.testing", "--scripts", msgspec.json.encode(scripts or {}).decode()]
    process = subprocess.Popen(
        [*arguments, *(["--log"] if keep_log else [])], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        port = msgspec.json.decode(process.stdout.readline())["port"]
        yield Spawned(url=f"http://127.0.0.1:{port}/v1", pid=process.pid)
    finally:
        process.stdin.close()
        process.stdout.close()
        process.wait(timeout=10)
