"""The attacks A1 to A17 on the door of the gateway, over real sockets."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import os
import re
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from operant.ext.gateway.throttle import FAILURES, WINDOW_S, Throttle
from operant.ext.gateway.tokens import Keyring
from operant.sdk import TokenAdd
from operant.sdk.testing.fakes import ManualClock
from operant.sdk.testing.server import ScriptedServer
from tests.journey.gateway import Served, served

CANARY = "CANARY-5f0c9a"
EVIL = {"Origin": "https://evil.example"}


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    made = ScriptedServer({"hello": [{"text": "Hello."}]})
    async with made.serving():
        yield made


@pytest.fixture
async def house(tmp_path: Path, server: ScriptedServer) -> AsyncIterator[Served]:
    home = tmp_path / "home"
    async with served(home, server) as made:
        (tmp_path / "canary.txt").write_text(CANARY)
        yield made
        await made.get("/readyz")
        log = (home / "logs" / "operant.log").read_text()
        assert made.token not in log and "login=" not in log and CANARY not in log


class Browser:
    """A browser that is logged in, with every header as a browser sends it unless told otherwise."""

    def __init__(self, house: Served, http: aiohttp.ClientSession) -> None:
        self.house = house
        self.http = http

    async def status(self, method: str, path: str, headers: dict[str, str] | None = None, **options: Any) -> int:
        async with self.http.request(method, self.house.url + path, headers=headers, **options) as response:
            await response.read()
            return response.status


@pytest.fixture
async def browser(house: Served) -> AsyncIterator[Browser]:
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as http:
        body = {"code": await house.login_code()}
        async with http.post(f"{house.url}/api/login", json=body, headers={"Origin": house.url}) as response:
            assert response.status == 200
            cookie = response.headers["Set-Cookie"]
            assert "HttpOnly" in cookie and "SameSite=Strict" in cookie
        yield Browser(house, http)


async def upgrade(http: aiohttp.ClientSession, house: Served, headers: dict[str, str]) -> int:
    """Try to open a WebSocket and return the status."""
    try:
        async with http.ws_connect(f"{house.ws}/ws/s", headers=headers):
            return 101
    except aiohttp.WSServerHandshakeError as refused:
        return refused.status


async def raw(house: Served, request: bytes) -> bytes:
    """Send bytes as they are: clients would tidy them up."""
    reader, writer = await asyncio.open_connection("127.0.0.1", house.port)
    writer.write(request)
    async with asyncio.timeout(10):
        answer = await reader.read(65_536)
    writer.close()
    return answer


@pytest.mark.parametrize("words", [("serve", "--host", "0.0.0.0"), ("config", "check")])
async def test_a1_an_open_address_without_tls_is_refused_in_one_line(tmp_path: Path, words: tuple[str, ...]) -> None:
    env = {"PATH": os.environ["PATH"], "OPERANT_HOME": str(tmp_path / "home"), "OPERANT_GATEWAY__HOST": "0.0.0.0"}
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "operant", *words, env=env, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    async with asyncio.timeout(20):
        out, err = await process.communicate()
    said = (out + err).decode()
    assert process.returncode in (1, 2)
    assert "--insecure" in said and "Traceback" not in said


async def test_a2_a_foreign_page_cannot_open_a_websocket(house: Served, browser: Browser) -> None:
    for origin in ("https://evil.example", "null", "http://127.0.0.1.evil.example", f"{house.url}.evil.example"):
        assert await upgrade(browser.http, house, {"Origin": origin}) == 403
    assert await upgrade(browser.http, house, {"Origin": house.url}) == 101
    assert (await house.get("/api/sessions"))["sessions"] == []


async def test_a3_a_websocket_without_origin_and_token_is_refused(house: Served) -> None:
    async with aiohttp.ClientSession() as stranger:
        assert await upgrade(stranger, house, {}) == 401
    assert await upgrade(house.http, house, {}) == 101


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1:1", "127.0.0.1.evil.example:{port}", ""]
)
async def test_a4_a_name_that_was_rebound_is_not_ours(house: Served, browser: Browser, host: str) -> None:
    headers = {"Host": host.format(port=house.port)}
    for path in ("/api/status", "/", "/healthz"):
        assert await browser.status("GET", path, headers) == 421
    assert await upgrade(browser.http, house, {**headers, "Origin": house.url}) == 421
    assert await browser.status("GET", "/api/status", {"Host": f"LOCALHOST:{house.port}"}) == 200


async def test_a5_a_page_on_another_port_of_this_machine_is_foreign(house: Served, browser: Browser) -> None:
    for origin in ("http://localhost:8080", "http://127.0.0.1:1", f"https://127.0.0.1:{house.port}"):
        assert await browser.status("GET", "/api/status", {"Origin": origin}) == 403
        assert await browser.status("POST", "/api/sessions", {"Origin": origin}, json={}) == 403
    for site in ("cross-site", "same-site"):
        assert await browser.status("GET", "/api/status", {"Sec-Fetch-Site": site}) == 403


async def test_a5_an_origin_that_is_listed_may(tmp_path: Path, server: ScriptedServer) -> None:
    more: dict[str, object] = {"gateway": {"origins": ["https://my.example.org"]}}
    async with served(tmp_path / "home", server, more) as house:
        headers = {"Origin": "https://my.example.org"}
        assert (await house.get("/api/status", headers=headers))["status"] == "ok"


async def test_a6_the_page_takes_no_address_from_its_own(house: Served) -> None:
    """No module reads an address to connect to: only paths below where the page came from."""
    script = re.compile(r"/page/[\w/.-]+\.js")
    pending, seen = ["/page/app.js"], set[str]()
    while pending:
        path = pending.pop()
        if path in seen:
            continue
        seen.add(path)
        async with house.http.get(house.url + path) as response:
            text = await response.text()
        folder = path.rpartition("/")[0]
        for found in re.findall(r"from \"(\.[\w/.-]+)\"", text):
            pending.append(os.path.normpath(f"{folder}/{found}"))
        assert "location.search" not in text and "gatewayUrl" not in text
    assert len(seen) > 20 and all(script.fullmatch(path) for path in seen)


async def test_a7_only_the_whole_token_is_the_token(house: Served) -> None:
    token = house.token
    wrong = [
        "",
        "null",
        "undefined",
        token[:-1],
        token + "0",
        token[:-1] + ("A" if token[-1] != "A" else "B"),
        token.lower(),
    ]
    async with aiohttp.ClientSession() as http:
        for one in wrong:
            async with http.get(f"{house.url}/api/status", headers={"Authorization": f"Bearer {one}"}) as response:
                assert response.status in (401, 429), one
    twice = f"GET /api/status HTTP/1.1\r\nHost: 127.0.0.1:{house.port}\r\nConnection: close\r\n"
    twice += f"Authorization: Bearer wrong\r\nAuthorization: Bearer {token}\r\n\r\n"
    assert b" 200 " not in (await raw(house, twice.encode())).split(b"\r\n")[0]


async def test_a8_a_token_may_what_it_may_whatever_it_says(house: Served) -> None:
    token = await house.add_token("looker", "read")
    headers = {"Authorization": f"Bearer {token}", "X-Scopes": "admin", "X-Role": "owner"}
    await house.post("/api/chat/s", {"message": "@hello"})
    async with aiohttp.ClientSession(headers=headers) as http:
        looker = Browser(house, http)
        assert await looker.status("GET", "/api/sessions") == 200
        assert await looker.status("POST", "/api/chat/s", json={"message": "hi", "scope": "admin"}) == 403
        assert await looker.status("DELETE", "/api/sessions/s") == 403
        assert await looker.status("POST", "/api/tools/read_file", json={"arguments": {"path": "x"}}) == 403
        assert await looker.status("POST", "/api/tokens", json={"name": "more", "scopes": ["admin"]}) == 403
        assert await looker.status("GET", "/api/logs") == 403
        async with http.ws_connect(f"{house.ws}/ws/s", origin=house.url) as socket:
            await socket.send_json({"type": "message", "content": "hi", "scope": "admin", "role": "owner"})
            assert (await socket.receive_json())["code"] == "denied"
            await socket.send_json({"type": "clear"})
            assert (await socket.receive_json())["code"] == "denied"
    assert len((await house.get("/api/sessions/s/turns"))["turns"]) == 1


async def test_a8_a_small_token_makes_no_browser_of_the_owner(house: Served) -> None:
    token = await house.add_token("talker", "chat", "approve", "tools", "read")
    async with aiohttp.ClientSession() as http:
        stranger = Browser(house, http)
        body = {"token": token}
        assert await stranger.status("POST", "/api/login", {"Origin": house.url}, json=body) == 403


async def test_a9_who_guesses_waits_on_loopback_too(house: Served) -> None:
    fresh = await house.add_token("never-used", "read")
    async with aiohttp.ClientSession() as http:
        stranger = Browser(house, http)
        statuses = [
            await stranger.status("GET", "/api/status", {"Authorization": f"Bearer opr_{number}"})
            for number in range(100)
        ]
        assert statuses[:FAILURES] == [401] * FAILURES
        assert set(statuses[FAILURES:]) == {429}
        assert await stranger.status("GET", "/api/status", {"Authorization": f"Bearer {fresh}"}) == 429
        assert await stranger.status("POST", "/api/login", {"Origin": house.url}, json={"code": "guess"}) == 429
        async with http.get(f"{house.url}/api/status", headers={"Authorization": "Bearer x"}) as response:
            assert 0 < int(response.headers["Retry-After"]) <= WINDOW_S
    async with aiohttp.ClientSession() as http, http.get(f"{house.url}/healthz") as response:
        assert response.status == 200


async def test_a9_who_is_known_is_not_shut_out_by_others(house: Served) -> None:
    assert (await house.get("/api/status"))["status"] == "ok"
    async with aiohttp.ClientSession() as http:
        for number in range(FAILURES + 5):
            await Browser(house, http).status("GET", "/api/status", {"Authorization": f"Bearer opr_{number}"})
    assert (await house.get("/api/status"))["status"] == "ok"


def test_a9_the_wait_ends() -> None:
    clock = ManualClock()
    throttle = Throttle(clock)
    for _ in range(FAILURES):
        assert throttle.wait_s("10.0.0.1") == 0
        throttle.failed("10.0.0.1")
    assert throttle.wait_s("10.0.0.1") == WINDOW_S
    assert throttle.wait_s("10.0.0.2") == 0
    clock.advance(WINDOW_S + 1)
    assert throttle.wait_s("10.0.0.1") == 0


GUARDED = [
    "sandbox: false",
    "network: full",
    "permissions: {tools: ['*']}",
    "approval: {shell: allow}",
    "limits: {turn_s: 1}",
]


@pytest.mark.parametrize("setting", GUARDED)
async def test_a10_no_request_changes_what_an_agent_may_do(house: Served, setting: str) -> None:
    files = {one["name"]: one for one in await house.get("/api/agents/operant/prompt")}
    own = files["AGENT.md"]
    body = {"text": f"---\n{setting}\n---\nHi.\n", "digest": own["digest"]}
    async with house.http.put(f"{house.url}/api/agents/operant/prompt/AGENT.md", json=body) as response:
        assert response.status == 403
    body["text"] = "---\ndescription: Kind\nmax_steps: 7\n---\nHi.\n"
    async with house.http.put(f"{house.url}/api/agents/operant/prompt/AGENT.md", json=body) as response:
        assert response.status == 200
    assert (await house.get("/api/agents/operant"))["limits"]["max_steps"] == 7


async def test_a10_who_may_talk_may_not_set_up(house: Served) -> None:
    token = await house.add_token("talker", "chat", "approve", "tools")
    async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {token}"}) as http:
        talker = Browser(house, http)
        assert await talker.status("PUT", "/api/agents/operant/prompt/SOUL.md", json={"text": "x"}) == 403
        assert await talker.status("POST", "/api/agents", json={"name": "evil"}) == 403
        assert await talker.status("DELETE", "/api/agents/operant") == 403
        assert await talker.status("PUT", "/api/agents/operant/files/tools/evil.py", data=b"import os") == 403
        assert await talker.status("POST", "/api/models/select", json={"provider": "a", "model_id": "b"}) == 403
        assert await talker.status("POST", "/api/tokens", json={"name": "more"}) == 403


async def mutating(house: Served) -> list[tuple[str, str]]:
    """Return every operation that changes something, from the description: new ones are attacked by themselves."""
    paths = (await house.get("/openapi.json"))["paths"]
    return [
        (method.upper(), re.sub(r"{\w+}", "x", path))
        for path, operations in paths.items()
        for method in operations
        if method != "get"
    ]


async def test_a11_no_foreign_form_changes_anything(house: Served, browser: Browser) -> None:
    operations = await mutating(house)
    assert len(operations) > 15
    for method, path in operations:
        for headers in (EVIL, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}, {}):
            status = await browser.status(method, path, {"Content-Type": "text/plain", **headers}, data=b"{}")
            assert status == 403, (method, path, headers)


async def test_a11_nothing_is_changed_without_a_token(house: Served) -> None:
    async with aiohttp.ClientSession() as http:
        for method, path in await mutating(house):
            if path != "/api/login":
                assert await Browser(house, http).status(method, path, data=b"{}") == 401, (method, path)
        for path in (await house.get("/openapi.json"))["paths"]:
            if path not in ("/healthz", "/readyz", "/api/login"):
                assert await Browser(house, http).status("GET", re.sub(r"{\w+}", "x", path)) in (401, 405), path


async def test_a12_what_is_too_large_or_too_deep_is_refused(house: Served) -> None:
    async with house.http.ws_connect(f"{house.ws}/ws/s", max_msg_size=0) as socket:
        await socket.send_str("x" * (1 << 20) + "x")
        message = await socket.receive()
        assert message.type is aiohttp.WSMsgType.CLOSE and message.data == 1009
    async with house.http.ws_connect(f"{house.ws}/ws/s", max_msg_size=0) as socket:
        with contextlib.suppress(ConnectionError):  # it hangs up long before it has all of it
            await socket.send_str("x" * (64 << 20))
        assert (await socket.receive()).type in (aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSED)
    deep = b'{"message":' * 1_000_000
    headers = {"Content-Type": "application/json"}
    async with house.http.post(f"{house.url}/api/chat/s", data=io.BytesIO(deep), headers=headers) as response:
        assert response.status in (400, 413)
    nested = b'{"arguments":' + b"[" * 1_000_000 + b"]" * 1_000_000 + b"}"
    async with house.http.post(
        f"{house.url}/api/tools/read_file", data=io.BytesIO(nested), headers=headers
    ) as response:
        assert response.status in (400, 422)
    async with house.http.ws_connect(f"{house.ws}/ws/s") as socket:
        await socket.send_str("[" * 500_000)
        assert (await socket.receive_json())["type"] == "error"
    packed = {"Content-Encoding": "gzip", "Content-Type": "application/json"}
    async with house.http.post(f"{house.url}/api/chat/s", data=b"\x1f\x8b" + b"0" * 100, headers=packed) as response:
        assert response.status == 415
    async with house.http.post(
        f"{house.url}/api/sessions/s/files?name=a", data=io.BytesIO(b"0" * (33 << 20))
    ) as response:
        assert response.status == 413


async def test_a12_thousands_of_silent_connections_hold_up_nobody(house: Served) -> None:
    before = memory()
    held: list[asyncio.StreamWriter] = []
    try:
        for number in range(2_000):
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", house.port)
            except OSError:
                break
            held.append(writer)
            if number % 2:
                writer.write(b"GET /api/status HTTP/1.1\r\nHost: ")
        assert len(held) > 300
        async with asyncio.timeout(5):
            assert (await house.get("/api/status"))["status"] == "ok"
        assert memory() - before < 50 << 20
    finally:
        for writer in held:
            writer.close()


def memory() -> int:
    """Return this process's resident memory in bytes; both ends of the connections are in it."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


