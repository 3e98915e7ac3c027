"""Surgery on every file of a store, at many places: named exactly, and the rest stays usable."""

from __future__ import annotations

from pathlib import Path

import pytest

from operant.ext.sqlite.store import SqliteStore, open_store
from operant.sdk import Broken, Damaged, Note, Snapshot
from operant.sdk.testing.fakes import ManualClock
from tests.contract.store_parts import append, opened
from tests.ext.sqlite.surgery import Opener, crashed_copy, cut, find, flip, query, zero


def words(session: str, seq: int) -> Note:
    return Note(kind="k", text=f"<{session}:{seq}>" + "x" * 600)


async def written(opened_store: Opener) -> None:
    """Write three sessions of forty events and close."""
    async with opened_store() as store:
        for key in ("a", "b", "c"):
            await store.write(opened(key), append(key, 2, *[words(key, seq) for seq in range(2, 41)]))


@pytest.mark.parametrize("seq", [2, 17, 39, 40])
async def test_a_flipped_byte_costs_one_event(opened_store: Opener, state: Path, seq: int) -> None:
    await written(opened_store)
    database = state / "operant.db"
    flip(database, find(database, f"<b:{seq}>".encode()) + 20)

    async with opened_store() as store:
        assert [one.seq for one in await store.events("b")] == [one for one in range(1, 41) if one != seq]
        assert len(await store.events("a")) == 40
        [damage] = await store.damages()
        assert (damage.what, damage.where) == ("event", f"session b event {seq}")
        await store.write(append("b", 41))
    async with opened_store() as store:
        assert [one.where for one in await store.damages()] == [f"session b event {seq}"], "it stays on record"
    [[raw]] = query(state, "SELECT raw FROM quarantine WHERE session = 'b' AND seq = ?", seq)
    assert f"<b:{seq}>" in raw


@pytest.mark.parametrize("column", ["id", "type", "at", "turn", "actor", "body", "crc"])
async def test_every_field_of_an_event_is_under_its_checksum(opened_store: Opener, state: Path, column: str) -> None:
    await written(opened_store)
    query(state, "DROP TRIGGER events_update")
    query(state, f"UPDATE events SET {column} = {column} + 1 WHERE session = 1 AND seq = 7")
    async with opened_store() as store:
        assert 7 not in [one.seq for one in await store.events("a")]
        assert [one.where for one in await store.damages()] == ["session a event 7"]


async def test_an_event_that_vanished_is_named(opened_store: Opener, state: Path) -> None:
    await written(opened_store)
    query(state, "DROP TRIGGER events_delete")
    query(state, "DELETE FROM events WHERE session = 1 AND seq IN (5, 6)")
    async with opened_store() as store:
        assert len(await store.events("a")) == 38
        assert [one.where for one in await store.damages()] == ["session a event 5", "session a event 6"]


async def test_a_torn_page_costs_the_sessions_on_it(opened_store: Opener, state: Path) -> None:
    await written(opened_store)
    database = state / "operant.db"
    page = find(database, b"<b:20>") // 4096 * 4096
    with database.open("r+b") as file:
        file.seek(page)
        file.write(b"\xff" * 64)

    async with opened_store() as store:
        with pytest.raises(Damaged):
            await store.events("b")
        assert len(await store.events("a")) == 40
        assert len(await store.events("c")) == 40
        await store.write(append("c", 41))
        with pytest.raises(Damaged):
            await store.head("b")
        states = {one.key: one.state for one in await store.sessions()}
        assert states == {"a": "idle", "b": "damaged", "c": "idle"}
        assert [one.where for one in await store.damages()] == ["session b"]


async def test_a_snapshot_that_is_not_sound_is_left_out(opened_store: Opener, state: Path) -> None:
    async with opened_store() as store:
        await store.write(opened("s"), Snapshot(session="s", seq=1, version="v", data=b"as it was"))
    query(state, "UPDATE snapshots SET data = CAST('as it is' AS BLOB)")
    async with opened_store() as store:
        head = await store.head("s")
        assert head is not None
        assert head.snapshot is None


@pytest.mark.parametrize("damage", ["header", "words", "nothing"])
async def test_what_is_no_database_is_refused_and_left_as_it_is(opened_store: Opener, state: Path, damage: str) -> None:
    await written(opened_store)
    database = state / "operant.db"
    if damage == "header":
        flip(database, 3)
    else:
        database.write_bytes(b"This is not a database at all. " * 200 if damage == "words" else b"")
        (state / "operant.db-wal").write_bytes(b"x" * 500)
    before = database.read_bytes()
    with pytest.raises(Broken) as raised:
        async with opened_store():
            pass
    assert raised.value.hint
    assert str(database) in raised.value.sentence
    assert database.read_bytes() == before


# ---------------------------------------------------------------------------- the write-ahead log


async def crashed(opened_store: Opener, state: Path, target: Path) -> tuple[Path, int]:
    """Leave a store as a crash would, with some of it only in the log; return the seq of the last event."""
    async with opened_store() as store:
        await store.write(opened("s"))
        for seq in range(2, 31):
            await store.write(append("s", seq, words("s", seq)))
        return crashed_copy(state, target), 30


