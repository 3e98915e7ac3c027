"""A listening system and those who attack it: strangers, guests with a small token, pages in the owner's browser."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

from operant.sdk.testing.server import ScriptedServer
from tests.journey.gateway import Served, served

CANARY = "CANARY-77d1e0"
"""What lies beside the home, and in no answer."""
EVIL = "https://evil.example"
SCRIPT: dict[str, Any] = {
    "hello": [{"text": "Hello."}],
    "ask": [{"calls": [{"name": "shell", "arguments": {"command": "echo hi"}}]}, {"text": "So be it."}],
}
PATIENCE_S = 10.0
MOMENT_S = 8.0
"""Within this somebody well-behaved is served, whatever else goes on; a machine under test is slow."""


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


class Siege:
    """One system under attack. `stranger` brings nothing by itself, `browser` the owner's cookie and no Origin."""

    def __init__(self, house: Served, home: Path, stranger: aiohttp.ClientSession) -> None:
        self.house = house
        self.home = home
        self.stranger = stranger
        self.browser = stranger
        self.logged_in = ""
        self.secrets = [house.token]
        self.own = {"Origin": house.url}

    async def code(self) -> str:
        self.secrets.append(await self.house.login_code())
        return self.secrets[-1]

    async def token(self, name: str, *scopes: str) -> str:
        self.secrets.append(await self.house.add_token(name, *scopes))
        return self.secrets[-1]

    async def cookie(self) -> str:
        """Log in as a browser does, and return the cookie as a header has it."""
        body = {"code": await self.code()}
        async with self.stranger.post(f"{self.house.url}/api/login", json=body, headers=self.own) as answer:
            assert answer.status == 200, await answer.text()
            said = answer.headers["Set-Cookie"]
        name, _, value = said.partition(";")[0].partition("=")
        self.secrets.append(value)
        return f"{name}={value}"

    async def ask(
        self, method: str, path: str, headers: dict[str, str] | None = None, *, by: Any = None, **options: Any
    ) -> tuple[int, str]:
        """Return the status of an answer and what it says."""
        http: aiohttp.ClientSession = by or self.stranger
        async with http.request(method, self.house.url + path, headers=headers, **options) as answer:
            return answer.status, (await answer.read()).decode(errors="replace")

    async def status(
        self, method: str, path: str, headers: dict[str, str] | None = None, *, by: Any = None, **options: Any
    ) -> int:
        return (await self.ask(method, path, headers, by=by, **options))[0]

    async def upgrade(self, headers: dict[str, str], path: str = "/ws/s", *, by: Any = None) -> int:
        """Try to open a WebSocket and return the status."""
        try:
            async with (by or self.stranger).ws_connect(self.house.ws + path, headers=headers):
                return 101
        except aiohttp.WSServerHandshakeError as refused:
            return refused.status

    async def raw(self, data: bytes) -> bytes:
        """Send bytes as they are, for clients tidy up, and return all that is answered until it hangs up."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.house.port)
        writer.write(data)
        said = b""
        with contextlib.suppress(ConnectionError):
            async with asyncio.timeout(PATIENCE_S):
                said = await reader.read(-1)
        writer.close()
        return said

    def request(self, line: str, *headers: str | bytes, body: bytes = b"") -> bytes:
        """Make a request that is hung up on after its answer."""
        lines = [line.encode("latin-1") + b" HTTP/1.1", f"Host: 127.0.0.1:{self.house.port}".encode()]
        lines += [one if isinstance(one, bytes) else one.encode() for one in headers]
        lines += [b"Connection: close", f"Content-Length: {len(body)}".encode()]
        return b"\r\n".join(lines) + b"\r\n\r\n" + body

    async def code_of(self, line: str, *headers: str | bytes, body: bytes = b"") -> int:
        """Send a request as bytes and return the status."""
        return await self.first(self.request(line, *headers, body=body))

    async def first(self, data: bytes) -> int:
        """Send bytes and return the status of the first answer, which may come before all of them are read."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.house.port)
        writer.write(data)
        async with asyncio.timeout(PATIENCE_S):
            head = await reader.readuntil(b"\r\n\r\n")
        writer.close()
        return int(head.split(b" ", 2)[1])

    async def operations(self) -> list[tuple[str, str]]:
        """Return every operation of the description that may change something, new ones too."""
        paths = (await self.house.get("/openapi.json"))["paths"]
        return [(method.upper(), path) for path, ones in paths.items() for method in ones if method != "get"]

    def log(self) -> str:
        """Return all that is logged."""
        return "".join(path.read_text() for path in (self.home / "logs").iterdir())


