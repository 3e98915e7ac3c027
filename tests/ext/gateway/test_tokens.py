"""Tokens: made, listed, ended and revoked, by HTTP, by the command line and by the clock."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from operant.ext.gateway.entrance import Entrance
from operant.ext.gateway.settings import GatewaySettings
from operant.ext.gateway.throttle import Throttle
from operant.ext.gateway.tokens import BROWSER_DAYS, Keyring
from operant.sdk import Broken, Conflict, Invalid, NotFound, Principal, TokenAdd, TokenList, TokenRevoke
from operant.sdk.testing.fakes import ManualClock
from tests.ext.gateway.siege import PATIENCE_S, Siege, bearer, besieged, daemon, operant

OWNER = Principal(kind="owner", id="owner", capabilities=frozenset({"admin"}))
DAY_S = 86_400


@pytest.fixture
async def siege(tmp_path: Path) -> AsyncIterator[Siege]:
    async with besieged(tmp_path) as made:
        yield made


# ---------------------------------------------------------------------- by the clock


async def test_a_token_ends_when_its_days_are_over(tmp_path: Path) -> None:
    clock = ManualClock()
    keyring = Keyring(tmp_path, tmp_path, clock)
    short = (await keyring.add(OWNER, TokenAdd(name="short", scopes=("chat",), days=2))).token
    ever = (await keyring.add(OWNER, TokenAdd(name="ever", scopes=("read",)))).token
    left = keyring.seconds_left(short)
    assert left is not None and left == pytest.approx(2 * DAY_S) and keyring.seconds_left(ever) is None
    clock.advance(2 * DAY_S - 1)
    again = Keyring(tmp_path, tmp_path, clock)
    for one in (keyring, again):
        found = one.principal(short)
        assert found is not None and found.id == "short" and found.kind == "client"
    clock.advance(2)
    for one in (keyring, again):
        assert one.principal(short) is None
        assert [info.name for info in await one.list(OWNER, TokenList())] == ["ever"]
    clock.advance(1_000 * DAY_S)
    assert again.principal(ever) is not None


def test_a_browser_ends_after_its_days(tmp_path: Path) -> None:
    clock = ManualClock()
    keyring = Keyring(tmp_path, tmp_path, clock)
    token = keyring.log_in(keyring.login_code()) or ""
    clock.advance(BROWSER_DAYS * DAY_S - 1)
    assert keyring.principal(token) == Principal(kind="owner", id="owner", capabilities=frozenset({"admin"}))
    clock.advance(2)
    assert keyring.principal(token) is None


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (TokenAdd(name="", scopes=("chat",)), Invalid), (TokenAdd(name="a b", scopes=("chat",)), Invalid),
        (TokenAdd(name="a\n", scopes=("chat",)), Invalid), (TokenAdd(name="x" * 65, scopes=("chat",)), Invalid),
        (TokenAdd(name="a", scopes=()), Invalid), (TokenAdd(name="a", scopes=("root",)), Invalid),
        (TokenAdd(name="a", scopes=("chat",), days=-1), Invalid), (TokenAdd(name="owner", scopes=("chat",)), Conflict),
    ],
)  # fmt: skip
async def test_tokens_that_make_no_sense_are_not_made(tmp_path: Path, call: TokenAdd, error: type[Exception]) -> None:
    keyring = Keyring(tmp_path, tmp_path, ManualClock())
    with pytest.raises(error):
        await keyring.add(OWNER, call)
    assert await keyring.list(OWNER, TokenList()) == () and not (tmp_path / "tokens.json").exists()


async def test_the_file_holds_hashes_for_the_owner_alone(tmp_path: Path) -> None:
    keyring = Keyring(tmp_path, tmp_path, ManualClock())
    made = [(await keyring.add(OWNER, TokenAdd(name=name, scopes=("chat",)))).token for name in ("a", "b")]
    made += [keyring.log_in(keyring.login_code()) or "", keyring.own_token()]
    kept, own = tmp_path / "tokens.json", tmp_path / "state" / "token"
    assert kept.stat().st_mode & 0o777 == own.stat().st_mode & 0o777 == 0o600
    assert own.parent.stat().st_mode & 0o077 == 0
    text = kept.read_text()
    assert not [token for token in made if token[4:] in text]
    assert len(made) == len(set(made)) and all(len(token) > 40 for token in made)
    assert {len(one["hash"]) for one in json.loads(text)} == {64}
    with pytest.raises(NotFound):
        await keyring.revoke(OWNER, TokenRevoke(name="nobody"))
    await keyring.revoke(OWNER, TokenRevoke(name="a"))
    assert keyring.principal(made[0]) is None and keyring.principal(made[1]) is not None
    kept.write_text("[{")
    with pytest.raises(Broken, match=r"tokens\.json"):
        Keyring(tmp_path, tmp_path, ManualClock())


# ---------------------------------------------------------------------- by HTTP


async def test_tokens_are_made_listed_and_revoked_over_http(siege: Siege) -> None:
    house = siege.house
    made = await house.post("/api/tokens", {"name": "phone", "scopes": ["read", "approve"], "days": 3}, 201)
    siege.secrets.append(made["token"])
    assert made["info"]["scopes"] == ["read", "approve"] and made["info"]["expires"] > made["info"]["created"]
    await house.post("/api/tokens", {"name": "phone"}, 409)
    wrong: list[Any] = [{"name": "a b"}, {"name": "x", "scopes": ["root"]}, {"name": "x", "days": -1}]
    for body, status in zip(wrong, (400, 400, 422), strict=True):
        await house.post("/api/tokens", body, status)
    said, text = await siege.ask("GET", "/api/tokens", bearer(house.token))
    assert said == 200 and "phone" in text and made["token"] not in text and "hash" not in text
    me = json.loads((await siege.ask("GET", "/api/me", bearer(made["token"])))[1])
    assert (me["kind"], me["id"]) == ("client", "phone") and "admin" not in me["capabilities"]
    assert await siege.status("DELETE", "/api/tokens/phone", bearer(house.token)) == 200
    assert await siege.status("DELETE", "/api/tokens/phone", bearer(house.token)) == 404
    assert await siege.status("GET", "/api/status", bearer(made["token"])) == 401


async def test_a_new_token_is_told_once_and_kept_nowhere(siege: Siege) -> None:
    key = {"Idempotency-Key": "again"}
    made = await siege.house.post("/api/tokens", {"name": "once"}, 201, headers=key)
    siege.secrets.append(made["token"])
    await siege.house.post("/api/tokens", {"name": "once"}, 409, headers=key)


async def test_a_key_for_a_repeat_is_no_trouble_where_nobody_is_known(siege: Siege) -> None:
    for path in ("/", "/healthz", "/page/app.js"):
        assert await siege.status("POST", path, {**siege.own, "Idempotency-Key": "a"}) == 405
    own = f"Authorization: Bearer {siege.house.token}"
    assert await siege.code_of("POST /api/cron/reload", own, b"Idempotency-Key: \xff\xfe") == 200


async def test_the_cookie_is_for_this_page_alone(siege: Siege) -> None:
    body = {"code": await siege.code()}
    async with siege.stranger.post(f"{siege.house.url}/api/login", json=body, headers=siege.own) as answer:
        assert answer.headers["Cache-Control"] == "no-store"
        (cookie,) = SimpleCookie(answer.headers["Set-Cookie"]).values()
        siege.secrets.append(cookie.value)
    assert cookie["httponly"] and cookie["samesite"] == "Strict" and cookie["path"] == "/" and not cookie["domain"]
    assert cookie.key == f"operant_{siege.house.port}" and int(cookie["max-age"]) == BROWSER_DAYS * DAY_S


async def gone(socket: aiohttp.ClientWebSocketResponse) -> bool:
    """Tell whether a window is hung up on, without one more frame."""
    message = await socket.receive(timeout=PATIENCE_S)
    return message.type in (aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSED, aiohttp.WSMsgType.ERROR)


async def test_a_revoked_token_sees_nothing_more_of_what_it_watches(siege: Siege) -> None:
    guest = bearer(await siege.token("guest", "chat"))
    await siege.house.post("/api/chat/s", {"message": "@hello"})
    url = siege.house.url
    async with (
        siege.stranger.ws_connect(f"{siege.house.ws}/ws/s", headers=guest) as window,
        siege.stranger.ws_connect(f"{siege.house.ws}/ws/activity", headers=guest) as all_of_it,
        siege.house.http.ws_connect(f"{siege.house.ws}/ws/s") as owners,
        siege.stranger.get(f"{url}/api/sessions/s/events", headers={**guest, "Accept": "text/event-stream"}) as stream,
    ):
        assert await stream.content.readline()
        assert await siege.status("DELETE", "/api/tokens/guest", bearer(siege.house.token)) == 200
        await siege.house.post("/api/chat/s", {"message": "@hello again"})
        assert await gone(window) and await gone(all_of_it)
        with pytest.raises(aiohttp.ClientPayloadError):
            async with asyncio.timeout(PATIENCE_S):
                assert b"again" not in await stream.content.read()
        assert (await owners.receive_json(timeout=PATIENCE_S))["content"] == "@hello again"
        assert await siege.upgrade(guest) == 401


async def test_a_logout_ends_what_the_browser_had_open_and_is_answered(siege: Siege) -> None:
    async with siege.browser.ws_connect(f"{siege.house.ws}/ws/s", headers=siege.own) as window:
        async with siege.browser.post(f"{siege.house.url}/api/logout", headers=siege.own) as answer:
            assert answer.status == 200 and "Max-Age=0" in answer.headers["Set-Cookie"]
        assert await gone(window)
    assert await siege.status("GET", "/api/me", {"Cookie": await siege.cookie()}) == 200
    assert await siege.status("GET", "/api/me", {"Cookie": siege.logged_in}) == 401


async def test_a_browser_that_revokes_itself_has_its_answer(siege: Siege) -> None:
    (mine,) = [one["name"] for one in await siege.house.get("/api/tokens") if one.get("kind") == "browser"]
    assert await siege.status("DELETE", f"/api/tokens/{mine}", siege.own, by=siege.browser) == 200
    assert await siege.status("GET", "/api/me", by=siege.browser) == 401


async def test_what_is_open_when_a_token_ends_is_hung_up_on(tmp_path: Path) -> None:
    """A token lasts a day at least: the clock stands a moment before its end, and the loop waits for the rest."""
    clock = ManualClock()
    keyring = Keyring(tmp_path, tmp_path, clock)
    token = (await keyring.add(OWNER, TokenAdd(name="short", scopes=("chat",), days=1))).token
    clock.advance(DAY_S - 0.01)
    entrance = Entrance(GatewaySettings(), keyring, Throttle(clock))
    entrance.listening(8000)
    request: Any = Asking(bearer(token))
    assert entrance.admit(request) == keyring.principal(token)
    async with asyncio.timeout(PATIENCE_S):
        with entrance.inside(request):
            await request.hung_up.wait()


class Asking(dict[Any, Any]):
    """A request as far as the door looks at it."""

    path = raw_path = "/api/status"
    method = "GET"
    remote = "127.0.0.1"
    query: dict[str, str] = {}

    def __init__(self, headers: dict[str, str]) -> None:
        super().__init__()
        from multidict import CIMultiDict

        self.headers = CIMultiDict({"Host": "127.0.0.1:8000", **headers})
        self.hung_up = asyncio.Event()

    @property
    def transport(self) -> Asking:
        return self

    def close(self) -> None:
        self.hung_up.set()


# ---------------------------------------------------------------------- by the command line


async def test_the_command_line_makes_and_revokes_what_a_running_daemon_minds(tmp_path: Path) -> None:
    home = tmp_path / "home"
    async with daemon(home) as one, aiohttp.ClientSession() as http:

        async def status(token: str) -> int:
            async with http.get(f"{one.url}/api/status", headers=bearer(token)) as answer:
                return answer.status

        code, out, _ = await operant(home, "token", "add", "phone", "--scope", "read", "--days", "2")
        token = out.split()[0]
        assert code == 0 and token.startswith("opr_") and await status(token) == 200
        code, out, _ = await operant(home, "token", "list")
        assert code == 0 and "phone" in out and token not in out
        code, out, _ = await operant(home, "token", "revoke", "phone")
        assert code == 0 and await status(token) == 401
        code, out, err = await operant(home, "open", "--print")
        link = out.split()[0]
        address, _, login = link.partition("/#login=")
        assert code == 0 and address == one.url and err == ""
        for expected in (200, 401):
            async with http.post(f"{one.url}/api/login", json={"code": login}, headers={"Origin": one.url}) as answer:
                assert answer.status == expected
        log = (home / "logs" / "operant.log").read_text()
        cookies = {cookie.value for cookie in http.cookie_jar}
        assert not [secret for secret in (token, one.token, login, *cookies) if secret in log]
    for file in home.rglob("*"):
        if file.is_file() and file != home / "state" / "token":
            data = file.read_bytes()
            assert token.encode() not in data and one.token.encode() not in data and login.encode() not in data, file