TRAVERSALS = [
    "..%2f..%2fcanary.txt", "%2e%2e/%2e%2e/canary.txt", "..%252f..%252fcanary.txt", "%252e%252e/canary.txt",
    "..\\..\\canary.txt", "..%5c..%5ccanary.txt", "a%00.txt", "/etc/passwd", "%2fetc%2fpasswd", "//etc/passwd",
    "\\\\host\\share", "%5c%5chost%5cshare", "....//....//canary.txt", "..;/..;/canary.txt", "C:%5cWindows",
]  # fmt: skip
"""Ways to say the canary's file, or another one that is none of a request's business."""


@pytest.mark.parametrize("path", TRAVERSALS)
async def test_a15_no_path_leads_out(house: Served, path: str) -> None:
    for place in ("/page/", "/api/agents/operant/files/", "/api/sessions/s/files/"):
        request = f"GET {place}{path} HTTP/1.1\r\nHost: 127.0.0.1:{house.port}\r\nConnection: close\r\n"
        request += f"Authorization: Bearer {house.token}\r\n\r\n"
        answer = await raw(house, request.encode())
        assert re.match(rb"HTTP/1\.1 (400|404) ", answer), answer[:80]
        assert CANARY.encode() not in answer and b"root:" not in answer


async def test_a15_links_in_the_workspace_lead_nowhere(house: Served, tmp_path: Path) -> None:
    workspace = tmp_path / "home" / "agents" / "operant" / "workspace"
    (workspace / "link.txt").symlink_to(tmp_path / "canary.txt")
    (workspace / "up").symlink_to(tmp_path)
    for path in ("link.txt", "up/canary.txt"):
        async with house.http.get(f"{house.url}/api/agents/operant/files/{path}") as response:
            assert response.status == 404
            assert CANARY not in await response.text()


