"""A tool's request against real servers: every hop is judged, nothing leaks over, and nothing is without end.

127.0.0.2 and 127.0.0.3 stand for public addresses, 127.0.0.1 for a private one (see web.py).
"""

from __future__ import annotations

import asyncio
import gzip
import itertools
import tracemalloc
import zlib
from contextlib import AsyncExitStack

import pytest

from operant.kit.egress import Reach
from operant.kit.exchange import Answer
from operant.kit.hops import Trail
from operant.kit.http import Get, Http, HttpCut, HttpDenied, HttpTimeout, HttpUnreachable
from tests.kit.web import OTHER, PRIVATE, PUBLIC, Seen, Site, egress, pages, reply, site


def goes_to(location: str, status: int = 302) -> bytes:
    return reply(status, headers={"Location": location})


@pytest.fixture(params=["plain", "browser"])
def engine(request: pytest.FixtureRequest) -> str:
    """Say every test for both engines."""
    if request.param == "browser":
        pytest.importorskip("curl_cffi", reason="curl_cffi is not installed: pip install 'operant[web]'")
    return request.param


@pytest.fixture
def browser(engine: str) -> bool:
    return engine == "browser"


async def test_a_page_comes_whole_with_its_headers(browser: bool, engine: str) -> None:
    async with (
        site(pages({"/a?b=c": reply(200, b"hello", {"X-One": "1", "x-one": "2"})})) as here,
        Http(egress()) as http,
    ):
        got = await http.fetch(Get(f"http://{PUBLIC}:{here.port}/a?b=c#d", {"X-Mine": "yes"}, browser=browser))
    assert (got.status, got.body, got.truncated, got.hops, got.engine) == (200, b"hello", False, (), engine)
    assert got.headers["x-one"] == "1, 2"
    assert here.seen[0].headers["x-mine"] == "yes"
    assert here.seen[0].headers["host"] == f"{PUBLIC}:{here.port}"


async def test_a_body_is_sent_with_its_method(browser: bool) -> None:
    async with site(pages({"/": reply(201)})) as here, Http(egress()) as http:
        got = await http.fetch(Get(f"http://{PUBLIC}:{here.port}/", method="PUT", body=b"\x00new", browser=browser))
    assert got.status == 201
    assert (here.seen[0].method, here.seen[0].body) == ("PUT", b"\x00new")


async def test_relative_redirects_are_followed_and_every_hop_is_told(browser: bool) -> None:
    found = {
        "/a": goes_to("b c"),
        "/b%20c": goes_to("/ä?x".encode().decode("latin-1")),
        "/%C3%A4?x": reply(200, b"end"),
    }
    async with site(pages(found)) as here, Http(egress()) as http:
        root = f"http://{PUBLIC}:{here.port}"
        if browser:
            found["/b%20c"] = goes_to("/%C3%A4?x")
        got = await http.fetch(Get(f"{root}/a", browser=browser))
    assert got.body == b"end"
    assert got.hops == (f"{root}/a", f"{root}/b%20c")
    assert got.url == f"{root}/%C3%A4?x"


async def test_f4_a_private_place_at_the_third_hop_is_denied_and_never_asked(browser: bool) -> None:
    async with site(pages({"/": reply(200, b"secret")}), PRIVATE) as inner:
        found = {"/1": goes_to("/2"), "/2": goes_to("/3"), "/3": goes_to(f"http://127.1:{inner.port}/")}
        async with site(pages(found)) as here, Http(egress()) as http:
            with pytest.raises(HttpDenied, match="this machine"):
                await http.fetch(Get(f"http://{PUBLIC}:{here.port}/1", browser=browser))
    assert here.targets == ["/1", "/2", "/3"]
    assert inner.seen == []


@pytest.mark.parametrize(
    "location",
    [
        "file:///etc/passwd",
        "gopher://127.0.0.2/",
        "data:text/plain,hi",
        "ftp://127.0.0.2/",
        "http://a@127.0.0.2/",
        "\\\\x",
    ],
)
async def test_f4_a_redirect_leads_to_the_web_or_nowhere(location: str, browser: bool) -> None:
    async with site(pages({"/": goes_to(location)})) as here, Http(egress()) as http:
        with pytest.raises(HttpDenied):
            await http.fetch(Get(f"http://{PUBLIC}:{here.port}/", browser=browser))


