"""Providers made of what is configured, what is known, and what was found."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from operant.ext.providers.catalogue import Catalogue
from operant.ext.providers.detect import key_of
from operant.ext.providers.endpoint import Endpoint, Quirks
from operant.ext.providers.http_model import HttpModel
from operant.ext.providers.knowledge import FREE, Knowledge
from operant.ext.providers.presets import PRESETS, WINDOW, Preset, preset
from operant.ext.providers.protocols import speak
from operant.ext.providers.roster import listing
from operant.ext.providers.settings import Protocol, Providers, ProviderSettings
from operant.kit.exchange import Get
from operant.kit.secret import Secret
from operant.sdk import Facts, Host, Invalid, ProviderInfo

_LOOPBACK = frozenset(("127.0.0.1", "localhost", "::1"))


class Assembly:
    """Make providers; what is configured wins over what is known."""

    def __init__(self, host: Host, chosen: Providers, local: tuple[Preset, ...], catalogue: Catalogue) -> None:
        self._host = host
        self._chosen = chosen
        self._answering = {one.name for one in local}
        self._catalogue = catalogue

    def providers(self) -> dict[str, HttpModel]:
        """Return every provider that is configured, has its key, or answers on this machine."""
        return {name: self._provider(name, endpoint) for name, endpoint in self.endpoints().items()}

    def endpoints(self) -> Mapping[str, Endpoint]:
        """Return where they are."""
        found: dict[str, Endpoint] = {}
        for name in dict.fromkeys([*self._chosen, *(one.name for one in PRESETS)]):
            one, own = preset(name), self._chosen.get(name, ProviderSettings())
            key = own.api_key or self._key(one)
            if name in self._chosen or key or name in self._answering:
                found[name] = self._endpoint(name, one, own, key)
        return found

    def protocol(self, name: str) -> Protocol:
        """Return what a provider speaks; another address than the known one speaks what nearly all do."""
        own, one = self._chosen.get(name, ProviderSettings()), preset(name)
        if own.protocol:
            return own.protocol
        return one.protocol if one and not own.base_url else "openai"

    def known(self) -> tuple[ProviderInfo, ...]:
        """Return all providers, also those that lack something."""
        here = self.endpoints()
        names = dict.fromkeys([*self._chosen, *(one.name for one in PRESETS)])
        return tuple(self._told(name, here.get(name)) for name in names)

    def rosters(self) -> dict[str, Get]:
        """Return how each provider is asked for the models that it has."""
        found: dict[str, Get] = {}
        for name, endpoint in self.endpoints().items():
            protocol = self.protocol(name)
            path = "/models?limit=1000" if protocol == "anthropic" else "/models?pageSize=1000"
            headers = speak(protocol, endpoint, self._host.blobs).headers()
            found[name] = listing(endpoint.address(path if protocol in ("anthropic", "gemini") else "/models"), headers)
        return found

    def _told(self, name: str, endpoint: Endpoint | None) -> ProviderInfo:
        one, own = preset(name), self._chosen.get(name, ProviderSettings())
        wants = _wanted(one) if one and endpoint is None else ""
        return ProviderInfo(
            name=name,
            protocol=self.protocol(name),
            address=endpoint.base_url if endpoint else _place(one),
            model=own.model or (one.model if one else ""),
            ready=endpoint is not None,
            wants=wants,
        )

    def _provider(self, name: str, endpoint: Endpoint) -> HttpModel:
        one = preset(name)
        free = FREE if urlsplit(endpoint.base_url).hostname in _LOOPBACK else None
        guess = Facts(window=one.window if one else WINDOW, price=free)
        knowledge = Knowledge(name, self._chosen.get(name, ProviderSettings()), self._catalogue, guess)
        dialect = speak(self.protocol(name), endpoint, self._host.blobs)
        return HttpModel(endpoint, dialect, self._host.http, self._host.clock, knowledge.facts)

    def _key(self, one: Preset | None) -> Secret:
        name = key_of(one, self._host.variable) if one else ""
        return Secret(self._host.variable(name) or "", name) if name else Secret()

    def _endpoint(self, name: str, one: Preset | None, own: ProviderSettings, key: Secret) -> Endpoint:
        base_url = own.base_url or (one.base_url if one else "")
        if "{place}" in base_url and one is not None:
            place = self._host.variable(one.place)
            if not place:
                raise Invalid(f"The provider {name} needs {one.place}.", f"Set it, or providers.{name}.base_url.")
            base_url = base_url.replace("{place}", place.rstrip("/"))
        if not base_url:
            raise Invalid(f"The provider {name} has no address.", f"Set providers.{name}.base_url.")
        quirks = one.quirks if one else Quirks()
        return Endpoint(name=name, base_url=base_url, key=key, headers=own.headers, quirks=quirks)


def _place(one: Preset | None) -> str:
    return one.base_url.replace("{place}", f"${one.place}") if one else ""


def _wanted(one: Preset) -> str:
    """Say what a provider lacks."""
    if not one.key:
        return f"a server at {one.base_url}"
    keys = " or ".join((one.key, *one.also))
    return f"{keys} and {one.place}" if one.place else keys
