"""The one door to every effect: every tool call of every origin passes here, in one order.

exists and permitted → arguments fit → `tool.before` → approval → run → `tool.after`. What is refused comes back as a
result that says why.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

import msgspec

from operant.kernel.errors import Conflict, Invalid, OperantError
from operant.kernel.hooks import Hooks
from operant.kernel.points import (
    TOOL_AFTER,
    TOOL_BEFORE,
    Ask,
    Reject,
    ToolAfterInput,
    ToolAfterOutput,
    ToolInput,
    ToolOutput,
)
from operant.kernel.ports import CallContext, Tool, Toolbox
from operant.kernel.records import Agent, Json, Note, Outcome, Record, Text, ToolCall, ToolResult, ToolSpec
from operant.kernel.standing import MALFORMED, digest_of

_log = logging.getLogger("operant.gate")


class Admitted(Record):
    """A call that may run, with the arguments that the hooks left it."""

    tool: Any
    arguments: Json
    notes: tuple[Note, ...] = ()


class Question(Record):
    """A call that a person must decide about; `digest` binds the answer to these arguments."""

    tool: Any
    arguments: Json
    digest: str
    question: str
    notes: tuple[Note, ...] = ()


class _Forwarded(Record):
    name: str
    arguments: Json = {}


class Answered(Record):
    """A call that does not run: refused, or answered by a hook."""

    result: ToolResult
    notes: tuple[Note, ...] = ()


Admission = Admitted | Question | Answered


def permitted(agent: Agent, name: str) -> bool:
    """Tell whether an agent may use a tool; a deny wins over an allow."""
    rules = agent.permissions
    allowed = "*" in rules.tools or any(fnmatchcase(name, rule) for rule in rules.tools)
    return allowed and not (rules.deny and any(fnmatchcase(name, rule) for rule in rules.deny))


class Gate:
    """Hold the tools and decide about calls."""

    def __init__(self, hooks: Hooks) -> None:
        self._hooks = hooks
        self._tools: dict[str, Tool] = {}
        self._boxes: list[Toolbox] = []

    def register(self, tool: Tool) -> None:
        """Add a tool. Raises `Conflict` when its name is taken."""
        if tool.spec.name in self._tools:
            raise Conflict(f"There is already a tool {tool.spec.name}.")
        self._tools[tool.spec.name] = tool

    def add(self, box: Toolbox) -> None:
        """Add tools that come and go."""
        self._boxes.append(box)

    def offered(self, agent: Agent | None, session: str = "") -> tuple[ToolSpec, ...]:
        """List the tools that an agent may use, by name (None: all that every agent has)."""
        tools = self._of(agent, session) if agent else self._tools
        return tuple(tool.spec for name, tool in sorted(tools.items()) if agent is None or permitted(agent, name))

    def shown(self, agent: Agent, session: str) -> tuple[ToolSpec, ...]:
        """List what a model is told about: without the deferred tools, where another one reaches them."""
        offered = self.offered(agent, session)
        reach = any(spec.forwards for spec in offered)
        return tuple(spec for spec in offered if not (reach and spec.deferred))

    def meant(self, agent: Agent, session: str, call: ToolCall) -> ToolCall:
        """Return the call that a forwarding one stands for; any other as it is."""
        tool = self._of(agent, session).get(call.name)
        if tool is None or not tool.spec.forwards:
            return call
        try:
            inner = msgspec.json.decode(call.arguments.encode(), type=_Forwarded)
        except (msgspec.MsgspecError, UnicodeEncodeError):
            return call
        return ToolCall(id=call.id, name=inner.name, arguments=msgspec.json.encode(inner.arguments).decode())

    def _of(self, agent: Agent, session: str) -> Mapping[str, Tool]:
        """Return all tools there are for an agent; the system's own win."""
        return {name: tool for box in self._boxes for name, tool in box.tools(agent, session).items()} | self._tools

    async def admit(self, session: str, agent: Agent, call: ToolCall, principal: str = "") -> Admission:
        """Decide about a call; runs nothing."""
        tool = self._of(agent, session).get(call.name)
        if tool is None or not permitted(agent, call.name):
            names = ", ".join(spec.name for spec in self.shown(agent, session))
            return _refused(f"There is no tool {call.name!r} here. There are: {names}.", "error")
        try:
            arguments = tool.check(_parsed(call))
        except Invalid as error:
            return _refused(error.line(), "error", MALFORMED)
        about = ToolInput(
            session=session, agent=agent, call_id=call.id, name=call.name, spec=tool.spec, principal=principal
        )
        ruling = await self._hooks.run(TOOL_BEFORE, about, ToolOutput(arguments=arguments))
        output, notes = ruling.output, ruling.notes
        if isinstance(ruling.verdict, Reject):
            return Answered(result=_result(f"Not allowed: {ruling.verdict.reason}", "denied"), notes=notes)
        if output.answer is not None:
            return Answered(result=output.answer, notes=notes)
        if isinstance(ruling.verdict, Ask):
            return Question(
                tool=tool,
                arguments=output.arguments,
                digest=digest_of(call.name, output.arguments),
                question=ruling.verdict.question,
                notes=notes,
            )
        return Admitted(tool=tool, arguments=output.arguments, notes=notes)

    async def run(
        self, admitted: Admitted | Question, call: CallContext, output: Callable[[str], None]
    ) -> tuple[ToolResult, Sequence[Note]]:
        """Run an admitted call; never raises but for cancellation."""
        tool: Tool = admitted.tool
        limit = tool.spec.timeout_s
        try:
            async with asyncio.timeout(limit):
                result = await tool.run(call, admitted.arguments, output)
        except TimeoutError:
            result = _result(f"{tool.spec.name} was stopped after {limit:g} s.", "timeout")
        except OperantError as error:
            result = _result(error.line(), "error")
        except Exception as error:  # noqa: BLE001  # supervisor: a tool is foreign code; the model reads its failure
            _log.exception("tool %s failed", tool.spec.name)
            result = _result(f"{tool.spec.name} failed with {type(error).__name__}: {error}", "error")
        about = ToolAfterInput(
            session=call.session,
            agent=call.agent,
            call_id=call.call_id,
            name=tool.spec.name,
            arguments=admitted.arguments,
        )
        ruling = await self._hooks.run(TOOL_AFTER, about, ToolAfterOutput(result=result))
        if isinstance(ruling.verdict, Reject):
            return _result(f"The result was withheld: {ruling.verdict.reason}", "denied"), ruling.notes
        return ruling.output.result, ruling.notes


def _parsed(call: ToolCall) -> Json:
    """Read the arguments as the model wrote them; broken ones are never run with."""
    try:
        return msgspec.json.decode(call.arguments.encode() or b"{}", type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        raise Invalid(
            f"The arguments of {call.name} are not a JSON object ({error}).", "Call it again with valid arguments."
        ) from error


def _result(sentence: str, outcome: Outcome, *labels: str) -> ToolResult:
    return ToolResult(parts=(Text(text=sentence),), outcome=outcome, labels=labels)


def _refused(sentence: str, outcome: Outcome, *labels: str) -> Answered:
    return Answered(result=_result(sentence, outcome, *labels))
