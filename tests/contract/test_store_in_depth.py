"""What every store holds, in the corners."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from operant.ext.sqlite.store import open_store
from operant.sdk import (
    Append,
    BlobRef,
    Conflict,
    ContextCompacted,
    Decline,
    Erase,
    Hand,
    MessageDelivered,
    MessageFailed,
    MessageReceived,
    ModelFailed,
    ModelReplied,
    Note,
    NotFound,
    Postpone,
    PutValue,
    SessionChanged,
    SessionOpened,
    Snapshot,
    Store,
    Text,
    ToolEnded,
    TurnEnded,
    TurnStarted,
    Unknown,
)
from operant.sdk.testing.fakes import ManualClock
from operant.sdk.testing.store import MemoryStore
from tests.contract.store_parts import HERE, NOW, SPENT, accept, append, event, message, opened, queued

DAY = 86_400_000_000


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW)


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path, clock: ManualClock) -> AsyncIterator[Store]:
    if request.param == "memory":
        yield MemoryStore(clock)
    else:
        async with await open_store(tmp_path / "state", "process", clock) as made:
            yield made


# ---------------------------------------------------------------------------- history


async def test_events_come_back_as_they_were_written(store: Store) -> None:
    bodies = (
        SessionOpened(agent="main", title="A title"),
        MessageReceived(parts=(Text(text="Grüße \0 \U0001f600"), BlobRef(digest="a" * 64, size=1)), address=HERE),
        Note(kind="k", data={"deep": [1, 2.5, None, {"x": "y"}]}),
    )
    await store.write(append("s", 1, *bodies))

    assert list(await store.events("s")) == [event("s", seq, body) for seq, body in enumerate(bodies, 1)]


async def test_an_unknown_type_is_kept_as_it_came(store: Store) -> None:
    strange = event("s", 1, Unknown(data={"from": "tomorrow", "n": [1]}), kind="mood.changed")
    await store.write(Append(events=(strange,), agent="main"))
    assert list(await store.events("s")) == [strange]


async def test_events_can_be_read_from_a_place_and_in_portions(store: Store) -> None:
    await store.write(append("s", 1, *[None] * 10))
    assert [one.seq for one in await store.events("s", after=7)] == [8, 9, 10]
    assert [one.seq for one in await store.events("s", after=2, limit=3)] == [3, 4, 5]
    assert list(await store.events("nobody")) == []


@pytest.mark.parametrize("seq", [1, 2, 4, 9])
async def test_an_event_that_does_not_follow_is_a_conflict_and_changes_nothing(store: Store, seq: int) -> None:
    await store.write(append("s", 1, None, None))
    if seq == 4:
        await store.write(append("s", 3))
        seq = 6
    before = list(await store.events("s"))
    with pytest.raises(Conflict):
        await store.write(accept("m"), append("s", seq))
    assert list(await store.events("s")) == before
    assert await store.inbox_item("m") is None


async def test_a_new_session_begins_with_one(store: Store) -> None:
    with pytest.raises(Conflict):
        await store.write(append("s", 2))
    assert await store.head("s") is None


async def test_writes_are_carried_out_in_the_order_of_their_calls(store: Store) -> None:
    waiting = [store.submit(append("s", seq)) for seq in range(1, 200)]
    await asyncio.gather(*waiting)
    assert [one.seq for one in await store.events("s")] == list(range(1, 200))


async def test_one_failing_write_takes_no_other_with_it(store: Store) -> None:
    works = [store.submit(append("s", 1)), store.submit(append("s", 1)), store.submit(append("s", 2))]
    outcomes = await asyncio.gather(*works, return_exceptions=True)
    assert [type(one) for one in outcomes] == [type(None), Conflict, type(None)]
    assert len(await store.events("s")) == 2


# ---------------------------------------------------------------------------- sessions


async def test_a_head_says_where_a_session_ends(store: Store) -> None:
    assert await store.head("s") is None
    await store.write(opened("s"), append("s", 2, SessionChanged(title="New", model="p/m")))
    head = await store.head("s")
    assert head is not None
    assert (head.seq, head.snapshot) == (2, None)
    assert (head.info.title, head.info.model, head.info.events, head.info.created) == ("New", "p/m", 2, NOW)


async def test_a_session_is_open_while_its_turn_runs(store: Store) -> None:
    await store.write(opened("s"), append("s", 2, TurnStarted()))
    assert list(await store.unfinished()) == ["s"]
    assert (await store.sessions())[0].state == "open"

    await store.write(append("s", 3, TurnEnded(reason="done")))
    assert list(await store.unfinished()) == []
    assert (await store.sessions())[0].state == "idle"


async def test_sessions_are_listed_the_last_changed_first(store: Store) -> None:
    for minute, key in enumerate("abc"):
        await store.write(opened(key, at=NOW + minute))
    await store.write(append("a", 2, TurnStarted(), at=NOW + 9))

    assert [one.key for one in await store.sessions()] == ["a", "c", "b"]
    assert [one.key for one in await store.sessions(limit=1)] == ["a"]
    assert [one.key for one in await store.sessions(before=NOW + 2)] == ["b"]


async def test_sessions_can_be_listed_by_agent_and_archive(store: Store) -> None:
    await store.write(opened("a", agent="one"), opened("b", agent="two"))
    await store.write(append("b", 2, SessionChanged(archived=True)))

    assert [one.key for one in await store.sessions()] == ["a"]
    assert [(one.key, one.state) for one in await store.sessions(archived=True)] == [("b", "archived")]
    assert [one.key for one in await store.sessions(archived=True, agent="one")] == []


async def test_the_newest_snapshot_stands_in_the_head(store: Store) -> None:
    await store.write(opened("s"), append("s", 2), Snapshot(session="s", seq=1, version="v1", data=b"old"))
    await store.write(Snapshot(session="s", seq=2, version="v1", data=bytes(range(256))))
    head = await store.head("s")
    assert head is not None
    assert head.snapshot == Snapshot(session="s", seq=2, version="v1", data=bytes(range(256)))


# ---------------------------------------------------------------------------- in and out


async def test_a_message_is_accepted_once(store: Store) -> None:
    await store.write(accept("m1", external_id="x1"))
    with pytest.raises(Conflict):
        await store.write(accept("m2", external_id="x1"))
    with pytest.raises(Conflict):
        await store.write(accept("m1", external_id="x2"))
    elsewhere = msgspec.structs.replace(HERE, account="another bot")
    await store.write(accept("m3"), accept("m4"))
    await store.write(msgspec.structs.replace(accept("m5"), item=message("m5", external_id="x1", address=elsewhere)))

    found = await store.accepted("memory", "bot", "x1")
    assert found == message("m1", external_id="x1")
    assert await store.accepted("memory", "bot", "x9") is None
    assert await store.accepted("memory", "bot", "") is None


async def test_a_message_waits_until_the_history_has_it(store: Store) -> None:
    await store.write(accept("m1", "s"), accept("m2", "s"), accept("m3", "other"))
    assert [one.id for one in await store.inbox("s")] == ["m1", "m2"]
    assert sorted(await store.unfinished()) == ["other", "s"]

    await store.write(opened("s"), append("s", 2, MessageReceived(parts=(), inbox_id="m1")))
    await store.write(Decline(inbox_id="m2", reason="no such agent"))

    assert list(await store.inbox("s")) == []
    received, rejected = await store.inbox_item("m1"), await store.inbox_item("m2")
    assert received is not None
    assert (received.state, received.seq) == ("received", 2)
    assert rejected is not None
    assert (rejected.state, rejected.reason) == ("rejected", "no such agent")
    assert list(await store.unfinished()) == ["other"]


async def test_what_is_queued_stands_in_the_outbox(store: Store) -> None:
    await store.write(opened("s"), append("s", 2, queued("o1", expires=NOW + 5), queued("o2")))
    first, second = await store.outbox()
    assert (first.id, first.session, first.address, first.reply_to) == ("o1", "s", HERE, "m")
    assert (first.queued, first.expires, first.state, first.parts) == (
        NOW,
        NOW + 5,
        "waiting",
        (Text(text="answer o1"),),
    )
    assert second.id == "o2"
    assert [one.id for one in await store.outbox(limit=1)] == ["o1"]
    assert list(await store.outbox(session="other")) == []


async def test_an_outbox_item_goes_its_way(store: Store) -> None:
    await store.write(opened("s"), append("s", 2, queued("o1"), queued("o2")))
    await store.write(Hand(outbox_id="o1", attempts=1))
    assert [(one.id, one.state) for one in await store.outbox()] == [("o1", "handed"), ("o2", "waiting")]

    await store.write(Postpone(outbox_id="o1", next_at=NOW + 60, attempts=1, error="busy"))
    item = await store.outbox_item("o1")
    assert item is not None
    assert (item.state, item.next_at, item.attempts, item.error) == ("waiting", NOW + 60, 1, "busy")

    delivered = MessageDelivered(outbox_id="o1", platform_id="p7", attempts=2)
    await store.write(append("s", 4, delivered, MessageFailed(outbox_id="o2", error="gone", attempts=20)))
    assert list(await store.outbox()) == []
    dead = await store.outbox(states=("dead",))
    assert [(one.id, one.error, one.attempts) for one in dead] == [("o2", "gone", 20)]
    item = await store.outbox_item("o1")
    assert item is not None
    assert (item.state, item.platform_id) == ("delivered", "p7")

    await store.write(Postpone(outbox_id="o2", next_at=0, attempts=0, expires=NOW + 1))
    revived = await store.outbox_item("o2")
    assert revived is not None
    assert (revived.state, revived.expires) == ("waiting", NOW + 1)


async def test_a_queued_message_is_queued_once(store: Store) -> None:
    await store.write(append("s", 1, queued("o1")))
    with pytest.raises(Conflict):
        await store.write(append("s", 2, queued("o1")))
    assert store.health.accepting
    await store.write(append("s", 2))


async def test_what_was_copied_is_not_done_again(store: Store) -> None:
    await store.write(accept("m1"))
    replied = ModelReplied(parts=(), model="p/m", provider="p", usage=SPENT)
    bodies = (MessageReceived(parts=(), inbox_id="m1"), TurnStarted(), replied, queued("o1"))
    events = tuple(event("fork", seq, body) for seq, body in enumerate(bodies, 1))
    await store.write(Append(events=events, agent="main", copied=True))

    assert len(await store.events("fork")) == 4
    assert list(await store.outbox()) == []
    assert list(await store.usage()) == []
    assert list(await store.unfinished()) == ["s"]
    assert [one.id for one in await store.inbox("s")] == ["m1"]


# ---------------------------------------------------------------------------- usage and values


async def test_usage_is_counted_by_day_session_user_model_and_purse(store: Store) -> None:
    replied = ModelReplied(parts=(), model="p/m", provider="p", usage=SPENT)
    failed = ModelFailed(model="p/m", provider="p", error="cut", usage=SPENT)
    await store.write(append("s", 1, replied, failed), append("s", 3, replied, at=NOW + DAY))
    background = Append(events=(event("s", 4, replied),), agent="main", user="ann", purse="background")
    await store.write(background)

    rows = {(row.day, row.purse): row for row in await store.usage()}
    assert rows["2026-11-20", "chat"].usage == SPENT + SPENT
    assert rows["2026-11-21", "chat"].usage == SPENT
    row = rows["2026-11-20", "background"]
    assert (row.session, row.agent, row.user, row.model, row.usage) == ("s", "main", "ann", "p/m", SPENT)
    assert [one.day for one in await store.usage("2026-11-21")] == ["2026-11-21"]
    head = await store.head("s")
    assert head is not None
    assert head.info.usage == SPENT + SPENT + SPENT + SPENT


async def test_values_are_set_listed_and_deleted(store: Store) -> None:
    values = {"a/1": b"one", "a/2": b"\0\xff", "b": b""}
    await store.write(*[PutValue(namespace="x", key=key, value=value) for key, value in values.items()])
    await store.write(PutValue(namespace="y", key="a/1", value=b"another's"))

    assert await store.value("x", "a/2") == b"\0\xff"
    assert await store.value("x", "b") == b""
    assert list(await store.values("x", "a/")) == [("a/1", b"one"), ("a/2", b"\0\xff")]

    await store.write(PutValue(namespace="x", key="a/1", value=None), PutValue(namespace="x", key="b", value=b"new"))
    assert await store.value("x", "a/1") is None
    assert list(await store.values("x")) == [("a/2", b"\0\xff"), ("b", b"new")]


async def test_a_value_expires(store: Store, clock: ManualClock) -> None:
    await store.write(PutValue(namespace="x", key="k", value=b"v", expires=NOW + 1_000_000))
    assert await store.value("x", "k") == b"v"
    clock.advance(2)
    assert await store.value("x", "k") is None
    assert list(await store.values("x")) == []


# ---------------------------------------------------------------------------- search


async def test_search_finds_words_in_whatever_was_said(store: Store) -> None:
    await store.write(
        append(
            "s",
            1,
            MessageReceived(parts=(Text(text="Where is the zebra?"),)),
            ModelReplied(parts=(Text(text="In Kenya."),), model="p/m", provider="p"),
            ToolEnded(call_id="c", outcome="ok", parts=(Text(text="found: okapi"),)),
            Note(kind="k", text="remember the quagga"),
            ContextCompacted(upto=2, summary="spoke of a gnu", strategy="summary"),
        )
    )
    await store.write(append("other", 1, Note(kind="k", text="another zebra")))

    found = {word: [hit.seq for hit in await store.search(word, session="s")] for word in ("Kenya", "OKAPI", "gnu")}
    assert found == {"Kenya": [2], "OKAPI": [3], "gnu": [5]}
    assert sorted((hit.session, hit.seq) for hit in await store.search("zebra")) == [("other", 1), ("s", 1)]
    [hit] = await store.search("quagga")
    assert (hit.text, hit.type, hit.at) == ("remember the quagga", "note", NOW)
    assert list(await store.search("unicorn")) == []
    assert len(await store.search("zebra quagga gnu", limit=2)) == 2


@pytest.mark.parametrize(
    "query",
    ["", " ", '"', "zebra AND", "NEAR(", "*", "a*", "col:x", "?,.'-\"", "\0", "x\0y", "\ud800", "^", "( )", "🦓"],
)
async def test_any_text_is_a_query(store: Store, query: str) -> None:
    await store.write(append("s", 1, Note(kind="k", text="a zebra")))
    assert isinstance(list(await store.search(query)), list)


async def test_a_very_long_text_is_a_query(store: Store) -> None:
    await store.write(append("s", 1, Note(kind="k", text="a zebra")))
    assert len(await store.search("zebra " * 200_000)) == 1


# ---------------------------------------------------------------------------- blobs and erasing


async def test_a_blob_is_found_under_the_digest_of_its_content(store: Store) -> None:
    data = bytes(range(256)) * 300
    ref = await store.put_blob(data, "image/png", "a.png")
    assert (ref.size, ref.media_type, ref.name, len(ref.digest)) == (len(data), "image/png", "a.png", 64)
    assert await store.put_blob(data) == BlobRef(digest=ref.digest, size=len(data))
    assert await store.get_blob(ref.digest) == data
    assert await store.get_blob(ref.digest, 10, 5) == data[10:15]
    assert await store.get_blob(ref.digest, len(data) + 1) == b""


@pytest.mark.parametrize("digest", ["0" * 64, "", "../../../etc/passwd", "Z" * 64])
async def test_a_blob_that_is_not_there_is_not_found(store: Store, digest: str) -> None:
    with pytest.raises(NotFound):
        await store.get_blob(digest)


async def test_erasing_leaves_nothing_but_what_it_cost(store: Store) -> None:
    replied = ModelReplied(parts=(Text(text="a zebra"),), model="p/m", provider="p", usage=SPENT)
    await store.write(accept("m1", external_id="x1"), opened("s"), append("s", 2, replied, queued("o1")))
    await store.write(opened("kept"), append("kept", 2, Note(kind="k", text="a zebra")))
    assert len(await store.search("zebra")) == 2

    await store.write(Erase(session="s"))

    assert await store.head("s") is None
    assert list(await store.events("s")) == []
    assert list(await store.unfinished()) == []
    assert [one.key for one in await store.sessions()] == ["kept"]
    assert (await store.inbox_item("m1"), await store.outbox_item("o1")) == (None, None)
    assert [hit.session for hit in await store.search("zebra")] == ["kept"]
    assert [(row.session, row.usage) for row in await store.usage()] == [("", SPENT)]


async def test_an_erased_session_can_begin_anew_and_is_found(store: Store) -> None:
    await store.write(opened("s"), append("s", 2, Note(kind="k", text="a zebra")))
    assert len(await store.search("zebra")) == 1
    await store.write(Erase(session="s"))
    await store.write(append("s", 1, Note(kind="k", text="a gnu")))

    assert [one.id for one in await store.events("s")] == ["s-1"]
    assert list(await store.search("zebra")) == []
    assert len(await store.search("gnu")) == 1


async def test_a_healthy_store_has_no_damage(store: Store) -> None:
    assert store.health.accepting
    assert list(await store.damages()) == []
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await store.recovered()
