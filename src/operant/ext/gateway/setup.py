"""Put the gateway together: in a system that serves it listens, in any other it only knows the tokens."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from operant.ext.gateway.settings import CHANNEL, GatewaySettings, is_loopback
from operant.ext.gateway.tokens import Keyring
from operant.kit.show import has_screen, show
from operant.sdk import (
    DAEMON_STARTED,
    Host,
    LoginOpen,
    Principal,
    PullChannel,
    TokenAdd,
    TokenList,
    TokenRevoke,
    Unavailable,
)

if TYPE_CHECKING:  # aiohttp takes 180 ms to import: a command that only asks the store does without
    from operant.ext.gateway.gateway import Gateway

_log = logging.getLogger("operant.gateway")


class Front:
    """What the gateway offers inside: tokens always, the address of the page once there is one."""

    def __init__(self, settings: GatewaySettings, keyring: Keyring) -> None:
        self._settings = settings
        self._keyring = keyring
        self.port = 0

    @property
    def address(self) -> str:
        """Return the address of the page."""
        scheme = "https" if self._settings.tls.certificate else "http"
        host = self._settings.host
        if not is_loopback(host) or host == "localhost":
            host = self._settings.names[0] if self._settings.names else "127.0.0.1"
        return f"{scheme}://{f'[{host}]' if ':' in host else host}:{self.port}"

    async def show(self) -> None:
        """Open the page for the person who has just started us."""
        await asyncio.to_thread(show, f"{self.address}/#login={self._keyring.login_code()}")

    async def login(self, who: Principal, call: LoginOpen) -> str:
        """Return the address of the page with a code that logs one browser in."""
        if not self.port:
            raise Unavailable("The web page is served by the daemon, and none runs.", "Start one: operant serve.")
        return f"{self.address}/#login={self._keyring.login_code()}"


@asynccontextmanager
async def setup(host: Host, settings: GatewaySettings) -> AsyncGenerator[None]:
    """Offer the gateway."""
    keyring = Keyring(Path(host.state), Path(host.home), host.clock)
    front = Front(settings, keyring)
    host.syscall(TokenAdd, keyring.add)
    host.syscall(TokenList, keyring.list)
    host.syscall(TokenRevoke, keyring.revoke)
    host.syscall(LoginOpen, front.login)
    gateway = _gateway(host, settings, keyring)
    if gateway is None:
        yield
        return
    async with gateway.listening() as port:
        front.port = port
        _log.info("listening on %s", front.address)
        if settings.open and sys.stdout.isatty() and has_screen():
            host.hook(DAEMON_STARTED, front.show)
        if settings.insecure and not is_loopback(settings.host):
            _log.warning("whoever reaches %s sees everything unencrypted, as insecure allows", settings.host)
        yield


def _gateway(host: Host, settings: GatewaySettings, keyring: Keyring) -> Gateway | None:

    host.channel(PullChannel(CHANNEL))
    if not host.serving:
        return None
    from operant.ext.gateway.gateway import Gateway

    return Gateway(host, settings, keyring)
