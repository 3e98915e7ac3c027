"""Where the gateway listens: a port that is taken, and encrypted connections."""

from __future__ import annotations

import asyncio
import os
import shutil
import ssl
import subprocess
from pathlib import Path

import aiohttp
import pytest

from operant.ext.gateway.listener import holder, listen, most_connections
from operant.ext.gateway.settings import DEFAULT_PORT, GatewaySettings, Tls
from operant.kernel.errors import Broken, Conflict, Invalid
from operant.sdk.testing.server import ScriptedServer
from tests.journey.gateway import served


async def taken() -> tuple[asyncio.Server, int]:
    server = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", 0)
    return server, server.sockets[0].getsockname()[1]


async def test_a_port_that_was_asked_for_and_is_taken_is_refused_with_names() -> None:
    server, port = await taken()
    async with server:
        with pytest.raises(Conflict) as caught:
            await listen(asyncio.Protocol, GatewaySettings(port=port))
    assert f"process {os.getpid()}" in caught.value.sentence
    assert "operant serve --port" in caught.value.hint


async def test_the_usual_port_gives_way_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    server, port = await taken()
    monkeypatch.setattr("operant.ext.gateway.listener.DEFAULT_PORT", port)
    async with server:
        listening, chosen, said = await listen(asyncio.Protocol, GatewaySettings())
        listening.close()
    assert port < chosen < port + 101
    assert f"Port {port} is held by" in said and str(chosen) in said
    assert DEFAULT_PORT == 8000


async def test_a_system_does_not_start_on_a_port_that_is_taken(tmp_path: Path) -> None:
    server, port = await taken()
    async with server:
        with pytest.raises(Broken, match=rf"Port {port} is held by .*process {os.getpid()}"):
            async with served(tmp_path / "home", ScriptedServer(), port=port):
                pass


def test_nobody_holds_a_free_port() -> None:
    assert holder(1) == ""


def test_connections_leave_room_for_files() -> None:
    assert most_connections(100) == 100


def test_other_addresses_need_encryption_or_a_word() -> None:
    for host in ("0.0.0.0", "::", "192.168.1.2", "example.org"):
        with pytest.raises(ValueError, match="insecure"):
            GatewaySettings(host=host)
        GatewaySettings(host=host, insecure=True)
    with pytest.raises(ValueError, match="certificate"):
        GatewaySettings(tls=Tls(certificate="a.pem"))


@pytest.mark.skipif(not shutil.which("openssl"), reason="needs openssl: apt-get install openssl")
async def test_encrypted_connections_mark_the_cookie_secure(tmp_path: Path) -> None:
    files = [str(tmp_path / name) for name in ("certificate.pem", "key.pem")]
    words = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
    words += ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-out", files[0], "-keyout", files[1]]
    await asyncio.to_thread(subprocess.run, words, check=True, capture_output=True)
    more: dict[str, object] = {"gateway": {"port": 0, "tls": {"certificate": files[0], "key": files[1]}}}
    trust = ssl.create_default_context(cafile=files[0])
    async with served(tmp_path / "home", ScriptedServer(), more) as house:
        assert house.url.startswith("https://")
        connector = aiohttp.TCPConnector(ssl=trust)
        async with aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.CookieJar(unsafe=True)) as browser:
            body = {"code": await house.login_code()}
            async with browser.post(f"{house.url}/api/login", json=body, headers={"Origin": house.url}) as response:
                assert response.status == 200
                assert "Secure" in response.headers["Set-Cookie"]
            async with browser.get(f"{house.url}/api/me") as response:
                assert (await response.json())["kind"] == "owner"


async def test_a_certificate_that_is_none_is_refused_in_words(tmp_path: Path) -> None:
    (tmp_path / "a.pem").write_text("nothing")
    settings = GatewaySettings(tls=Tls(certificate=str(tmp_path / "a.pem"), key=str(tmp_path / "a.pem")))
    with pytest.raises(Invalid, match="certificate cannot be used"):
        await listen(asyncio.Protocol, settings)