async def test_f4_redirects_end(browser: bool) -> None:
    async with site(pages({"/": goes_to("/")})) as here, Http(egress()) as http:
        with pytest.raises(HttpDenied, match="too often"):
            await http.fetch(Get(f"http://{PUBLIC}:{here.port}/", redirects=3, browser=browser))
        assert len(here.seen) == 4
        got = await http.fetch(Get(f"http://{PUBLIC}:{here.port}/", redirects=0, browser=browser))
    assert (got.status, got.headers["location"]) == (302, "/")


async def test_f5_what_was_checked_is_dialled_though_the_name_changes_its_mind(browser: bool) -> None:
    way = egress(rebind_test=[[PUBLIC], [PRIVATE]])
    async with AsyncExitStack() as stack:
        here = await stack.enter_async_context(site(pages({"/": reply(200, b"public")})))
        inner = await stack.enter_async_context(site(pages({"/": reply(200, b"secret")}), PRIVATE, here.port))
        async with Http(way) as http:
            got = await http.fetch(Get(f"http://rebind.test:{here.port}/", browser=browser))
            assert got.body == b"public"
        async with Http(way) as http:  # nothing is kept from before, and the name is private now
            with pytest.raises(HttpDenied, match="this machine"):
                await http.fetch(Get(f"http://rebind.test:{here.port}/", browser=browser))
    assert inner.seen == []
    assert here.seen[0].headers["host"] == f"rebind.test:{here.port}"


async def test_f5_one_private_answer_among_public_ones_denies_all(browser: bool) -> None:
    async with Http(egress(mixed_test=[PUBLIC, PRIVATE])) as http:
        with pytest.raises(HttpDenied):
            await http.fetch(Get("http://mixed.test/", browser=browser))


async def test_f7_credentials_stay_with_their_origin(browser: bool) -> None:
    keys = {
        "Authorization": "Bearer canary",
        "Cookie": "a=canary",
        "X-Api-Key": "canary",
        "Proxy-Authorization": "canary",
    }
    async with site(pages({"/": reply(200)}), OTHER) as other:
        back = f"http://{OTHER}:{other.port}/"
        async with site(pages({"/": goes_to("/on"), "/on": goes_to(back)})) as here, Http(egress()) as http:
            await http.fetch(Get(f"http://{PUBLIC}:{here.port}/", {**keys, "Accept": "text/x"}, browser=browser))
            kept = Get(
                f"http://{PUBLIC}:{here.port}/", keys, origins=(f"http://{OTHER}:{other.port}",), browser=browser
            )
            await http.fetch(kept)
    assert [seen.headers.get("authorization") for seen in here.seen] == ["Bearer canary"] * 4
    first, second = other.seen
    assert "canary" not in str(first.headers)
    assert first.headers["accept"] == "text/x"
    assert (second.headers["authorization"], second.headers["cookie"]) == ("Bearer canary", "a=canary")
    assert "proxy-authorization" not in second.headers


async def test_f7_a_body_stays_with_its_origin(browser: bool) -> None:
    async with site(pages({"/": reply(200)}), OTHER) as other:
        away = f"http://{OTHER}:{other.port}/"
        found = {"/307": goes_to(away, 307), "/302": goes_to(away, 302)}
        async with site(pages(found)) as here, Http(egress()) as http:
            root = f"http://{PUBLIC}:{here.port}"
            with pytest.raises(HttpDenied, match="must not get what was sent"):
                await http.fetch(Get(f"{root}/307", method="POST", body=b"canary", browser=browser))
            await http.fetch(Get(f"{root}/302", {"Content-Type": "text/x"}, "POST", b"canary", browser=browser))
    assert [(seen.method, seen.body) for seen in other.seen] == [("GET", b"")]
    assert "content-type" not in other.seen[0].headers


