"""What the file may go through: it stops, says why, goes on; what is damaged is named, the rest stays usable."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import apsw
import pytest

from operant.ext.sqlite.salvage import salvage
from operant.ext.sqlite.schema import MIGRATIONS
from operant.ext.sqlite.store import SqliteStore, open_store
from operant.kernel.errors import Broken, Damaged, NotFound, StoreStopped
from operant.kernel.ports import Append, Erase
from operant.kernel.records import BlobRef, Event, MessageReceived, Note
from operant.kit.clock import SystemClock


def note(session: str, seq: int, text: str = "") -> Append:
    body = Note(kind="k", text=text or f"event {seq} of {session}")
    return Append(events=(Event(session=session, seq=seq, id=f"{seq}", type="note", at=1, body=body),), agent="a")


async def filled(state: Path, sessions: int = 3, events: int = 20) -> None:
    store = await open_store(state, "process", SystemClock())
    for seq in range(1, events + 1):
        await asyncio.gather(*(store.write(note(f"s{number}", seq)) for number in range(sessions)))
    await store.close()


async def opened(state: Path) -> SqliteStore:
    return await open_store(state, "power", SystemClock())


def spoil(path: Path, what: bytes, by: bytes) -> None:
    data = path.read_bytes()
    assert data.count(what) == 1
    path.write_bytes(data.replace(what, by))


async def test_history_cannot_be_changed_or_deleted(tmp_path: Path) -> None:
    await filled(tmp_path)
    database = apsw.Connection(str(tmp_path / "operant.db"))
    for sql in ("UPDATE events SET actor = 'me'", "DELETE FROM events"):
        with pytest.raises(apsw.ConstraintError, match="append-only"):
            database.execute(sql)
    database.close()


async def test_a_flipped_byte_costs_one_event_and_is_named(tmp_path: Path) -> None:
    await filled(tmp_path)
    spoil(tmp_path / "operant.db", b"event 7 of s1", b"event 8 of s1")
    store = await opened(tmp_path)
    assert [event.seq for event in await store.events("s1")] == [*range(1, 7), *range(8, 21)]
    assert len(await store.events("s0")) == 20
    (damage,) = await store.damages()
    assert "session s1 event 7" in damage.where
    await store.close()


async def test_a_zeroed_page_damages_what_is_on_it_and_the_rest_can_be_saved(tmp_path: Path) -> None:
    await filled(tmp_path, events=200)
    database = tmp_path / "operant.db"
    data = bytearray(database.read_bytes())
    page = data.index(b"event 150 of s1") // 4096
    data[page * 4096 : (page + 1) * 4096] = bytes(4096)
    database.write_bytes(data)
    store = await opened(tmp_path)
    failed = 0
    for number in range(3):
        try:
            await store.events(f"s{number}")
        except Damaged:
            failed += 1
    findings = {one.name: one.ok for one in await store.look_over(full=False)}
    await store.close()
    assert failed or not findings["structure"]
    saved = salvage(tmp_path, "now")
    assert saved.events > 300
    assert (tmp_path / "operant.db.damaged-now").exists()
    store = await opened(tmp_path)
    assert len(await store.events("s0")) >= 100
    assert all(one.ok for one in await store.look_over(full=True))
    await store.close()


async def test_a_file_that_is_no_database_is_refused_in_words_and_left_alone(tmp_path: Path) -> None:
    await filled(tmp_path)
    database = tmp_path / "operant.db"
    data = b"x" * 100 + database.read_bytes()[100:]
    database.write_bytes(data)
    with pytest.raises(Broken, match="damaged") as caught:
        await opened(tmp_path)
    assert "doctor --repair" in caught.value.hint
    assert database.read_bytes() == data


async def test_a_newer_schema_is_refused_in_words(tmp_path: Path) -> None:
    await filled(tmp_path)
    database = apsw.Connection(str(tmp_path / "operant.db"))
    database.pragma("user_version", len(MIGRATIONS) + 1)
    database.close()
    with pytest.raises(Broken, match="newer Operant"):
        await opened(tmp_path)


async def test_a_migration_is_preceded_by_a_backup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    await filled(tmp_path)
    later = (*MIGRATIONS, "CREATE TABLE later (x)")
    monkeypatch.setattr("operant.ext.sqlite.connection.MIGRATIONS", later)
    store = await opened(tmp_path)
    await store.close()
    backup = tmp_path / f"operant.db.v{len(MIGRATIONS)}.bak"
    assert backup.stat().st_mode & 0o777 == 0o600
    copy = apsw.Connection(str(backup))
    assert copy.execute("SELECT count(*) FROM events").get == 60
    copy.close()


async def test_a_log_deleted_while_the_store_runs_loses_nothing(tmp_path: Path) -> None:
    store = await opened(tmp_path)
    await store.write(note("s", 1))
    (tmp_path / "operant.db-wal").unlink()
    await store.write(note("s", 2))
    await store.write(note("s", 3))
    assert any(one.where == "operant.db-wal" for one in await store.damages())
    await store.close()
    store = await opened(tmp_path)
    assert [event.seq for event in await store.events("s")] == [1, 2, 3]
    await store.close()


async def test_a_log_deleted_after_a_kill_is_said(tmp_path: Path) -> None:
    await filled(tmp_path)
    (tmp_path / "operant.db.open").touch()
    store = await opened(tmp_path)
    (damage,) = await store.damages()
    assert "missing" in damage.action
    assert len(await store.events("s0")) == 20
    await store.close()


async def test_a_full_disk_stops_and_the_store_goes_on_by_itself(tmp_path: Path) -> None:
    store = await opened(tmp_path)
    connection = store._writer and store._writer._ledger._connection
    assert connection is not None
    pages = connection.execute("PRAGMA page_count").get
    connection.execute(f"PRAGMA max_page_count = {pages + 2}")
    with pytest.raises(StoreStopped, match="full"):
        for seq in range(1, 100):
            await store.write(note("s", seq, "x" * 4000))
    assert not store.health.accepting
    assert "Free" in store.health.hint
    before = len(await store.events("s"))
    connection.execute("PRAGMA max_page_count = 1000000")
    async with asyncio.timeout(10):
        await store.recovered()
    assert store.health.accepting
    await store.write(note("s", before + 1))
    await store.close()


async def test_a_really_full_disk_is_survived(tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(small)], capture_output=True)
    if mounted.returncode:
        pytest.skip("needs the right to mount a tmpfs: run as root")
    try:
        store = await open_store(small / "state", "power", SystemClock())
        filler = small / "filler"
        written = 0
        with pytest.raises(StoreStopped):
            filler.write_bytes(bytes(900_000))
            for seq in range(1, 2_000):
                await store.write(note("s", seq, "x" * 2000))
                written = seq
        filler.unlink()
        async with asyncio.timeout(20):
            await store.recovered()
        assert len(await store.events("s")) == written
        await store.write(note("s", written + 1))
        await store.close()
    finally:
        subprocess.run(["umount", str(small)], check=True)


async def test_files_are_for_their_owner_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        store = await opened(tmp_path / "state")
        await store.write(note("s", 1))
        await store.put_blob(b"x")
        modes = {path.name: path.stat().st_mode & 0o077 for path in (tmp_path / "state").rglob("*")}
        await store.close()
    finally:
        os.umask(before)
    assert set(modes.values()) == {0}


async def test_a_blob_that_is_not_its_content_is_noticed(tmp_path: Path) -> None:
    store = await opened(tmp_path)
    ref = await store.put_blob(b"hello")
    next((tmp_path / "blobs").glob("??/*")).write_bytes(b"jello")
    with pytest.raises(Damaged):
        await store.get_blob(ref.digest)
    await store.close()


async def test_only_old_blobs_that_nobody_refers_to_are_collected(tmp_path: Path) -> None:
    store = await opened(tmp_path)
    wanted, loose, young = [await store.put_blob(data) for data in (b"wanted", b"loose", b"young")]
    body = MessageReceived(parts=(BlobRef(digest=wanted.digest, size=6),))
    event = Event(session="s", seq=1, id="1", type=body.type, at=1, body=body)
    await store.write(Append(events=(event,), agent="a"))
    for ref in (wanted, loose):
        os.utime(tmp_path / "blobs" / ref.digest[:2] / ref.digest, (0, 0))
    assert await store.collect() == 1
    assert await store.get_blob(wanted.digest) == b"wanted"
    assert await store.get_blob(young.digest) == b"young"
    await store.write(Erase(session="s"))
    await store.collect()
    with pytest.raises(NotFound):
        await store.get_blob(wanted.digest)
    await store.close()


WRITER = """
import asyncio, sys
from pathlib import Path
from tests.ext.sqlite.test_damage import note, opened
async def main():
    store = await opened(Path(sys.argv[1]))
    async def write(name):
        for seq in range(1, 100000):
            await store.write(note(name, seq))
            sys.stdout.write(f"{name} {seq}\\n"); sys.stdout.flush()
    await asyncio.gather(*(write(f"s{n}") for n in range(8)))
asyncio.run(main())
"""


async def test_what_was_acknowledged_before_a_kill_is_there(tmp_path: Path) -> None:
    root = Path(__file__).parents[3]
    child = subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)], cwd=root, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    told = [child.stdout.readline() for _ in range(400)]
    child.kill()
    told += child.stdout.readlines()
    child.wait()
    child.stdout.close()
    told = [line for line in told if line.endswith("\n")]
    store = await opened(tmp_path)
    for name in {line.split()[0] for line in told}:
        last = max(int(line.split()[1]) for line in told if line.startswith(name + " "))
        seqs = [event.seq for event in await store.events(name)]
        assert seqs == list(range(1, len(seqs) + 1))
        assert len(seqs) >= last
    await store.close()
