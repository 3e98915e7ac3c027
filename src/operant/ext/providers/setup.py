"""Register providers, and the rules about them."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from operant.ext.providers.chain import Chain
from operant.ext.providers.detect import detect
from operant.ext.providers.known import KNOWN, WINDOW, Known
from operant.ext.providers.offline import Offline
from operant.ext.providers.openai import Endpoint, OpenAIChat
from operant.ext.providers.settings import Providers, ProviderSettings
from operant.kit.http import Http
from operant.kit.secret import Secret
from operant.sdk import COMPUTE_ERROR, COMPUTE_MODEL, Host, Invalid, Price

_LOOPBACK = ("http://127.0.0.1", "http://localhost", "http://[::1]")
FREE = Price(input=0.0, output=0.0)

_log = logging.getLogger("operant.providers")


@asynccontextmanager
async def setup(host: Host, settings: Providers | None) -> AsyncGenerator[None]:
    """Offer every provider that is configured, has its key, or answers on this machine."""
    chosen = settings or {}
    found = await detect(host.variable)
    configured = tuple(
        f"{name}/{one.model or _known_model(name)}" for name, one in chosen.items() if one.model or _known_model(name)
    )
    _log.info("%s", found.sentence)
    async with Http() as http:
        for endpoint in _endpoints(host, chosen, found.local):
            host.model(OpenAIChat(endpoint, http, host.blobs, host.clock))
        host.model(Offline())
        chain = Chain(host, tuple(dict.fromkeys(configured + found.chain)))
        host.hook(COMPUTE_MODEL, chain.choose)
        host.hook(COMPUTE_ERROR, chain.decide)
        yield


def _known_model(name: str) -> str:
    return next((one.model for one in KNOWN if one.name == name), "")


def _endpoints(host: Host, chosen: Providers, local: tuple[Known, ...]) -> list[Endpoint]:
    """Join what is configured with what is known; what is configured wins."""
    endpoints: list[Endpoint] = []
    known = {one.name: one for one in KNOWN}
    answering = {one.name for one in local}
    for name in dict.fromkeys([*chosen, *known]):
        one, own = known.get(name), chosen.get(name, ProviderSettings())
        key = own.api_key or _key(host, one)
        if name not in chosen and not key and name not in answering:
            continue
        endpoints.append(_endpoint(name, one, own, key))
    return endpoints


def _key(host: Host, known: Known | None) -> Secret:
    if known is None or not known.key:
        return Secret()
    return Secret(host.variable(known.key) or "", known.key)


def _endpoint(name: str, known: Known | None, own: ProviderSettings, key: Secret) -> Endpoint:
    base_url = own.base_url or (known.base_url if known else "")
    if not base_url:
        raise Invalid(f"The provider {name} has no address.", f"Set providers.{name}.base_url.")
    prices = {"*": FREE, **own.prices} if base_url.startswith(_LOOPBACK) else own.prices
    return Endpoint(
        name=name,
        base_url=base_url,
        key=key,
        headers=own.headers,
        windows={"*": known.window if known else WINDOW, **own.window},
        prices=prices,
    )
