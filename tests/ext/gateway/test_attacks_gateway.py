"""Attacks on who may come in (A1 to A7, A9, A16, A17 of the design), over real sockets.

What those do who are in is in test_attacks_inside.py, size and patience in test_attacks_wire.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from operant.ext.gateway.throttle import FAILURES, WINDOW_S, Throttle
from operant.ext.gateway.tokens import LOGIN_S, Keyring
from operant.sdk import Principal
from operant.sdk.testing.fakes import ManualClock
from tests.ext.gateway.siege import EVIL, PATIENCE_S, Siege, bearer, besieged, daemon, operant

ANYBODY = Principal(kind="owner", id="owner")
DAY_S = 86_400


@pytest.fixture
async def siege(tmp_path: Path) -> AsyncIterator[Siege]:
    async with besieged(tmp_path) as made:
        yield made


# ---------------------------------------------------------------------- A1: an address for everybody


@pytest.mark.parametrize("address", ["0.0.0.0", "::", "192.0.2.1"])
async def test_a1_it_does_not_start_on_an_open_address_and_says_the_fix_in_one_line(
    tmp_path: Path, address: str
) -> None:
    code, out, err = await operant(tmp_path / "home", "serve", "--host", address)
    assert code == 2 and out == ""
    assert len(err.strip().splitlines()) == 1
    assert address in err and "--insecure" in err and "tls" in err


async def test_a1_a_check_of_the_settings_says_it_before_a_start_does(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "operant.yaml").write_text("gateway:\n  host: 0.0.0.0\n")
    code, out, err = await operant(home, "config", "check")
    said = (out + err).strip()
    assert code in (1, 2) and len(said.splitlines()) == 1
    assert "operant.yaml:1" in said and "--insecure" in said
    assert (await operant(home, "serve"))[0] == 2


# ---------------------------------------------------------------------- A2 to A5: pages of others

FOREIGN = [
    EVIL, "null", "", "file://", "http://localhost:8080", "http://127.0.0.1", "http://127.0.0.1:1",
    "https://127.0.0.1:{port}", "http://127.0.0.1:{port}.evil.example", "http://127.0.0.1:{port}@evil.example",
    "http://127.0.0.1:{port}/", "http://localhost:{port}", "http://127.0.0.2:{port}", "ws://127.0.0.1:{port}",
    "http://127.0.0.1:{port} https://evil.example", "chrome-extension://abcdefgh",
]  # fmt: skip
"""Origins that are not the page's own, though some nearly look it; the page was asked for as 127.0.0.1."""


async def test_a2_a_foreign_page_cannot_open_a_websocket(siege: Siege) -> None:
    for origin in FOREIGN:
        headers = {"Origin": origin.format(port=siege.house.port)}
        for path in ("/ws/s", "/ws/activity"):
            assert await siege.upgrade(headers, path, by=siege.browser) == 403, headers
    assert (await siege.house.get("/api/sessions"))["sessions"] == []
    assert await siege.upgrade(siege.own, by=siege.browser) == 101


async def test_a2_nor_can_a_foreign_page_with_a_token_that_it_stole(siege: Siege) -> None:
    assert await siege.upgrade({"Origin": EVIL, **bearer(siege.house.token)}) == 403


async def test_a3_a_websocket_of_nobody_is_refused(siege: Siege) -> None:
    for path in ("/ws/s", "/ws/activity", "/ws/s?after=0&view=events"):
        assert await siege.upgrade({}, path) == 401
        assert await siege.upgrade(siege.own, path) == 401
        assert await siege.upgrade({"Sec-WebSocket-Protocol": f"bearer, {siege.house.token}"}, path) == 401
    assert await siege.upgrade(bearer(siege.house.token)) == 101


HOSTS = [
    "evil.example", "evil.example:{port}", "127.0.0.1.evil.example:{port}", "localhost.evil.example:{port}",
    "127.0.0.1:1", "127.0.0.1", "localhost", "localhost.:{port}", "2130706433:{port}", "0x7f.1:{port}",
    "0.0.0.0:{port}", "[::]:{port}", "127.0.0.2:{port}", "evil@127.0.0.1:{port}", "127.0.0.1:{port}@evil.example",
    "127.0.0.1:{port}, evil.example", "",
]  # fmt: skip


