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
from operant.ext.providers.dialect import Endpoints
from operant.ext.providers.embeddings import Embedding
from operant.ext.providers.imagery import FAL_KEY, USUAL, Imagery, fal
from operant.ext.providers.listing import Listing
from operant.ext.providers.litellm import LiteLLM, is_there
from operant.ext.providers.lookup import Lookup
from operant.ext.providers.offline import Offline
from operant.ext.providers.presets import preset
from operant.ext.providers.roster import Roster
from operant.ext.providers.settings import Providers
from operant.ext.providers.trials import Trials
from operant.sdk import (
    COMPUTE_ERROR,
    COMPUTE_MODEL,
    Host,
    Model,
    ModelEmbed,
    ModelGet,
    ModelList,
    ModelSearch,
    ModelTest,
    ModelUse,
    ProviderList,
)

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
    lite = LiteLLM(host)
    if is_there():
        providers[lite.name] = lite
    for provider in providers.values():
        host.model(provider)
    choices = Choices(host)
    chain = Chain(host, tuple(dict.fromkeys(configured + found.chain)), choices)
    host.hook(COMPUTE_MODEL, chain.choose)
    host.hook(COMPUTE_ERROR, chain.decide)
    lookup = Lookup(providers, catalogue, Roster(assembly.rosters, host.http, host.clock))
    listing = Listing(host, configured, found, choices, lookup, assembly)
    host.syscall(ModelList, listing.list)
    host.syscall(ProviderList, listing.providers)
    host.syscall(ModelGet, lookup.get)
    host.syscall(ModelSearch, lookup.search)
    host.syscall(ModelUse, choices.use)
    endpoints = {name: (one, str(assembly.protocol(name))) for name, one in assembly.endpoints().items()}
    host.syscall(ModelEmbed, Embedding(endpoints, _embedding_models(chosen, endpoints), host.http, host.clock).embed)
    host.tool(_imagery(host, chosen, endpoints).tool())
    host.syscall(ModelTest, Trials(host, providers, lambda: chain.found[0]).test)
    async with lite.open():
        yield


def _embedding_models(chosen: Providers, endpoints: Endpoints) -> dict[str, str]:
    """Return each provider's model for vectors; what is configured comes first."""
    found = {name: one.embedding for name, one in chosen.items() if one.embedding}
    known = {name: one.embedding for name in endpoints if (one := preset(name)) and one.embedding}
    return {**found, **{name: model for name, model in known.items() if name not in found}}


def _imagery(host: Host, chosen: Providers, endpoints: Endpoints) -> Imagery:
    """Return what makes pictures, with each provider's model for that; what is configured comes first."""
    found = {name: one.image_model for name, one in chosen.items() if one.image_model}
    key = host.variable(FAL_KEY)
    if key:
        endpoints = {**endpoints, "fal": (fal(key), "fal")}
    known = {name: model for name, model in USUAL.items() if name in endpoints and name not in found}
    return Imagery(host, endpoints, {**found, **known})


def _usual_model(name: str) -> str:
    known = preset(name)
    return known.model if known else ""
