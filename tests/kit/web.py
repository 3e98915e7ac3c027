"""Small servers on loopback, and names for them: 127.0.0.2 stands for a public address, 127.0.0.1 for a private one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from operant.kit.egress import Egress, Resolver

PUBLIC = "127.0.0.2"
OTHER = "127.0.0.3"
PRIVATE = "127.0.0.1"


@dataclass
class Seen:
    """One request as the server got it."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes = b""


@dataclass
class Site:
    """A server that is up, and what it was asked."""

    port: int
    seen: list[Seen] = field(default_factory=list)

    @property
    def targets(self) -> list[str]:
        return [one.target for one in self.seen]


Handler = Callable[[Seen, asyncio.StreamWriter], Awaitable[None]]


def reply(status: int = 200, body: bytes = b"", headers: Mapping[str, str] | None = None) -> bytes:
    """Write a whole answer."""
    lines = [f"HTTP/1.1 {status} X", f"Content-Length: {len(body)}", "Connection: close"]
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


def pages(found: Mapping[str, bytes]) -> Handler:
    """Answer each target with its bytes."""

    async def handle(seen: Seen, writer: asyncio.StreamWriter) -> None:
        writer.write(found.get(seen.target) or reply(404, b"nothing here"))

    return handle


@asynccontextmanager
async def site(handler: Handler, host: str = PUBLIC, port: int = 0) -> AsyncIterator[Site]:
    """Serve one request a connection."""
    here = Site(0)

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            first, *lines = head.strip().split("\r\n")
            method, target, _ = first.split(" ")
            headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
            seen = Seen(method, target, headers, await reader.readexactly(int(headers.get("content-length", 0))))
            here.seen.append(seen)
            await handler(seen, writer)
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(connected, host, port)
    here.port = server.sockets[0].getsockname()[1]
    try:
        yield here
    finally:
        server.close()


def names(**answers: Sequence[str] | Sequence[Sequence[str]]) -> Resolver:
    """Be a DNS: `ok_test=[...]` answers for ok.test, a list of lists answers in turn."""
    asked: dict[str, int] = {}

    async def resolve(host: str, port: int) -> Sequence[str]:
        found = answers.get(host.replace(".", "_"))
        if found is None:
            raise OSError("no such name")
        if found and not isinstance(found[0], str):
            turn = asked.get(host, 0)
            asked[host] = turn + 1
            return found[min(turn, len(found) - 1)]
        return found  # type: ignore[return-value]

    return resolve


def egress(**answers: Sequence[str] | Sequence[Sequence[str]]) -> Egress:
    """Make an egress to which the two stand-ins are public."""
    return Egress((PUBLIC, OTHER), names(**answers))
