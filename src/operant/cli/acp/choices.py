"""What a person can choose in an editor: who answers, until the first message, and with which model."""

from __future__ import annotations

from dataclasses import dataclass

from acp.schema import SessionConfigOptionSelect, SessionConfigSelectOption, SessionMode, SessionModeState

from operant.kernel.records import Agent
from operant.kernel.syscalls import ModelInfo

AGENT, MODEL = "agent", "model"


@dataclass(frozen=True)
class Choices:
    """The agents and models that there are for a session, and those that it has."""

    agents: tuple[Agent, ...]
    agent: str
    models: tuple[ModelInfo, ...]
    model: str

    @property
    def modes(self) -> SessionModeState | None:
        """Return the agents as modes, for editors that know no other way to choose one."""
        modes = [SessionMode(id=one.name, name=one.name, description=one.description or None) for one in self.agents]
        return SessionModeState(current_mode_id=self.agent, available_modes=modes) if modes else None

    @property
    def options(self) -> list[SessionConfigOptionSelect]:
        """Return both as what is set for a session."""
        agents = [
            SessionConfigSelectOption(value=one.name, name=one.name, description=one.description or None)
            for one in self.agents
        ]
        models = [
            SessionConfigSelectOption(value=one.model, name=one.model, description=one.why or None)
            for one in self.models
        ]
        made: list[SessionConfigOptionSelect] = []
        if agents:
            made.append(
                SessionConfigOptionSelect(
                    id=AGENT, name="Agent", category="mode", type="select", current_value=self.agent, options=agents
                )
            )
        if models:
            made.append(
                SessionConfigOptionSelect(
                    id=MODEL, name="Model", category="model", type="select", current_value=self.model, options=models
                )
            )
        return made
