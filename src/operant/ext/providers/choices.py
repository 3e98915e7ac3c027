"""Models that somebody has chosen while Operant ran: over what the files say, until they are given back."""

from __future__ import annotations

from operant.sdk import Agent, Host, Invalid, KernelStatus, ModelUse, Principal, PutValue

_NAMESPACE = "providers"
_ALL = "*"


class Choices:
    """Keep choices by agent; `*` stands for all agents."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._kept: dict[str, str] | None = None

    async def of(self, agent: Agent) -> tuple[str, ...]:
        """Return what was chosen for an agent, first what was chosen for it alone."""
        kept = await self._all()
        root = agent.name.partition("/")[0]
        return tuple(kept[name] for name in (f"agent:{root}", _ALL) if name in kept)

    async def use(self, who: Principal, call: ModelUse) -> str:
        """Choose, or give a choice back."""
        provider, _, model = call.model.partition("/")
        there = (await self._host.call(KernelStatus())).models
        if call.model and (provider not in there or not model):
            raise Invalid(
                f"{call.model!r} is no model here.", f"Name it as PROVIDER/MODEL; there are: {', '.join(there)}."
            )
        agent = self._host.agents.get(call.agent).name if call.agent else ""
        key = f"agent:{agent}" if agent else _ALL
        kept = await self._all()
        if call.model:
            kept[key] = call.model
        else:
            kept.pop(key, None)
        value = call.model.encode() or None
        await self._host.kept.write(PutValue(namespace=_NAMESPACE, key=key, value=value))
        return f"the agent {agent}" if agent else "every agent"

    async def own(self, agent: Agent) -> str:
        """Return what was chosen for an agent alone."""
        return (await self._all()).get(f"agent:{agent.name}", "")

    async def _all(self) -> dict[str, str]:
        if self._kept is None:
            found = await self._host.kept.values(_NAMESPACE)
            self._kept = {key: value.decode() for key, value in found}
        return self._kept
