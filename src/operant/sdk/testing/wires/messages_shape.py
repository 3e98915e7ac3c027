"""The types of a request of the Anthropic messages protocol; what it does not know is refused."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

_Picture = Literal["image/jpeg", "image/png", "image/gif", "image/webp"]


class Cache(msgspec.Struct, forbid_unknown_fields=True):
    """A marker: keep what stands before and here."""

    type: Literal["ephemeral"]
    ttl: Literal["5m", "1h"] = "5m"


class Bytes(msgspec.Struct, tag="base64", forbid_unknown_fields=True):
    """A picture or a PDF."""

    media_type: _Picture | Literal["application/pdf"]
    data: str


class Words(msgspec.Struct, tag="text", forbid_unknown_fields=True):
    """A document in plain words."""

    media_type: Literal["text/plain"]
    data: str


class Url(msgspec.Struct, tag="url", forbid_unknown_fields=True):
    """A file on the web."""

    url: str


class File(msgspec.Struct, tag="file", forbid_unknown_fields=True):
    """A file that was uploaded."""

    file_id: str


class TextBlock(msgspec.Struct, tag="text", forbid_unknown_fields=True):
    """Words."""

    text: str
    cache_control: Cache | None = None
    citations: list[Any] | None = None


class ImageBlock(msgspec.Struct, tag="image", forbid_unknown_fields=True):
    """A picture."""

    source: Bytes | Url | File
    cache_control: Cache | None = None


class DocumentBlock(msgspec.Struct, tag="document", forbid_unknown_fields=True):
    """A document."""

    source: Bytes | Words | Url | File
    title: str | None = None
    context: str | None = None
    citations: dict[str, Any] | None = None
    cache_control: Cache | None = None


class ThinkingBlock(msgspec.Struct, tag="thinking", forbid_unknown_fields=True):
    """Reasoning, with the signature that was given for it."""

    thinking: str
    signature: str


class RedactedBlock(msgspec.Struct, tag="redacted_thinking", forbid_unknown_fields=True):
    """Reasoning that is only there encrypted."""

    data: str


class UseBlock(msgspec.Struct, tag="tool_use", forbid_unknown_fields=True):
    """A call."""

    id: Annotated[str, msgspec.Meta(pattern=r"^[a-zA-Z0-9_-]+$")]
    name: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
    input: dict[str, Any]
    cache_control: Cache | None = None
    caller: dict[str, Any] | None = None


class ResultBlock(msgspec.Struct, tag="tool_result", forbid_unknown_fields=True):
    """What a call brought."""

    tool_use_id: str
    content: str | list[TextBlock | ImageBlock | DocumentBlock] = ""
    is_error: bool | None = None
    cache_control: Cache | None = None


Block = TextBlock | ImageBlock | DocumentBlock | ThinkingBlock | RedactedBlock | UseBlock | ResultBlock


class Message(msgspec.Struct, forbid_unknown_fields=True):
    """What one side said."""

    role: str
    content: str | list[Block]


class Tool(msgspec.Struct, forbid_unknown_fields=True):
    """A tool of the client, or one of the service's own, which has its version as its type."""

    name: str
    input_schema: dict[str, Any] | None = None
    description: str | None = None
    type: str | None = None
    strict: bool | None = None
    cache_control: Cache | None = None
    defer_loading: bool | None = None
    eager_input_streaming: bool | None = None
    input_examples: list[dict[str, Any]] | None = None
    allowed_callers: list[str] | None = None
    max_uses: int | None = None


class Choice(msgspec.Struct, forbid_unknown_fields=True):
    """Which tool must be called."""

    type: Literal["auto", "any", "tool", "none"]
    name: str | None = None
    disable_parallel_tool_use: bool | None = None


class Thinking(msgspec.Struct, forbid_unknown_fields=True):
    """How long to think."""

    type: Literal["enabled", "disabled", "adaptive", "between_tools"]
    budget_tokens: Annotated[int, msgspec.Meta(ge=1024)] | None = None
    display: Literal["summarized", "omitted"] | None = None


class Format(msgspec.Struct, forbid_unknown_fields=True):
    """What the answer must be."""

    type: Literal["json_schema"]
    schema: dict[str, Any]


class Output(msgspec.Struct, forbid_unknown_fields=True):
    """How to answer."""

    effort: Literal["low", "medium", "high", "xhigh", "max"] | None = None
    format: Format | None = None


class Body(msgspec.Struct, forbid_unknown_fields=True):
    """A whole request."""

    model: Annotated[str, msgspec.Meta(min_length=1)]
    max_tokens: Annotated[int, msgspec.Meta(ge=1)]
    messages: Annotated[list[Message], msgspec.Meta(min_length=1)]
    system: str | list[TextBlock] | None = None
    tools: list[Tool] = []
    tool_choice: Choice | None = None
    thinking: Thinking | None = None
    output_config: Output | None = None
    output_format: Format | None = None
    cache_control: Cache | None = None
    stream: bool = False
    temperature: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    top_p: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    top_k: Annotated[int, msgspec.Meta(ge=0)] | None = None
    stop_sequences: list[str] | None = None
    metadata: dict[str, Any] | None = None
    service_tier: Literal["auto", "standard_only"] | None = None
    speed: Literal["standard", "fast"] | None = None
    container: Any = None
    context_management: Any = None
    inference_geo: str | None = None
    mcp_servers: list[Any] | None = None
