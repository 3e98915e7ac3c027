"""The proxy in front of sandboxed commands and the browser: what it lets through, and what it refuses in words."""

from __future__ import annotations

import asyncio
import base64
import stat
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from operant.kit.egress import Denied, Resolver, normal
from operant.kit.egress import Egress as Way
from operant.kit.proxy import Limits, Proxy, Rules, Verdict
from tests.kit.web import PRIVATE, PUBLIC, Seen, egress, names, pages, reply, site


@asynccontextmanager
async def proxy(
    way: Way, rules: Rules | None = None, *, token: str = "", limits: Limits | None = None
) -> AsyncIterator[tuple[int, list[Verdict]]]:
    verdicts: list[Verdict] = []
    made = Proxy(way, rules, token=token, on_verdict=verdicts.append, limits=limits)
    async with made.serving_tcp() as port:
        yield port, verdicts


async def ask(port: int, request: str | bytes, more: bytes = b"") -> bytes:
    """Send a request, read to the end of the answer."""
    reader, writer = await asyncio.open_connection(PRIVATE, port)
    try:
        writer.write(request.encode("latin-1") if isinstance(request, str) else request)
        if more:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(more)
        return await reader.read()
    finally:
        writer.close()


def connect(target: str) -> str:
    return f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n"


async def test_a_page_passes_and_its_server_sees_nothing_of_the_proxy() -> None:
    async with site(pages({"/a?b": reply(200, b"hello")})) as here, proxy(egress(ok_test=[PUBLIC])) as (port, verdicts):
        url = f"http://OK.test.:{here.port}/a?b"
        head = (
            f"GET {url} HTTP/1.1\r\nHost: evil.test\r\nProxy-Connection: keep-alive\r\nX-Mine: 1\r\nUpgrade: x\r\n\r\n"
        )
        answer = await ask(port, head)
    assert answer.startswith(b"HTTP/1.1 200")
    assert answer.endswith(b"hello")
    assert verdicts == [Verdict("ok.test", here.port, True)]
    assert here.seen[0].target == "/a?b"
    assert here.seen[0].headers == {"host": f"ok.test:{here.port}", "x-mine": "1", "connection": "close"}


async def test_a_body_passes_and_what_is_behind_it_does_not() -> None:
    async with site(pages({"/": reply(200, b"ok")})) as here, proxy(egress()) as (port, _):
        head = f"POST http://{PUBLIC}:{here.port}/ HTTP/1.1\r\nContent-Length: 4\r\n\r\n"
        answer = await ask(port, head + "data" + "GET http://10.0.0.1/ HTTP/1.1\r\n\r\n")
    assert answer.endswith(b"ok")
    assert [(seen.method, seen.body) for seen in here.seen] == [("POST", b"data")]


async def test_a_tunnel_carries_anything_both_ways() -> None:
    async with site(pages({"/": reply(200, b"inside")})) as here, proxy(egress(ok_test=[PUBLIC])) as (port, verdicts):
        answer = await ask(port, connect(f"ok.test:{here.port}"), b"GET / HTTP/1.1\r\n\r\n")
    assert answer.endswith(b"inside")
    assert verdicts == [Verdict("ok.test", here.port, True)]


ALLOWED = Rules(("ok.test", "*.wide.test", "ported.test:8443", "[2606:4700::1111]", "bücher.test"))


@pytest.mark.parametrize(
    ("host", "port"),
    [
        ("ok.test", 443), ("ok.test", 80), ("OK.Test.", 443), ("a.wide.test", 443), ("a.b.wide.test", 80),
        ("ported.test", 8443), ("[2606:4700:0::1111]", 443), ("xn--bcher-kva.test", 443), ("B\u00dcCHER.test", 443),
    ],
)  # fmt: skip
def test_e11_what_is_on_the_list_is_found_in_any_spelling(host: str, port: int) -> None:
    assert ALLOWED.refusal(normal(host), port) == ""


@pytest.mark.parametrize(
    ("host", "port"),
    [
        ("ok.test.evil.test", 443), ("notok.test", 443), ("a.ok.test", 443), ("wide.test", 443), ("evilwide.test", 443),
        ("ok.test", 22), ("ok.test", 8443), ("ported.test", 443), ("\u043ek.test", 443), ("[2606:4700::1112]", 443),
        ("[::1]", 443), ("8.8.8.8", 443), ("test", 443), ("0x7f.1", 80),
    ],
)  # fmt: skip
def test_e11_what_is_not_on_the_list_is_refused(host: str, port: int) -> None:
    assert "is not on the list" in ALLOWED.refusal(normal(host), port)


@pytest.mark.parametrize(
    "pattern", ["", "*", "*.", "a b", "*.*.test", "ok.*", "user@ok.test", "http://ok.test", "ok.test:0"]
)
def test_e11_a_list_that_cannot_be_read_is_refused(pattern: str) -> None:
    with pytest.raises(Denied):
        Rules((pattern,))


