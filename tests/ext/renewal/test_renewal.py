"""An agent has Operant started again and goes on in its session, once, also when it is killed in between."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from operant.app.renewal import SUPERVISED, is_supervised
from operant.kernel.records import OWNER, ApprovalAsked, Event, MessageQueued, MessageReceived, ToolEnded, text_of
from operant.kernel.syscalls import SessionList, SessionStop
from operant.sdk.testing.server import ScriptedServer
from tests.journey.gateway import served
from tests.journey.house import ended, say, system


def use(name: str, /, **arguments: Any) -> dict[str, Any]:
    return {"name": "use_tool", "arguments": {"name": name, "arguments": arguments}}


SCRIPT: dict[str, Any] = {
    "again": [{"calls": [use("restart", continue_with="@after Look whether it is right.")]}, {"text": "See you."}],
    "pause": [{"calls": [use("restart", continue_with="@after")]}, {"hang": True}],
    "after": [{"text": "I am back."}],
    "below": [{"calls": [use("spawn_agent", tasks=["@again"])]}, {"text": "Below."}],
}
ALLOWED: dict[str, object] = {"agents": {"operant": {"approval": {"*": "allow"}}}}
POINTS = [
    "replied:1", "intended:1", "acting:1", "acted:1", "computing:2", "replied:2", "queued:1",
    "accepted:2", "acknowledging:2", "claimed:2", "queued:2",
]  # fmt: skip


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    made = ScriptedServer(SCRIPT)
    async with made.serving():
        yield made


async def live(home: Path, words: str, fault: str = "") -> int:
    env = {**os.environ, "OPERANT_FAULT": fault, SUPERVISED: "1"}
    arguments = [sys.executable, "-m", "tests.ext.renewal.life", str(home), words]
    life = subprocess.Popen(arguments, env=env, cwd=Path(__file__).parents[3], stderr=subprocess.PIPE)
    _, said = await asyncio.to_thread(life.communicate, timeout=60)
    assert life.returncode in (0, 75, -9), said.decode()
    return life.returncode


async def history(home: Path, server: ScriptedServer) -> list[Event]:
    async with system(home, server, ALLOWED) as made:
        return list(await made.kernel.store.events("s"))


def received(events: list[Event]) -> list[str]:
    return [text_of(event.body.parts) for event in events if isinstance(event.body, MessageReceived)]


def told(events: list[Event]) -> list[str]:
    return [text_of(event.body.parts) for event in events if isinstance(event.body, MessageQueued)]


async def test_it_comes_back_and_goes_on_in_the_same_session(tmp_path: Path, server: ScriptedServer) -> None:
    home = tmp_path / "home"
    async with system(home, server, ALLOWED):
        pass  # writes the settings
    assert await live(home, "@again") == 75
    assert await live(home, "@again") == 0
    events = await history(home, server)
    assert told(events) == ["See you.", "I am back."]
    assert "Look whether it is right." in received(events)[1]
    assert "as you asked" in received(events)[1]


@pytest.mark.crash
@pytest.mark.slow
@pytest.mark.parametrize("point", POINTS)
async def test_killed_anywhere_it_goes_on_once(point: str, tmp_path: Path, server: ScriptedServer) -> None:
    home = tmp_path / "home"
    async with system(home, server, ALLOWED):
        pass
    codes = [await live(home, "@again", fault=point)]
    if codes == [75]:  # the point comes in the second life
        codes.append(await live(home, "@again", fault=point.replace(":2", ":1")))
    assert -9 in codes
    while codes[-1] != 0:
        codes.append(await live(home, "@again"))
        assert len(codes) < 6
    events = await history(home, server)
    assert sum("Look whether it is right." in one for one in received(events)) == 1
    assert told(events)[-1] == "I am back."
    assert len([one for one in events if isinstance(one.body, ToolEnded)]) == 1


async def test_where_nobody_would_start_it_again_it_says_so_and_goes_on(tmp_path: Path, server: ScriptedServer) -> None:
    async with served(tmp_path / "home", server, ALLOWED) as house:
        made = house.system
        await say(made, "@again")
        events = await ended(made)
        (result,) = [text_of(event.body.parts) for event in events if isinstance(event.body, ToolEnded)]
        assert "--supervised" in result
        assert not made.kernel.stopping.is_set()
        assert not made.renewal.wanted


@pytest.mark.parametrize(
    ("env", "is_one"),
    [
        ({}, False),
        ({SUPERVISED: "1"}, True),
        ({"NOTIFY_SOCKET": "/run/user/1000/systemd/notify"}, True),
        ({"XPC_SERVICE_NAME": "org.operant.operant"}, True),
        ({"XPC_SERVICE_NAME": "application.com.apple.Terminal.1"}, False),
    ],
)
def test_who_starts_it_again_is_known_by_the_environment(env: dict[str, str], is_one: bool) -> None:
    assert is_supervised(env) == is_one


async def test_a_stop_takes_the_wish_back(
    tmp_path: Path, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with served(tmp_path / "home", server, ALLOWED) as house:
        made = house.system
        monkeypatch.setattr(made.renewal, "supervised", True)
        await say(made, "@pause")
        async with asyncio.timeout(20):
            async for seen in made.kernel.follow("s", 0):
                if isinstance(seen, Event) and isinstance(seen.body, ToolEnded):
                    break
        await made.kernel.call(OWNER, SessionStop(session="s"))
        await ended(made)
        async with asyncio.timeout(20):
            while await made.kernel.store.values("renewal"):
                await asyncio.sleep(0)
        assert not made.renewal.wanted


async def test_nobody_is_asked_for_what_cannot_be(tmp_path: Path, server: ScriptedServer) -> None:
    async with served(tmp_path / "home", server) as house:
        await say(house.system, "@again")
        events = await ended(house.system)
    (result,) = [text_of(event.body.parts) for event in events if isinstance(event.body, ToolEnded)]
    assert "--supervised" in result


async def test_a_person_decides_unless_the_rules_do(
    tmp_path: Path, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with served(tmp_path / "home", server) as house:
        made = house.system
        monkeypatch.setattr(made.renewal, "supervised", True)
        await say(made, "@again")
        async with asyncio.timeout(20):
            async for seen in made.kernel.follow("s", 0):
                if isinstance(seen, Event) and isinstance(seen.body, ApprovalAsked):
                    assert "start Operant again" in seen.body.question
                    return


async def test_a_sub_agent_cannot(tmp_path: Path, server: ScriptedServer) -> None:
    async with served(tmp_path / "home", server, ALLOWED) as house:
        made = house.system
        await say(made, "@below")
        await ended(made)
        (child,) = [one for one in await made.kernel.call(OWNER, SessionList()) if one.parent == "s"]
        events = await made.kernel.store.events(child.key)
        (result,) = [text_of(event.body.parts) for event in events if isinstance(event.body, ToolEnded)]
        assert "A sub-agent cannot" in result
