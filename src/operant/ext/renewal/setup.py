"""Offer the tool `restart`."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from fnmatch import fnmatchcase
from typing import Annotated

from operant.ext.renewal.wish import Wish, Wishes
from operant.sdk import (
    DAEMON_STARTED,
    TOOL_BEFORE,
    TURN_ENDED,
    Ask,
    CallContext,
    FunctionTool,
    Happened,
    Host,
    KernelRestart,
    OperantError,
    Refused,
    Reject,
    SessionDispatch,
    Text,
    ToolInput,
    TurnEnded,
    tool,
)

NAME = "restart"
_MESSAGE = "[Operant has started again, as you asked. You left yourself this word to go on with:]\n{text}"
_SOON = "Operant starts again when this turn has ended: end it now, in a few words. Then your word comes to you here."
_DONE = "Operant has started again. The word that you left yourself comes as a message."


@asynccontextmanager
async def setup(host: Host, settings: None) -> AsyncGenerator[None]:
    """Offer it while the context is open, where there is something to start again."""
    if not host.serving:
        yield
        return
    renewal = Renewal(host)
    host.tool(renewal.tool())
    host.hook(TOOL_BEFORE, renewal.may, phase="validate")
    host.hook(TURN_ENDED, renewal.ended)
    host.hook(DAEMON_STARTED, renewal.started)
    yield


class Renewal:
    """Ask for restarts, and go on after them."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._wishes = Wishes(host, host.ids.new())
        self._turns: dict[tuple[str, str], Wish] = {}

    def tool(self) -> FunctionTool:
        """Return the tool."""

        @tool(effect="idempotent", timeout_s=60, name=NAME, deferred=True)
        async def restart(
            continue_with: Annotated[str, "what you will be told afterwards, in this session"], call: CallContext
        ) -> str:
            """Start Operant again, after a change that only counts then, and go on."""
            return await self._ask(call, continue_with)

        return restart

    async def may(self, input: ToolInput) -> Ask | Reject | None:
        """Have a person decide, unless the agent's rules do: a restart is felt by everybody."""
        if input.name != NAME:
            return None
        if "/" in input.agent.name:
            return Reject(reason="A sub-agent cannot start Operant again.")
        try:
            await self._host.call(KernelRestart(dry=True))
        except OperantError as error:  # nobody is asked for what cannot be
            return Reject(reason=error.line())
        if any(fnmatchcase(NAME, rule.partition("(")[0]) for rule in input.agent.approval):
            return None
        return Ask(question=f"{input.agent.name} wants to start Operant again.")

    async def _ask(self, call: CallContext, text: str) -> str:
        if not call.turn:
            raise Refused("There is no turn to go on with.", "`operant service restart` starts Operant again.")
        await self._host.call(KernelRestart(dry=True))
        wish = await self._wishes.make(call, text)
        if await self._wishes.fulfilled(wish):
            return _DONE
        await self._wishes.keep(wish)
        self._turns[call.session, call.turn] = wish
        return _SOON

    async def ended(self, input: Happened) -> None:
        """Ask for the restart, now that nothing of the one who wanted it is cut short."""
        body = input.event.body
        wish = self._turns.pop((input.event.session, input.event.turn), None)
        if wish is None:
            return
        if isinstance(body, TurnEnded) and body.reason == "stopped":  # a person wants none of it
            await self._wishes.drop(wish)
            return
        await self._host.call(KernelRestart())

    async def started(self) -> None:
        """Tell those who wished for it that it has happened."""
        for wish in await self._wishes.all():
            await self._tell(wish)

    async def _tell(self, wish: Wish) -> None:
        """Put the word into the session, once."""
        if not await self._wishes.told(wish):
            await self._host.call(
                SessionDispatch(
                    session=wish.session,
                    parts=(Text(text=_MESSAGE.format(text=wish.text)),),
                    agent=wish.agent,
                    address=wish.address,
                    author=wish.author,
                    labels=(wish.label, *wish.labels),
                )
            )
        await self._wishes.drop(wish)
