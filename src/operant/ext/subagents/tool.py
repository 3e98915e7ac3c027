"""The tool `spawn_agent`, as each agent is told of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated

import msgspec
from msgspec import Meta

from operant.ext.subagents.foreman import Foreman, Order
from operant.ext.subagents.settings import SubagentSettings
from operant.ext.subagents.wording import about, report
from operant.sdk import Agent, CallContext, FunctionTool, Json, Output, Refused, Text, Tool, ToolResult, ToolSpec, tool

NAME = "spawn_agent"
WORKER = "worker"
"""The helper that every agent has: itself."""
_LONGEST_S = 30 * 86_400.0
"""A turn's own limit ends it long before; it stands still while a person is asked, which may take a week each time."""

_NAME = re.compile(r"[\w*-]{1,64}")

Task = Annotated[str, Meta(min_length=1, max_length=100_000)]


class SpawnTool:
    """The tool as one agent is told of it: with its helpers, and deferred where there are none to call."""

    def __init__(self, inner: FunctionTool, helpers: Mapping[str, str]) -> None:
        self._inner = inner
        self.spec: ToolSpec = msgspec.structs.replace(
            inner.spec, description=about(helpers), deferred=not helpers, timeout_s=_LONGEST_S
        )

    def check(self, arguments: Json) -> Json:
        """Return the arguments as the schema has them."""
        return self._inner.check(arguments)

    async def run(self, call: CallContext, arguments: Json, output: Output) -> ToolResult:
        """Run it."""
        return await self._inner.run(call, arguments, output)


class Offer:
    """The toolbox: each agent is told of its own helpers, and of none in the last generation."""

    def __init__(self, foreman: Foreman, settings: SubagentSettings) -> None:
        self._foreman = foreman
        self._settings = settings
        self._inner = self._made()
        self._shown: dict[tuple[tuple[str, str], ...], dict[str, Tool]] = {}

    def tools(self, agent: Agent, session: str = "") -> Mapping[str, Tool]:
        """Return the tool of an agent that may call others."""
        known = {} if agent.name.count("/") >= self._settings.depth else agent.helpers
        helpers = tuple(known.items())
        if helpers not in self._shown:
            self._shown[helpers] = {NAME: SpawnTool(self._inner, known)}
        return self._shown[helpers]

    def _made(self) -> FunctionTool:
        @tool(effect="idempotent", name=NAME)
        async def spawn_agent(
            tasks: Annotated[tuple[Task, ...], "each says all that is needed"],
            call: CallContext,
            output: Output,
            helper: str = "",
            tools: Annotated[tuple[str, ...], "at most these"] = (),
            wait: Annotated[bool, "false: go on, results come as messages"] = True,
        ) -> ToolResult:
            """Give tasks to sub-agents."""
            return await self._spawn(call, Order(tasks, _named(call.agent, helper, tools), wait), output)

        return spawn_agent

    async def _spawn(self, call: CallContext, order: Order, output: Output) -> ToolResult:
        if not order.tasks:
            raise Refused("There is no task.", "Give at least one.")
        if not call.turn:
            raise Refused("Sub-agents work for a turn, and there is none.", "Ask the agent for it.")
        if call.agent.name.count("/") >= self._settings.depth:
            raise Refused(f"Agents may call agents {self._settings.depth} deep, and no deeper.", "Do it yourself.")
        children = await self._foreman.order(call, order)
        if not order.wait:
            self._foreman.send_off([one for one in children if one.state in ("open", "reporting")])
            names = "\n".join(f"{one.number}: {one.session}" for one in children)
            return _said(f"They work. The result of each comes as a message when it is there.\n{names}")
        outcomes = await self._foreman.outcomes(children, output)
        return ToolResult(
            parts=(Text(text=report(children, outcomes)),),
            outcome="ok" if any(one.reason == "done" for one in outcomes) else "error",
            artifacts=tuple(blob for one in outcomes for blob in one.artifacts),
            labels=tuple(sorted({label for one in outcomes for label in one.labels})),
        )


def _named(agent: Agent, helper: str, tools: tuple[str, ...]) -> str:
    """Name the agent that does the work; the name says what it may do. Raises `Refused`."""
    for name in (*tools, *([helper] if helper else [])):
        if not _NAME.fullmatch(name):
            raise Refused(f"{name[:40]!r} is no name of a helper or a tool.")
    narrowed = f"({','.join(sorted(set(tools)))})" if tools else ""
    return f"{agent.name}/{helper or WORKER}{narrowed}"


def _said(text: str) -> ToolResult:
    return ToolResult(parts=(Text(text=text),))