async def look(state: Path, clock: ManualClock) -> tuple[list[int], list[str]]:
    """Return the events of a store's only session, and the damage, after an opening."""
    async with await open_store(state, "process", clock) as store:
        seqs = [one.seq for one in await store.events("s")]
        if seqs:
            await store.write(append("s", seqs[-1] + 1))
        return seqs, [one.action for one in await store.damages()]


async def test_a_crash_loses_nothing(opened_store: Opener, state: Path, tmp_path: Path, clock: ManualClock) -> None:
    copy, last = await crashed(opened_store, state, tmp_path / "copy")
    (copy / "operant.db-shm").unlink()
    assert await look(copy, clock) == (list(range(1, last + 1)), [])
    assert not (copy / "operant.db.open").exists(), "closed in order"


@pytest.mark.parametrize("share", [0.0, 0.1, 0.33, 0.5, 0.77, 0.95, 0.999])
@pytest.mark.parametrize("way", [cut, zero])
async def test_a_log_that_was_cut_is_noticed(
    opened_store: Opener, state: Path, tmp_path: Path, clock: ManualClock, share: float, way
) -> None:
    copy, last = await crashed(opened_store, state, tmp_path / "copy")
    log = copy / "operant.db-wal"
    way(log, int(log.stat().st_size * share))
    try:
        seqs, damages = await look(copy, clock)
    except Broken as error:
        assert share == 0.0, "only a log that holds the tables themselves can cost everything"
        assert "gone or empty" in error.sentence or "damaged" in error.sentence
        return
    assert seqs == list(range(1, len(seqs) + 1))
    assert len(seqs) < last
    [damage] = damages
    assert f"the last {last - len(seqs)} writes before the end are lost" in damage


async def test_a_flipped_byte_in_the_log_is_noticed(
    opened_store: Opener, state: Path, tmp_path: Path, clock: ManualClock
) -> None:
    copy, last = await crashed(opened_store, state, tmp_path / "copy")
    log = copy / "operant.db-wal"
    flip(log, log.stat().st_size * 9 // 10)
    seqs, damages = await look(copy, clock)
    assert 0 < len(seqs) < last
    assert len(damages) == 1


async def test_a_log_that_was_deleted_after_a_crash_is_named(
    opened_store: Opener, state: Path, tmp_path: Path, clock: ManualClock
) -> None:
    async with opened_store() as store:
        await store.write(opened("s"))
    copy, last = await crashed_again(opened_store, state, tmp_path / "copy")
    (copy / "operant.db-wal").unlink()
    seqs, [damage] = await look(copy, clock)
    assert seqs == [1]
    assert f"the last {last - 1} writes" in damage
    assert "write-ahead log is missing" in damage


async def crashed_again(opened_store: Opener, state: Path, target: Path) -> tuple[Path, int]:
    async with opened_store() as store:
        for seq in range(2, 12):
            await store.write(append("s", seq))
        return crashed_copy(state, target), 11


async def test_a_log_that_is_deleted_at_work_costs_nothing(store: SqliteStore, state: Path, tmp_path: Path) -> None:
    await store.write(opened("s"), append("s", 2, *[words("s", seq) for seq in range(2, 20)]))
    assert len(await store.events("s")) == 19
    for name in ("operant.db-wal", "operant.db-shm"):
        (state / name).unlink()
    await store.write(append("s", 20))

    assert len(await store.events("s")) == 20
    assert ["removed" in one.action for one in await store.damages()] == [True]
    copy = crashed_copy(state, tmp_path / "copy")
    assert query(copy, "SELECT count(*) FROM events") == [(20,)], "a crash right after would lose nothing either"
    await store.write(append("s", 21))
    assert len(await store.damages()) == 1


async def test_a_database_that_is_deleted_at_work_is_written_anew(store: SqliteStore, state: Path) -> None:
    await store.write(opened("s"), append("s", 2, *[None] * 50))
    (state / "operant.db").unlink()
    await store.write(append("s", 52))
    assert len(await store.events("s")) == 52
    assert query(state, "SELECT count(*) FROM events") == [(52,)]
    assert [one.what for one in await store.damages()] == ["database file"]


async def test_a_database_that_vanished_between_two_runs_is_not_begun_anew(
    opened_store: Opener, state: Path, tmp_path: Path, clock: ManualClock
) -> None:
    copy, _ = await crashed(opened_store, state, tmp_path / "copy")
    (copy / "operant.db").unlink()
    with pytest.raises(Broken, match="gone"):
        await look(copy, clock)
    assert (copy / "operant.db-wal").stat().st_size > 0


async def test_the_doctor_finds_what_is_damaged(opened_store: Opener, state: Path) -> None:
    await written(opened_store)
    async with opened_store() as store:
        ref = await store.put_blob(b"picture")
        await store.write(append("a", 41, Note(kind="k", data={"picture": {"type": "blob", "digest": ref.digest}})))
        assert all(one.ok for one in await store.look_over(full=True))
    database = state / "operant.db"
    flip(database, find(database, b"<b:9>") + 20)
    next((state / "blobs").glob("??/*")).write_bytes(b"pictured")
    database.chmod(0o644)

    async with opened_store() as store:
        database.chmod(0o644)
        found = {one.name: one for one in await store.look_over(full=True)}
        assert {name for name, one in found.items() if not one.ok} == {"events", "blobs", "rights"}
        assert "b event 9" in found["events"].sentence
        assert all(one.hint for one in found.values() if not one.ok)