async def test_a16_forwarded_headers_of_strangers_are_ignored(house: Served) -> None:
    async with aiohttp.ClientSession() as http:
        for number in range(FAILURES + 1):
            headers = {"Authorization": "Bearer wrong", "X-Forwarded-For": f"10.1.1.{number}"}
            status = await Browser(house, http).status("GET", "/api/status", headers)
        assert status == 429
        headers = {"X-Forwarded-Host": "evil.example", "Host": "evil.example"}
        assert await Browser(house, http).status("GET", "/healthz", headers) == 421
        body = {"code": await house.login_code()}
        headers = {"X-Forwarded-Proto": "https", "Origin": house.url.replace("http:", "https:")}
        assert await Browser(house, http).status("POST", "/api/login", headers, json=body) == 403


async def test_a16_a_proxy_that_is_named_is_believed(tmp_path: Path, server: ScriptedServer) -> None:
    more: dict[str, object] = {"gateway": {"proxies": ["127.0.0.1"], "names": ["agent.example.org"]}}
    async with served(tmp_path / "home", server, more) as house, aiohttp.ClientSession() as http:
        through = {"X-Forwarded-Proto": "https", "X-Forwarded-Host": "agent.example.org"}
        for number in range(FAILURES + 1):
            headers = {**through, "Authorization": "Bearer wrong", "X-Forwarded-For": f"10.1.1.{number}"}
            assert await Browser(house, http).status("GET", "/api/status", headers) == 401
        code = await house.login_code()
        headers = {**through, "Origin": "https://agent.example.org"}
        async with http.post(f"{house.url}/api/login", json={"code": code}, headers=headers) as response:
            assert response.status == 200
            assert "Secure" in response.headers["Set-Cookie"]