@asynccontextmanager
async def besieged(root: Path, more: dict[str, object] | None = None) -> AsyncIterator[Siege]:
    """Run a system; when the attack is over it still answers, and no secret has come into its log."""
    (root / "canary.txt").write_text(CANARY)
    server = ScriptedServer(SCRIPT)
    jars = aiohttp.DummyCookieJar(), aiohttp.CookieJar(unsafe=True)
    async with (
        server.serving(),
        served(root / "home", server, more) as house,
        aiohttp.ClientSession(cookie_jar=jars[0]) as stranger,
        aiohttp.ClientSession(cookie_jar=jars[1]) as browser,
    ):
        siege = Siege(house, root / "home", stranger)
        siege.logged_in = await siege.cookie()
        name, _, value = siege.logged_in.partition("=")
        browser.cookie_jar.update_cookies({name: value})
        siege.browser = browser
        yield siege
        async with asyncio.timeout(PATIENCE_S):
            assert await siege.status("GET", "/readyz") == 200
        log = siege.log()
        assert not [one for one in (*siege.secrets, CANARY, "Traceback") if one in log], log[-3000:]


class Daemon:
    """`operant serve` as a process of its own."""

    def __init__(self, process: asyncio.subprocess.Process, home: Path) -> None:
        self.process = process
        self.home = home
        self.port = 0
        self.token = ""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def memory(self) -> int:
        """Return the bytes of memory that it holds."""
        return int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    async def answers(self, path: str = "/api/status") -> None:
        """Ask as somebody new with the right token, who must be served within a moment."""
        async with (
            asyncio.timeout(MOMENT_S),
            aiohttp.ClientSession(headers=bearer(self.token)) as http,
            http.get(self.url + path) as answer,
        ):
            assert answer.status == 200, await answer.text()


async def operant(home: Path, *words: str, **env: str) -> tuple[int, str, str]:
    """Run a command to its end; return its exit code and what it printed, on both ways."""
    process = await _start(home, *words, **env)
    async with asyncio.timeout(2 * PATIENCE_S):
        out, err = await process.communicate()
    return process.returncode or 0, out.decode(), err.decode()


@asynccontextmanager
async def daemon(home: Path, **env: str) -> AsyncIterator[Daemon]:
    """Keep `operant serve` running."""
    process = await _start(home, "serve", "--port", "0", **env)
    assert process.stdout is not None
    made = Daemon(process, home)
    try:
        async with asyncio.timeout(2 * PATIENCE_S):
            while b"The page:" not in (line := await process.stdout.readline()):
                assert line, await process.communicate()
        made.port = int(line.decode().partition("http://127.0.0.1:")[2].partition("/")[0].split()[0])
        made.token = (home / "state" / "token").read_text().strip()
        yield made
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        await process.communicate()


async def _start(home: Path, *words: str, **env: str) -> asyncio.subprocess.Process:
    own = {"PATH": os.environ["PATH"], "OPERANT_HOME": str(home), "HOME": str(home.parent), "NO_COLOR": "1"}
    pipe = asyncio.subprocess.PIPE
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "operant", *words, env={**own, **env}, stdout=pipe, stderr=pipe
    )
