"""Functions that a client defines: tools of the agent in that client's session, carried out by the client."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import msgspec

from operant.sdk import Agent, CallContext, Host, Json, Output, PutValue, Text, ToolResult, ToolSpec

PREFIX = "client_"
"""What every function's name begins with here, so that it cannot stand in for a tool of the agent's own."""
NAMESPACE = "gateway.functions"
KEPT_S = 86_400


class Functions:
    """All clients' functions, by session."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._specs: dict[str, dict[str, _Function]] = {}
        self._waiting: dict[tuple[str, str], asyncio.Future[str]] = {}
        self._turns: dict[str, tuple[str, str]] = {}

    def tools(self, agent: Agent, session: str = "") -> Mapping[str, _Function]:
        """Return the functions of a session's client."""
        return self._specs.get(session, {})

    async def load(self) -> None:
        """Know again which functions there were: a turn that goes on after a restart may wait for one."""
        for session, value in await self._host.kept.values(NAMESPACE):
            self._set(session, msgspec.json.decode(value, type=tuple[ToolSpec, ...]))

    async def offer(self, session: str, specs: tuple[ToolSpec, ...]) -> None:
        """Offer these functions in a session from now on."""
        if not specs and session not in self._specs:
            return
        self._set(session, specs)
        until = self._host.clock.now() + KEPT_S * 1_000_000
        value = msgspec.json.encode(specs) if specs else None
        await self._host.kept.write(PutValue(namespace=NAMESPACE, key=session, value=value, expires=until))

    def _set(self, session: str, specs: tuple[ToolSpec, ...]) -> None:
        self._specs[session] = {f"{PREFIX}{spec.name}": _Function(self, spec) for spec in specs}

    def own(self, session: str, name: str) -> bool:
        """Tell whether a tool is a function of the session's client."""
        return name in self._specs.get(session, {})

    def where(self, call_id: str) -> tuple[str, str] | None:
        """Return the session and turn in which a call waits for its client."""
        return self._turns.get(call_id)

    def answer(self, session: str, call_id: str, text: str) -> bool:
        """Give a call its result; tell whether it waited for one."""
        future = self._future(session, call_id)
        if future.done():
            return False
        future.set_result(text)
        return call_id in self._turns

    async def wait(self, call: CallContext) -> str:
        """Wait for the client's result of a call."""
        key = (call.session, call.call_id)
        self._turns[call.call_id] = (call.session, call.turn)
        try:
            return await self._future(*key)
        finally:
            self._waiting.pop(key, None)
            self._turns.pop(call.call_id, None)

    def _future(self, session: str, call_id: str) -> asyncio.Future[str]:
        key = (session, call_id)
        if key not in self._waiting:
            self._waiting[key] = asyncio.get_running_loop().create_future()
        return self._waiting[key]


class _Function:
    """One function of a client, as a tool."""

    def __init__(self, functions: Functions, spec: ToolSpec) -> None:
        self._functions = functions
        self.spec = ToolSpec(
            name=f"{PREFIX}{spec.name}",
            description=spec.description,
            schema=spec.schema,
            effect=spec.effect,
            timeout_s=spec.timeout_s,
        )

    def check(self, arguments: Json) -> Json:
        """Pass the arguments on: the client knows what fits."""
        return arguments

    async def run(self, call: CallContext, arguments: Json, output: Output) -> ToolResult:
        """Wait until the client has done it."""
        return ToolResult(parts=(Text(text=await self._functions.wait(call)),), labels=("client",))
