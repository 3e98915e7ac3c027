"""Many writers, one transaction."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections import defaultdict
from pathlib import Path

import apsw
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from operant.ext.sqlite.store import SqliteStore
from operant.sdk import Append, Conflict, Invalid, Note, PutValue, StoreStopped
from tests.contract.store_parts import append, event, opened
from tests.ext.sqlite.surgery import Opener, commits, query

_runs = itertools.count()
_INTERLEAVED = st.lists(st.tuples(st.integers(0, 4), st.booleans()), max_size=60)


@given(plan=_INTERLEAVED)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_any_interleaving_leaves_gapless_histories(store: SqliteStore, plan: list[tuple[int, bool]]) -> None:
    """`plan` says which session writes next, and whether with a seq that is already taken."""
    run = next(_runs)
    ends: dict[str, int] = defaultdict(int)
    waiting: list[tuple[bool, asyncio.Future[None]]] = []
    for number, stale in plan:
        key = f"r{run}s{number}"
        stale = stale and ends[key] > 0
        ends[key] += not stale
        waiting.append((stale, store.submit(append(key, ends[key]))))
    outcomes = await asyncio.gather(*(one for _, one in waiting), return_exceptions=True)

    assert [isinstance(one, Conflict) for one in outcomes] == [stale for stale, _ in waiting]
    for key, end in ends.items():
        assert [one.seq for one in await store.events(key)] == list(range(1, end + 1))


async def test_writes_that_wait_share_one_transaction(store: SqliteStore, state: Path) -> None:
    before = commits(state)
    await asyncio.gather(*(store.write(append(f"s{number}", 1)) for number in range(200)))
    assert commits(state) - before < 20


async def test_a_write_whose_caller_went_away_is_carried_out(store: SqliteStore) -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await store.write(append("s", 1))
    await store.write(append("t", 1))
    assert len(await store.events("s")) == 1


@pytest.mark.parametrize("text", ["half a pair \ud800", "\udfff"])
async def test_what_cannot_be_stored_is_refused_and_harms_nobody(store: SqliteStore, text: str) -> None:
    unfit = store.submit(append("s", 1, Note(kind="k", text=text)))
    fit = store.submit(append("t", 1))
    with pytest.raises(Invalid):
        await unfit
    await fit
    with pytest.raises(Invalid):
        await store.write(Append(events=(event("u", 1, at=1 << 70),), agent="main"))
    await store.write(append("s", 1))
    assert store.health.accepting


async def test_history_cannot_be_changed_or_deleted(store: SqliteStore, state: Path) -> None:
    await store.write(opened("s"))
    for sql in ("UPDATE events SET type = 'x'", "DELETE FROM events"):
        with pytest.raises(apsw.ConstraintError, match="append-only"):
            query(state, sql)
    assert len(await store.events("s")) == 1


async def test_another_process_may_have_written(store: SqliteStore, state: Path) -> None:
    """Nothing but the daemon writes; should something, its event is not overwritten."""
    await store.write(append("s", 1))
    query(state, "INSERT INTO events SELECT n + 1, session, 2, id, type, at, turn, actor, body, crc FROM events")
    with pytest.raises(Conflict):
        await store.write(append("s", 2))
    assert store.health.accepting
    await store.write(append("t", 1))


async def test_a_busy_loop_does_not_starve_the_writer(store: SqliteStore) -> None:
    """A loop that is never idle takes the interpreter back before the writer's thread can have it."""
    done = asyncio.Event()

    async def be_busy() -> None:
        while not done.is_set():
            sum(range(2_000))
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as group:
        group.create_task(be_busy())
        async with asyncio.timeout(10):
            for seq in range(1, 60):
                await store.write(append("s", seq))
        done.set()


async def test_a_closed_store_says_so_and_leaves_no_thread(opened_store: Opener) -> None:
    before = set(threading.enumerate())
    async with opened_store() as store:
        await store.write(append("s", 1))
    with pytest.raises(StoreStopped):
        await store.write(append("s", 2))
    assert not store.health.accepting
    assert not [one for one in set(threading.enumerate()) - before if one.name.startswith("operant-")]


async def test_what_waits_is_written_before_the_store_closes(opened_store: Opener) -> None:
    async with opened_store() as store:
        waiting = [store.submit(append("s", seq)) for seq in range(1, 50)]
    assert all(one.exception() is None for one in waiting)
    async with opened_store() as store:
        assert len(await store.events("s")) == 49


async def test_a_large_history_is_opened_by_its_end(store: SqliteStore) -> None:
    await store.write(append("s", 1, *[None] * 3_000), PutValue(namespace="x", key="k", value=b"v"))
    head = await store.head("s")
    assert head is not None
    assert head.seq == 3_000
    assert len(await store.events("s")) == 3_000
