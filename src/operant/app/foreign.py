"""What an extension of others holds of the system: the same door, open only for the agents that may use it.

`permissions.extensions` of an agent is looked at on every call, so switching one off or on for an agent counts at once.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Mapping
from fnmatch import fnmatchcase
from typing import Any, Literal, TypeVar

from operant.app.host import ExtensionHost
from operant.kernel.errors import Conflict
from operant.kernel.kernel import Kernel
from operant.kernel.points import Point
from operant.kernel.ports import CallContext, Tool, Toolbox
from operant.kernel.records import Agent, Record
from operant.sdk.extension import Commands, Printed, Typed

In = TypeVar("In", bound=Record)
Out = TypeVar("Out", bound=Record)


def uses(agent: Agent, extension: str) -> bool:
    """Tell whether an extension works for an agent."""
    return any(fnmatchcase(extension, rule) for rule in agent.permissions.extensions)


class ForeignHost(ExtensionHost):
    """The `Host` of an extension that does not come with Operant."""

    def hook(
        self,
        point: Point[In, Out],
        handler: Callable[..., Coroutine[Any, Any, object]],
        *,
        phase: Literal["mutate", "validate"] = "mutate",
        priority: int = 0,
        fail: Literal["closed", "open", ""] = "",
        timeout_s: float = 5.0,
    ) -> None:
        """Register a handler that is not called for agents that do without the extension."""
        wants = tuple(inspect.signature(handler).parameters)

        async def only(input: Record, output: Record | None) -> object:
            agent = getattr(input, "agent", None)
            if isinstance(agent, Agent) and not uses(agent, self.author):
                return None
            given = {"input": input, "output": output}
            return await handler(**{name: given[name] for name in wants})

        ours = handler if set(wants) - {"input", "output"} else only  # what cannot be registered is said of itself
        super().hook(point, ours, phase=phase, priority=priority, fail=fail, timeout_s=timeout_s)

    def tool(self, tool: Tool) -> None:
        """Register a tool for those agents that use the extension; a name that is taken is refused."""

        def register(kernel: Kernel) -> None:
            if any(spec.name == tool.spec.name for spec in kernel.gate.offered(None)):
                raise Conflict(f"There is already a tool {tool.spec.name}.")
            kernel.gate.add(_Tools(self.author, _One(tool)))

        self.register(register)

    def toolbox(self, box: Toolbox) -> None:
        """Register tools for those agents that use the extension."""
        super().toolbox(_Tools(self.author, box))

    def shell_commands(self, box: Commands, *, over: bool = False) -> None:
        """Offer commands to those agents that use the extension; programs of the system are never hidden."""
        super().shell_commands(_Commands(self.author, box))


class _One:
    def __init__(self, tool: Tool) -> None:
        self._tools = {tool.spec.name: tool}

    def tools(self, agent: Agent, session: str = "") -> Mapping[str, Tool]:
        """Return the tool."""
        return self._tools


class _Tools:
    def __init__(self, author: str, box: Toolbox) -> None:
        self._author = author
        self._box = box

    def tools(self, agent: Agent, session: str = "") -> Mapping[str, Tool]:
        """Return the tools of those who use the extension."""
        return self._box.tools(agent, session) if uses(agent, self._author) else {}


class _Commands:
    def __init__(self, author: str, box: Commands) -> None:
        self._author = author
        self._box = box

    def commands(self, agent: Agent) -> Mapping[str, str]:
        """Return the commands of those who use the extension."""
        return self._box.commands(agent) if uses(agent, self._author) else {}

    async def run(self, call: CallContext, words: Typed) -> Printed:
        """Run one."""
        return await self._box.run(call, words)