TRICKS = [
    "CONNECT evil.test\x00.ok.test:443 HTTP/1.1\r\n\r\n",
    "CONNECT ok.test.evil.test:443 HTTP/1.1\r\n\r\n",
    "CONNECT ok.test@evil.test:443 HTTP/1.1\r\n\r\n",
    "CONNECT ok.test:443@evil.test:443 HTTP/1.1\r\n\r\n",
    "CONNECT ok.test%00.evil.test:443 HTTP/1.1\r\n\r\n",
    "CONNECT ok.test:22 HTTP/1.1\r\n\r\n",
    "CONNECT ok.test HTTP/1.1\r\n\r\n",
    "CONNECT [::1]:443 HTTP/1.1\r\n\r\n",
    "CONNECT [::ffff:127.0.0.1]:443 HTTP/1.1\r\n\r\n",
    "CONNECT http://ok.test:443/ HTTP/1.1\r\n\r\n",
    "CONNECT evil.test:443 HTTP/1.1\r\nHost: ok.test:443\r\n\r\n",
    "GET http://evil.test/ HTTP/1.1\r\nHost: ok.test\r\n\r\n",
    "GET http://ok.test@evil.test/ HTTP/1.1\r\n\r\n",
    "GET http://evil.test\\@ok.test/ HTTP/1.1\r\n\r\n",
    "GET http://evil.test#@ok.test/ HTTP/1.1\r\n\r\n",
    "GET https://ok.test/ HTTP/1.1\r\n\r\n",
    "GET ftp://ok.test/ HTTP/1.1\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: ok.test\r\n\r\n",
]


@pytest.mark.parametrize("request_", TRICKS)
async def test_e11_tricks_are_answered_with_403_and_a_sentence_and_reported(request_: str) -> None:
    async with proxy(Way(resolve=no_dns), Rules(("ok.test",))) as (port, verdicts):
        answer = await ask(port, request_)
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 403 ")
    assert body.endswith(b".\n")
    assert body.count(b"\n") == 1
    assert [verdict.allowed for verdict in verdicts] == [False]
    assert verdicts[0].reason == body.decode().strip()
    assert verdicts[0].host.isprintable()


async def no_dns(host: str, port: int) -> Sequence[str]:
    raise AssertionError(f"{host} was resolved")


@pytest.mark.parametrize(
    "target", ["127.0.0.1:80", "127.1:80", "inner.test:80", "169.254.169.254:80", "[::1]:80", "mixed.test:443"]
)
async def test_f6_private_places_are_refused_through_a_tunnel_and_without(target: str) -> None:
    dns = names(inner_test=["10.0.0.1"], mixed_test=["8.8.8.8", "192.168.0.1"])
    async with proxy(Way(resolve=dns)) as (port, verdicts):
        assert (await ask(port, connect(target))).startswith(b"HTTP/1.1 403 ")
        assert (await ask(port, f"GET http://{target}/ HTTP/1.1\r\n\r\n")).startswith(b"HTTP/1.1 403 ")
    assert [verdict.allowed for verdict in verdicts] == [False, False]


async def test_f6_what_was_checked_is_dialled() -> None:
    turn: Resolver = names(rebind_test=[[PUBLIC], [PRIVATE]])
    async with site(pages({"/": reply(200, b"public")})) as here, proxy(Way((PUBLIC,), turn)) as (port, _):
        request = f"GET http://rebind.test:{here.port}/ HTTP/1.1\r\n\r\n"
        assert (await ask(port, request)).endswith(b"public")
        assert (await ask(port, request)).startswith(b"HTTP/1.1 403 ")


async def test_a_name_that_is_not_there_and_a_server_that_is_not_are_502() -> None:
    async with site(pages({})) as gone:
        closed = gone.port
    async with proxy(egress()) as (port, verdicts):
        assert (await ask(port, connect("unknown.test:443"))).startswith(b"HTTP/1.1 502 ")
        assert (await ask(port, connect(f"{PUBLIC}:{closed}"))).startswith(b"HTTP/1.1 502 ")
    assert [verdict.allowed for verdict in verdicts] == [False, True]


