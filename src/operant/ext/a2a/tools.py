"""The tool `send_to_agent`: there is one for an agent that has somebody to write to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Literal

from operant.ext.a2a.post import Post
from operant.sdk import (
    OWNER,
    A2aMessage,
    A2aSend,
    Agent,
    CallContext,
    FunctionTool,
    Host,
    OperantError,
    ToolResult,
    Unavailable,
    failed,
    tool,
)

NAME = "send_to_agent"


class SendTools:
    """The toolbox; who there is to write to is looked up before every turn."""

    def __init__(self, host: Host, post: Post, peers: tuple[str, ...], sent: Callable[[], None]) -> None:
        self._host = host
        self._post = post
        self._peers = peers
        self._sent = sent
        self._agents: tuple[str, ...] | None = None
        self._made: dict[tuple[str, ...], FunctionTool] = {}

    def look(self) -> None:
        """Look at which agents there are."""
        self._agents = tuple(agent.name for agent in self._host.agents.list())

    def tools(self, agent: Agent, session: str = "") -> Mapping[str, FunctionTool]:
        """Return the tool of an agent, or nothing."""
        if self._agents is None:
            self.look()
        to = tuple(name for name in self._agents or () if self._post.may(agent.name, name))
        to += tuple(one for peer in self._peers for one in self._post.abroad(agent.name, peer))
        if not to:
            return {}
        if to not in self._made:
            self._made[to] = self._make(to, deferred=len(self._agents or ()) < 2)
        return {NAME: self._made[to]}

    def _make(self, names: tuple[str, ...], *, deferred: bool) -> FunctionTool:
        async def send_to_agent(
            to: str,
            text: str,
            call: CallContext,
            kind: Annotated[Literal["wake", "notify", "silent"], "answer owed | starts it | only on record"] = "wake",
            minutes: Annotated[float, "wait for an answer"] = 0,
        ) -> str | ToolResult:
            request = A2aSend(to=to, text=text, kind=kind, sender=call.session, minutes=minutes)
            try:
                sent = await self._post.send(OWNER, request)
            except Unavailable as error:
                return failed(f"{error.line()} It is not known to have arrived.")
            except OperantError as error:
                return failed(f"{error.line()} Nothing was sent.")
            self._sent()
            return _said(sent)

        send_to_agent.__doc__ = (
            f"Send another agent ({', '.join(names)}) a message. An answer comes later, as a message to you."
        )
        return tool(effect="external", timeout_s=60, name=NAME, deferred=deferred)(send_to_agent)


def _said(sent: A2aMessage) -> str:
    if sent.kind == "silent":
        return f"On record for {sent.to}; it is not started."
    if sent.kind == "notify":
        return f"{sent.to} has it; no answer comes."
    minutes = (sent.deadline - sent.sent) / 60_000_000
    return f"{sent.to} has it. Its answer comes as a message, or after {minutes:g} minutes word that there is none."
