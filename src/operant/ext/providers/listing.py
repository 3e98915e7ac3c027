"""Which models are used, and why; which providers there are, and what they lack."""

from __future__ import annotations

from operant.ext.providers.assembly import Assembly
from operant.ext.providers.choices import Choices
from operant.ext.providers.detect import Found
from operant.ext.providers.lookup import Lookup
from operant.sdk import Agent, Host, ModelInfo, ModelList, Principal, ProviderInfo, ProviderList


class Listing:
    """Answer the syscalls that list models and providers."""

    def __init__(
        self,
        host: Host,
        configured: tuple[str, ...],
        found: Found,
        choices: Choices,
        lookup: Lookup,
        assembly: Assembly,
    ) -> None:
        self._host = host
        self._configured = configured
        self._found = found
        self._choices = choices
        self._lookup = lookup
        self._assembly = assembly

    async def list(self, who: Principal, call: ModelList) -> tuple[ModelInfo, ...]:
        """List the models that an agent uses, best first."""
        agent = self._host.agents.get(call.agent)
        chosen = await self._choices.of(agent)
        names = dict.fromkeys((*chosen, *(agent.models or (*self._configured, *self._found.chain))))
        own = await self._choices.own(agent)
        return tuple(self._lookup.about(name, self._why(name, agent, chosen, own)) for name in names)

    async def providers(self, who: Principal, call: ProviderList) -> tuple[ProviderInfo, ...]:
        """List providers, those that can be used first."""
        return tuple(sorted(self._assembly.known(), key=lambda one: not one.ready))

    def _why(self, name: str, agent: Agent, chosen: tuple[str, ...], own: str) -> str:
        if name in chosen:
            whom = f"the agent {agent.name}" if name == own else "all agents"
            return f"Using {name}, because it was chosen for {whom} (operant model use)."
        if name in agent.models:
            return f"Using {name}, because the settings of {agent.name} say so." if name == agent.models[0] else ""
        if name in self._configured:
            return f"Using {name}, because providers.{name.partition('/')[0]} says so."
        return self._found.sentence if name == self._found.chain[0] else ""
