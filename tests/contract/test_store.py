"""What every store must do, held by the real one and by the fake."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from operant.ext.sqlite.store import open_store
from operant.kernel.errors import Conflict, NotFound
from operant.kernel.ports import Accept, Append, Decline, Erase, Hand, Operation, Postpone, PutValue, Snapshot, Store
from operant.kernel.records import (
    Address,
    Body,
    Event,
    InboxItem,
    MessageDelivered,
    MessageFailed,
    MessageQueued,
    MessageReceived,
    ModelReplied,
    Note,
    SessionChanged,
    SessionOpened,
    Text,
    TurnEnded,
    TurnStarted,
    Unknown,
    Usage,
)
from operant.sdk.testing.fakes import ManualClock
from operant.sdk.testing.store import MemoryStore

AT = 1_790_000_000_000_000
WHERE = Address(channel="memory", chat="c", account="a")


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(AT)


@pytest.fixture(params=["sqlite", "memory"])
async def store(request: pytest.FixtureRequest, tmp_path: Path, clock: ManualClock) -> AsyncIterator[Store]:
    if request.param == "memory":
        yield MemoryStore(clock)
        return
    made = await open_store(tmp_path / "state", "process", clock)
    yield made
    await made.close()


def events(*bodies: Body | Unknown, session: str = "s", start: int = 1) -> tuple[Event, ...]:
    return tuple(
        Event(
            session=session,
            seq=seq,
            id=f"{session}-{seq}",
            type=body.type if isinstance(body, Body) else "future.thing",
            at=AT + seq,
            body=body,
            turn="t",
        )
        for seq, body in enumerate(bodies, start)
    )


def append(*bodies: Body | Unknown, session: str = "s", start: int = 1, copied: bool = False) -> Append:
    return Append(events=events(*bodies, session=session, start=start), agent="a", user="u", copied=copied)


def item(id: str = "i1", external_id: str = "", session: str = "s") -> InboxItem:
    parts = (Text(text="hi"),)
    return InboxItem(id=id, session=session, parts=parts, address=WHERE, accepted=AT, external_id=external_id)


async def test_events_come_back_as_they_were_and_in_order(store: Store) -> None:
    written = append(SessionOpened(agent="a", title="T"), Note(kind="k", text="ü", data={"x": [1]}))
    await store.write(written)
    assert tuple(await store.events("s")) == written.events
    assert [event.seq for event in await store.events("s", after=1)] == [2]
    assert [event.seq for event in await store.events("s", limit=1)] == [1]
    head = await store.head("s")
    assert head is not None
    assert (head.seq, head.info.title, head.info.agent) == (2, "T", "a")
    assert await store.head("nobody") is None


async def test_a_type_from_the_future_is_kept(store: Store) -> None:
    await store.write(append(Unknown({"a": 1})))
    (event,) = await store.events("s")
    assert event.body == Unknown({"a": 1})


@pytest.mark.parametrize("start", [1, 3])
async def test_a_taken_place_and_a_gap_are_conflicts_that_change_nothing(store: Store, start: int) -> None:
    await store.write(append(Note(kind="k")))
    with pytest.raises(Conflict):
        await store.write(append(Note(kind="other"), start=start), PutValue(namespace="n", key="k", value=b"v"))
    assert len(await store.events("s")) == 1
    assert await store.value("n", "k") is None


async def test_writes_side_by_side_keep_their_order_and_only_the_wrong_one_fails(store: Store) -> None:
    writes: list[tuple[Operation, ...]] = [(append(Note(kind="k", text=str(n)), session=f"s{n}"),) for n in range(20)]
    writes.insert(7, (append(Note(kind="k"), session="s3", start=9),))
    results = await asyncio.gather(*(store.write(*one) for one in writes), return_exceptions=True)
    assert [isinstance(one, Conflict) for one in results] == [at == 7 for at in range(21)]
    assert len(await store.sessions(limit=100)) == 20


async def test_a_message_is_accepted_once_and_settled_by_its_event(store: Store) -> None:
    await store.write(Accept(item=item(external_id="42")))
    with pytest.raises(Conflict):
        await store.write(Accept(item=item("i2", external_id="42")))
    found = await store.accepted("memory", "a", "42")
    assert found is not None
    assert found.id == "i1"
    assert [one.id for one in await store.inbox("s")] == ["i1"]
    assert list(await store.unfinished()) == ["s"]
    await store.write(append(MessageReceived(parts=(), inbox_id="i1")))
    settled = await store.inbox_item("i1")
    assert settled is not None
    assert (settled.state, settled.seq) == ("received", 1)
    assert list(await store.unfinished()) == []


async def test_a_declined_message_says_why(store: Store) -> None:
    await store.write(Accept(item=item()))
    await store.write(Decline(inbox_id="i1", reason="no"))
    found = await store.inbox_item("i1")
    assert found is not None
    assert (found.state, found.reason) == ("rejected", "no")


async def test_open_turns_are_found_without_reading_histories(store: Store) -> None:
    await store.write(append(TurnStarted()))
    assert list(await store.unfinished()) == ["s"]
    await store.write(append(TurnEnded(reason="done"), start=2))
    assert list(await store.unfinished()) == []


async def test_a_letter_s_way(store: Store) -> None:
    queued = MessageQueued(outbox_id="o1", parts=(Text(text="x"),), address=WHERE, expires=AT + 5)
    await store.write(append(queued))
    (waiting,) = await store.outbox()
    assert (waiting.state, waiting.address, waiting.expires) == ("waiting", WHERE, AT + 5)
    await store.write(Hand(outbox_id="o1", attempts=1))
    await store.write(Postpone(outbox_id="o1", next_at=AT + 9, attempts=1, error="busy"))
    again = await store.outbox_item("o1")
    assert again is not None
    assert (again.state, again.next_at, again.error) == ("waiting", AT + 9, "busy")
    await store.write(append(MessageFailed(outbox_id="o1", error="gone", attempts=2), start=2))
    (dead,) = await store.outbox(states=("dead",))
    assert (dead.error, dead.attempts) == ("gone", 2)
    await store.write(append(MessageDelivered(outbox_id="o1", platform_id="p"), start=3))
    assert list(await store.outbox(states=("waiting", "handed", "dead"))) == []


async def test_usage_is_counted_by_day_and_whose_it_is(store: Store) -> None:
    body = ModelReplied(parts=(), model="m", provider="p", usage=Usage(input=10, output=2, calls=1, usd=0.5))
    await store.write(append(body, body))
    (row,) = await store.usage()
    assert (row.day, row.session, row.agent, row.user, row.model, row.purse) == (
        "2026-09-21",
        "s",
        "a",
        "u",
        "m",
        "chat",
    )
    assert row.usage == Usage(input=20, output=4, calls=2, usd=1.0)
    assert list(await store.usage("2026-09-22")) == []


async def test_a_copy_counts_and_sends_nothing(store: Store) -> None:
    reply = ModelReplied(parts=(), model="m", provider="p", usage=Usage(input=10))
    letter = MessageQueued(outbox_id="o1", parts=(), address=WHERE)
    await store.write(append(TurnStarted(), reply, letter, copied=True))
    assert list(await store.usage()) == []
    assert list(await store.outbox()) == []
    assert list(await store.unfinished()) == []


async def test_titles_models_and_archives_show_in_the_list(store: Store) -> None:
    await store.write(append(SessionOpened(agent="a")))
    await store.write(append(SessionChanged(title="New", model="p/m"), start=2))
    (info,) = await store.sessions()
    assert (info.title, info.model, info.events) == ("New", "p/m", 2)
    await store.write(append(SessionChanged(archived=True), start=3))
    assert list(await store.sessions()) == []
    assert [one.key for one in await store.sessions(archived=True)] == ["s"]


async def test_the_newest_snapshot_comes_with_the_head(store: Store) -> None:
    await store.write(append(Note(kind="k")), Snapshot(session="s", seq=1, version="1", data=b"abc"))
    head = await store.head("s")
    assert head is not None
    assert head.snapshot == Snapshot(session="s", seq=1, version="1", data=b"abc")


async def test_values_expire_and_are_listed_by_prefix(store: Store, clock: ManualClock) -> None:
    await store.write(PutValue(namespace="n", key="a1", value=b"1"))
    await store.write(PutValue(namespace="n", key="a2", value=b"2", expires=AT + 1_000_000))
    await store.write(PutValue(namespace="n", key="b", value=b"3"))
    assert await store.values("n", "a") == [("a1", b"1"), ("a2", b"2")]
    clock.advance(2)
    assert await store.values("n", "a") == [("a1", b"1")]
    await store.write(PutValue(namespace="n", key="a1", value=None))
    assert await store.value("n", "a1") is None


async def test_values_are_listed_a_page_at_a_time(store: Store, clock: ManualClock) -> None:
    names = ["a", "a/1", "a/2", "a/É", "a/漢", "a/🦊", "b"]
    await store.write(*(PutValue(namespace="n", key=name, value=name.encode()) for name in names))
    await store.write(PutValue(namespace="n", key="a/15", value=b"gone", expires=clock.now() + 1))
    clock.advance(1)
    pages: list[str] = []
    while page := [key for key, _ in await store.values("n", "a/", pages[-1] if pages else None, 2)]:
        assert len(page) <= 2
        pages += page
    assert pages == names[1:-1]
    assert [key for key, _ in await store.values("n", after="a/É")] == ["a/漢", "a/🦊", "b"]
    assert [key for key, _ in await store.values("n", "a/", "zzz", 5)] == []
    assert [key for key, _ in await store.values("n", "a/", "A", 1)] == ["a/1"]
    await store.write(PutValue(namespace="n", key="", value=b"no name"))
    assert [key for key, _ in await store.values("n", limit=1)] == [""]
    assert [key for key, _ in await store.values("n", after="", limit=1)] == ["a"]


async def test_blobs_are_named_by_their_content(store: Store) -> None:
    ref = await store.put_blob(b"hello", "text/plain", "a.txt")
    assert (ref.size, ref.media_type, ref.name) == (5, "text/plain", "a.txt")
    assert await store.get_blob(ref.digest) == b"hello"
    assert await store.get_blob(ref.digest, 1, 3) == b"ell"
    with pytest.raises(NotFound):
        await store.get_blob("0" * 64)


@pytest.mark.parametrize("query", ["?", ", . ' -", '"', "NEAR", "*", "a\0b", "x" * 1_000_000, ""])
async def test_any_text_is_a_query(store: Store, query: str) -> None:
    await store.write(append(Note(kind="k", text="the kettle is on")))
    await store.search(query)


async def test_words_are_found_in_what_was_said(store: Store) -> None:
    await store.write(append(MessageReceived(parts=(Text(text="where is the kettle"),)), Note(kind="k", text="tea")))
    await store.write(append(Note(kind="k", text="no kettle here"), session="other"))
    hits = await store.search("Kettle?", session="s")
    assert [(hit.session, hit.seq) for hit in hits] == [("s", 1)]
    assert len(await store.search("kettle")) == 2


async def test_erasing_leaves_nothing_of_the_session(store: Store) -> None:
    await store.write(Accept(item=item()))
    await store.write(append(SessionOpened(agent="a"), Note(kind="k", text="secret kettle")))
    await store.search("kettle")
    await store.write(Erase(session="s"))
    assert await store.head("s") is None
    assert list(await store.events("s")) == []
    assert list(await store.inbox("s")) == []
    assert list(await store.search("kettle")) == []
    await store.write(append(Note(kind="k")))
    assert len(await store.events("s")) == 1
