"""A door for the conformance suite: it has no way to send a token, so this adds one and nothing else."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
from aiohttp import web

_HOP = frozenset({"connection", "transfer-encoding", "content-length", "keep-alive"})


@asynccontextmanager
async def forwarding(sock: object, url: str, token: str) -> AsyncIterator[None]:
    """Pass on what comes to a listening socket, with `Host` and `Origin` as they are."""
    timeout = aiohttp.ClientTimeout(total=60)
    async with aiohttp.ClientSession(auto_decompress=False, timeout=timeout) as http:

        async def handle(request: web.Request) -> web.StreamResponse:
            try:
                return await passed_on(request)
            except ConnectionError:  # the suite hangs up when it has seen enough
                return web.Response(status=502)

        async def passed_on(request: web.Request) -> web.StreamResponse:
            headers = [(name, text) for name, text in request.headers.items() if name.lower() not in _HOP]
            headers.append(("Authorization", f"Bearer {token}"))
            data = await request.read()
            async with http.request(request.method, url + request.path_qs, data=data, headers=headers) as answer:
                kept = [(name, text) for name, text in answer.headers.items() if name.lower() not in _HOP]
                response = web.StreamResponse(status=answer.status)
                for name, text in kept:
                    response.headers.add(name, text)
                await response.prepare(request)
                async for piece in answer.content.iter_any():
                    await response.write(piece)
                return response

        app = web.Application()
        app.router.add_route("*", "/{path:.*}", handle)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.SockSite(runner, sock).start()  # type: ignore[arg-type]
        try:
            yield
        finally:
            await runner.cleanup()
