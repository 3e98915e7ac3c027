"""Texts as vectors, by the providers that can make them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from operant.ext.providers.dialect import Endpoints
from operant.ext.providers.endpoint import Endpoint
from operant.ext.providers.exchange import exchanged
from operant.kit.http import Http
from operant.sdk import Clock, Embeddings, Json, ModelEmbed, ModelError, NotFound, Principal, Usage

_BATCH = {"gemini": 100}
_MOST = 256
_TASKS = {"document": "RETRIEVAL_DOCUMENT", "query": "RETRIEVAL_QUERY"}
_Vector = tuple[float, ...]


class _Datum(msgspec.Struct):
    index: int
    embedding: _Vector


class _Count(msgspec.Struct):
    prompt_tokens: int | None = None
    total_tokens: int | None = None


class _Answer(msgspec.Struct):
    data: list[_Datum]
    usage: _Count | None = None


class _Values(msgspec.Struct):
    values: _Vector


class _Google(msgspec.Struct):
    embeddings: list[_Values]


class Embedding:
    """Turn texts into vectors; `usual` names each provider's own model for that, best provider first."""

    def __init__(self, endpoints: Endpoints, usual: Mapping[str, str], http: Http, clock: Clock) -> None:
        self._endpoints = endpoints
        self._usual = usual
        self._http = http
        self._clock = clock

    async def embed(self, who: Principal, call: ModelEmbed) -> Embeddings:
        """Answer the syscall. Raises `ModelError` and `NotFound`."""
        name, model = self._chosen(call.model)
        endpoint, protocol = self._endpoints[name]
        vectors: list[_Vector] = []
        tokens = 0
        step = _BATCH.get(protocol, _MOST)
        for at in range(0, len(call.texts), step):
            texts = call.texts[at : at + step]
            found, used = await (
                self._google(endpoint, model, texts, call.purpose)
                if protocol == "gemini"
                else self._openai(endpoint, model, texts)
            )
            if len(found) != len(texts):
                raise ModelError("server", f"{name} gave {len(found)} vectors for {len(texts)} texts.")
            vectors += found
            tokens += used
        usage = Usage(input=tokens, calls=1)
        return Embeddings(model=f"{name}/{model}", vectors=tuple(vectors), usage=usage)

    def _chosen(self, name: str) -> tuple[str, str]:
        provider, _, model = name.partition("/")
        if not name:
            provider, model = next(((one, usual) for one, usual in self._usual.items()), ("", ""))
        model = model or self._usual.get(provider, "")
        if provider not in self._endpoints or not model:
            raise NotFound(
                f"There is no model {name!r} for vectors." if name else "No provider here makes vectors.",
                "Set providers.<name>.embedding, or name one as PROVIDER/MODEL.",
            )
        return provider, model

    async def _openai(self, endpoint: Endpoint, model: str, texts: tuple[str, ...]) -> tuple[list[_Vector], int]:
        body: Json = {"model": model, "input": texts, "encoding_format": "float"}
        answer = await exchanged(self._http, self._clock, endpoint, "/embeddings", body, _Answer)
        used = answer.usage or _Count()
        vectors = [one.embedding for one in sorted(answer.data, key=lambda one: one.index)]
        return vectors, used.prompt_tokens or used.total_tokens or 0

    async def _google(
        self, endpoint: Endpoint, model: str, texts: tuple[str, ...], purpose: str
    ) -> tuple[list[_Vector], int]:
        requests: list[dict[str, Any]] = [
            {"model": f"models/{model}", "content": {"parts": [{"text": text}]}, "taskType": _TASKS[purpose]}
            for text in texts
        ]
        path = f"/models/{model}:batchEmbedContents"
        answer = await exchanged(self._http, self._clock, endpoint, path, {"requests": requests}, _Google)
        return [one.values for one in answer.embeddings], sum(map(len, texts)) // 4  # it counts no tokens for these