async def test_a4_a_name_that_was_rebound_to_this_machine_is_not_ours(siege: Siege) -> None:
    for host in HOSTS:
        headers = {"Host": host.format(port=siege.house.port)}
        for path in ("/", "/api/status", "/healthz", "/page/app.js", "/openapi.json", "/nothing"):
            assert await siege.status("GET", path, headers, by=siege.browser) == 421, (host, path)
        assert await siege.status("POST", "/api/login", {**headers, **siege.own}, json={"code": "x"}) == 421, host
        assert await siege.upgrade({**headers, **siege.own}, by=siege.browser) == 421, host


async def test_a4_whole_addresses_and_two_names_in_one_request_are_refused(siege: Siege) -> None:
    own = f"Authorization: Bearer {siege.house.token}"
    assert await siege.code_of("GET /api/me", own) == 200
    for target in ("http://evil.example/api/me", "http://evil.example/page/../api/me", "*", "evil.example:80"):
        assert await siege.code_of(f"GET {target}", own) in (400, 421), target
    assert await siege.code_of("GET /api/me", own, "Host: evil.example") == 400


async def test_a5_a_page_on_another_port_of_this_machine_is_foreign(siege: Siege) -> None:
    for origin in FOREIGN:
        headers = {"Origin": origin.format(port=siege.house.port)}
        for path in ("/api/status", "/", "/page/app.js"):
            assert await siege.status("GET", path, headers, by=siege.browser) == 403, (origin, path)
        assert await siege.status("POST", "/api/sessions", headers, by=siege.browser, json={}) == 403, origin
        assert await siege.status("POST", "/api/login", headers, json={"code": await siege.code()}) == 403, origin
        assert await siege.status("OPTIONS", "/api/sessions", headers) == 403, origin
    for site in ("cross-site", "same-site"):
        assert await siege.status("GET", "/api/status", {"Sec-Fetch-Site": site}, by=siege.browser) == 403
        assert await siege.upgrade({"Sec-Fetch-Site": site}, by=siege.browser) == 403
    assert (await siege.house.get("/api/sessions"))["sessions"] == []


async def test_a5_no_answer_invites_other_pages(siege: Siege) -> None:
    for headers in ({}, siege.own, {"Origin": EVIL}):
        async with siege.browser.get(f"{siege.house.url}/api/status", headers=headers) as answer:
            assert not [name for name in answer.headers if name.lower().startswith("access-control-")]
            assert answer.headers["Cross-Origin-Resource-Policy"] == "same-origin"


async def test_a5_an_origin_that_is_listed_may_come_in_and_no_other(tmp_path: Path) -> None:
    async with besieged(tmp_path, {"gateway": {"origins": ["http://localhost:8080"]}}) as siege:
        assert await siege.status("GET", "/api/status", {"Origin": "http://localhost:8080"}, by=siege.browser) == 200
        for origin in ("http://localhost:8081", "https://localhost:8080", "http://localhost:80800", "null"):
            assert await siege.status("GET", "/api/status", {"Origin": origin}, by=siege.browser) == 403


# ---------------------------------------------------------------------- A6: a page that is told where to connect


@pytest.mark.parametrize("query", ["gatewayUrl=wss://evil.example", "ws=//evil.example", "next=https://evil.example"])
async def test_a6_the_page_is_the_same_whatever_its_address_says(siege: Siege, query: str) -> None:
    """What its scripts do with an address is in test_door.py; here is what the server does, and lets a browser do."""
    plain = await siege.ask("GET", "/")
    async with siege.browser.get(f"{siege.house.url}/?{query}", allow_redirects=False) as answer:
        assert (answer.status, await answer.text()) == plain and "evil" not in str(answer.headers)
        policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'self'" in policy and "connect-src" not in policy and "evil" not in policy
    for path in ("/api/login", "/api/logout"):
        async with siege.stranger.post(f"{siege.house.url}{path}?{query}", headers=siege.own, json={}) as answer:
            assert answer.status == 401 and "Location" not in answer.headers


# ---------------------------------------------------------------------- A7: tokens that are none


def wrong(token: str) -> list[str]:
    """Return what looks like a token; as many as may be tried in a minute."""
    last = "A" if token[-1] != "A" else "B"
    tried = ["null", token[:-1], token + "A", token[:-1] + last, token.lower(), token[4:], "owner", token.upper()]
    assert token not in tried and len(tried) < FAILURES
    return tried


