"""Speak to LiteLLM in a process of its own: the chat protocol on loopback, for whoever has the token.

`python -m operant.ext.providers.litellm_child` prints its port as JSON, answers, and ends with its standard input.
LiteLLM takes two seconds to import and 170 MB; the daemon has neither.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import json
import os
import sys
from collections.abc import AsyncIterator
from typing import Any

_MOST_HEAD = 65_536
_STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


async def main() -> None:
    """Serve until standard input ends."""
    token = os.environ.pop("OPERANT_LITELLM_TOKEN")

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):  # the other end has gone
            while await answered(reader, writer, token):
                continue
        writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0, limit=_MOST_HEAD)
    sys.stdout.write(json.dumps({"port": server.sockets[0].getsockname()[1]}) + "\n")
    sys.stdout.flush()
    async with server:
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.buffer.read)


async def answered(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, token: str) -> bool:
    """Answer one request; false when the connection is over."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head.split("\r\n"))}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    if headers.get("authorization") != f"Bearer {token}":
        await refused(writer, 401, "The token is not the one that was given.")
        return False
    import openai  # LiteLLM brings it, and its exceptions are of its kinds

    began = False
    try:
        async for chunk in chunks(json.loads(body)):
            if not began:
                writer.write(_STREAM)
                began = True
            writer.write(framed(b"data: " + chunk + b"\n\n"))
            await writer.drain()
    except (openai.OpenAIError, OSError, ValueError, TypeError, LookupError, RuntimeError) as error:
        await failed(writer, error, began=began)
        return False
    writer.write(framed(b"data: [DONE]\n\n") + b"0\r\n\r\n")
    await writer.drain()
    return True


async def chunks(body: dict[str, Any]) -> AsyncIterator[bytes]:
    """Yield what LiteLLM streams, as JSON of the chat protocol."""
    litellm: Any = importlib.import_module("litellm")  # an extra, never in the environment of development
    stream: Any = await litellm.acompletion(**body)
    async for chunk in stream:
        yield chunk.model_dump_json(exclude_none=True).encode()


async def failed(writer: asyncio.StreamWriter, error: Exception, *, began: bool) -> None:
    """Say what went wrong, in the stream where it has begun."""
    sentence = str(error)[:500] or type(error).__name__
    if began:
        writer.write(framed(b"data: " + json.dumps({"error": {"message": sentence}}).encode() + b"\n\n"))
        return await writer.drain()
    status = getattr(error, "status_code", 500)
    return await refused(writer, status if isinstance(status, int) and 400 <= status < 600 else 500, sentence)


async def refused(writer: asyncio.StreamWriter, status: int, sentence: str) -> None:
    """Answer with an error."""
    said = json.dumps({"error": {"message": sentence}}).encode()
    head = f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {len(said)}\r\n\r\n"
    writer.write(head.encode() + said)
    await writer.drain()


def framed(data: bytes) -> bytes:
    """Return a chunk of a chunked body."""
    return b"%x\r\n%s\r\n" % (len(data), data)


if __name__ == "__main__":
    asyncio.run(main())
