"""The files of agents, the log and the examination, as syscalls."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from operant.app.build import Options, System, running
from operant.app.home import Home
from operant.kernel.errors import Conflict, Denied, Invalid, NotFound
from operant.kernel.records import OWNER, Principal
from operant.kernel.syscalls import AgentCreate, AgentFiles, AgentGet, AgentRemove, AgentUpdate, KernelExamine, LogTail
from operant.sdk.local import LocalClient


@pytest.fixture
async def system(tmp_path: Path) -> AsyncIterator[System]:
    options = Options(env={"PATH": "/usr/bin:/bin"}, overrides={}, work=False)
    async with running(Home(tmp_path / "home"), options) as made:
        yield made


async def file(system: System, name: str, agent: str = "operant") -> str:
    files = await system.kernel.call(OWNER, AgentFiles(agent=agent))
    return next(one.digest for one in files if one.name == name)


async def test_a_file_is_written_by_who_has_read_it(system: System) -> None:
    digest = await file(system, "SOUL.md")
    made = await system.kernel.call(OWNER, AgentUpdate(agent="operant", name="SOUL.md", text="Kind.", digest=digest))
    assert made.text == "Kind." and made.digest == await file(system, "SOUL.md")
    assert "Kind." in (await system.kernel.call(OWNER, AgentGet())).prompt
    with pytest.raises(Conflict):
        await system.kernel.call(OWNER, AgentUpdate(agent="operant", name="SOUL.md", text="No.", digest=digest))


@pytest.mark.parametrize(
    "setting", ["sandbox: false", "network: full", "permissions: {deny: []}", "approval: {a: allow}"]
)
async def test_not_even_the_owner_widens_rights_by_a_call(system: System, setting: str) -> None:
    digest = await file(system, "AGENT.md")
    call = AgentUpdate(agent="operant", name="AGENT.md", text=f"---\n{setting}\n---\nHi.\n", digest=digest)
    with pytest.raises(Denied, match="no call may change it"):
        await system.kernel.call(OWNER, call)
    assert await file(system, "AGENT.md") == digest


@pytest.mark.parametrize("head", ["max_steps: many", "colour: blue", "max_steps: [", "- a"])
async def test_settings_that_are_not_valid_are_not_written(system: System, head: str) -> None:
    digest = await file(system, "AGENT.md")
    call = AgentUpdate(agent="operant", name="AGENT.md", text=f"---\n{head}\n---\nHi.\n", digest=digest)
    with pytest.raises(Invalid, match=r"AGENT\.md"):
        await system.kernel.call(OWNER, call)
    assert await file(system, "AGENT.md") == digest


async def test_a_link_in_the_workspace_is_replaced_and_not_followed(system: System, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("theirs")
    soul = tmp_path / "home" / "agents" / "operant" / "workspace" / "SOUL.md"
    soul.unlink()
    soul.symlink_to(secret)
    with pytest.raises(Exception, match=r"SOUL\.md"):
        await system.kernel.call(OWNER, AgentFiles(agent="operant"))
    assert secret.read_text() == "theirs"


async def test_agents_come_and_go(system: System) -> None:
    assert (await system.kernel.call(OWNER, AgentCreate(agent="helper", description="Helps"))).description == "Helps"
    with pytest.raises(Conflict):
        await system.kernel.call(OWNER, AgentCreate(agent="helper"))
    with pytest.raises(Invalid):
        await system.kernel.call(OWNER, AgentCreate(agent="../evil"))
    aside = Path(await system.kernel.call(OWNER, AgentRemove(agent="helper")))
    assert (aside / "AGENT.md").is_file()
    with pytest.raises(Conflict, match="answers when no agent is named"):
        await system.kernel.call(OWNER, AgentRemove(agent="operant"))
    with pytest.raises(NotFound):
        await system.kernel.call(OWNER, AgentUpdate(agent="operant", name="../../x", text=""))


async def test_the_log_has_an_end(system: System) -> None:
    system.home.log.write_text('{"at": 5, "level": "info", "message": "one"}\nbroken\n')
    lines = await system.kernel.call(OWNER, LogTail(lines=2))
    assert [line.message for line in lines] == ["one", "broken"]
    assert await system.kernel.call(OWNER, LogTail(lines=0)) == ()


async def test_everything_is_looked_at(system: System) -> None:
    names = {check.name for check in await system.kernel.call(OWNER, KernelExamine())}
    assert {"program", "home", "disk", "settings", "system", "store", "models", "sandbox"} <= names


async def test_a_client_may_what_its_principal_may(system: System) -> None:
    client = LocalClient(
        lambda: system.kernel, Principal(kind="client", id="x", capabilities=frozenset({"agent.read"}))
    )
    assert (await client.call(AgentGet())).name == "operant"
    with pytest.raises(Denied):
        await client.call(AgentCreate(agent="y"))
    with pytest.raises(Denied, match="may not follow"):
        await anext(client.follow())
    await client.close()