async def test_a7_only_the_whole_token_is_one(siege: Siege) -> None:
    for one in wrong(siege.house.token):
        assert await siege.status("GET", "/api/status", bearer(one)) == 401, one
    assert await siege.status("GET", "/api/status", bearer(siege.house.token)) == 200


async def test_a7_a_cookie_is_a_token_as_any_other(siege: Siege) -> None:
    name, _, token = (await siege.cookie()).partition("=")
    for one in wrong(token):
        assert await siege.status("GET", "/api/status", {"Cookie": f"{name}={one}"}) == 401, one
    assert await siege.status("GET", "/api/status", {"Cookie": f"{name.upper()}={token}"}) == 401
    assert await siege.status("GET", "/api/status", {"Cookie": f"{name}={token}"}) == 200


async def test_a7_what_is_empty_or_no_bearer_token_is_none(siege: Siege) -> None:
    token, name = siege.house.token, f"operant_{siege.house.port}"
    none = ["", "Bearer", "Bearer ", f"Basic {token}", token, f"Bearer{token}", f"Token {token}", "Bearer \t "]
    for header in none:
        assert await siege.code_of("GET /api/status", f"Authorization: {header}") == 401, header
    for header in ("", name, f"{name}=", f'{name}=""', f"operant={token}", f"x{name}={token}"):
        assert await siege.code_of("GET /api/status", f"Cookie: {header}") == 401, header
    assert await siege.code_of("GET /api/status", f"X-Api-Key: {token}", f"Proxy-Authorization: Bearer {token}") == 401


async def test_a7_bytes_that_are_no_text_are_no_token(siege: Siege) -> None:
    cookie = f"Cookie: operant_{siege.house.port}=".encode()
    for header in (b"Authorization: Bearer \xff\xfe", cookie + b"\xff\xfe", cookie + b"%ff", b"Authorization: \xff"):
        assert await siege.code_of("GET /api/status", header) == 401, header


async def test_a7_two_tokens_are_none(siege: Siege) -> None:
    good, bad = f"Authorization: Bearer {siege.house.token}", "Authorization: Bearer other"
    for headers in ((good, bad), (bad, good), (good, good)):
        assert await siege.code_of("GET /api/status", *headers) == 401, headers
    assert await siege.code_of("GET /api/status", f"{good}, Bearer other") == 401
    assert await siege.code_of("GET /api/status", f"{good} other") == 401
    cookie = await siege.cookie()
    other = cookie.partition("=")[0] + "=other"
    for sent in (f"{cookie}; {other}", f"{other}; {cookie}", f"{cookie};{cookie}"):
        assert await siege.code_of("GET /api/status", f"Cookie: {sent}") == 401, sent
    assert await siege.code_of("GET /api/status", f"Cookie: {cookie}", f"Cookie: {other}") == 401
    assert await siege.code_of("GET /api/status", f"Cookie: a=1; {cookie}; b=2") == 200


async def test_a7_a_login_takes_no_lists_or_numbers_for_codes(siege: Siege) -> None:
    code = await siege.code()
    bodies: list[Any] = [{"code": [code]}, {"code": {"code": code}}, {"code": None}, {"token": [siege.house.token]}]
    for body in [*bodies, [code], code, 7, True]:
        assert await siege.status("POST", "/api/login", siege.own, json=body) == 422, body
    assert await siege.status("POST", "/api/login", siege.own, json={}) == 401
    assert await siege.status("POST", "/api/login", siege.own, json={"code": code}) == 200


# ---------------------------------------------------------------------- A9: who guesses


async def test_a9_who_guesses_waits_on_loopback_too(siege: Siege) -> None:
    used, fresh = await siege.token("used", "read"), await siege.token("fresh", "read")
    assert await siege.status("GET", "/api/status", bearer(used)) == 200
    assert await siege.status("GET", "/api/status", by=siege.browser) == 200
    said = [await siege.status("GET", "/api/status", bearer(f"opr_{number}")) for number in range(100)]
    assert said == [401] * FAILURES + [429] * (100 - FAILURES)
    async with siege.stranger.get(f"{siege.house.url}/api/status", headers=bearer("opr_x")) as answer:
        assert answer.status == 429 and 0 < int(answer.headers["Retry-After"]) <= WINDOW_S
        assert str(answer.headers["Retry-After"]) in (await answer.json(content_type=None))["hint"]
    assert await siege.status("GET", "/api/status", bearer(fresh)) == 429
    assert await siege.upgrade(bearer(fresh)) == 429
    for body in ({"code": await siege.code()}, {"token": fresh}):
        assert await siege.status("POST", "/api/login", siege.own, json=body) == 429
    assert await siege.status("GET", "/api/status", bearer(used)) == 200
    assert await siege.status("GET", "/api/status", by=siege.browser) == 200
    assert siege.log().count("with a wrong token") == FAILURES


