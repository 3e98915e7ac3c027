"""What Google refuses about a Gemini request whose types are right."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, cast

from operant.sdk.testing.wires.gemini_shape import Body, Content, FunctionCall, FunctionResponse, Generation, Part
from operant.sdk.testing.wires.rules import check_base64, check_names, check_schema, opened, parts_of
from operant.sdk.testing.wires.wire import Json, Wrong

_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}")
_TYPES = {"STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL"}
_SCHEMA = {
    *("type", "format", "title", "description", "nullable", "enum", "default", "example", "anyOf", "pattern"),
    *("properties", "required", "additionalProperties", "propertyOrdering", "minProperties", "maxProperties"),
    *("items", "prefixItems", "minItems", "maxItems", "minLength", "maxLength", "minimum", "maximum"),
    *("$ref", "$defs", "ref", "defs"),
}
_DUMMIES = {"skip_thought_signature_validator", "context_engineering_is_the_way_to_go"}
"""Signatures that the service takes for calls that another model has made."""


def check_rules(body: Body, *, signed: bool) -> None:
    """Raise `Wrong`; `signed` models want their signatures back."""
    if not body.contents:
        raise Wrong("* GenerateContentRequest.contents: contents is not specified")
    if body.system_instruction is not None and not body.system_instruction.parts:
        raise Wrong("* GenerateContentRequest.system_instruction.parts: parts must not be empty")
    _check_tools(body)
    if body.generation_config is not None:
        _check_generation(body.generation_config)
    for at, content in enumerate(body.contents):
        _check_content(content, f"contents[{at}]")
    contents = joined(body.contents)
    _check_turns(contents)
    if signed:
        _check_signatures(contents)


def joined(contents: Sequence[Content]) -> list[Content]:
    """Join contents of one side that follow each other."""
    found: list[Content] = []
    for content in contents:
        if found and (found[-1].role == "model") is (content.role == "model"):
            found[-1] = Content(parts=[*found[-1].parts, *content.parts], role=content.role)
        else:
            found.append(content)
    return found


def _check_tools(body: Body) -> None:
    declared = [one for tool in body.tools for one in tool.function_declarations]
    check_names([one.name for one in declared], _NAME, "tools.function_declarations")
    for one in declared:
        if one.parameters is not None and one.parameters_json_schema is not None:
            raise Wrong(f"function_declaration {one.name}: parameters and parameters_json_schema exclude each other")
        if one.parameters is not None:
            check_google_schema(one.parameters, f"tools.function_declarations.{one.name}.parameters")
        if one.parameters_json_schema is not None:
            check_schema(one.parameters_json_schema, f"tools.function_declarations.{one.name}.parameters_json_schema")
    calling = body.tool_config.function_calling_config if body.tool_config else None
    if calling is not None and calling.allowed_function_names:
        if calling.mode not in {"ANY", "VALIDATED"}:
            raise Wrong("allowed_function_names should only be set when function calling mode is ANY or VALIDATED.")
        unknown = set(calling.allowed_function_names) - {one.name for one in declared}
        if unknown:
            raise Wrong(f"allowed_function_names: {unknown.pop()!r} is not declared")


def check_google_schema(schema: Any, where: str) -> None:
    """Refuse what is no schema in Google's words, which know less than JSON Schema does."""
    if isinstance(schema, bool):
        return
    if not isinstance(schema, dict):
        raise Wrong(f"Invalid value at '{where}': a schema is an object")
    found = cast(Json, schema)
    for name in found:
        if name not in _SCHEMA:
            raise Wrong(f"Invalid JSON payload received. Unknown name \"{name}\" at '{where}': Cannot find field.")
    _check_values(found, where)
    for name, part in parts_of(found):
        check_google_schema(part, f"{where}.{name}")


def _check_values(found: Json, where: str) -> None:
    kind = found.get("type")
    if isinstance(kind, list) or (kind is not None and str(kind).upper() not in _TYPES):
        raise Wrong(f"Invalid value at '{where}.type': {kind!r}")
    if str(kind).upper() == "ARRAY" and "items" not in found:
        raise Wrong(f"* {where}.items: missing field.")
    for name in found.get("required", []):
        if name not in cast(Json, found.get("properties", {})):
            raise Wrong(f"* {where}.required: property is not defined: {name}")
    if any(not isinstance(value, str) for value in found.get("enum", [])):
        raise Wrong(f"Invalid value at '{where}.enum': only texts can be listed")