@pytest.mark.parametrize("name", ["token", "access_token", "api_key", "Authorization", "key"])
async def test_a17_a_token_in_an_address_is_refused(house: Served, tmp_path: Path, name: str) -> None:
    async with aiohttp.ClientSession() as http:
        assert await Browser(house, http).status("GET", f"/api/status?{name}={house.token}") == 400
        assert await upgrade_with_query(http, house, f"{name}={house.token}") == 400
    assert house.token not in (tmp_path / "home" / "logs" / "operant.log").read_text()


async def upgrade_with_query(http: aiohttp.ClientSession, house: Served, query: str) -> int:
    try:
        async with http.ws_connect(f"{house.ws}/ws/s?{query}"):
            return 101
    except aiohttp.WSServerHandshakeError as refused:
        return refused.status


async def test_a_login_code_works_once_and_not_for_ever(house: Served, tmp_path: Path) -> None:
    code = await house.login_code()
    async with aiohttp.ClientSession() as http:
        stranger = Browser(house, http)
        own = {"Origin": house.url}
        assert await stranger.status("POST", "/api/login", json={"code": code}) == 403  # no browser
        assert await stranger.status("POST", "/api/login", own, json={"code": code}) == 200
        assert await stranger.status("POST", "/api/login", own, json={"code": code}) == 401
    clock = ManualClock()
    keyring = Keyring(tmp_path, tmp_path, clock)
    late = keyring.login_code()
    clock.advance(601)
    assert keyring.log_in(late) is None


async def test_tokens_end_and_only_their_hashes_are_kept(tmp_path: Path) -> None:
    clock = ManualClock()
    keyring = Keyring(tmp_path, tmp_path, clock)
    owner: Any = None
    made = await keyring.add(owner, TokenAdd(name="short", scopes=("chat",), days=1))
    kept = tmp_path / "tokens.json"
    assert made.token not in kept.read_text() and kept.stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "state" / "token").stat().st_mode & 0o777 == 0o600
    again = Keyring(tmp_path, tmp_path, clock)
    found = again.principal(made.token)
    assert found is not None and found.id == "short" and "admin" not in found.capabilities
    clock.advance(86_401)
    assert again.principal(made.token) is None


async def test_a_revoked_token_is_out_at_once(house: Served) -> None:
    token = await house.add_token("guest", "chat")
    async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {token}"}) as http:
        guest = Browser(house, http)
        assert await guest.status("GET", "/api/status") == 200
        async with house.http.delete(f"{house.url}/api/tokens/guest") as response:
            assert response.status == 200
        assert await guest.status("GET", "/api/status") == 401
    assert "guest" not in json.dumps(await house.get("/api/tokens"))
