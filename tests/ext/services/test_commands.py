"""Commands of services that an agent's shell does not get: it is said whose they are, and what to do."""

from __future__ import annotations

from pathlib import Path

from operant.kernel.syscalls import SkillReload, SkillStop
from operant.sdk.testing.server import ScriptedServer
from tests.ext.services.house import House, house, write_skill

OFFERS = """
from operant_sdk import command, define_service

@define_service
def service():
    def say(arguments, input, call):
        return "{name}"
    return {{"commands": dict.fromkeys({commands}, command(say, "Say it."))}}
"""
TAKEN = "its command greet goes to alpha, which has it too: rename it in one of them, or stop one"
OURS = "its command skill is one of Operant's own: rename it"


def offer(home: Path, name: str, *commands: str) -> None:
    write_skill(home, name, {"service.py": OFFERS.format(name=name, commands=commands)})


async def there_are(home: Path, there: House, name: str, *commands: str) -> None:
    """Have a service that offers these commands run."""
    offer(home, name, *commands)
    await there.call(SkillReload())
    await there.grant(name)


async def test_a_command_that_somebody_else_has_is_told_of(tmp_path: Path, server: ScriptedServer) -> None:
    home = tmp_path / "h"
    async with house(home, server) as there:
        await there_are(home, there, "beta", "greet", "other")
        assert (await there.info("beta")).reason == ""
        assert (await there.shell("greet")).strip() == "beta"
        await there_are(home, there, "alpha", "greet")
        assert (await there.shell("greet")).strip() == "alpha"
        told = await there.info("beta")
        assert (told.state, told.reason, told.commands) == ("running", TAKEN, ("other",))
        assert (await there.info("alpha")).commands == ("greet",)
        await there.call(SkillReload())
        assert (await there.log("beta")).count(TAKEN) == 1
        assert there.made.home.log.read_text("utf-8").count(f"service beta: {TAKEN}") == 1
        await there.call(SkillStop(skill="alpha"))
        assert (await there.info("beta")).reason == ""
        assert (await there.shell("greet")).strip() == "beta"


async def test_a_command_of_operants_own_is_told_of(tmp_path: Path, server: ScriptedServer) -> None:
    home = tmp_path / "h"
    async with house(home, server) as there:
        await there_are(home, there, "alpha", "skill", "a2a", "fine")
        told = await there.info("alpha")
        assert told.reason == f"{OURS}; {OURS.replace('skill', 'a2a')}"
        assert told.commands == ("fine",)
        assert OURS in await there.log("alpha")
        assert "skill-creator" in await there.shell("skill list")
