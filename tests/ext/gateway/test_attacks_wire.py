"""Attacks with size, depth and patience (A12 of the design), over real sockets."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import gzip
import io
import json
import os
import re
import resource
import socket
import struct
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from operant.ext.gateway.api import MOST_BODY, MOST_OPEN, read
from operant.ext.gateway.listener import MOST_HEAD
from operant.ext.gateway.problem import Rejected
from operant.ext.gateway.sockets import LARGEST
from tests.ext.gateway.siege import PATIENCE_S, Daemon, Siege, bearer, besieged, daemon

MIB = 1 << 20
GROWTH = 50 * MIB
JSON = {"Content-Type": "application/json"}


@pytest.fixture
async def siege(tmp_path: Path) -> AsyncIterator[Siege]:
    async with besieged(tmp_path) as made:
        yield made


# ---------------------------------------------------------------------- frames


async def closed(siege: Siege, *pieces: bytes) -> int:
    """Send bytes over a WebSocket and return the code with which it is closed."""
    reader, writer = await asyncio.open_connection("127.0.0.1", siege.house.port)
    key = base64.b64encode(os.urandom(16)).decode()
    lines = ["GET /ws/s HTTP/1.1", f"Host: 127.0.0.1:{siege.house.port}", "Upgrade: websocket", "Connection: Upgrade"]
    lines += [f"Sec-WebSocket-Key: {key}", "Sec-WebSocket-Version: 13", f"Authorization: Bearer {siege.house.token}"]
    writer.write("\r\n".join([*lines, "", ""]).encode())
    async with asyncio.timeout(PATIENCE_S):
        assert b" 101 " in (await reader.readuntil(b"\r\n\r\n")).split(b"\r\n")[0]
        with contextlib.suppress(ConnectionError):
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
        frame, size = await reader.readexactly(2)
        said = await reader.readexactly(size)
    writer.close()
    return struct.unpack("!H", said[:2])[0] if frame == 0x88 else -frame


def frame(first: int, size: int, payload: bytes = b"", *, mask: bool = True) -> bytes:
    return struct.pack("!BBQ", first, 0x80 * mask | 127, size) + b"\0\0\0\0" * mask + payload


async def test_a12_a_frame_of_64_mib_is_refused_before_it_has_arrived(siege: Siege) -> None:
    assert await closed(siege, frame(0x81, 64 * MIB)) == 1009
    assert await closed(siege, frame(0x82, 64 * MIB, b"x" * 100)) == 1009
    assert await closed(siege, frame(0x81, LARGEST + 1)) == 1009


async def test_a12_nor_do_many_pieces_make_one_frame_too_large(siege: Siege) -> None:
    half = b"x" * (LARGEST // 2 + 1)
    assert await closed(siege, frame(0x01, len(half), half), frame(0x80, len(half), half)) == 1009
    piece = frame(0x00, 1 << 16, b"x" * (1 << 16))
    assert await closed(siege, frame(0x01, 1, b"x"), *[piece] * 20) == 1009


@pytest.mark.parametrize(
    "sent",
    [
        frame(0x83, 1, b"x"), frame(0xC1, 1, b"x"), frame(0xF1, 1, b"x"), frame(0x09, 0), frame(0x89, 200, b"x" * 200),
        frame(0x80, 1, b"x"), frame(0x81, 1 << 63), frame(0x88, 1, b"x"),
    ],
)  # fmt: skip
async def test_a12_frames_that_are_none_end_the_connection(siege: Siege, sent: bytes) -> None:
    assert await closed(siege, sent) in (1002, 1009)


async def test_a12_text_that_is_none_is_no_message(siege: Siege) -> None:
    assert await closed(siege, frame(0x81, 2, b"\xff\xfe")) == 1007
    async with siege.house.http.ws_connect(f"{siege.house.ws}/ws/s") as window:
        for text in ("[" * 500_000, '{"type":' * 100_000, '{"type":"message","content":"\\ud800"}', "", "7", "\0"):
            await window.send_str(text)
            assert (await window.receive_json(timeout=PATIENCE_S))["type"] == "error", text[:40]
        await window.send_bytes(b'{"type":"ping"}')
        assert (await window.receive_json(timeout=PATIENCE_S))["type"] == "error"
        await window.send_json({"type": "ping"})
        assert (await window.receive_json(timeout=PATIENCE_S))["type"] == "pong"


# ---------------------------------------------------------------------- bodies


async def takers(siege: Siege, kind: str) -> list[tuple[str, str]]:
    """Return the operations that take a body of a kind."""
    paths = (await siege.house.get("/openapi.json"))["paths"]
    return [
        (method.upper(), re.sub(r"{\w+}", "operant", path))
        for path, ones in paths.items()
        for method, one in ones.items()
        if kind in one.get("requestBody", {}).get("content", {})
    ]


def deep(begin: str, end: str) -> bytes:
    return b'{"nothing":' + begin.encode() * 1_000_000 + b"1" + end.encode() * 1_000_000 + b"}"


async def test_a12_json_of_a_million_levels_is_not_json(siege: Siege) -> None:
    headers = {**JSON, **bearer(siege.house.token)}
    bombs = [deep("[", "]"), deep('{"":', "}"), deep("[", "")]
    for method, path in await takers(siege, "application/json"):
        if path == "/api/login":
            continue  # it takes less than this
        for bomb in bombs if path.startswith("/api/chat/") else bombs[:1]:
            said, text = await siege.ask(method, path, headers, data=io.BytesIO(bomb))
            assert said == 400 and len(text) < 1_000, (method, path, said, text[:300])
    nested = b'{"arguments":' + b'{"":' * 1_000_000 + b"1" + b"}" * 1_000_000 + b"}"
    said = await siege.status("POST", "/api/tools/read_file", headers, data=io.BytesIO(nested))
    assert said == 400


async def test_a12_what_is_nested_just_less_does_no_harm_where_it_is_kept(siege: Siege) -> None:
    for depth in range(100, 1_100, 200):
        body = '{"arguments":{"path":' + "[" * depth + "]" * depth + "}}"
        headers = {**JSON, **bearer(siege.house.token)}
        said = await siege.status("POST", "/api/tools/read_file", headers, data=body)
        assert said in (200, 400), depth
    assert (await siege.house.get("/api/activity?limit=50"))["events"]


async def test_a12_nothing_is_unpacked(siege: Siege) -> None:
    bomb = gzip.compress(b'{"message":"' + b" " * (50 * MIB) + b'"}')
    for kind in ("application/json", "application/octet-stream"):
        for method, path in await takers(siege, kind):
            headers = {"Content-Type": kind, **siege.own, **bearer(siege.house.token)}
            for coding in ("gzip", "GZIP", "x-gzip", "deflate", "br", "zstd", "identity, gzip"):
                packed = {**headers, "Content-Encoding": coding}
                said = await siege.ask(method, path, packed, data=io.BytesIO(bomb))
                assert said[0] == 415, (path, coding, said)


async def test_a12_a_body_is_refused_by_what_it_says_of_its_size_and_by_what_it_has(siege: Siege) -> None:
    own = f"Authorization: Bearer {siege.house.token}"
    for size in (MOST_BODY + 1, 1 << 40):
        head = siege.request("POST /api/chat/s", own, "Content-Type: application/json")
        assert await siege.first(head.replace(b"Content-Length: 0", f"Content-Length: {size}".encode())) == 413

    async def pieces(size: int) -> AsyncIterator[bytes]:
        for _ in range(size // (1 << 18) + 1):
            yield b" " * (1 << 18)

    headers = {**JSON, **bearer(siege.house.token)}
    assert await siege.status("POST", "/api/chat/s", headers, data=pieces(MOST_BODY)) == 413
    for method, path in (("POST", "/api/sessions/s/files"), ("PUT", "/api/agents/operant/files/x")):
        assert await siege.status(method, path, bearer(siege.house.token), data=pieces(33 * MIB)) == 413
    keyed = {**headers, "Idempotency-Key": "one"}
    assert await siege.status("POST", "/api/sessions", keyed, data=pieces(MOST_BODY)) == 413


async def test_a12_who_is_not_known_may_send_little(siege: Siege) -> None:
    headers = {**JSON, **siege.own}
    large = json.dumps({"code": "x" * MOST_OPEN})
    assert await siege.status("POST", "/api/login", headers, data=large) == 413
    head = siege.request("POST /api/login", f"Origin: {siege.house.url}", "Content-Type: application/json")
    assert await siege.first(head.replace(b"Content-Length: 0", b"Content-Length: 8000000")) == 413
    assert await siege.first(head.replace(b"/api/login", b"/api/chat/s")) == 401


class Slow:
    """A request whose body never ends."""

    headers: dict[str, str] = {}
    content_length = None

    def __init__(self) -> None:
        self.content = self

    async def iter_chunked(self, size: int) -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.Event().wait()


async def test_a12_a_body_that_does_not_arrive_is_given_up() -> None:
    slow: Any = Slow()
    async with asyncio.timeout(PATIENCE_S):
        with pytest.raises(Rejected) as caught:
            await read(slow, 1_000, seconds=0.01)
    assert caught.value.status == 408


async def test_a12_requests_inside_requests_are_not_understood(siege: Siege) -> None:
    own = f"Authorization: Bearer {siege.house.token}\r\n".encode()
    host = f"Host: 127.0.0.1:{siege.house.port}\r\n".encode()
    inner = b"DELETE /api/sessions/s HTTP/1.1\r\n" + host + own + b"\r\n"
    await siege.house.post("/api/chat/s", {"message": "@hello"})
    for lines in (
        b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n",
        b"Content-Length: 0\r\nContent-Length: 4\r\n",
        b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
        b"Transfer-Encoding: xchunked\r\n",
        b"Transfer-Encoding : chunked\r\n",
        b"Content-Length: +4\r\n",
        b"Content-Length: 0x4\r\n",
        b"X: a\nTransfer-Encoding: chunked\r\n",
        b"X: a\0b\r\n",
        b" folded: x\r\n",
    ):
        said = await siege.raw(b"POST /api/cron/reload HTTP/1.1\r\n" + host + own + lines + b"\r\n0\r\n\r\n" + inner)
        assert b" 400 " in said.split(b"\r\n")[0], lines
        assert said.count(b"HTTP/1.") == 1, lines
    assert len((await siege.house.get("/api/sessions"))["sessions"]) == 1


# ---------------------------------------------------------------------- very many connections


@contextmanager
def many(one: Daemon, count: int, said: bytes, *, patient: bool) -> Iterator[list[socket.socket]]:
    """Hold connections, as many as the file limit allows. Every other one says something; the patient all do, and wait
    for the answer before the next one connects."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    held: list[socket.socket] = []
    try:
        for number in range(min(count, hard - 500)):
            held.append(socket.create_connection(("127.0.0.1", one.port), timeout=PATIENCE_S))
            with contextlib.suppress(ConnectionError, TimeoutError):
                if number % 2 or patient:
                    held[-1].sendall(said)
                if patient:
                    held[-1].recv(1)
        yield held
    finally:
        for connection in held:
            connection.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def held_off(one: Daemon, count: int, said: bytes, *, patient: bool = False) -> int:
    """Attack with many connections and return by how many bytes the server grew while it served somebody else."""
    await one.answers()
    before = one.memory()
    with many(one, count, said, patient=patient) as held:
        assert len(held) >= min(count, 500)
        for _ in range(3):
            await one.answers()
        grown = one.memory() - before
    await one.answers("/readyz")
    return grown


