"""Logins to servers over HTTP by a person: asked for, kept, renewed, refused and forgotten."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from mcp.shared.auth import OAuthClientInformationFull
from pydantic import AnyUrl

from operant.kernel.errors import Invalid, NotFound, Unavailable
from operant.kernel.syscalls import McpAdd, McpCallback, McpList, McpLogin, McpLogout, McpServer
from tests.ext.mcp.authority import SCOPE, Authority, guarded
from tests.ext.mcp.house import House, furnished, mode_of, sent_back, serving_http

BACK = "http://127.0.0.1:1/callback"


@pytest.fixture
def authority() -> Authority:
    return Authority()


@pytest.fixture
async def url(authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[str]:
    (tmp_path / "peer.json").write_text(json.dumps({"tools": {"echo": "Say it again."}}))
    monkeypatch.setenv("PEER", str(tmp_path / "peer.json"))
    async with guarded(authority) as address:
        yield address


async def standing(house: House) -> McpServer:
    return (await house.call(McpList()))[0]


async def wanted(house: House) -> str:
    with pytest.raises(Unavailable) as raised:
        await house.test()
    return str(raised.value)


async def test_a_login_is_asked_for_used_and_kept_over_restarts(tmp_path: Path, url: str, authority: Authority) -> None:
    servers = {"peer": {"url": url}}
    async with furnished(tmp_path, servers) as house:
        assert "operant mcp login peer" in await wanted(house)
        assert not authority.clients  # nobody registers before somebody wants it
        found = await house.login()
        assert (found.state, found.login) == ("connected", True)
        assert "echo: hello" in await house.said("mcp__peer__echo", text="hello")
    async with furnished(tmp_path, servers) as house:
        assert (await house.test()).login
        assert "echo: again" in await house.said("mcp__peer__echo", text="again")
    assert len(authority.clients) == 1
    kept = tmp_path / "home" / "state" / "extensions" / "mcp" / "logins.json"
    assert mode_of(kept) == 0o600 and "ACCESS-" in kept.read_text()
    written = [path for path in (tmp_path / "home").rglob("*") if path.is_file() and path != kept]
    assert not [path for path in written if b"ACCESS-" in path.read_bytes() or b"REFRESH-" in path.read_bytes()]


async def test_a_token_that_ended_is_renewed_where_it_is_from_after_a_restart(
    tmp_path: Path, url: str, authority: Authority
) -> None:
    authority.life = 0
    servers = {"peer": {"url": url}}
    async with furnished(tmp_path, servers) as house:
        with pytest.raises(Unavailable):  # a token without life lets nobody in
            await house.login()
    authority.life, before = 3600, authority.renewed
    async with furnished(tmp_path, servers) as house:
        assert (await house.test()).state == "connected"
    assert authority.renewed == before + 1 and len(authority.clients) == 1


@pytest.mark.parametrize("life", [None, 3600])
async def test_a_token_that_is_taken_back_early_is_renewed_by_itself(
    tmp_path: Path, url: str, authority: Authority, life: int | None
) -> None:
    authority.life = life
    async with furnished(tmp_path, {"peer": {"url": url}}) as house:
        await house.login()
        authority.access.clear()
        assert (await house.use("mcp__peer__echo", text="x")).outcome == "error"
        assert "echo: again" in await house.said("mcp__peer__echo", text="again")
        assert authority.renewed == 1 and len(authority.clients) == 1


async def test_a_login_that_is_over_is_wanted_again(tmp_path: Path, url: str, authority: Authority) -> None:
    async with furnished(tmp_path, {"peer": {"url": url}}) as house:
        await house.login()
        authority.access.clear()
        authority.refresh.clear()
        assert "operant mcp login peer" in await wanted(house)
        assert "operant mcp login peer" in await house.said("mcp__peer__echo", text="x")
        assert (await house.login()).state == "connected"


async def test_what_the_browser_brings_must_be_of_this_login(tmp_path: Path, url: str) -> None:
    async with furnished(tmp_path, {"peer": {"url": url}}) as house:
        with pytest.raises(NotFound):
            await house.call(McpCallback(server="peer", address=f"{BACK}?code=1&state=2"))
        first = await house.call(McpLogin(server="peer", redirect=BACK))
        second = await house.call(McpLogin(server="peer", redirect=BACK))
        for wrong in (await sent_back(first), f"{BACK}?code=1", BACK, "", "no address"):
            with pytest.raises(Invalid):
                await house.call(McpCallback(server="peer", address=wrong))
        found = await house.call(McpCallback(server="peer", address=await sent_back(second)))
        assert found.state == "connected"
        with pytest.raises(NotFound):
            await house.call(McpCallback(server="peer", address=await sent_back(second)))


async def test_a_refusal_is_said_without_its_control_characters(tmp_path: Path, url: str, authority: Authority) -> None:
    authority.denies = True
    async with furnished(tmp_path, {"peer": {"url": url}}) as house:
        with pytest.raises(Unavailable, match="access_denied") as raised:
            await house.login()
        assert "\x1b" not in str(raised.value)
        authority.denies = False
        assert (await house.login()).state == "connected"


async def test_logging_out_forgets(tmp_path: Path, url: str) -> None:
    async with furnished(tmp_path, {"peer": {"url": url}}) as house:
        assert await house.call(McpLogout(server="peer")) is False
        await house.login()
        assert await house.call(McpLogout(server="peer")) is True
        assert "operant mcp login peer" in await wanted(house)
        assert not (await standing(house)).login


async def test_another_address_below_the_name_does_not_get_the_token(
    tmp_path: Path, url: str, authority: Authority
) -> None:
    async with furnished(tmp_path, {}, file={"peer": {"url": url}}) as house:
        await house.login()
        seen: list[str] = []
        async with guarded(Heard(seen)) as other:
            await house.call(McpAdd(server="peer", settings={"url": other}))
            assert "operant mcp login peer" in await wanted(house)
        assert not seen


class Heard(Authority):
    """Notes the tokens that it is shown."""

    def __init__(self, seen: list[str]) -> None:
        super().__init__()
        self._seen = seen

    async def verify_token(self, token: str) -> None:
        self._seen.append(token)


async def test_who_has_no_login_is_told_why(tmp_path: Path, url: str) -> None:
    servers = {
        "program": {"command": "true"},
        "header": {"url": url, "headers": {"Authorization": "Bearer x"}},
        "firm": {"url": url, "oauth": {"client_id": "a", "client_secret": "CANARY", "issuer": "http://127.0.0.1:1"}},
        "loose": {"url": url, "oauth": {"client_id": "a", "client_secret": "CANARY"}},
    }
    async with furnished(tmp_path, servers) as house:
        for name in servers:
            with pytest.raises(Invalid, match="Nobody logs in"):
                await house.call(McpLogin(server=name, redirect=BACK))
        with pytest.raises(Unavailable, match="issuer"):
            await house.test("loose")
        with pytest.raises(Unavailable, match="refuses the token in its headers"):
            await house.test("header")
        with pytest.raises(Unavailable, match="issuer") as raised:
            await house.test("firm")
        assert "CANARY" not in str(raised.value)


@pytest.mark.parametrize("place", ["http://example.org/callback", "file:///etc/passwd", "javascript:alert(1)", ""])
async def test_a_code_comes_back_to_this_machine_or_over_tls(tmp_path: Path, url: str, place: str) -> None:
    async with furnished(tmp_path, {"peer": {"url": url}}) as house:
        with pytest.raises(Invalid, match="no place to come back to"):
            await house.call(McpLogin(server="peer", redirect=place))


async def test_a_server_sends_us_to_no_private_place_that_the_owner_has_not_named(
    tmp_path: Path, url: str, authority: Authority
) -> None:
    mine = OAuthClientInformationFull(
        client_id="mine", redirect_uris=[AnyUrl(BACK)], token_endpoint_auth_method="none", scope=SCOPE
    )
    async with guarded(authority, host="localhost") as beside:
        named = {"url": beside, "oauth": {"client_id": "mine", "issuer": authority.issuer}}
        async with furnished(tmp_path, {"peer": {"url": beside}, "named": named}) as house:
            with pytest.raises(Unavailable, match="is not dialled: this machine"):
                await house.login()
            assert not authority.clients
            authority.clients["mine"] = mine
            assert (await house.login("named")).state == "connected"


async def test_a_server_that_wants_no_login_says_so(tmp_path: Path) -> None:
    (tmp_path / "peer.json").write_text(json.dumps({"tools": {"echo": "Say it again."}}))
    async with serving_http(tmp_path) as open_to_all, furnished(tmp_path, {"peer": {"url": open_to_all}}) as house:
        assert await house.call(McpLogin(server="peer", redirect=BACK)) == ""
