"""The list of models, in the words of whoever asks."""

from __future__ import annotations

from operant.sdk.testing.wires.gemini import check_key
from operant.sdk.testing.wires.wire import Json, Request, encode

MODEL = "one"


def models(request: Request) -> bytes:
    """Return the list. Raises `Wrong` for those whom Google does not know."""
    if request.path.startswith("/v1beta/") or request.header("x-goog-api-key"):
        check_key(request)
        return encode({"models": [_google()]})
    if request.header("x-api-key") or request.header("anthropic-version"):
        return encode({"data": [_anthropic()], "has_more": False, "first_id": MODEL, "last_id": MODEL})
    return encode({"object": "list", "data": [{"id": MODEL, "object": "model", "created": 1, "owned_by": "operant"}]})


def _anthropic() -> Json:
    return {
        "type": "model",
        "id": MODEL,
        "display_name": "One",
        "created_at": "2026-01-01T00:00:00Z",
        "lifecycle": "active",
        "max_input_tokens": 200_000,
        "max_tokens": 64_000,
    }


def _google() -> Json:
    return {
        "name": f"models/{MODEL}",
        "version": "1",
        "displayName": "One",
        "description": "What a script says.",
        "inputTokenLimit": 1_048_576,
        "outputTokenLimit": 65_536,
        "supportedGenerationMethods": ["generateContent", "embedContent"],
    }
