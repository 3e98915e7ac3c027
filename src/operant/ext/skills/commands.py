"""The command `skill` in the shells of agents: an agent with nothing but a shell reads skills by it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from operant.ext.skills.shelf import Shelf
from operant.ext.skills.tools import READ, SkillTools, matching, summary_of, words_of
from operant.kit.beneath import FileError
from operant.sdk import Agent, CallContext, NotFound, Printed, Typed, permitted

_USAGE = """usage: skill list [WORDS…]      the skills there are, or those that have the words
       skill load NAME [FILE]   the instructions of one, or a file of it
"""


class SkillCommand:
    """Offer `skill`."""

    def __init__(self, shelf: Shelf, tools: SkillTools) -> None:
        self._shelf = shelf
        self._tools = tools

    def commands(self, agent: Agent) -> Mapping[str, str]:
        """Return the command; an agent that has the tool is not told of it."""
        if self._shelf.removed("skill").exists():
            return {}
        if permitted(agent, READ):
            return {"skill": ""}
        return {"skill": "`skill list [WORDS]` and `skill load NAME`: instructions for kinds of tasks; look before one"}

    async def run(self, call: CallContext, words: Typed) -> Printed:
        """Print skills."""
        printed = await asyncio.to_thread(self._printed, call.agent, words.arguments)
        match words.arguments:
            case ("load" | "show", name, *rest) if not printed.code:
                text = await self._tools.load(call, name, "".join(rest), printed.output)
                return Printed(output=text)
            case _:
                return printed

    def _printed(self, agent: Agent, arguments: tuple[str, ...]) -> Printed:
        usable = self._shelf.usable(agent)
        match arguments:
            case ("list", *words):
                found = [summary_of(skill) for skill in matching(usable, " ".join(words))]
                return Printed(output="".join(f"{line}\n" for line in found) or "There are none.\n")
            case ("load" | "show", name, *rest) if len(rest) <= 1:
                skill = usable.get(name)
                if skill is None:
                    raise NotFound(f"There is no skill {name!r} for you.", "`skill list` shows those there are.")
                try:
                    return Printed(output=words_of(skill, rest[0] if rest else "") + "\n")
                except FileError as error:
                    return Printed(error=f"skill: {error}\n", code=1)
            case _:
                return Printed(error=_USAGE, code=2)
