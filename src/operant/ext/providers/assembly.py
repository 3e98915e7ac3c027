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
from operant.ext.providers.settings import Protocol, Providers, ProviderSettings
from operant.kit.secret import Secret
from operant.sdk import Facts, Host, Invalid

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