async def test_a9_codes_are_guessed_no_faster_than_tokens(siege: Siege) -> None:
    said = [await siege.status("POST", "/api/login", siege.own, json={"code": f"{number}"}) for number in range(30)]
    assert said == [401] * FAILURES + [429] * 20


async def test_a9_many_at_once_get_no_more_tries_than_one_after_the_other(siege: Siege) -> None:
    tries = [siege.status("GET", "/api/status", bearer(f"opr_{number}")) for number in range(60)]
    said = await asyncio.gather(*tries)
    assert sorted(said) == [401] * FAILURES + [429] * 50


def test_a9_the_wait_ends_and_begins_anew() -> None:
    clock = ManualClock()
    throttle = Throttle(clock)
    for _ in range(FAILURES):
        assert throttle.wait_s("::1") == 0
        throttle.failed("::1")
        clock.advance(1)
    assert throttle.wait_s("::1") == WINDOW_S - FAILURES
    assert throttle.wait_s("127.0.0.1") == 0
    clock.advance(WINDOW_S - FAILURES)
    assert throttle.wait_s("::1") == 0
    throttle.failed("::1")
    assert 0 < throttle.wait_s("::1") <= 1


def test_a9_addresses_without_number_fill_no_memory() -> None:
    throttle = Throttle(ManualClock())
    for number in range(12_000):
        throttle.failed(str(number))
    assert len(throttle._failed) == 10_000 and "0" not in throttle._failed


async def test_a9_a_login_code_works_once_even_for_two_at_once(siege: Siege) -> None:
    body = {"code": await siege.code()}
    assert await siege.status("POST", "/api/login", json=body) == 403  # no browser
    tries = [siege.status("POST", "/api/login", siege.own, json=body) for _ in range(5)]
    assert sorted(await asyncio.gather(*tries)) == [200, 401, 401, 401, 401]
    assert await siege.status("GET", "/api/status", bearer(body["code"])) == 401


def test_a9_a_login_code_is_old_after_ten_minutes(tmp_path: Path) -> None:
    clock = ManualClock()
    keyring = Keyring(tmp_path, tmp_path, clock)
    early, late = keyring.login_code(), keyring.login_code()
    clock.advance(LOGIN_S - 1)
    assert keyring.log_in(early)
    clock.advance(2)
    assert keyring.log_in(late) is None


async def test_a9_a_small_token_makes_no_browser_of_the_owner(siege: Siege) -> None:
    token = await siege.token("guest", "chat", "approve", "tools", "read")
    said, text = await siege.ask("POST", "/api/login", siege.own, json={"token": token})
    assert said == 403 and token not in text
    said, text = await siege.ask("POST", "/api/login", siege.own, json={"token": token, "code": await siege.code()})
    assert said == 403
    kinds = [one.get("kind") for one in await siege.house.get("/api/tokens")]
    assert kinds.count("browser") == 1 and len(kinds) == 2


# ---------------------------------------------------------------------- A16: headers of a proxy that is none


async def test_a16_what_strangers_say_of_their_address_is_ignored(siege: Siege) -> None:
    said = [
        await siege.status("GET", "/api/status", {**bearer("opr_x"), name: f"10.1.1.{number}"})
        for number, name in enumerate(["X-Forwarded-For", "X-Real-IP", "True-Client-IP", "X-Client-IP"] * 4)
    ]
    assert said == [401] * FAILURES + [429] * (16 - FAILURES)
    assert await siege.status("GET", "/api/status", {**bearer("opr_x"), "Forwarded": "for=10.1.1.1"}) == 429


