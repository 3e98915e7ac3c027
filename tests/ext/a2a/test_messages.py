"""Agents of one home that write to each other: real turns over the scripted model."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from operant.app.build import System
from operant.kernel.records import OWNER, Address, MessageReceived, Note, ToolEnded, TurnEnded, TurnStarted
from operant.kernel.syscalls import A2aList, A2aMessage, A2aSend, SessionDispatch, SessionGet, SessionHistory, ToolList
from operant.sdk import Event, Invalid, NotFound, Refused, Text, text_of
from operant.sdk.testing.server import ScriptedServer, scripted_server
from tests.ext.a2a.waiting import until
from tests.journey.house import ended, say, system

FREE = {"approval": {"send_to_agent": "allow"}, "arrival": "queue"}
TWO: dict[str, object] = {"agents": {"operant": FREE, "coder": FREE}}
LONG = "So that a quote of this leaves out which script it names: " + "word " * 40
THREE: dict[str, object] = {"agents": {"operant": FREE, "coder": FREE, "tester": FREE}}


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    async with scripted_server() as server:
        yield server


def send(text: str, to: str = "coder", **more: Any) -> dict[str, Any]:
    return {"calls": [{"name": "send_to_agent", "arguments": {"to": to, "text": text, **more}}]}


async def messages(made: System, **wanted: Any) -> tuple[A2aMessage, ...]:
    return await made.kernel.call(OWNER, A2aList(**wanted))


async def history(made: System, session: str) -> tuple[Event, ...]:
    return await made.kernel.call(OWNER, SessionHistory(session=session))


def heard(events: Any) -> list[MessageReceived]:
    return [event.body for event in events if isinstance(event.body, MessageReceived)]


def results(events: Any) -> list[str]:
    return [text_of(event.body.parts) for event in events if isinstance(event.body, ToolEnded)]


async def test_an_answer_comes_back_into_the_session_that_asked(tmp_path: Path, server: ScriptedServer) -> None:
    server.script("start", [send("@review it"), {"text": "I asked."}])
    server.script("review", [{"text": "It is fine."}])
    async with system(tmp_path / "home", server, TWO) as made:
        await say(made, "@start now")
        events = await ended(made, turns=2)
        (one,) = await messages(made)
        (whole,) = await messages(made, id=one.id)
        received = heard(await history(made, one.session))
        info = await made.kernel.call(OWNER, SessionGet(session=one.session))
    answer = heard(events)[-1]
    assert (one.sender, one.to, one.sender_session, one.state, one.hops) == ("operant", "coder", "s", "answered", 1)
    assert whole.answer == "It is fine."
    assert one.session.startswith("a2a:operant:coder:")
    assert (info.agent, info.channel) == ("coder", "a2a")
    assert text_of(received[0].parts).startswith("[Message from operant. It waits for your answer")
    assert received[0].author == "a2a:operant"
    assert text_of(answer.parts) == "[Answer of coder to your message ('@review it').]\nIt is fine."
    assert (answer.author, answer.reply_to) == ("a2a:coder", one.id)
    assert answer.address == Address(channel="local", chat="s")
    assert "Its answer comes as a message" in results(events)[0]


async def test_a_session_keeps_its_conversation_with_another_agent(tmp_path: Path, server: ScriptedServer) -> None:
    server.script("one", [send("first", kind="notify"), {"text": "Sent."}])
    server.script("two", [send("second", kind="notify"), {"text": "Sent."}])
    async with system(tmp_path / "home", server, TWO) as made:
        await say(made, "@one")
        await ended(made)
        await say(made, "@two")
        await ended(made, turns=2)
        await say(made, "@one", session="other")
        await ended(made, session="other")
        keys = {one.session: one.sender_session for one in await messages(made)}
        (mine,) = [key for key, origin in keys.items() if origin == "s"]
        said = heard(await ended(made, turns=2, session=mine))
    assert len(keys) == 2
    assert [text_of(one.parts).partition("\n")[2] for one in said] == ["first", "second"]


async def test_a_notice_starts_a_turn_and_nothing_comes_back(tmp_path: Path, server: ScriptedServer) -> None:
    server.script("start", [send("@done", kind="notify"), {"text": "Told."}])
    server.script("done", [{"text": "Thank you."}])
    async with system(tmp_path / "home", server, TWO) as made:
        await say(made, "@start")
        events = await ended(made)
        (one,) = await messages(made)
        theirs = await ended(made, session=one.session)
        after = await history(made, "s")
    assert one.state == "sent"
    assert "No answer is owed" in text_of(heard(theirs)[0].parts)
    assert next(event.body for event in theirs if isinstance(event.body, TurnStarted)).trigger == "agent"
    assert len(heard(after)) == len(heard(events)) == 1


async def test_a_silent_message_is_on_record_and_read_with_the_next_one(tmp_path: Path, server: ScriptedServer) -> None:
    server.script("start", [send("The build is green.", kind="silent"), {"text": "Noted."}])
    server.script("more", [send("@look", kind="notify"), {"text": "Asked."}])
    async with system(tmp_path / "home", server, TWO) as made:
        await say(made, "@start")
        await ended(made)
        (one,) = await messages(made)
        quiet = await history(made, one.session)
        assert not any(isinstance(event.body, TurnStarted | MessageReceived) for event in quiet)
        (note,) = [event.body for event in quiet if isinstance(event.body, Note)]
    async with system(tmp_path / "home", server, TWO) as made:  # the next life reads it
        await say(made, "@more")
        await ended(made, turns=2)
        await ended(made, session=one.session)
        await say(made, "@more")
        await ended(made, turns=3)
        first, second = heard(await ended(made, turns=2, session=one.session))
    assert note.kind == "a2a.message"
    assert "The build is green." in note.text
    assert "The build is green." in first.ambient
    assert "The build is green." not in second.ambient


async def test_the_owner_sends_and_reads_the_answer(tmp_path: Path, server: ScriptedServer) -> None:
    server.script("ask", [{"text": "Forty-two."}])
    async with system(tmp_path / "home", server, TWO) as made:
        sent = await made.kernel.call(OWNER, A2aSend(text="@ask", to="coder"))
        events = await ended(made, session=sent.session)
        (one,) = await messages(made, id=sent.id)
    assert (sent.sender, sent.session, sent.state) == ("owner", "a2a:owner:coder", "open")
    assert "Message from the owner" in text_of(heard(events)[0].parts)
    assert (one.state, one.answer) == ("answered", "Forty-two.")


async def test_a_message_into_a_conversation_of_a_person_is_answered_there_and_to_the_sender(
    tmp_path: Path, server: ScriptedServer
) -> None:
    server.script("hi", [{"text": "Hello."}])
    server.script("ask", [{"text": "Done."}])
    async with system(tmp_path / "home", server, TWO) as made:
        where = Address(channel="http", chat="desk")
        hello = SessionDispatch(session="desk", parts=(Text(text="@hi"),), agent="coder", address=where)
        await made.kernel.call(OWNER, hello)
        await ended(made, session="desk")
        sent = await made.kernel.call(OWNER, A2aSend(text="@ask", session="desk"))
        events = await ended(made, turns=2, session="desk")
        (one,) = await messages(made, id=sent.id)
    assert sent.to == "coder"
    assert heard(events)[-1].address == where
    assert one.answer == "Done."


async def test_an_agent_that_asks_a_third_answers_when_it_has_heard(tmp_path: Path, server: ScriptedServer) -> None:
    server.script("start", [send(f"{LONG} @go"), {"text": "Asked coder."}])
    server.script("go", [send(f"{LONG} @test", to="tester"), {"text": "I ask the tester."}])
    server.script("test", [{"text": "@wrap up"}])
    server.script("wrap", [{"text": "It passes, says the tester."}])
    async with system(tmp_path / "home", server, THREE) as made:
        await say(made, "@start")
        events = await ended(made, turns=2)
        to_tester, to_coder = await messages(made)
    said = text_of(heard(events)[-1].parts)
    assert len(heard(events)) == 2
    assert (to_coder.hops, to_tester.hops) == (1, 2)
    assert (to_coder.state, to_tester.state) == ("answered", "answered")
    assert said.endswith("\nIt passes, says the tester.")


async def test_going_round_in_circles_is_refused(tmp_path: Path, server: ScriptedServer) -> None:
    ping = [send("@pong", to="coder"), {"text": "Ping sent."}]
    server.script("ping", ping)
    server.script("pong", [send("@ping", to="operant"), {"text": "Pong sent."}])
    more: dict[str, object] = {**TWO, "a2a": {"rounds": 2, "hops": 50}}
    async with system(tmp_path / "home", server, more) as made:
        await say(made, "@ping")
        await ended(made, turns=2)
        sent = await messages(made)
        refused = [line for one in sent for line in results(await history(made, one.session)) if "circles" in line]
    assert max(one.hops for one in sent) == 4
    assert refused
    assert "Nothing was sent." in refused[0]


async def test_a_chain_that_is_too_long_is_refused(tmp_path: Path, server: ScriptedServer) -> None:
    server.script("a", [send("@b", to="coder", kind="notify"), {"text": "."}])
    server.script("b", [send("@c", to="tester", kind="notify"), {"text": "."}])
    server.script("c", [send("@a", to="operant", kind="notify"), {"text": "."}])
    async with system(tmp_path / "home", server, {**THREE, "a2a": {"hops": 2}}) as made:
        await say(made, "@a")
        await ended(made)
        (first,) = [one for one in await messages(made) if one.hops == 1]
        await ended(made, session=first.session)
        (second,) = [one for one in await messages(made) if one.hops == 2]
        events = await ended(made, session=second.session)
        count = len(await messages(made))
    assert count == 2
    assert "message 3 in a row among agents, and 2 are the limit" in results(events)[0]


async def test_a_person_who_speaks_begins_a_new_chain(tmp_path: Path, server: ScriptedServer) -> None:
    server.script("a", [send("x", kind="notify"), {"text": "."}])
    async with system(tmp_path / "home", server, {**TWO, "a2a": {"rounds": 1}}) as made:
        for number in (1, 2, 3):
            await say(made, "@a")
            await ended(made, turns=number)
        assert [one.hops for one in await messages(made)] == [1, 1, 1]


async def test_only_so_many_answers_are_waited_for(tmp_path: Path, server: ScriptedServer) -> None:
    server.script("slow", [{"hang": True}])
    server.script("start", [send("@slow"), send("@slow"), {"text": "Done."}])
    async with system(tmp_path / "home", server, {**TWO, "a2a": {"open": 1}}) as made:
        await say(made, "@start")
        events = await ended(made)
    assert "1 answers are waited for already" in results(events)[1]


async def test_who_may_write_to_whom_is_the_owners_to_say(tmp_path: Path, server: ScriptedServer) -> None:
    server.script("start", [send("hello"), {"text": "Done."}])
    rules = {"allow": {"operant": ["test*"], "coder": []}}
    async with system(tmp_path / "home", server, {**THREE, "a2a": rules}) as made:
        await say(made, "@start")
        events = await ended(made)
        offered = {
            name: [spec.name for spec in await made.kernel.call(OWNER, ToolList(agent=name))]
            for name in ("operant", "coder", "tester")
        }
        sent = await messages(made)
    assert "operant may not send coder messages" in results(events)[0]
    assert sent == ()
    assert {name: "send_to_agent" in tools for name, tools in offered.items()} == {
        "operant": True,
        "coder": False,
        "tester": True,
    }


async def test_an_agent_on_its_own_has_no_such_tool(tmp_path: Path, server: ScriptedServer) -> None:
    async with system(tmp_path / "home", server) as made:
        offered = await made.kernel.call(OWNER, ToolList(agent="operant"))
    assert "send_to_agent" not in [spec.name for spec in offered]


async def test_without_a_rule_a_person_is_asked_first(tmp_path: Path, server: ScriptedServer) -> None:
    server.script("start", [send("hello"), {"text": "Done."}])
    async with system(tmp_path / "home", server, {"agents": {"coder": {}}}) as made:
        await say(made, "@start")

        async def asked() -> bool:
            return any(event.type == "approval.asked" for event in await made.kernel.store.events("s"))

        assert await until(asked)
        assert await messages(made) == ()


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (A2aSend(text="x", to="nobody"), NotFound, "There is no agent 'nobody'"),
        (A2aSend(text="  ", to="coder"), Invalid, "from 1 to"),
        (A2aSend(text="x" * 100_001, to="coder"), Invalid, "from 1 to"),
        (A2aSend(text="x", to="coder", minutes=1e6), Invalid, "7 days"),
        (A2aSend(text="x", to="coder", minutes=-1), Invalid, "7 days"),
        (A2aSend(text="x", to="coder", session="none"), NotFound, "no session 'none'"),
        (A2aSend(text="x", to="coder", sender="none"), NotFound, "no session 'none'"),
        (A2aSend(text="x", to="operant", sender="s"), Refused, "may not send operant"),
        (A2aSend(text="x", to="coder", session="s"), Invalid, "is operant's, not coder's"),
    ],
)
async def test_what_cannot_be_sent_is_said(
    tmp_path: Path, server: ScriptedServer, call: A2aSend, error: type[Exception], words: str
) -> None:
    async with system(tmp_path / "home", server, TWO) as made:
        await say(made, "hello")
        await ended(made)
        with pytest.raises(error, match=words):
            await made.kernel.call(OWNER, call)
        assert await messages(made) == ()


async def test_a_message_that_is_not_there_is_said(tmp_path: Path, server: ScriptedServer) -> None:
    async with system(tmp_path / "home", server, TWO) as made:
        with pytest.raises(NotFound, match="no message"):
            await messages(made, id="nothing")


async def test_a_turn_that_fails_is_an_answer_too(tmp_path: Path, server: ScriptedServer) -> None:
    server.script("fail", [{"status": 400, "body": "no"}])
    async with system(tmp_path / "home", server, TWO) as made:
        sent = await made.kernel.call(OWNER, A2aSend(text="@fail", to="coder"))
        events = await ended(made, session=sent.session)
        (one,) = await messages(made, id=sent.id)
    assert [event.body.reason for event in events if isinstance(event.body, TurnEnded)] == ["error"]
    assert one.state == "answered"
    assert one.answer
