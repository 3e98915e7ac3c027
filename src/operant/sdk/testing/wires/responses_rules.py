"""What OpenAI refuses about a responses request whose types are right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from operant.sdk.testing.wires.chat import check_answer_schema, check_tools
from operant.sdk.testing.wires.responses_shape import (
    Body,
    CallOutput,
    FunctionCall,
    InputFile,
    InputImage,
    InputText,
    Item,
    Message,
    OutputText,
    Reasoning,
    Refusal,
)
from operant.sdk.testing.wires.rules import check_base64, check_picture_url, opened
from operant.sdk.testing.wires.wire import Json, Wrong

_ITEMS = {"message", "function_call", "function_call_output", "reasoning"}


def check_kinds(input: Any) -> Any:
    """Return the input with the type of every item, which a message may leave out. Raises `Wrong` for unknown types."""
    if not isinstance(input, list):
        return input
    found: list[Any] = []
    for at, item in enumerate(cast("list[Any]", input)):
        kind = cast(Json, item).get("type", "message") if isinstance(item, dict) else None
        if kind not in _ITEMS:
            raise Wrong(f"Invalid value: {kind!r}. Supported values are: {', '.join(sorted(_ITEMS))} (input[{at}])")
        found.append({"type": "message", **cast(Json, item)})
    return found


def check_rules(body: Body, thought: Mapping[str, str]) -> None:
    """Raise `Wrong`; `thought` is the reasoning that was given encrypted before a call, by the call's id."""
    if body.previous_response_id is not None:
        raise Wrong(f"Previous response with id '{body.previous_response_id}' not found.")
    if not body.input:
        raise Wrong("Missing required parameter: 'input'.")
    _check_tools(body)
    if body.text is not None and body.text.format is not None:
        _check_format(body.text.format)
    if isinstance(body.input, str):
        return
    for at, item in enumerate(body.input):
        _check_id(at, item)
        if isinstance(item, Message):
            _check_message(at, item)
        elif isinstance(item, CallOutput) and not isinstance(item.output, str):
            for number, part in enumerate(item.output):
                _check_part(part, f"input[{at}].output[{number}]")
    _check_unique([item.id for item in body.input if item.id is not None])
    _check_pairs(body.input)
    _check_reasoning(body.input, thought, stored=body.store is not False)


def _check_tools(body: Body) -> None:
    functions: list[Json] = []
    for at, tool in enumerate(body.tools or ()):
        if tool.type != "function":
            continue
        if tool.name is None:
            raise Wrong(f"Missing required parameter: 'tools[{at}].name'.")
        functions.append({"name": tool.name, "parameters": tool.parameters, "strict": tool.strict})
    check_tools(functions)
    if isinstance(body.tool_choice, dict) and body.tool_choice.get("type") == "function":
        name = body.tool_choice.get("name")
        if name not in {tool["name"] for tool in functions}:
            raise Wrong(f"Tool choice '{name}' not found in 'tools' parameter.")


def _check_format(asked: Json) -> None:
    kind = asked.get("type")
    if kind not in {"text", "json_object", "json_schema"}:
        raise Wrong(f"Invalid value: {kind!r}. Supported values are: 'text', 'json_object' and 'json_schema'.")
    if kind == "json_schema":
        check_answer_schema(asked, "text.format")


def _check_id(at: int, item: Item) -> None:
    """Refuse ids that another kind of item has."""
    begins = {Message: "msg", FunctionCall: "fc", CallOutput: "fc", Reasoning: "rs"}[type(item)]
    if item.id is not None and not item.id.startswith(begins):
        raise Wrong(f"Invalid 'input[{at}].id': '{item.id}'. Expected an ID that begins with '{begins}'.")


def _check_message(at: int, message: Message) -> None:
    if not message.content and message.role != "assistant":
        raise Wrong(f"Invalid 'input[{at}].content': it is empty.")
    if isinstance(message.content, str):
        return
    mine = message.role == "assistant"
    for number, part in enumerate(message.content):
        where = f"input[{at}].content[{number}]"
        if isinstance(part, OutputText | Refusal) is not mine:
            right = "'output_text' and 'refusal'" if mine else "'input_text', 'input_image' and 'input_file'"
            raise Wrong(
                f"Invalid value: '{type(part).__struct_config__.tag}' at {where}. Supported values are: {right}."
            )
        if isinstance(part, InputText | InputImage | InputFile):
            _check_part(part, where)


def _check_part(part: InputText | InputImage | InputFile, where: str) -> None:
    if isinstance(part, InputImage):
        if (part.image_url is None) is (part.file_id is None):
            raise Wrong(f"{where}: exactly one of 'image_url' and 'file_id' is needed")
        if part.image_url is not None:
            check_picture_url(part.image_url, f"{where}.image_url")
    elif isinstance(part, InputFile):
        if part.file_data is not None:
            if part.filename is None:
                raise Wrong(f"Missing required parameter: '{where}.filename'.")
            check_base64(part.file_data.partition(";base64,")[2], f"{where}.file_data")
        elif part.file_id is None and part.file_url is None:
            raise Wrong(f"{where}: one of 'file_data', 'file_id' and 'file_url' is needed")


def _check_unique(ids: Sequence[str]) -> None:
    if len(set(ids)) < len(ids):
        twice = next(id for id in ids if ids.count(id) > 1)
        raise Wrong(f"Duplicate item found with id {twice}. Remove duplicate items from your input and try again.")


def _check_pairs(items: Sequence[Item]) -> None:
    """Refuse outputs without calls, and calls without outputs."""
    open_calls: dict[str, bool] = {}
    for item in items:
        if isinstance(item, FunctionCall):
            if item.call_id in open_calls:
                raise Wrong(f"Duplicate function call with call_id {item.call_id}.")
            open_calls[item.call_id] = True
        elif isinstance(item, CallOutput):
            if not open_calls.get(item.call_id):
                raise Wrong(f"No tool call found for function call output with call_id {item.call_id}.")
            open_calls[item.call_id] = False
    missing = next((call_id for call_id, waits in open_calls.items() if waits), None)
    if missing is not None:
        raise Wrong(f"No tool output found for function call {missing}.")


def _check_reasoning(items: Sequence[Item], thought: Mapping[str, str], *, stored: bool) -> None:
    """Refuse reasoning that is not ours or has lost what followed it, and calls that have lost their reasoning."""
    near = ""
    for at, item in enumerate(items):
        match item:
            case Reasoning():
                near = _seal(item, stored=stored)
                after = items[at + 1] if at + 1 < len(items) else None
                if not isinstance(after, FunctionCall | Reasoning) and not _said(after):
                    raise Wrong(
                        f"Item '{item.id}' of type 'reasoning' was provided without its required following item."
                    )
            case FunctionCall() if thought.get(item.call_id, near) != near:
                raise Wrong(
                    f"Item '{item.id or item.call_id}' of type 'function_call' was provided without its required "
                    "'reasoning' item."
                )
            case Message() if not _said(item):
                near = ""
            case _:
                pass


def _said(item: Item | None) -> bool:
    return isinstance(item, Message) and item.role == "assistant"


def _seal(item: Reasoning, *, stored: bool) -> str:
    if item.encrypted_content is None:
        if not stored:
            raise Wrong(
                f"Item with id '{item.id}' not found. Items are not persisted when `store` is set to false.", 404
            )
        return ""
    if opened(item.encrypted_content) is None:
        raise Wrong(f"The encrypted content for item {item.id} could not be verified.")
    return item.encrypted_content
