"""Which class speaks which protocol; one that is not spoken is not loaded."""

from __future__ import annotations

import importlib

from operant.ext.providers.dialect import Dialect
from operant.ext.providers.endpoint import Endpoint
from operant.ext.providers.settings import Protocol
from operant.sdk import Blobs

_SPEAKERS: dict[Protocol, str] = {
    "openai": "chat:OpenAIChat",
    "responses": "responses:OpenAIResponses",
    "anthropic": "anthropic:Anthropic",
    "gemini": "gemini:Gemini",
}


def speak(protocol: Protocol, endpoint: Endpoint, blobs: Blobs) -> Dialect:
    """Return what speaks a protocol to a provider."""
    module, _, name = _SPEAKERS[protocol].partition(":")
    speaker: Dialect = getattr(importlib.import_module(f"operant.ext.providers.{module}"), name)(endpoint, blobs)
    return speaker
