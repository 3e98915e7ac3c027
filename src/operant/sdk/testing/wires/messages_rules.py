"""What Anthropic refuses about a request whose types are right."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from operant.sdk.testing.wires.messages_shape import (
    Block,
    Body,
    Bytes,
    Cache,
    DocumentBlock,
    ImageBlock,
    Message,
    RedactedBlock,
    ResultBlock,
    TextBlock,
    ThinkingBlock,
    Tool,
    UseBlock,
)
from operant.sdk.testing.wires.rules import (
    check_base64,
    check_closed,
    check_names,
    check_parameters,
    check_schema,
    opened,
)
from operant.sdk.testing.wires.wire import Wrong

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_MARKERS = 4


def check_rules(body: Body) -> None:
    """Raise `Wrong`."""
    _check_options(body)
    _check_tools(body)
    _check_markers(body)
    if isinstance(body.system, list):
        for block in body.system:
            _check_text(block, "system")
    turns = _turns(body.messages)
    _check_order(body.messages)
    for at, turn in enumerate(turns):
        _check_results(at, turns[at - 1] if at else [], turn)
        for number, block in enumerate(turn):
            _check_block(block, f"messages.{at}.content.{number}", mine=at % 2 == 1)
    if body.thinking is not None and body.thinking.type == "enabled":
        _check_thought_first(turns)


def blocks_of(content: str | Sequence[Block]) -> list[Block]:
    """Return the blocks of a message; words alone are one."""
    return [TextBlock(text=content)] if isinstance(content, str) else list(content)


def _turns(messages: Iterable[Message]) -> list[list[Block]]:
    """Join messages of one side that follow each other, as the service does: user, assistant, user and so on."""
    turns: list[list[Block]] = []
    last = ""
    for message in messages:
        if message.role != last:
            turns.append([])
        last = message.role
        turns[-1] += blocks_of(message.content)
    return turns


def _check_order(messages: Sequence[Message]) -> None:
    for at, message in enumerate(messages):
        if message.role == "system":
            raise Wrong(
                'messages: Unexpected role "system". The Messages API accepts a top-level `system` parameter, '
                'not "system" as an input message role.'
            )
        if message.role not in {"user", "assistant"}:
            raise Wrong(f"messages.{at}.role: Input should be 'user' or 'assistant'")
        if not message.content:
            raise Wrong(f"messages.{at}: all messages must have non-empty content")
    if messages[0].role != "user":
        raise Wrong('messages: first message must use the "user" role')
    if messages[-1].role != "user":
        raise Wrong(
            "This model does not support assistant message prefill. The conversation must end with a user message."
        )


def _check_options(body: Body) -> None:
    thinking = body.thinking
    if thinking is not None and thinking.type == "enabled":
        if thinking.budget_tokens is None:
            raise Wrong("thinking.enabled.budget_tokens: Field required")
        if thinking.budget_tokens >= body.max_tokens:
            raise Wrong("`max_tokens` must be greater than `thinking.budget_tokens`.")
    if thinking is not None and thinking.type != "disabled":
        if body.temperature not in {None, 1.0}:
            raise Wrong("`temperature` may only be set to 1 when thinking is enabled or in adaptive mode.")
        if body.tool_choice is not None and body.tool_choice.type in {"any", "tool"}:
            raise Wrong("Thinking may not be enabled when tool_choice forces tool use.")
    if body.output_format is not None and body.output_config is not None and body.output_config.format is not None:
        raise Wrong("output_format: cannot be given together with output_config.format")
    wanted = body.output_format or (body.output_config.format if body.output_config else None)
    if wanted is not None:
        check_schema(wanted.schema, "output_config.format.schema")
        check_closed(wanted.schema, "output_config.format.schema", all_required=False)


def _check_tools(body: Body) -> None:
    check_names([tool.name for tool in body.tools], _NAME)
    for tool in body.tools:
        _check_tool(tool)
    choice = body.tool_choice
    if choice is None:
        return
    if not body.tools:
        raise Wrong("tool_choice may only be specified while providing tools.")
    if (choice.type == "tool") != (choice.name is not None):
        raise Wrong("tool_choice.name: is for, and required by, the type 'tool'")
    if choice.name is not None and choice.name not in {tool.name for tool in body.tools}:
        raise Wrong(f"Tool '{choice.name}' not found in provided tools")


def _check_tool(tool: Tool) -> None:
    if tool.type not in {None, "custom"}:
        return
    if tool.input_schema is None:
        raise Wrong(f"tools.{tool.name}.custom.input_schema: Field required")
    check_parameters(tool.input_schema, f"tools.{tool.name}.custom.input_schema")
    if any(name in tool.input_schema for name in ("oneOf", "allOf", "anyOf")):
        raise Wrong(
            f"tools.{tool.name}.custom.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top "
            "level"
        )
    if tool.strict:
        check_closed(tool.input_schema, f"tools.{tool.name}.custom.input_schema", all_required=False)


def _check_markers(body: Body) -> None:
    found = list(markers(body))
    if len(found) > _MARKERS:
        raise Wrong(f"A maximum of {_MARKERS} blocks with cache_control may be provided. Found {len(found)}.")
    lives = [one.ttl for one in found]
    if "1h" in lives[lives.index("5m") :] if "5m" in lives else False:
        raise Wrong("a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block")


def markers(body: Body) -> Iterator[Cache]:
    """Yield the cache markers, in the order in which a request is read: tools, system, messages."""
    for tool in body.tools:
        if tool.cache_control is not None:
            yield tool.cache_control
    for block in body.system if isinstance(body.system, list) else ():
        if block.cache_control is not None:
            yield block.cache_control
    for message in body.messages:
        for block in blocks_of(message.content):
            yield from _marked(block)
    if body.cache_control is not None:
        yield body.cache_control


def _marked(block: Block) -> Iterator[Cache]:
    if isinstance(block, ThinkingBlock | RedactedBlock):
        return
    if isinstance(block, ResultBlock) and not isinstance(block.content, str):
        for inner in block.content:
            yield from _marked(inner)
    if block.cache_control is not None:
        yield block.cache_control


def _check_results(at: int, before: Sequence[Block], turn: Sequence[Block]) -> None:
    """Refuse calls without results right after them, and results without calls right before them."""
    asked = [block.id for block in before if isinstance(block, UseBlock)]
    results = [block.tool_use_id for block in turn if isinstance(block, ResultBlock)]
    lead = 0
    while lead < len(turn) and isinstance(turn[lead], ResultBlock):
        lead += 1
    if len(set(asked)) < len(asked):
        raise Wrong("messages: `tool_use` ids must be unique")
    for id in results:
        if id not in asked:
            raise Wrong(
                f"messages.{at}.content: unexpected `tool_use_id` found in `tool_result` blocks: {id}. Each "
                "`tool_result` block must have a corresponding `tool_use` block in the previous message."
            )
    if len(set(results)) < len(results):
        raise Wrong(f"messages.{at}.content: each tool_use must have a single result.")
    missing = [id for id in asked if id not in results[:lead]]
    if missing:
        raise Wrong(
            f"messages.{at - 1}: `tool_use` ids were found without `tool_result` blocks immediately after: "
            f"{', '.join(missing)}. Each `tool_use` block must have a corresponding `tool_result` block in the next "
            "message."
        )


def _check_block(block: Block, where: str, *, mine: bool) -> None:
    """Refuse what one block says; `mine` is what the model has said."""
    if isinstance(block, ThinkingBlock | RedactedBlock | UseBlock) and not mine:
        raise Wrong(f"{where}: `{_tag(block)}` blocks can only be in `assistant` messages")
    if isinstance(block, ResultBlock | ImageBlock | DocumentBlock) and mine:
        raise Wrong(f"{where}: `{_tag(block)}` blocks can only be in `user` messages")
    if isinstance(block, TextBlock):
        _check_text(block, where)
    elif isinstance(block, ThinkingBlock | RedactedBlock):
        _check_thought(block, where)
    elif isinstance(block, ImageBlock | DocumentBlock):
        _check_source(block, where)
    elif isinstance(block, ResultBlock):
        for inner in block.content if not isinstance(block.content, str) else ():
            _check_block(inner, f"{where}.tool_result.content", mine=False)


def _check_thought(block: ThinkingBlock | RedactedBlock, where: str) -> None:
    if isinstance(block, RedactedBlock):
        if opened(block.data) is None:
            raise Wrong(f"{where}: Invalid `data` in `redacted_thinking` block")
        return
    signed = opened(block.signature)
    if signed is None or block.thinking not in {signed, ""}:
        raise Wrong(f"{where}: Invalid `signature` in `thinking` block")


def _check_text(block: TextBlock, where: str) -> None:
    if not block.text:
        if block.cache_control is not None:
            raise Wrong(f"{where}.text: cache_control cannot be set for empty text blocks")
        raise Wrong("messages: text content blocks must be non-empty")
    if not block.text.strip():
        raise Wrong("messages: text content blocks must contain non-whitespace text")


def _check_source(block: ImageBlock | DocumentBlock, where: str) -> None:
    kind = "image" if isinstance(block, ImageBlock) else "document"
    if not isinstance(block.source, Bytes):
        return
    if (block.source.media_type == "application/pdf") is (kind == "image"):
        raise Wrong(f"{where}.{kind}.source.base64.media_type: {block.source.media_type!r} is not for this block")
    check_base64(block.source.data, f"{where}.{kind}.source.base64")


def _check_thought_first(turns: Sequence[Sequence[Block]]) -> None:
    """Refuse a reply with calls that has lost the thinking before them, while its results are what is asked about."""
    if len(turns) < 2 or not any(isinstance(block, UseBlock) for block in turns[-2]):
        return
    first = turns[-2][0]
    if not isinstance(first, ThinkingBlock | RedactedBlock):
        raise Wrong(
            f"messages.{len(turns) - 2}.content.0.type: Expected `thinking` or `redacted_thinking`, but found "
            f"`{_tag(first)}`. When `thinking` is enabled, a final `assistant` message must start with a thinking "
            "block."
        )


def _tag(block: Block) -> str:
    return str(type(block).__struct_config__.tag)
