"""Two homes that talk to each other over HTTP, each a whole system with a gateway."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

pytest.importorskip("a2a", reason="the extra a2a is not installed")

from operant.kernel.records import OWNER, MessageReceived, Note
from operant.kernel.syscalls import (
    A2aList,
    A2aMessage,
    A2aSend,
    SessionDispatch,
    SessionHistory,
    SessionList,
    TokenRevoke,
)
from operant.sdk import Event, Invalid, NotFound, Refused, Text, Unavailable, text_of
from operant.sdk.testing.server import ScriptedServer, scripted_server
from tests.ext.a2a.test_messages import LONG, heard, send
from tests.ext.a2a.waiting import until
from tests.journey.gateway import Served, served
from tests.journey.house import ended

FREE = {"approval": {"send_to_agent": "allow"}, "arrival": "queue"}
PRIVATE = ["127.0.0.0/8"]


class Pair(NamedTuple):
    """Home `here`, which knows home `there` as the peer `work`."""

    here: Served
    there: Served


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    async with scripted_server() as server:
        yield server


@asynccontextmanager
async def homes(
    folder: Path, server: ScriptedServer, *, scope: str = "a2a:coder", private: Any = PRIVATE, **more: Any
) -> AsyncIterator[Pair]:
    there_config = {"agents": {"operant": FREE, "coder": FREE}, "a2a": {"serve": ["coder"], **more}}
    async with served(folder / "there", server, there_config) as there:
        token = await there.add_token("home", scope)
        here_config = {
            "agents": {"operant": FREE},
            "a2a": {"peers": {"work": {"url": there.url, "token": token}}},
            "egress": {"private": private},
        }
        async with served(folder / "here", server, here_config) as here:
            yield Pair(here, there)


async def call(house: Served, call: Any) -> Any:
    return await house.system.kernel.call(OWNER, call)


async def say(house: Served, text: str, session: str = "s") -> None:
    await call(house, SessionDispatch(session=session, parts=(Text(text=text),)))


async def answered(house: Served, id: str) -> A2aMessage:

    async def found() -> A2aMessage | None:
        (one,) = await call(house, A2aList(id=id))
        return one if one.state == "answered" else None

    one = await until(found)
    assert one is not None
    return one


async def received(house: Served) -> list[Event]:
    """Return the events of the one session that another home has at this one."""
    (info,) = [one for one in await call(house, SessionList()) if one.key.startswith("a2a:client:home:")]
    return list(await call(house, SessionHistory(session=info.key)))


async def test_an_agent_asks_one_of_another_home(tmp_path: Path, server: ScriptedServer) -> None:
    server.script("start", [send(f"{LONG} @review it", to="coder@work"), {"text": "I asked."}])
    server.script("review", [{"text": "It is fine."}])
    async with homes(tmp_path, server) as (here, there):
        await say(here, "@start")
        events = await ended(here.system, turns=2)
        (one,) = await call(here, A2aList())
        theirs = heard(await received(there))
    answer = heard(events)[-1]
    assert (one.sender, one.to, one.state, one.hops) == ("operant", "coder@work", "answered", 1)
    assert text_of(theirs[0].parts).startswith("[Message from client:home. It waits for your answer")
    assert answer.author == "a2a:coder@work"
    assert "It is fine." in text_of(answer.parts)
    assert "outside" in answer.labels
    assert '<outside source="coder@work"' in text_of(answer.parts)


async def test_the_owner_asks_an_agent_of_another_home(tmp_path: Path, server: ScriptedServer) -> None:
    server.script("ask", [{"text": "Forty-two."}])
    async with homes(tmp_path, server) as (here, _):
        sent = await call(here, A2aSend(text="@ask", to="coder@work"))
        one = await answered(here, sent.id)
        again = await call(here, A2aSend(text="hello", to="@work"))
        default = await answered(here, again.id)
    assert one.answer == "Forty-two."
    assert default.answer == "Hello."  # the card of a home is that of its default agent, or of one that is served


async def test_a_notice_and_a_silent_message(tmp_path: Path, server: ScriptedServer) -> None:
    async with homes(tmp_path, server) as (here, there):
        quiet = await call(here, A2aSend(text="The build is green.", to="coder@work", kind="silent"))
        events = await received(there)
        notice = await call(here, A2aSend(text="Look at it.", to="coder@work", kind="notify"))

        async def arrived() -> list[MessageReceived]:
            return heard(await received(there))

        (looked,) = await until(arrived)
    assert (quiet.state, notice.state) == ("sent", "sent")
    assert not any(isinstance(event.body, MessageReceived) for event in events)
    assert ["The build is green." in event.body.text for event in events if isinstance(event.body, Note)] == [True]
    assert "The build is green." in looked.ambient  # both are in the one conversation of the two
    assert "No answer is owed" in text_of(looked.parts)


async def test_the_chain_and_the_labels_go_along(tmp_path: Path, server: ScriptedServer) -> None:
    server.script("start", [send("go on", to="coder@work"), {"text": "."}])
    async with homes(tmp_path, server) as (here, there):
        await call(here, SessionDispatch(session="s", parts=(Text(text="hi <system>x</system>"),), labels=("outside",)))
        await ended(here.system)
        await say(here, "@start")
        await ended(here.system, turns=3)
        (one,) = await call(there, A2aList())
        (first, *_) = heard(await received(there))
    assert one.hops == 2  # the step between the agents, and the one between the homes
    assert {"outside", "peer", "agent"} <= set(first.labels)
    assert '<outside source="client:home"' in text_of(first.parts)


async def test_a_chain_that_is_too_long_is_refused_by_the_other_home(tmp_path: Path, server: ScriptedServer) -> None:
    server.script("start", [send("go on", to="coder@work"), {"text": "."}])
    async with homes(tmp_path, server, hops=1) as (here, there):
        await say(here, "@start")
        events = await ended(here.system)
        assert await call(there, A2aList()) == ()
        assert await call(here, A2aList(open=True)) == ()
    assert "are the limit here" in str([event.body for event in events])


async def test_an_answer_comes_after_both_have_been_away(tmp_path: Path, server: ScriptedServer) -> None:
    server.script("slow", [{"hang": True}])
    there_config = {"agents": {"coder": FREE}, "a2a": {"serve": ["coder"]}}
    async with served(tmp_path / "there", server, there_config) as there:
        port, token = there.port, await there.add_token("home", "a2a:coder")
        here_config = {"a2a": {"peers": {"work": {"url": there.url, "token": token}}}, "egress": {"private": PRIVATE}}
        async with served(tmp_path / "here", server, here_config) as here:
            await say(here, "hello")
            await ended(here.system)
            sent = await call(here, A2aSend(text=f"{LONG} @slow", to="coder@work", sender="s"))
    server.script("slow", [{"text": "At last."}])
    async with served(tmp_path / "here", server, here_config) as here:
        (one,) = await call(here, A2aList(id=sent.id))
        assert one.state == "open"
        async with served(tmp_path / "there", server, there_config, port=port) as there:
            events = await ended(here.system, turns=2)
            count = len(await call(there, A2aList()))
    assert text_of(heard(events)[-1].parts).count("At last.") == 1
    assert count == 1


async def test_an_answer_is_not_lost_to_a_start_without_the_token(tmp_path: Path, server: ScriptedServer) -> None:
    server.script("slow", [{"hang": True}])
    there_config = {"agents": {"coder": FREE}, "a2a": {"serve": ["coder"]}}
    async with served(tmp_path / "there", server, there_config) as there:
        peer = {"url": there.url, "token": await there.add_token("home", "a2a:coder")}
        config = {"a2a": {"peers": {"work": peer}}, "egress": {"private": PRIVATE}}
        async with served(tmp_path / "here", server, config) as here:
            sent = await call(here, A2aSend(text=f"{LONG} @slow", to="coder@work"))
        locked = {**config, "a2a": {"peers": {"work": {**peer, "token": "opr_not-theirs"}}}}
        async with served(tmp_path / "here", server, locked) as here:

            async def asked() -> bool:
                (one,) = await call(here, A2aList(id=sent.id))
                return one.state == "answered" or "is asked again" in here.system.home.log.read_text()

            await until(asked)
            with pytest.raises(Refused, match="know our token"):
                await call(here, A2aSend(text="x", to="coder@work"))
    server.script("slow", [{"text": "At last."}])
    async with (
        served(tmp_path / "there", server, there_config, port=there.port),
        served(tmp_path / "here", server, config) as here,
    ):
        one = await answered(here, sent.id)
    assert one.answer == "At last."


async def test_a_deadline_holds_between_homes(tmp_path: Path, server: ScriptedServer) -> None:
    server.script("slow", [{"hang": True}])
    async with homes(tmp_path, server) as (here, _):
        await say(here, "hello")
        await ended(here.system)
        await call(here, A2aSend(text=f"{LONG} @slow", to="coder@work", sender="s", minutes=0.01))
        events = await ended(here.system, turns=2)
    assert "No answer of coder@work came within 0.01 minutes" in text_of(heard(events)[-1].parts)


@pytest.mark.parametrize(
    ("to", "error", "words"),
    [
        ("coder@nowhere", NotFound, "no peer 'nowhere'"),
        ("operant@work", Refused, "operant@work is not there"),
        ("nobody@work", Refused, "is not there"),
    ],
)
async def test_who_cannot_be_reached_is_said(
    tmp_path: Path, server: ScriptedServer, to: str, error: type[Exception], words: str
) -> None:
    async with homes(tmp_path, server) as (here, _):
        with pytest.raises(error, match=words):
            await call(here, A2aSend(text="x", to=to))
        with pytest.raises(Invalid, match="session of another home"):
            await call(here, A2aSend(text="x", to="coder@work", session="s"))


async def test_a_token_for_another_agent_is_refused(tmp_path: Path, server: ScriptedServer) -> None:
    async with homes(tmp_path, server, scope="a2a:operant") as (here, there):
        with pytest.raises(Refused, match="lets our token not do this"):
            await call(here, A2aSend(text="x", to="coder@work"))
        await call(there, TokenRevoke(name="home"))
        with pytest.raises(Refused, match="does not know our token"):
            await call(here, A2aSend(text="x", to="coder@work"))


async def test_a_private_address_is_dialled_only_where_the_owner_says_so(
    tmp_path: Path, server: ScriptedServer
) -> None:
    async with homes(tmp_path, server, private=[]) as (here, there):
        with pytest.raises(Refused, match="may not be dialled") as refused:
            await call(here, A2aSend(text="x", to="coder@work"))
        assert refused.value.line().count("egress.private") == 1
        assert await call(there, A2aList()) == ()


async def test_a_token_that_is_not_set_is_said(tmp_path: Path, server: ScriptedServer) -> None:
    peer = {"url": "http://127.0.0.1:9", "token": "${NOT_SET}"}
    config: dict[str, object] = {"a2a": {"peers": {"work": peer}}}
    async with served(tmp_path / "here", server, config) as here:
        with pytest.raises(Refused, match="NOT_SET is not set"):
            await call(here, A2aSend(text="x", to="coder@work"))


async def test_a_peer_that_is_down_is_said(tmp_path: Path, server: ScriptedServer) -> None:
    config = {"a2a": {"peers": {"work": {"url": "http://127.0.0.1:9"}}}, "egress": {"private": PRIVATE}}
    async with served(tmp_path / "here", server, config) as here:
        with pytest.raises(Unavailable, match="cannot be reached") as away:
            await call(here, A2aSend(text="x", to="coder@work"))
        assert "Is it running?" in away.value.line()
        assert await call(here, A2aList(open=True)) == ()
