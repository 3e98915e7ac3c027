"""OpenAI's embeddings from the server's side, and Google's."""

from __future__ import annotations

import base64
import struct
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import msgspec

from operant.sdk.testing.wires.chat import Chat
from operant.sdk.testing.wires.gemini import check_key, model_of
from operant.sdk.testing.wires.gemini import refusal as google_refusal
from operant.sdk.testing.wires.gemini_shape import Content, camel
from operant.sdk.testing.wires.rules import shaped
from operant.sdk.testing.wires.vectors import vector
from operant.sdk.testing.wires.wire import Answer, InOnePiece, Json, Request, Wrong, encode

_SIZE = 1536
_GOOGLE_SIZE = 768


class _Body(msgspec.Struct, forbid_unknown_fields=True):
    model: Annotated[str, msgspec.Meta(min_length=1)]
    input: str | Annotated[list[str], msgspec.Meta(min_length=1, max_length=2048)]
    dimensions: Annotated[int, msgspec.Meta(ge=1, le=4096)] | None = None
    encoding_format: Literal["float", "base64"] = "float"
    user: str | None = None


class _One(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    content: Content
    model: str = ""
    task_type: str | None = None
    title: str | None = None
    output_dimensionality: Annotated[int, msgspec.Meta(ge=1, le=4096)] | None = None


class _Batch(msgspec.Struct, forbid_unknown_fields=True):
    requests: Annotated[list[_One], msgspec.Meta(min_length=1, max_length=100)]


class Embeddings(InOnePiece):
    """POST /v1/embeddings. A script is named in the first text; only what goes wrong in it holds here."""

    def __init__(self) -> None:
        self._chat = Chat()

    def check(self, request: Request) -> None:
        """Refuse as OpenAI does."""
        body = shaped(request.body, _Body)
        if not all(_texts(body)):
            raise Wrong("'$.input' is invalid. Please check the API reference: it must not be an empty string.")

    def conversation(self, body: Json) -> Sequence[Mapping[str, Any]]:
        """Return the first text as what a user says."""
        return [{"role": "user", "content": _texts(shaped(body, _Body))[0]}]

    def whole(self, answer: Answer) -> bytes:
        """Return a vector for each text."""
        body = shaped(answer.request.body, _Body)
        vectors = [vector(text, body.dimensions or _SIZE) for text in _texts(body)]
        listed: list[Json] = [
            {"object": "embedding", "index": at, "embedding": _packed(one) if body.encoding_format == "base64" else one}
            for at, one in enumerate(vectors)
        ]
        tokens = max(1, sum(len(text) for text in _texts(body)) // 4)
        usage = {"prompt_tokens": tokens, "total_tokens": tokens}
        return encode({"object": "list", "data": listed, "model": body.model, "usage": usage})

    def refusal(self, status: int, sentence: str) -> bytes:
        """Return an error body."""
        return self._chat.refusal(status, sentence)


class GoogleEmbeddings(InOnePiece):
    """POST /v1beta/models/{model}:batchEmbedContents and :embedContent."""

    def check(self, request: Request) -> None:
        """Refuse as Google does."""
        check_key(request)
        for one in _requests(request.body):
            if not _words(one):
                raise Wrong("* EmbedContentRequest.content: content is empty")
            if one.model and model_of(request.path) != one.model.removeprefix("models/"):
                raise Wrong("* BatchEmbedContentsRequest.requests: model must be the one in the address")

    def conversation(self, body: Json) -> Sequence[Mapping[str, Any]]:
        """Return the first text as what a user says."""
        return [{"role": "user", "content": _words(_requests(body)[0])}]

    def whole(self, answer: Answer) -> bytes:
        """Return a vector for each text."""
        body = answer.request.body
        made = [{"values": vector(_words(one), one.output_dimensionality or _GOOGLE_SIZE)} for one in _requests(body)]
        tokens = {"promptTokenCount": answer.request.size // 4}
        if "requests" in body:
            return encode({"embeddings": made, "usageMetadata": tokens})
        return encode({"embedding": made[0], "usageMetadata": tokens})

    def refusal(self, status: int, sentence: str) -> bytes:
        """Return an error body."""
        return google_refusal(status, sentence)


def _texts(body: _Body) -> list[str]:
    return [body.input] if isinstance(body.input, str) else body.input


def _packed(values: Sequence[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(values)}f", *values)).decode()


def _requests(body: Json) -> list[_One]:
    spelled = camel(body)
    return shaped(spelled, _Batch).requests if "requests" in spelled else [shaped(spelled, _One)]


def _words(one: _One) -> str:
    return " ".join(part.text for part in one.content.parts if part.text)
