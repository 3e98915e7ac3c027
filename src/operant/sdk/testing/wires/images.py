"""Making images in OpenAI's way, which several others share, from the server's side."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import msgspec

from operant.sdk.testing.wires.chat import Chat
from operant.sdk.testing.wires.pictures import picture
from operant.sdk.testing.wires.rules import shaped
from operant.sdk.testing.wires.wire import Answer, InOnePiece, Json, Request, Wrong, encode


class _Body(msgspec.Struct, forbid_unknown_fields=True):
    prompt: Annotated[str, msgspec.Meta(min_length=1, max_length=32_000)]
    model: str = ""
    n: Annotated[int, msgspec.Meta(ge=1, le=10)] | None = None
    size: Annotated[str, msgspec.Meta(pattern=r"^(auto|\d+x\d+)$")] | None = None
    quality: str | None = None
    style: str | None = None
    background: Literal["transparent", "opaque", "auto"] | None = None
    moderation: Literal["low", "auto"] | None = None
    output_format: Literal["png"] | None = None
    output_compression: int | None = None
    response_format: Literal["b64_json"] | None = None
    aspect_ratio: str | None = None
    user: str | None = None


class Images(InOnePiece):
    """POST /v1/images/generations. A script is named in the prompt; only what goes wrong in it holds here."""

    def __init__(self) -> None:
        self._chat = Chat()

    def check(self, request: Request) -> None:
        """Refuse as OpenAI does."""
        shaped(request.body, _Body)

    def conversation(self, body: Json) -> Sequence[Mapping[str, Any]]:
        """Return the prompt as what a user says."""
        return [{"role": "user", "content": body["prompt"]}]

    def whole(self, answer: Answer) -> bytes:
        """Return small pictures, each another one. Raises `Wrong` where the script blocks them."""
        if answer.step.blocked or answer.step.refusal:
            raise Wrong("Your request was rejected by the safety system.")
        body = shaped(answer.request.body, _Body)
        made = [picture(f"{body.prompt} {at}") for at in range(body.n or 1)]
        tokens = max(1, len(body.prompt) // 4)
        details = {"text_tokens": tokens, "image_tokens": 0}
        output = 100 * len(made)
        usage: Json = {
            "input_tokens": tokens,
            "input_tokens_details": details,
            "output_tokens": output,
            "total_tokens": tokens + output,
        }
        listed = [{"b64_json": base64.b64encode(one).decode()} for one in made]
        return encode({"created": 1, "data": listed, "output_format": "png", "usage": usage})

    def refusal(self, status: int, sentence: str) -> bytes:
        """Return an error body."""
        return self._chat.refusal(status, sentence)