def test_f7_credentials_do_not_go_from_https_to_http() -> None:
    down = Answer(302, {"location": "http://ok.test/"})
    with pytest.raises(HttpDenied, match="unencrypted"):
        Trail(Get("https://ok.test/", {"Authorization": "x"}, origins=("http://ok.test",))).follow(down)
    plain = Trail(Get("https://ok.test/", {"Accept": "x"}))
    assert plain.follow(down)
    assert plain.step.place.url == "http://ok.test/"


@pytest.mark.parametrize("header", [("X", "a\r\nY: b"), ("X\r\nY", "a"), ("X Y", "a"), ("X", "\u20ac"), ("", "a")])
async def test_a_header_cannot_smuggle_another(header: tuple[str, str], browser: bool) -> None:
    async with Http(egress()) as http:
        with pytest.raises(HttpDenied):
            await http.fetch(Get(f"http://{PUBLIC}/", dict([header]), browser=browser))


async def endless(seen: Seen, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 X\r\n\r\n")
    for _ in itertools.count():
        writer.write(b"x" * 65_536)
        await writer.drain()


async def test_f8_an_endless_body_is_cut_and_says_so(browser: bool) -> None:
    async with site(endless) as here, Http(egress()) as http:
        got = await http.fetch(Get(f"http://{PUBLIC}:{here.port}/", max_bytes=100_000, browser=browser))
    assert (len(got.body), got.truncated) == (100_000, True)


async def test_f8_a_body_that_just_fits_is_whole(browser: bool) -> None:
    async with site(pages({"/": reply(200, b"x" * 1000)})) as here, Http(egress()) as http:
        got = await http.fetch(Get(f"http://{PUBLIC}:{here.port}/", max_bytes=1000, browser=browser))
    assert (len(got.body), got.truncated) == (1000, False)


async def drip(seen: Seen, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 X\r\n\r\n")
    for _ in itertools.count():
        writer.write(b"x")
        await writer.drain()
        await asyncio.wait([asyncio.get_running_loop().create_future()], timeout=0.02)


async def mute(seen: Seen, writer: asyncio.StreamWriter) -> None:
    await writer.drain()
    await asyncio.wait([asyncio.get_running_loop().create_future()], timeout=30)


async def test_f8_a_server_that_drips_has_only_so_long(browser: bool) -> None:
    async with site(drip) as here, Http(egress()) as http:
        with pytest.raises(HttpTimeout, match=r"127\.0\.0\.2 did not answer in time"):
            await http.fetch(Get(f"http://{PUBLIC}:{here.port}/", total_s=0.3, browser=browser))


async def test_f8_a_server_that_says_nothing_has_less() -> None:
    async with site(mute) as here, Http(egress()) as http:
        with pytest.raises(HttpTimeout):
            await http.fetch(Get(f"http://{PUBLIC}:{here.port}/", idle_s=0.2))


@pytest.fixture(scope="module")
def bomb() -> bytes:
    """Pack 400 MB of zeros into a thousandth of their size."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    piece = b"\0" * 1_048_576
    return b"".join([*(packer.compress(piece) for _ in range(400)), packer.flush()])


async def test_f8_a_bomb_stays_packed(browser: bool, bomb: bytes) -> None:
    async with site(pages({"/": reply(200, bomb, {"Content-Encoding": "gzip"})})) as here, Http(egress()) as http:
        small = Get(f"http://{PUBLIC}:{here.port}/", max_bytes=1_000_000, browser=browser)
        await http.fetch(small)
        tracemalloc.start()
        try:
            got = await http.fetch(small)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert (len(got.body), got.truncated) == (1_000_000, True)
    assert peak < 12_000_000


@pytest.mark.parametrize(
    ("encoding", "packed"),
    [
        ("gzip", gzip.compress(b"one ", mtime=0) + gzip.compress(b"two", mtime=0)),
        ("deflate", zlib.compress(b"one two")),
        ("deflate", zlib.compress(b"one two", wbits=-15)),
        ("identity", b"one two"),
    ],
)
async def test_a_packed_body_is_unpacked(encoding: str, packed: bytes) -> None:
    async with site(pages({"/": reply(200, packed, {"Content-Encoding": encoding})})) as here, Http(egress()) as http:
        got = await http.fetch(Get(f"http://{PUBLIC}:{here.port}/"))
    assert got.body == b"one two"


@pytest.mark.parametrize(("encoding", "packed"), [("gzip", b"not packed"), ("gzip, gzip", b""), ("br", b"x")])
async def test_a_body_that_cannot_be_unpacked_is_an_error(encoding: str, packed: bytes) -> None:
    async with site(pages({"/": reply(200, packed, {"Content-Encoding": encoding})})) as here, Http(egress()) as http:
        with pytest.raises(HttpCut, match="packed"):
            await http.fetch(Get(f"http://{PUBLIC}:{here.port}/"))


async def test_who_is_not_there_is_unreachable(browser: bool) -> None:
    async with site(mute) as gone:
        port = gone.port
    async with Http(egress(nobody_test=[PUBLIC])) as http:
        for host in (PUBLIC, "nobody.test", "unknown.test"):
            with pytest.raises(HttpUnreachable):
                await http.fetch(Get(f"http://{host}:{port}/", browser=browser))


async def test_a_connection_made_for_the_owner_is_not_lent_to_a_page() -> None:
    async with site(pages({"/": reply(200)}), PRIVATE) as here, Http(egress(own_test=[PRIVATE])) as http:
        url = f"http://own.test:{here.port}/"
        assert (await http.fetch(Get(url, reach=Reach.NAMED))).status == 200
        with pytest.raises(HttpDenied):
            await http.fetch(Get(url))


@pytest.mark.parametrize("reach", list(Reach))
async def test_a_post_dials_what_was_checked_too(reach: Reach) -> None:
    async with site(pages({"/": reply(200, b"yes")}), PRIVATE) as here, Http(egress(own_test=[PRIVATE])) as http:
        for host in ("own.test", PRIVATE):
            if reach is Reach.PUBLIC:
                with pytest.raises(HttpDenied):
                    await posted(http, host, here, reach)
            else:
                assert await posted(http, host, here, reach) == "yes"
        with pytest.raises(HttpDenied, match="metadata"):
            await posted(http, "169.254.169.254", here, reach)


async def posted(http: Http, host: str, here: Site, reach: Reach) -> str:
    async with http.post(f"http://{host}:{here.port}/", b"{}", {}, 5.0, reach) as response:
        return await response.text()


async def test_the_environment_names_no_proxy(browser: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    async with (
        site(pages({}), PRIVATE) as proxy,
        site(pages({"/": reply(200, b"direct")})) as here,
        Http(egress()) as http,
    ):
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://{PRIVATE}:{proxy.port}")
        got = await http.fetch(Get(f"http://{PUBLIC}:{here.port}/", browser=browser))
    assert got.body == b"direct"
    assert proxy.seen == []


async def test_a_browser_is_seen_on_the_wire_and_the_callers_headers_win() -> None:
    pytest.importorskip("curl_cffi", reason="curl_cffi is not installed: pip install 'operant[web]'")
    async with site(pages({"/": reply(200)})) as here, Http(egress()) as http:
        url = f"http://{PUBLIC}:{here.port}/"
        await http.fetch(Get(url, browser=True))
        await http.fetch(Get(url, {"user-agent": "mine"}, browser=True))
    first, second = (seen.headers for seen in here.seen)
    assert "Chrome" in first["user-agent"]
    assert "sec-ch-ua" in first and "text/html" in first["accept"]
    assert "upgrade" not in first
    assert second["user-agent"] == "mine"


async def test_without_the_package_the_headers_of_a_browser_are_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "curl_cffi", None)
    async with site(pages({"/": reply(200)})) as here, Http(egress()) as http:
        got = await http.fetch(Get(f"http://{PUBLIC}:{here.port}/", browser=True))
    assert got.engine == "plain"
    assert "Chrome" in here.seen[0].headers["user-agent"]


async def test_a_fetch_that_is_given_up_leaves_nothing_behind(browser: bool) -> None:
    async with site(mute) as here, Http(egress()) as http:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await http.fetch(Get(f"http://{PUBLIC}:{here.port}/", browser=browser))
        assert len(here.seen) == 1
