"""A session as an editor has it: on record from its first message on, so that its agent can be chosen until then."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from operant.cli.acp.choices import AGENT, MODEL, Choices
from operant.cli.acp.place import told
from operant.cli.acp.talk import Talk
from operant.kernel.errors import Conflict, Invalid
from operant.kernel.records import Agent
from operant.kernel.syscalls import AgentGet, AgentList, KvSet, ModelList, SessionOpen, SessionUpdate
from operant.sdk.client import Client

PLACES = "editor"
"""The namespace of kept values that says in which directory an editor opened a session."""
_TITLE = 80

Join = Callable[[str, str], Talk]
"""Make the talk of a session by its key and its agent's workspace."""


@dataclass
class Seat:
    """One session; `talk` is None until it is on record."""

    key: str
    cwd: str
    agent: Agent
    shared: str = ""
    model: str = ""
    word: str = ""
    talk: Talk | None = None

    async def choices(self, client: Client) -> Choices:
        """Return what can be chosen now; an agent stays with its session."""
        agents = (self.agent,) if self.talk else await client.call(AgentList())
        models = await client.call(ModelList(agent=self.agent.name))
        known = {one.model for one in models}
        model = self.model or (models[0].model if models else "")
        return Choices(agents, self.agent.name, models if model in known else (), model)

    async def choose(self, client: Client, option: str, value: str) -> None:
        """Choose an agent or a model. Raises `NotFound`, `Conflict` and `Invalid`."""
        if option == AGENT:
            await self._choose_agent(client, value)
        elif option == MODEL:
            if self.talk:
                await client.call(SessionUpdate(session=self.key, model=value))
            self.model = value
        else:
            raise Invalid(f"There is no option {option!r}.", f"There are {AGENT} and {MODEL}.")

    async def _choose_agent(self, client: Client, name: str) -> None:
        if name == self.agent.name:
            return
        if self.talk:
            raise Conflict(
                f"This session is with {self.agent.name}.", f"Begin a new session to talk to {name or 'another agent'}."
            )
        self.agent = await client.call(AgentGet(agent=name))
        self.model = ""

    async def open(self, client: Client, join: Join, first: str) -> Talk:
        """Return the session's talk; put the session on record before its first message."""
        if self.talk is not None:
            return self.talk
        lines = first.strip().splitlines()
        title = " ".join(lines[0].split())[:_TITLE] if lines else ""
        await client.call(SessionOpen(session=self.key, agent=self.agent.name, title=title))
        if self.model:
            await client.call(SessionUpdate(session=self.key, model=self.model))
        self.talk = join(self.key, self.agent.workspace)
        self.talk.word = self.word
        await self.sit(client)
        return self.talk

    async def sit(self, client: Client) -> None:
        """Keep where the editor is, and let the agent know with the next message."""
        await client.call(KvSet(namespace=PLACES, key=self.key, value=self.cwd))
        if self.talk is not None:
            self.talk.aside = told(self.cwd, self.agent, self.shared)
