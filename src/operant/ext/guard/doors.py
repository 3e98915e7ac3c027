"""Where the guard stands: before tools, before the history, before messages, before child processes."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, cast

import msgspec

from operant.ext.guard.approval import decide, main_argument
from operant.ext.guard.envelope import enveloped, from_outside
from operant.ext.guard.environment import without_secrets
from operant.ext.guard.question import question_about
from operant.ext.guard.redaction import MARK, Redactor
from operant.sdk import (
    APPEND_BEFORE,
    MESSAGE_BEFORE,
    TOOL_AFTER,
    TOOL_BEFORE,
    TOOL_ENV,
    AppendInput,
    AppendOutput,
    Ask,
    EnvInput,
    EnvOutput,
    Host,
    Ids,
    Json,
    MessageOutput,
    Part,
    Record,
    Reject,
    Text,
    ToolAfterInput,
    ToolAfterOutput,
    ToolInput,
    ToolOutput,
)

SEAL_LAST = -1000
"""After what shortens: an envelope is whole, or it is none."""
_WORDLESS = frozenset({"turn.started", "context.opened", "message.delivered"})
"""Events in which nobody can have written anything."""


class GuardSettings(Record):
    """Values that must never be shown; the application fills them in, nobody writes them down."""

    redact: tuple[str, ...] = ()


@asynccontextmanager
async def setup(host: Host, settings: GuardSettings) -> AsyncGenerator[None]:
    """Stand guard while the context is open."""
    guard = Guard(settings.redact, host.ids)
    host.hook(TOOL_BEFORE, guard.tool, phase="validate", fail="closed")
    host.hook(TOOL_AFTER, guard.result, priority=-100, fail="closed")
    host.hook(TOOL_AFTER, guard.seal, priority=SEAL_LAST, fail="closed")
    host.hook(TOOL_ENV, guard.environment, priority=-100, fail="closed")
    host.hook(APPEND_BEFORE, guard.append, priority=-100, fail="closed")
    host.hook(MESSAGE_BEFORE, guard.message, priority=-100, fail="closed")
    yield


class Guard:
    """The handlers; they keep nothing between calls."""

    def __init__(self, secrets: tuple[str, ...], ids: Ids) -> None:
        self._ids = ids
        self._log = Redactor(secrets)
        self._out = Redactor(secrets, encoded=True)

    async def tool(self, input: ToolInput, output: ToolOutput) -> Ask | Reject | None:
        """Decide about a call by the agent's approval map."""
        if input.spec.effect != "read" and _mentions(output.arguments, MARK):
            return Reject(
                reason=f"{MARK} stands for a value that was taken out; this would write the mark in its place. "
                "Leave that place as it is, or name the value by its environment variable."
            )
        ruling = decide(input.agent.approval, input.spec, output.arguments)
        if ruling.answer == "deny":
            return Reject(reason=f"{input.name} is denied to {input.agent.name}: {ruling.why}.")
        if ruling.answer == "ask":
            shown = main_argument(input.spec, output.arguments)
            return Ask(question=question_about(input.agent.name, input.name, shown, output.arguments))
        return None

    async def result(self, output: ToolAfterOutput) -> ToolAfterOutput | None:
        """Take secrets out of a result before anybody keeps it."""
        parts = self._clean(output.result.parts)
        if parts is output.result.parts:
            return None
        return ToolAfterOutput(result=msgspec.structs.replace(output.result, parts=parts))

    async def seal(self, input: ToolAfterInput, output: ToolAfterOutput) -> ToolAfterOutput | None:
        """Put what somebody else wrote into an envelope."""
        if not from_outside(output.result):
            return None
        parts = tuple(
            Text(text=enveloped(part.text, input.name, self._ids.new()[-12:])) if isinstance(part, Text) else part
            for part in output.result.parts
        )
        return ToolAfterOutput(result=msgspec.structs.replace(output.result, parts=parts))

    async def environment(self, input: EnvInput, output: EnvOutput) -> EnvOutput | None:
        """Take keys out of a child's environment."""
        env = without_secrets(output.env, self._out)
        return None if env == output.env else EnvOutput(env=env)

    async def append(self, input: AppendInput, output: AppendOutput) -> AppendOutput | None:
        """Take secrets out of an event."""
        if input.type in _WORDLESS:
            return None
        if not self._log.suspects(output.body):
            return None
        body: Json = msgspec.json.decode(output.body)
        cleaned = self._log.clean_json(body)
        return None if cleaned is body else AppendOutput(body=msgspec.json.encode(cleaned).decode())

    async def message(self, output: MessageOutput) -> MessageOutput | None:
        """Take secrets out of what a person is shown."""
        parts = self._clean(output.parts)
        return None if parts is output.parts else MessageOutput(parts=parts)

    def _clean(self, parts: tuple[Part, ...]) -> tuple[Part, ...]:
        cleaned = tuple(self._clean_part(part) for part in parts)
        changed = any(after is not before for after, before in zip(cleaned, parts, strict=True))
        return cleaned if changed else parts

    def _clean_part(self, part: Part) -> Part:
        if not isinstance(part, Text):
            return part
        text = self._out.clean(part.text)
        return part if text is part.text else Text(text=text)


def _mentions(value: Any, word: str) -> bool:
    if isinstance(value, str):
        return word in value
    if isinstance(value, dict):
        return any(_mentions(one, word) for one in cast(Json, value).values())
    return isinstance(value, list) and any(_mentions(one, word) for one in cast(list[Any], value))
