"""Pictures by words, from whichever provider has a model for them."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, TypeVar

import msgspec

from operant.ext.providers.dialect import Endpoints
from operant.ext.providers.endpoint import Endpoint
from operant.ext.providers.exchange import exchanged
from operant.kit.http import Get, HttpError
from operant.kit.secret import Secret
from operant.sdk import BlobRef, FunctionTool, Host, Json, ModelError, Record, Text, ToolResult, failed, tool

R = TypeVar("R")

USUAL = {
    "openai": "gpt-image-1",
    "gemini": "gemini-2.5-flash-image",
    "xai": "grok-2-image",
    "together": "black-forest-labs/FLUX.1-schnell",
    "fal": "fal-ai/flux/schnell",
}
FAL = Endpoint(name="fal", base_url="https://fal.run")
FAL_KEY = "FAL_KEY"
_MOST_PICTURES = 4
_MOST_BYTES = 30_000_000
_SIGNATURES = ((b"\x89PNG", "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"RIFF", "image/webp"))


class Wanted(Record):
    """What is to be made."""

    prompt: str
    model: str
    count: int = 1
    size: str = ""


class _Made(msgspec.Struct):
    b64_json: str | None = None
    url: str | None = None


class _Pictures(msgspec.Struct):
    data: list[_Made] = []
    images: list[_Made] = []


class _Inline(msgspec.Struct, rename="camel"):
    data: str = ""


class _Part(msgspec.Struct, rename="camel"):
    inline_data: _Inline | None = None


class _Content(msgspec.Struct):
    parts: list[_Part] = []


class _Candidate(msgspec.Struct):
    content: _Content | None = None


class _Google(msgspec.Struct):
    candidates: list[_Candidate] = []


class Imagery:
    """Make pictures; `models` names each provider's model for that, best provider first."""

    def __init__(self, host: Host, endpoints: Endpoints, models: Mapping[str, str]) -> None:
        self._host = host
        self._endpoints = endpoints
        self._models = models

    def tool(self) -> FunctionTool:
        """Make the tool `generate_image`."""

        @tool(effect="external", timeout_s=300, deferred=True)
        async def generate_image(
            prompt: str,
            size: Annotated[str, "such as 1024x1024"] = "",
            model: Annotated[str, "provider/model; empty: what there is"] = "",
            count: int = 1,
        ) -> ToolResult:
            """Make pictures by words."""
            return await self.make(Wanted(prompt=prompt, model=model, count=count, size=size))

        return generate_image

    async def make(self, wanted: Wanted) -> ToolResult:
        """Return pictures, or why there are none."""
        provider, _, model = wanted.model.partition("/")
        if not wanted.model:
            provider = next(iter(self._models), "")
        model = model or self._models.get(provider, "")
        if provider not in self._endpoints or not model:
            there = ", ".join(self._models) or "none: set OPENAI_API_KEY, GEMINI_API_KEY, XAI_API_KEY or FAL_KEY"
            return failed(f"No provider here makes such pictures. There are: {there}.")
        endpoint, protocol = self._endpoints[provider]
        count = min(max(wanted.count, 1), _MOST_PICTURES)
        asked = Wanted(prompt=wanted.prompt, model=model, count=count, size=wanted.size)
        make: Callable[[Endpoint, Wanted], Awaitable[list[bytes]]] = self._openai
        if protocol == "gemini":
            make = self._google
        elif provider == "fal":
            make = self._fal
        try:
            pictures = await make(endpoint, asked)
        except (ModelError, HttpError, binascii.Error) as error:
            return failed(error.line() if isinstance(error, ModelError) else f"{provider}: {error}")
        if not pictures:
            return failed(f"{provider} made no picture of this; say it in other words.")
        parts = [await self._kept(one, at) for at, one in enumerate(pictures, 1)]
        return ToolResult(
            parts=(Text(text=f"[{len(parts)} made by {provider}/{model}]"), *parts), artifacts=tuple(parts)
        )

    async def _openai(self, endpoint: Endpoint, wanted: Wanted) -> list[bytes]:
        body: Json = {"model": wanted.model, "prompt": wanted.prompt, "n": wanted.count}
        if wanted.size:
            body["size"] = wanted.size
        if endpoint.name in ("xai", "together"):
            body["response_format"] = "b64_json" if endpoint.name == "xai" else "base64"
        answer = await self._post(endpoint, "/images/generations", body, _Pictures)
        return [await self._bytes(one) for one in answer.data]

    async def _fal(self, endpoint: Endpoint, wanted: Wanted) -> list[bytes]:
        answer = await self._post(
            endpoint, f"/{wanted.model}", {"prompt": wanted.prompt, "num_images": wanted.count}, _Pictures
        )
        return [await self._bytes(one) for one in answer.images]

    async def _google(self, endpoint: Endpoint, wanted: Wanted) -> list[bytes]:
        body: Json = {
            "contents": [{"role": "user", "parts": [{"text": wanted.prompt}]}],
            "generationConfig": {"responseModalities": ["TEXT", "IMAGE"]},
        }
        answer = await self._post(endpoint, f"/models/{wanted.model}:generateContent", body, _Google)
        contents = [one.content for one in answer.candidates if one.content]
        inline = [part.inline_data for content in contents for part in content.parts]
        return [base64.b64decode(one.data) for one in inline if one is not None]

    async def _post(self, endpoint: Endpoint, path: str, body: Json, kind: type[R]) -> R:
        return await exchanged(self._host.http, self._host.clock, endpoint, path, body, kind)

    async def _bytes(self, made: _Made) -> bytes:
        if made.b64_json:
            return base64.b64decode(made.b64_json)
        if made.url and made.url.startswith("data:"):
            return base64.b64decode(made.url.partition(",")[2])
        got = await self._host.http.fetch(Get(url=made.url or "", max_bytes=_MOST_BYTES, total_s=60.0))
        return got.body

    async def _kept(self, data: bytes, at: int) -> BlobRef:
        kind = next((name for signature, name in _SIGNATURES if data.startswith(signature)), "image/png")
        return await self._host.blobs.put_blob(data, kind, f"picture-{at}.{kind.rpartition('/')[2]}")


def fal(key: str) -> Endpoint:
    """Return where fal is, with its own way to take a key."""
    return Endpoint(name="fal", base_url=FAL.base_url, key=Secret(), headers={"Authorization": f"Key {key}"})