def _check_generation(asked: Generation) -> None:
    shapes = [one for one in (asked.response_schema, asked.response_json_schema) if one is not None]
    if len(shapes) > 1:
        raise Wrong("response_schema and response_json_schema exclude each other.")
    if shapes and asked.response_mime_type not in {"application/json", "text/x.enum"}:
        raise Wrong("response_schema requires response_mime_type application/json.")
    if asked.response_schema is not None:
        check_google_schema(asked.response_schema, "generation_config.response_schema")
    if asked.response_json_schema is not None:
        check_schema(asked.response_json_schema, "generation_config.response_json_schema")
    if asked.thinking_config and asked.thinking_config.thinking_budget and asked.thinking_config.thinking_level:
        raise Wrong("You can only set only one of thinking budget and thinking level.")


def _check_content(content: Content, where: str) -> None:
    if content.role not in {None, "user", "model", "function"}:
        raise Wrong("Please use a valid role: user, model.")
    if not content.parts:
        raise Wrong(f"* GenerateContentRequest.{where}.parts: contents.parts must not be empty.")
    for at, part in enumerate(content.parts):
        _check_part(part, f"{where}.parts[{at}]", mine=content.role == "model")


def _check_part(part: Part, where: str, *, mine: bool) -> None:
    if part.filled != 1:
        raise Wrong(
            f"* GenerateContentRequest.{where}.data: required oneof field 'data' must have one initialized field"
        )
    if part.function_call is not None and not mine:
        raise Wrong("Function call parts must be in a content with role 'model'.")
    if part.function_response is not None and mine:
        raise Wrong("Function response parts must be in a content with role 'user'.")
    blobs = [part.inline_data] if part.inline_data else []
    if part.function_response is not None:
        blobs += [one.inline_data for one in part.function_response.parts if one.inline_data]
    for blob in blobs:
        if "/" not in blob.mime_type:
            raise Wrong(f"Unsupported MIME type: {blob.mime_type}")
        check_base64(_plain(blob.data), f"{where}.inline_data.data")
    if part.thought_signature is not None and part.thought_signature not in _DUMMIES:
        _check_signature(part.thought_signature)


def _check_signature(signature: str) -> None:
    if opened(_plain(signature)) is None:
        raise Wrong("Corrupted thought signature.")


def _plain(data: str) -> str:
    """Return base64 with + and /: the service takes - and _ as well, and its SDK sends those."""
    return data.replace("-", "+").replace("_", "/")


def _calls(content: Content) -> list[FunctionCall]:
    return [part.function_call for part in content.parts if part.function_call is not None]


def _responses(content: Content) -> list[FunctionResponse]:
    return [part.function_response for part in content.parts if part.function_response is not None]


def _check_turns(contents: Sequence[Content]) -> None:
    """Refuse calls without responses, and responses without calls."""
    for at, content in enumerate(contents):
        if _calls(content) and at == 0:
            raise Wrong(
                "Please ensure that function call turn comes immediately after a user turn or after a function "
                "response turn."
            )
        asked = _calls(contents[at - 1]) if at else []
        brought = _responses(content)
        if brought and not asked:
            raise Wrong("Please ensure that function response turn comes immediately after a function call turn.")
        _check_brought(asked, brought)
    if contents[-1].role == "model":
        raise Wrong("Please ensure that multiturn requests end with a user role or a function response.")


def _check_brought(asked: Sequence[FunctionCall], brought: Sequence[FunctionResponse]) -> None:
    if len(asked) != len(brought):
        raise Wrong(
            "Please ensure that the number of function response parts is equal to the number of function call parts "
            "of the function call turn."
        )
    if sorted(call.name for call in asked) != sorted(one.name for one in brought):
        raise Wrong("Please ensure that the names of function responses match those of the function calls.")
    ids = {call.id for call in asked if call.id}
    unknown = next((one.id for one in brought if one.id and one.id not in ids), None)
    if unknown is not None:
        raise Wrong(f"Function response id {unknown} does not match any function call id.")


def _check_signatures(contents: Sequence[Content]) -> None:
    """Refuse calls of the current turn, which began where the user last said something, without signatures."""
    began = max((at for at, one in enumerate(contents) if one.role != "model" and _speaks(one)), default=0)
    for at, content in enumerate(contents[began:], began):
        first = next((part for part in content.parts if part.function_call is not None), None)
        if first is not None and first.function_call is not None and not first.thought_signature:
            raise Wrong(
                "Function call is missing a thought_signature in functionCall parts. This is required for tools to "
                "work correctly, and missing thought_signature may lead to degraded model performance. Additional "
                f"data, function call `{first.function_call.name}`, position {at}."
            )


def _speaks(content: Content) -> bool:
    return any(part.function_response is None for part in content.parts)
