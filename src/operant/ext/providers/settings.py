"""What can be set about a provider."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from operant.kit.secret import Secret
from operant.sdk import Price, Record

Protocol = Literal["openai", "responses", "anthropic", "gemini"]


class ModelSettings(Record, forbid_unknown_fields=True):
    """What is known of a model; what is left out is as in the catalogue."""

    window: Annotated[int | None, Meta(description="Context window in tokens.")] = None
    output: Annotated[int | None, Meta(description="Tokens that one answer may have.")] = None
    price: Annotated[Price | None, Meta(description="US dollars per million tokens.")] = None
    tools: Annotated[bool | None, Meta(description="Whether it can use tools.")] = None
    images: Annotated[bool | None, Meta(description="Whether it can see pictures.")] = None
    files: Annotated[bool | None, Meta(description="Whether it can read PDF files.")] = None
    reasoning: Annotated[bool | None, Meta(description="Whether it can think before it answers.")] = None


class ProviderSettings(Record, forbid_unknown_fields=True):
    """A server that answers for models."""

    protocol: Annotated[
        Protocol | None,
        Meta(description="What it speaks: `openai` (chat completions), `responses`, `anthropic` or `gemini`."),
    ] = None
    base_url: Annotated[
        str, Meta(description="Its address, up to and with the version, such as http://127.0.0.1:1234/v1.")
    ] = ""
    api_key: Annotated[Secret | None, Meta(description="The key, named and not written: ${OPENAI_API_KEY}.")] = None
    headers: Annotated[dict[str, str], Meta(description="Further headers of every request.")] = {}
    model: Annotated[str, Meta(description="The model that is used when an agent names none.")] = ""
    models: Annotated[
        dict[str, ModelSettings], Meta(description="What is known better of models, by name; `*` for all others.")
    ] = {}
    embedding: Annotated[str, Meta(description="The model that turns texts into vectors.")] = ""
    image_model: Annotated[str, Meta(description="The model that makes pictures.")] = ""
    window: Annotated[dict[str, int], Meta(description="Context window in tokens, by model; `*` for all others.")] = {}
    prices: Annotated[
        dict[str, Price], Meta(description="US dollars per million tokens, by model; `*` for all others.")
    ] = {}


Providers = dict[str, ProviderSettings]
