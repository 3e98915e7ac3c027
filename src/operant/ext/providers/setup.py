"""Register providers, and the rules about them."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from operant.ext.providers.assembly import Assembly
from operant.ext.providers.catalogue import Catalogue
from operant.ext.providers.chain import Chain
from operant.ext.providers.choices import Choices
from operant.ext.providers.detect import detect
from operant.ext.providers.listing import Listing
from operant.ext.providers.offline import Offline
from operant.ext.providers.presets import preset
from operant.ext.providers.settings import Providers
from operant.ext.providers.trials import Trials
from operant.sdk import COMPUTE_ERROR, COMPUTE_MODEL, Host, Model, ModelList, ModelSearch, ModelTest, ModelUse

_log = logging.getLogger("operant.providers")


@asynccontextmanager
async def setup(host: Host, settings: Providers | None) -> AsyncGenerator[None]:
    """Offer every provider that is configured, has its key, or answers on this machine."""
    chosen = settings or {}
    found = await detect(host.variable, host.http.egress)
    configured = tuple(f"{name}/{model}" for name, one in chosen.items() if (model := one.model or _usual_model(name)))
    _log.info("%s", found.sentence)
    catalogue = Catalogue()
    assembly = Assembly(host, chosen, found.local, catalogue)
    providers: dict[str, Model] = {"offline": Offline(), **assembly.providers()}
    for provider in providers.values():
        host.model(provider)
    choices = Choices(host, tuple(sorted(providers)))
    chain = Chain(host, tuple(dict.fromkeys(configured + found.chain)), choices)
    host.hook(COMPUTE_MODEL, chain.choose)
    host.hook(COMPUTE_ERROR, chain.decide)
    listing = Listing(chain.found, configured, found, providers, catalogue, choices)
    host.syscall(ModelList, listing.list)
    host.syscall(ModelSearch, listing.search)
    host.syscall(ModelUse, choices.use)
    host.syscall(ModelTest, Trials(host, providers, lambda: chain.found[0]).test)
    yield


def _usual_model(name: str) -> str:
    known = preset(name)
    return known.model if known else ""
