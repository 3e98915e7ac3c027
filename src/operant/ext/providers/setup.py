"""Register providers, and the rules about them."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from operant.ext.providers.chain import Chain
from operant.ext.providers.detect import Found, detect
from operant.ext.providers.endpoint import Endpoint
from operant.ext.providers.http_model import HttpModel
from operant.ext.providers.known import KNOWN, WINDOW, Known
from operant.ext.providers.offline import Offline
from operant.ext.providers.protocols import speak
from operant.ext.providers.settings import Providers, ProviderSettings
from operant.kit.secret import Secret
from operant.sdk import (
    COMPUTE_ERROR,
    COMPUTE_MODEL,
    Facts,
    Host,
    Invalid,
    Model,
    ModelInfo,
    ModelList,
    Price,
    Principal,
)

_LOOPBACK = ("http://127.0.0.1", "http://localhost", "http://[::1]")
FREE = Price(input=0.0, output=0.0)

_log = logging.getLogger("operant.providers")


@asynccontextmanager
async def setup(host: Host, settings: Providers | None) -> AsyncGenerator[None]:
    """Offer every provider that is configured, has its key, or answers on this machine."""
    chosen = settings or {}
    found = await detect(host.variable, host.http.egress)
    configured = tuple(
        f"{name}/{one.model or _known_model(name)}" for name, one in chosen.items() if one.model or _known_model(name)
    )
    _log.info("%s", found.sentence)
    providers: dict[str, Model] = {"offline": Offline()}
    for endpoint in _endpoints(host, chosen, found.local):
        own = chosen.get(endpoint.name)
        spoken = speak((own.protocol if own else None) or "openai", endpoint, host.blobs)
        providers[endpoint.name] = HttpModel(endpoint, spoken, host.http, host.clock)
    for provider in providers.values():
        host.model(provider)
    chain = Chain(host, tuple(dict.fromkeys(configured + found.chain)))
    host.hook(COMPUTE_MODEL, chain.choose)
    host.hook(COMPUTE_ERROR, chain.decide)
    host.syscall(ModelList, _Listing(chain.found, configured, found, providers).list)
    yield


class _Listing:
    """Say which models are used when nobody names one, and why."""

    def __init__(
        self, chain: tuple[str, ...], configured: tuple[str, ...], found: Found, providers: dict[str, Model]
    ) -> None:
        self._chain = chain
        self._configured = configured
        self._found = found
        self._providers = providers

    async def list(self, who: Principal, call: ModelList) -> tuple[ModelInfo, ...]:
        """List the models, best first."""
        return tuple(self._info(name) for name in self._chain)

    def _info(self, name: str) -> ModelInfo:
        provider, _, model = name.partition("/")
        found = provider in self._providers
        configured = f"Using {name}, because providers.{provider} says so."
        why = configured if name in self._configured else self._found.sentence if name == self._found.chain[0] else ""
        return ModelInfo(model=name, why=why, window=self._providers[provider].facts(model).window if found else 0)


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
    free = FREE if base_url.startswith(_LOOPBACK) else None
    names = {"*", *own.prices, *own.window}
    return Endpoint(
        name=name,
        base_url=base_url,
        key=key,
        headers=own.headers,
        facts={
            model: Facts(
                window=own.window.get(model) or own.window.get("*") or (known.window if known else WINDOW),
                price=own.prices.get(model) or own.prices.get("*") or free,
            )
            for model in names
        },
    )