async def test_a16_nor_do_they_change_our_name_or_the_scheme(siege: Siege) -> None:
    for headers in ({"Host": "evil.example", "X-Forwarded-Host": f"127.0.0.1:{siege.house.port}"},):
        assert await siege.status("GET", "/healthz", headers) == 421
    secure = {"X-Forwarded-Proto": "https", "X-Forwarded-Ssl": "on", "Forwarded": "proto=https"}
    body = {"code": await siege.code()}
    origin = {"Origin": siege.house.url.replace("http:", "https:")}
    assert await siege.status("POST", "/api/login", {**secure, **origin}, json=body) == 403
    async with siege.stranger.post(
        f"{siege.house.url}/api/login", json=body, headers={**secure, **siege.own}
    ) as answer:
        assert answer.status == 200 and "Secure" not in answer.headers["Set-Cookie"]
        siege.secrets.append(answer.cookies[f"operant_{siege.house.port}"].value)


async def test_a16_a_proxy_that_is_named_is_believed_but_not_its_clients(tmp_path: Path) -> None:
    more: dict[str, object] = {"gateway": {"proxies": ["127.0.0.1", "10.9.9.9"], "names": ["agent.example.org"]}}
    async with besieged(tmp_path, more) as siege:
        through = {"X-Forwarded-Proto": "https", "X-Forwarded-Host": "agent.example.org"}
        origin = {"Origin": "https://agent.example.org"}
        body = {"code": await siege.code()}
        async with siege.stranger.post(
            f"{siege.house.url}/api/login", json=body, headers={**through, **origin}
        ) as answer:
            assert answer.status == 200 and "Secure" in answer.headers["Set-Cookie"]
            siege.secrets.append(answer.cookies[f"operant_{siege.house.port}"].value)
        assert await siege.status("GET", "/healthz", {**through, "X-Forwarded-Host": "evil.example"}) == 421
        for number in range(FAILURES + 5):
            headers = {**through, **bearer("opr_x"), "X-Forwarded-For": f"192.0.2.{number}"}
            assert await siege.status("GET", "/api/status", headers) == 401
        # What a client made up stands to the left, or on a line before the proxy's own.
        said = [
            await siege.code_of("GET /api/status", "Authorization: Bearer opr_x", *lines)
            for number in range(FAILURES)
            for lines in (
                (f"X-Forwarded-For: 198.51.100.{number}, 192.0.2.200, 10.9.9.9",),
                (f"X-Forwarded-For: 198.51.100.{number}", "X-Forwarded-For: 192.0.2.200"),
            )
        ]
        assert said == [401] * FAILURES + [429] * FAILURES


# ---------------------------------------------------------------------- A17: tokens in addresses


@pytest.mark.parametrize("name", ["token", "access_token", "api_key", "Authorization", "KEY", "%74oken", "code"])
async def test_a17_a_token_in_an_address_is_refused_everywhere_and_not_logged(siege: Siege, name: str) -> None:
    query = f"{name}={siege.house.token}"
    for path in ("/", "/readyz", "/healthz", "/page/app.js", "/api/status", "/api/nothing", "/openapi.json"):
        assert await siege.code_of(f"GET {path}?{query}") == 400, path
        assert await siege.code_of(f"GET {path}?a=1&{query}", f"Authorization: Bearer {siege.house.token}") == 400
    assert await siege.upgrade({}, f"/ws/s?{query}") == 400
    assert await siege.code_of(f"POST /api/login?{query}", f"Origin: {siege.house.url}") == 400
    assert siege.house.token not in siege.log()


async def test_a17_requests_that_cannot_be_read_bring_no_token_into_the_log(tmp_path: Path) -> None:
    async with daemon(tmp_path / "home") as one:
        token = one.token.encode()
        broken = [
            b"GET /api/me HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer " + token + b"\x01\r\n\r\n",
            b"GET /api/me HTTP/1.1\r\nHost: a\r\nAuthorization Bearer " + token + b"\r\n\r\n",
            b"GET /api/me?token=" + token + b" \x01\r\n\r\n",
            b"GET /\xff" + token + b" HTTP/1.1\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost: a\r\nCookie: operant=" + token + b"\r\nContent-Length: " + token + b"\r\n\r\n",
            token + b"\r\n\r\n",
        ]
        for request in broken:
            reader, writer = await asyncio.open_connection("127.0.0.1", one.port)
            writer.write(request)
            async with asyncio.timeout(PATIENCE_S):
                assert b" 400 " in (await reader.read(-1)).split(b"\r\n")[0]
            writer.close()
        await one.answers()
        one.process.terminate()
        out, err = await one.process.communicate()
    log = (one.home / "logs" / "operant.log").read_bytes()
    assert token not in out + err + log
    assert log.count(b"that is not HTTP") == len(broken) - 1 and b"Traceback" not in err + log