@pytest.mark.parametrize(
    ("header", "status"),
    [
        ("", b"407"),
        ("Proxy-Authorization: Bearer wrong\r\n", b"407"),
        ("Proxy-Authorization: Basic !!!\r\n", b"407"),
        ("Proxy-Authorization: Bearer word\r\nProxy-Authorization: Bearer word\r\n", b"400"),
        ("Proxy-Authorization: Bearer word\r\n", b"200"),
        (f"Proxy-Authorization: Basic {base64.b64encode(b'any:word').decode()}\r\n", b"200"),
    ],
)
async def test_only_who_has_the_token_is_served(header: str, status: bytes) -> None:
    async with site(pages({"/": reply(200)})) as here, proxy(egress(), token="word") as (port, _):
        answer = await ask(port, f"GET http://{PUBLIC}:{here.port}/ HTTP/1.1\r\n{header}\r\n")
    assert answer.startswith(b"HTTP/1.1 " + status)
    assert bool(here.seen) == (status == b"200")
    assert (b"Proxy-Authenticate: Basic" in answer) == (status == b"407")


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        ("rubbish\r\n\r\n", b"400"),
        ("GET http://127.0.0.2/ HTTP/1.1\r\nbroken\r\n\r\n", b"400"),
        ("GET http://127.0.0.2/ HTTP/1.1\r\nA: b\r\n c\r\n\r\n", b"400"),
        ("GET http://127.0.0.2/ HTTP/1.1\r\nA: b\nC: d\r\n\r\n", b"400"),
        ("GET http://127.0.0.2/ HTTP/1.1\r\nA : b\r\n\r\n", b"400"),
        ("POST http://127.0.0.2/ HTTP/1.1\r\nContent-Length: -1\r\n\r\n", b"400"),
        ("POST http://127.0.0.2/ HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", b"400"),
        ("POST http://127.0.0.2/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", b"411"),
        ("GET http://127.0.0.2/ HTTP/1.1\r\nA: " + "b" * 10_000 + "\r\n\r\n", b"431"),
    ],
)
async def test_what_is_no_clean_request_is_refused_before_anything_is_dialled(request_: str, status: bytes) -> None:
    async with proxy(egress(), limits=Limits(head_bytes=4096)) as (port, verdicts):
        assert (await ask(port, request_)).startswith(b"HTTP/1.1 " + status)
    assert verdicts == []


async def test_who_says_nothing_is_hung_up_on() -> None:
    async with proxy(egress(), limits=Limits(head_s=0.1)) as (port, _):
        assert await ask(port, "GET http://127.0.0.2/ HTTP/1.1\r\n") == b""


async def silent(seen: Seen, writer: asyncio.StreamWriter) -> None:
    writer.write(b"x" * 300_000)
    await writer.drain()
    await asyncio.wait([asyncio.get_running_loop().create_future()], timeout=30)


async def test_a_tunnel_ends_when_it_is_idle_and_when_it_has_carried_too_much() -> None:
    async with site(silent) as here:
        async with proxy(egress(), limits=Limits(idle_s=0.2)) as (port, _):
            answer = await ask(port, connect(f"{PUBLIC}:{here.port}"), b"GET / X\r\n\r\n")
            assert len(answer) == 300_000
        async with proxy(egress(), limits=Limits(idle_s=0.2, bytes=100_000)) as (port, _):
            answer = await ask(port, connect(f"{PUBLIC}:{here.port}"), b"GET / X\r\n\r\n")
            assert 90_000 < len(answer) <= 100_000


async def test_connections_have_a_number_and_a_place_that_is_free_again_is_given() -> None:
    async with site(pages({"/": reply(200)})) as here, proxy(egress(), limits=Limits(connections=1)) as (port, _):
        request = f"GET http://{PUBLIC}:{here.port}/ HTTP/1.1\r\n\r\n"
        reader, writer = await asyncio.open_connection(PRIVATE, port)
        writer.write(connect(f"{PUBLIC}:{here.port}").encode())
        await reader.readuntil(b"\r\n\r\n")
        assert (await ask(port, request)).startswith(b"HTTP/1.1 503 ")
        writer.write(b"GET / X\r\n\r\n")
        writer.write_eof()
        await reader.read()
        writer.close()
        while not (answer := await ask(port, request)).startswith(b"HTTP/1.1 200 "):
            assert answer.startswith(b"HTTP/1.1 503 ")


async def test_it_serves_on_a_socket_of_this_user_alone_and_leaves_none_behind(tmp_path: Path) -> None:
    path = tmp_path / "proxy.sock"
    async with site(pages({"/": reply(200, b"hello")})) as here, Proxy(egress()).serving_unix(path):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        reader, writer = await asyncio.open_unix_connection(path)
        writer.write(f"GET http://{PUBLIC}:{here.port}/ HTTP/1.1\r\n\r\n".encode())
        assert (await reader.read()).endswith(b"hello")
        writer.close()
        refused, said = await asyncio.open_unix_connection(path)
        said.write(b"POST http://10.0.0.1/ HTTP/1.1\r\nContent-Length: 50000\r\n\r\n" + b"x" * 50_000)
        assert (await refused.read()).startswith(b"HTTP/1.1 403 ")
        said.close()
    assert not path.exists()


async def test_closing_ends_what_is_open() -> None:
    async with site(silent) as here, proxy(egress()) as (port, _):
        reader, writer = await asyncio.open_connection(PRIVATE, port)
        writer.write(connect(f"{PUBLIC}:{here.port}").encode())
        await reader.readuntil(b"\r\n\r\n")
    assert await reader.read() == b""
    writer.close()


@given(st.text(st.sampled_from("ok.tesvi:*@[]%\x00\\/#?0.1xA\u043e"), max_size=30))
def test_a_host_is_on_the_list_or_cannot_be_read_or_is_refused(text: str) -> None:
    try:
        host = normal(text)
    except Denied:
        return
    assert (Rules(("ok.test",)).refusal(host, 443) == "") == (host == "ok.test")
