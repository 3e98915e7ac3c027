"""Paths that other extensions answer: the same entrance, the same manners, and nothing of ours shadowed."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from operant.app.mounts import Mounts
from operant.kernel.errors import Conflict, Invalid
from operant.sdk import HttpRequest, HttpResponse, KernelStatus, Mount, NotFound, SessionOpen
from operant.sdk.testing.server import ScriptedServer
from tests.journey.gateway import Served, served

OTHER = '''
"""An extension of a person's own that answers paths."""
from contextlib import asynccontextmanager
from operant.sdk import Extension
from tests.ext.gateway.test_mounts import Guest

extension = Extension(name="guest", setup=__name__ + ":setup")

@asynccontextmanager
async def setup(host, settings):
    async with Guest(host).living():
        yield
'''


class Guest:
    """Answer a few paths."""

    def __init__(self, host) -> None:
        self._host = host

    @asynccontextmanager
    async def living(self) -> AsyncGenerator[None]:
        methods = frozenset({"GET", "POST", "DELETE"})
        self._host.mount(Mount("/guest", self.answer, "Say what came.", methods))
        self._host.mount(Mount("/.well-known/guest.json", self.card, "Say who is here.", open=True))
        self._host.mount(Mount("/boss", self.answer, "Only for some.", capability="admin"))
        yield

    async def card(self, request: HttpRequest) -> HttpResponse:
        return HttpResponse(headers=(("Content-Type", "application/json"),), body=b'{"name":"guest"}')

    async def answer(self, request: HttpRequest) -> HttpResponse:
        if request.below == "/missing":
            raise NotFound("There is no such thing.", "Ask for another.")
        if request.below == "/broken":
            raise RuntimeError("CANARY of the inside")
        if request.below == "/open":
            await self._host.client(request.principal).call(SessionOpen(session="s"))
        if request.below == "/stream":
            return HttpResponse(headers=(("Content-Type", "text/event-stream"),), body=self.pieces())
        await self._host.client(request.principal).call(KernelStatus())
        said = f"{request.method} {request.base} {request.path} {request.below} {request.query} {request.principal.id} "
        held = [key for key, _ in request.headers if key in ("authorization", "cookie")]
        headers = (("X-Guest", "yes"), ("Set-Cookie", "operant=stolen"), ("Content-Type", "text/plain"))
        return HttpResponse(201, headers, said.encode() + request.body + str(held).encode())

    async def pieces(self) -> AsyncGenerator[bytes]:
        yield b"data: 1\n\n"
        yield b"data: 2\n\n"


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[Served]:
    folder = tmp_path / "home" / "extensions"
    folder.mkdir(parents=True, mode=0o700)
    (tmp_path / "home").chmod(0o700)
    (folder / "guest.py").write_text(OTHER)
    async with served(tmp_path / "home", ScriptedServer()) as made:
        yield made


async def test_a_mounted_path_gets_what_was_asked_and_not_the_token(house: Served) -> None:
    async with house.http.post(f"{house.url}/guest/a%20b?x=1&y=%26", data=b"BODY") as response:
        assert response.status == 201
        text = await response.text()
        assert text == f"POST {house.url} /guest/a b /a b x=1&y=%26 owner BODY[]"
        assert response.headers["X-Guest"] == "yes"
        assert "Set-Cookie" not in response.headers  # only the gateway hands out what lets people in
        assert response.headers["X-Frame-Options"] == "DENY"


async def test_pieces_are_sent_as_they_come(house: Served) -> None:
    async with house.http.get(f"{house.url}/guest/stream") as response:
        assert response.content_type == "text/event-stream"
        assert await response.read() == b"data: 1\n\ndata: 2\n\n"


async def test_errors_come_as_everywhere(house: Served) -> None:
    missing = await house.get("/guest/missing", status=404)
    assert missing["detail"] == "There is no such thing."
    broken = await house.get("/guest/broken", status=500)
    assert "CANARY" not in str(broken)
    assert (await house.get("/nowhere", status=404))["code"] == "not_found"
    async with house.http.put(f"{house.url}/guest") as response:
        assert response.status == 405 and response.headers["Allow"] == "DELETE, GET, POST"


async def test_the_entrance_is_the_same(house: Served) -> None:
    async with aiohttp.ClientSession() as stranger:
        refusals = [
            ({}, 401),
            ({"Authorization": "Bearer wrong"}, 401),
            ({"Authorization": f"Bearer {house.token}", "Origin": "http://evil.example"}, 403),
            ({"Authorization": f"Bearer {house.token}", "Host": "evil.example"}, 421),
            ({"Authorization": f"Bearer {house.token}", "Sec-Fetch-Site": "cross-site"}, 403),
        ]
        for headers, status in refusals:
            for path in ("/guest", "/guest/stream", "/boss"):
                async with stranger.post(house.url + path, headers=headers) as response:
                    assert response.status == status, (path, headers)
        async with stranger.get(f"{house.url}/guest?token={house.token}") as response:
            assert response.status == 400


async def test_what_is_open_is_open_for_reading_only(house: Served) -> None:
    path = f"{house.url}/.well-known/guest.json"
    async with aiohttp.ClientSession() as stranger:
        async with stranger.get(path) as response:
            assert await response.json() == {"name": "guest"}
        async with stranger.post(path) as response:
            assert response.status == 401
        async with stranger.get(path, headers={"Host": "evil.example"}) as response:
            assert response.status == 421


async def test_a_token_does_what_its_scopes_allow(house: Served) -> None:
    reading = {"Authorization": f"Bearer {await house.add_token('reader', 'read')}"}
    async with aiohttp.ClientSession(headers=reading) as http:
        for path, status in (("/guest", 201), ("/boss", 403), ("/guest/open", 403)):
            async with http.post(house.url + path) as response:
                assert response.status == status, await response.text()


async def _nothing(request: HttpRequest) -> HttpResponse:
    return HttpResponse()


@pytest.mark.parametrize(
    "path", ["", "/", "guest", "/api/x", "/v1", "/page/x", "/a/../b", "/a//b", "/.well-known", "/ä"]
)
def test_a_path_that_is_not_free_cannot_be_mounted(path: str) -> None:
    with pytest.raises(Invalid):
        Mounts().add(Mount(path, _nothing, ""), "guest")


def test_a_path_belongs_to_one_extension() -> None:
    mounts = Mounts()
    mounts.add(Mount("/a/b", _nothing, ""), "one")
    for path in ("/a/b", "/a", "/a/b/c"):
        with pytest.raises(Conflict):
            mounts.add(Mount(path, _nothing, ""), "two")
    mounts.add(Mount("/a/bc", _nothing, ""), "two")
    mounts.drop("one")
    mounts.add(Mount("/a/b", _nothing, ""), "three")
    assert {one.path for one in mounts.all()} == {"/a/b", "/a/bc"}