@pytest.mark.slow
async def test_a12_ten_thousand_half_open_connections_hold_up_nobody(tmp_path: Path) -> None:
    async with daemon(tmp_path / "home") as one:
        assert await held_off(one, 10_000, b"GET /api/status HTTP/1.1\r\nHost: ") < GROWTH


@pytest.mark.slow
async def test_a12_endless_heads_hold_up_nobody(tmp_path: Path) -> None:
    async with daemon(tmp_path / "home") as one:
        lines = b"".join(b"X-%d: " % number + b"x" * 8_000 + b"\r\n" for number in range(100))
        assert len(lines) > 40 * MOST_HEAD
        assert await held_off(one, 1_500, b"GET /api/status HTTP/1.1\r\nHost: a\r\n" + lines) < GROWTH


@pytest.mark.slow
async def test_a12_connections_that_asked_once_and_stay_hold_up_nobody(tmp_path: Path) -> None:
    async with daemon(tmp_path / "home", OPERANT_GATEWAY__CONNECTIONS="100") as one:
        asks = f"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:{one.port}\r\n\r\n".encode()
        assert await held_off(one, 400, asks, patient=True) < GROWTH
        login = f"POST /api/login HTTP/1.1\r\nHost: 127.0.0.1:{one.port}\r\nOrigin: {one.url}\r\n"
        login += 'Content-Type: application/json\r\nContent-Length: 16000\r\n\r\n{"code": "'
        assert await held_off(one, 1_000, login.encode()) < GROWTH


@pytest.mark.slow
async def test_a12_a_hundred_thousand_requests_in_one_breath_hold_up_nobody(tmp_path: Path) -> None:
    async with daemon(tmp_path / "home") as one:
        await one.answers()
        before = one.memory()
        _, writer = await asyncio.open_connection("127.0.0.1", one.port)
        writer.write(f"GET /page/app.js HTTP/1.1\r\nHost: 127.0.0.1:{one.port}\r\n\r\n".encode() * 100_000)
        for _ in range(3):
            await one.answers()
        assert one.memory() - before < GROWTH
        writer.transport.abort()
        await one.answers("/readyz")
