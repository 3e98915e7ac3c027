"""Models: which there are, which is used, and choosing another one while everything runs."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from operant.ext.gateway.api import Call, Nothing, Route
from operant.sdk import (
    Json,
    ModelInfo,
    ModelList,
    ModelSearch,
    ModelTest,
    ModelUse,
    ProviderInfo,
    ProviderList,
    Record,
    SessionUpdate,
    Trial,
)

_FOUND = 20
_SMALL = 6
"""Models of a provider that are listed by name; the others are searched."""


class ModelsQuery(Record):
    """Whose models (empty: those of the default agent)."""

    agent: str = ""


class FindQuery(Record):
    """Words of a model's name."""

    q: Annotated[str, Meta(max_length=200)] = ""


class SelectBody(Record):
    """A model of a provider; for one `session` or `agent`, else for all. An empty one gives the choice back."""

    provider: str = ""
    model_id: str = ""
    session: str = ""
    agent: str = ""


class TestBody(Record):
    """The model to try, as `provider/model` (empty: the one that is used)."""

    model: str = ""


class Models:
    """Answer the routes about models."""

    def routes(self) -> list[Route]:
        """Return the routes."""
        tag = "models"
        return [
            Route("GET", "/api/models", self.list, "List models and providers; keys are told as there or missing, never shown.", tag, ModelsQuery, returns=Json),
            Route("GET", "/api/models/search", self.search, "Find models by words of their names.", tag, FindQuery, returns=Json),
            Route("POST", "/api/models/select", self.select, "Let another model answer from now on, also after a restart.", tag, body=SelectBody, returns=Json),
            Route("POST", "/api/models/test", self.test, "Try a model with one small call for each thing it should do.", tag, body=TestBody, returns=tuple[Trial, ...]),
        ]  # fmt: skip

    async def list(self, call: Call[ModelsQuery, None]) -> Json:
        """List models and providers."""
        chain = await call.client.call(ModelList(agent=call.query.agent))
        providers = await call.client.call(ProviderList())
        current = chain[0].model if chain else ""
        return {
            "current": {"provider": current.partition("/")[0], "model_id": current.partition("/")[2]},
            "pinned": [_entry(one) for one in chain],
            "providers": {one.name: _provider(one, chain) for one in providers},
            "chain": chain,
        }

    async def search(self, call: Call[FindQuery, None]) -> Json:
        """Find models."""
        found = await call.client.call(ModelSearch(words=call.query.q))
        return {"models": [_entry(one) for one in found[:_FOUND]], "query": call.query.q, "total": len(found)}

    async def select(self, call: Call[Nothing, SelectBody]) -> Json:
        """Choose a model."""
        body = call.body
        model = f"{body.provider}/{body.model_id}" if body.model_id else ""
        if body.session:
            await call.client.call(SessionUpdate(session=body.session, model=model))
            whom = f"the session {body.session}"
        else:
            whom = await call.client.call(ModelUse(model=model, agent=body.agent))
        providers = await call.client.call(ProviderList())
        address = next((one.address for one in providers if one.name == body.provider), "")
        return {"status": "ok", "provider": body.provider, "model_id": body.model_id, "base_url": address, "for": whom}

    async def test(self, call: Call[Nothing, TestBody]) -> tuple[Trial, ...]:
        """Try a model."""
        return await call.client.call(ModelTest(model=call.body.model))


def _entry(one: ModelInfo) -> Json:
    provider, _, name = one.model.partition("/")
    return {
        "id": name,
        "name": name,
        "provider": provider,
        "model": one.model,
        "why": one.why,
        "window": one.window,
        "price": one.price,
        "can": one.can,
        "ready": one.ready,
    }


def _provider(one: ProviderInfo, chain: tuple[ModelInfo, ...]) -> Json:
    own = [_entry(model) for model in chain if model.model.partition("/")[0] == one.name]
    models = own or ([{"id": one.model, "name": one.model}] if one.model else [])
    return {
        "name": one.name,
        "models": models[:_SMALL],
        "reachable": one.ready,
        "searchable": True,
        "note": one.wants,
        "protocol": one.protocol,
        "base_url": one.address,
    }
