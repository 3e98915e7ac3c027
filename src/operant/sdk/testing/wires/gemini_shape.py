"""The types of a request of the Google Gemini protocol; what it does not know is refused."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, cast

import msgspec

_DATA = {"args", "response", "parameters", "parametersJsonSchema", "responseSchema", "responseJsonSchema", "labels"}


def camel(value: Any) -> Any:
    """Spell names as the types here do: the service takes `functionCall` and `function_call`, its clients send both."""
    if isinstance(value, list):
        return [camel(one) for one in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    found: dict[str, Any] = {}
    for name, inner in cast("dict[str, Any]", value).items():
        spelled = re.sub(r"_([a-z])", lambda match: match[1].upper(), name)
        found[spelled] = inner if spelled in _DATA else camel(inner)
    return found


class Blob(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    """Bytes."""

    mime_type: str
    data: str
    display_name: str | None = None


class FunctionCall(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    """A call."""

    name: str
    args: dict[str, Any] = {}
    id: str | None = None


class ResponsePart(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    """Bytes that a call brought."""

    inline_data: Blob | None = None
    file_data: dict[str, Any] | None = None


class FunctionResponse(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    """What a call brought."""

    name: str
    response: dict[str, Any]
    id: str | None = None
    parts: list[ResponsePart] = []
    will_continue: bool | None = None
    scheduling: str | None = None


class Part(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    """One of many things."""

    text: str | None = None
    inline_data: Blob | None = None
    file_data: dict[str, Any] | None = None
    function_call: FunctionCall | None = None
    function_response: FunctionResponse | None = None
    executable_code: dict[str, Any] | None = None
    code_execution_result: dict[str, Any] | None = None
    thought: bool | None = None
    thought_signature: str | None = None
    video_metadata: dict[str, Any] | None = None
    media_resolution: Any = None

    @property
    def filled(self) -> int:
        """Return how many things this is."""
        things = (self.text, self.inline_data, self.file_data, self.function_call, self.function_response)
        return sum(one is not None for one in (*things, self.executable_code, self.code_execution_result))


class Content(msgspec.Struct, forbid_unknown_fields=True):
    """What one side said."""

    parts: list[Part]
    role: str | None = None


class System(msgspec.Struct, forbid_unknown_fields=True):
    """What holds for all of the conversation."""

    parts: list[Part]
    role: str | None = None


class Declaration(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    """A function."""

    name: str
    description: str = ""
    parameters: dict[str, Any] | None = None
    parameters_json_schema: dict[str, Any] | None = None
    response: dict[str, Any] | None = None
    response_json_schema: dict[str, Any] | None = None
    behavior: str | None = None


class Tool(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    """Functions, or tools of the service."""

    function_declarations: list[Declaration] = []
    google_search: dict[str, Any] | None = None
    code_execution: dict[str, Any] | None = None
    url_context: dict[str, Any] | None = None
    google_maps: dict[str, Any] | None = None
    file_search: dict[str, Any] | None = None


class Calling(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    """Whether functions must be called."""

    mode: Literal["AUTO", "ANY", "NONE", "VALIDATED", "MODE_UNSPECIFIED"] | None = None
    allowed_function_names: list[str] | None = None


class ToolConfig(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    """How tools are used."""

    function_calling_config: Calling | None = None
    retrieval_config: dict[str, Any] | None = None


class Thinking(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    """How long to think, and whether to show it."""

    include_thoughts: bool | None = None
    thinking_budget: int | None = None
    thinking_level: str | None = None


class Generation(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    """How to answer."""

    candidate_count: Literal[1] | None = None
    stop_sequences: list[str] | None = None
    max_output_tokens: Annotated[int, msgspec.Meta(ge=1)] | None = None
    temperature: Annotated[float, msgspec.Meta(ge=0, le=2)] | None = None
    top_p: float | None = None
    top_k: float | None = None
    seed: int | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    response_logprobs: bool | None = None
    logprobs: int | None = None
    response_mime_type: str | None = None
    response_schema: dict[str, Any] | None = None
    response_json_schema: Any = None
    response_modalities: list[Literal["TEXT", "IMAGE", "AUDIO"]] | None = None
    thinking_config: Thinking | None = None
    media_resolution: str | None = None
    speech_config: dict[str, Any] | None = None
    image_config: dict[str, Any] | None = None


class Body(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    """A whole request."""

    contents: list[Content]
    system_instruction: System | None = None
    tools: list[Tool] = []
    tool_config: ToolConfig | None = None
    generation_config: Generation | None = None
    safety_settings: list[dict[str, Any]] | None = None
    cached_content: str | None = None
    labels: dict[str, str] | None = None
