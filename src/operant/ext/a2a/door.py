"""The paths of A2A in the gateway: a card for each agent that is served, and an address for its messages."""

from __future__ import annotations

import asyncio
import importlib
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from operant.ext.a2a.incoming import Caller, Incoming
from operant.ext.a2a.letters import Letters
from operant.ext.a2a.standing import Standings
from operant.sdk import (
    Agent,
    Client,
    Denied,
    Host,
    HttpRequest,
    HttpResponse,
    KernelStatus,
    Missing,
    Mount,
    NotFound,
    Principal,
    allowed,
)

if TYPE_CHECKING:  # protobuf and what comes with it take half a second to import
    from operant.ext.a2a.wire.dispatch import Wire

PATH = "/a2a"
CARD = "/.well-known/agent-card.json"
CAPABILITY = "a2a"
"""What a token needs to come here at all; for an agent it needs `a2a.` and its name as well."""

_OURS = "operant.ext.a2a"


class Door:
    """Find out which agent is meant, and whether the caller may reach it."""

    def __init__(self, host: Host, serve: tuple[str, ...], incoming: Incoming, letters: Letters) -> None:
        self._host = host
        self._serve = serve
        self._incoming = incoming
        self._standings = Standings(host, letters)
        self._loading = asyncio.Lock()
        self._wire: Wire | None = None

    def mount(self) -> None:
        """Take the paths."""
        words = "Agents for other homes and programs (A2A)"
        self._host.mount(Mount(path=PATH, answer=self.answer, summary=words, capability=CAPABILITY, open=True))
        self._host.mount(
            Mount(path=CARD, answer=self.default_card, summary="The card of the default agent (A2A)", open=True)
        )

    async def default_card(self, request: HttpRequest) -> HttpResponse:
        """Answer with the card of the default agent, or of the first one that is served."""
        names = [agent.name for agent in self._host.agents.list() if self._serves(agent.name)]
        usual = self._host.agents.get("").name
        if request.method == "POST" or request.below or not names:
            raise _nothing(request)
        return await self._card(self._host.agents.get(usual if usual in names else names[0]), request)

    async def answer(self, request: HttpRequest) -> HttpResponse:
        """Answer with a card, or do what a message asks for."""
        _, _, rest = request.below.partition("/")
        name, slash, more = rest.partition("/")
        agent = self._agent(name, request)
        if request.method in ("GET", "HEAD"):
            if slash + more != CARD:
                raise _nothing(request)
            return await self._card(agent, request)
        if more:
            raise _nothing(request)
        if not allowed(request.principal, f"{CAPABILITY}.{agent.name}"):
            raise Denied(f"This token may not reach {agent.name}.", f"It needs the scope a2a:{agent.name}.")
        wire = await self._loaded()
        return await wire.answer(request, Caller(principal=request.principal, agent=agent.name))

    # ------------------------------------------------------------------ inside

    def _serves(self, name: str) -> bool:
        return any(fnmatchcase(name, rule) for rule in self._serve)

    def _agent(self, name: str, request: HttpRequest) -> Agent:
        if not name or not self._serves(name):
            raise _nothing(request)
        return self._host.agents.get(name)

    async def _card(self, agent: Agent, request: HttpRequest) -> HttpResponse:
        await self._loaded()
        from operant.ext.a2a.wire.card import card_of, served

        version = (await self._host.call(KernelStatus())).version
        return served(card_of(agent, f"{request.base}{PATH}/{agent.name}/", version), request)

    async def _loaded(self) -> Wire:
        """Import the SDK beside everything else, once."""
        async with self._loading:
            if self._wire is None:
                try:
                    await asyncio.to_thread(importlib.import_module, f"{_OURS}.wire.dispatch")
                except ImportError as error:
                    raise Missing("A2A needs a package that is not here.", "pip install 'operant[a2a]'") from error
                self._wire = self._make()
            return self._wire

    def _make(self) -> Wire:
        from operant.ext.a2a.wire.dispatch import Wire
        from operant.ext.a2a.wire.handler import Tasks
        from operant.ext.a2a.wire.shapes import Shapes

        us = self._host.client(Principal(kind="extension", id="a2a", capabilities=frozenset({"admin"})))
        return Wire(Tasks(self._incoming, self._standings, Shapes(self._host), us, self._client))

    def _client(self, caller: Caller) -> Client:
        return self._host.client(caller.principal)


def _nothing(request: HttpRequest) -> NotFound:
    return NotFound(f"There is nothing at {request.path}.", "Agents are served that `a2a.serve` names.")
