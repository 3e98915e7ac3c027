"""The types of a request of the OpenAI responses protocol; what it does not know is refused."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

_Status = Literal["in_progress", "completed", "incomplete"]
_Include = Literal[
    "file_search_call.results",
    "web_search_call.results",
    "web_search_call.action.sources",
    "message.input_image.image_url",
    "computer_call_output.output.image_url",
    "code_interpreter_call.outputs",
    "reasoning.encrypted_content",
    "message.output_text.logprobs",
]


class InputText(msgspec.Struct, tag="input_text", forbid_unknown_fields=True):
    """Words for the model."""

    text: str
    prompt_cache_breakpoint: dict[str, Any] | None = None


class InputImage(msgspec.Struct, tag="input_image", forbid_unknown_fields=True):
    """A picture for the model."""

    image_url: str | None = None
    file_id: str | None = None
    detail: Literal["low", "high", "auto", "original"] | None = None
    prompt_cache_breakpoint: dict[str, Any] | None = None


class InputFile(msgspec.Struct, tag="input_file", forbid_unknown_fields=True):
    """A file for the model."""

    file_data: str | None = None
    file_id: str | None = None
    file_url: str | None = None
    filename: str | None = None
    detail: str | None = None
    prompt_cache_breakpoint: dict[str, Any] | None = None


class OutputText(msgspec.Struct, tag="output_text", forbid_unknown_fields=True):
    """Words of the model."""

    text: str
    annotations: list[Any] = []
    logprobs: list[Any] | None = None


class Refusal(msgspec.Struct, tag="refusal", forbid_unknown_fields=True):
    """Words with which the model declined."""

    refusal: str


class Message(msgspec.Struct, tag="message", forbid_unknown_fields=True):
    """What somebody said."""

    role: Literal["user", "assistant", "system", "developer"]
    content: str | list[InputText | InputImage | InputFile | OutputText | Refusal]
    id: str | None = None
    status: _Status | None = None
    phase: Literal["commentary", "final_answer"] | None = None


class FunctionCall(msgspec.Struct, tag="function_call", forbid_unknown_fields=True):
    """A call."""

    call_id: Annotated[str, msgspec.Meta(min_length=1, max_length=64)]
    name: Annotated[str, msgspec.Meta(pattern=r"^[a-zA-Z0-9_-]{1,128}$")]
    arguments: str
    id: str | None = None
    status: _Status | None = None
    namespace: str | None = None
    caller: dict[str, Any] | None = None


class CallOutput(msgspec.Struct, tag="function_call_output", forbid_unknown_fields=True):
    """What a call brought."""

    call_id: Annotated[str, msgspec.Meta(min_length=1, max_length=64)]
    output: str | list[InputText | InputImage | InputFile]
    id: str | None = None
    status: _Status | None = None


class Summary(msgspec.Struct, tag="summary_text", forbid_unknown_fields=True):
    """A part of what may be read of the reasoning."""

    text: str


class Thought(msgspec.Struct, tag="reasoning_text", forbid_unknown_fields=True):
    """A part of the reasoning itself."""

    text: str


class Reasoning(msgspec.Struct, tag="reasoning", forbid_unknown_fields=True):
    """Reasoning that was given before."""

    summary: list[Summary]
    id: str | None = None
    encrypted_content: str | None = None
    content: list[Thought] | None = None
    status: _Status | None = None


Item = Message | FunctionCall | CallOutput | Reasoning


class Tool(msgspec.Struct):
    """A function, or a tool of the service."""

    type: str
    name: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None
    description: str | None = None


class Thinking(msgspec.Struct):
    """How long to think, and what to show of it."""

    effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None = None
    summary: Literal["auto", "concise", "detailed"] | None = None


class Text(msgspec.Struct, forbid_unknown_fields=True):
    """What the answer must be."""

    format: dict[str, Any] | None = None
    verbosity: Literal["low", "medium", "high"] | None = None


class Body(msgspec.Struct, forbid_unknown_fields=True):
    """A whole request."""

    model: Annotated[str, msgspec.Meta(min_length=1)]
    input: str | list[Item]
    instructions: str | None = None
    tools: list[Tool] | None = None
    tool_choice: Literal["none", "auto", "required"] | dict[str, Any] | None = None
    parallel_tool_calls: bool | None = None
    include: list[_Include] | None = None
    reasoning: Thinking | None = None
    text: Text | None = None
    max_output_tokens: Annotated[int, msgspec.Meta(ge=16)] | None = None
    max_tool_calls: int | None = None
    stream: bool | None = None
    stream_options: dict[str, Any] | None = None
    store: bool | None = None
    temperature: Annotated[float, msgspec.Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    top_logprobs: int | None = None
    previous_response_id: str | None = None
    conversation: str | dict[str, Any] | None = None
    metadata: dict[str, str] | None = None
    prompt_cache_key: str | None = None
    prompt_cache_options: dict[str, Any] | None = None
    prompt_cache_retention: Literal["in_memory", "24h"] | None = None
    safety_identifier: str | None = None
    service_tier: str | None = None
    truncation: Literal["auto", "disabled"] | None = None
    background: bool | None = None
    user: str | None = None
