"""A store that cannot write stops, says why, and goes on by itself."""

from __future__ import annotations

import asyncio
import errno
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from operant.ext.sqlite import ledger, writer
from operant.ext.sqlite.store import SqliteStore, open_store
from operant.ext.sqlite.trouble import explained, of_system
from operant.kit.sqlite import Database
from operant.sdk import Note, StoreStopped
from operant.sdk.testing.fakes import ManualClock
from tests.contract.store_parts import append, opened
from tests.ext.sqlite.surgery import Opener, query

_WIDE = Note(kind="k", text="x" * 200_000)


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "PROBE_S", 0.02)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 4 MB, where this user may mount one."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = shutil.which("mount") is not None and not subprocess.call(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(place)], stderr=subprocess.DEVNULL
    )
    if not mounted:
        pytest.skip("this user may not mount a small disk")
    yield place
    subprocess.check_call(["umount", "--lazy", str(place)])


async def fill(store: SqliteStore) -> int:
    """Write until the store stops; return the seq of the last event that was acknowledged."""
    await store.write(opened("s"))
    for seq in range(2, 200):
        try:
            await store.write(append("s", seq, _WIDE))
        except StoreStopped:
            return seq - 1
    pytest.fail("the disk never got full")


async def recovers(store: SqliteStore) -> None:
    async with asyncio.timeout(5):
        while not store.health.accepting:
            await store.recovered()


async def test_a_full_disk_stops_the_store_until_there_is_room(small_disk: Path, clock: ManualClock) -> None:
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(2_000_000))
    async with await open_store(small_disk / "state", "power", clock) as store:
        last = await fill(store)
        assert not store.health.accepting
        assert store.health.reason == "The disk is full."
        assert store.health.hint
        with pytest.raises(StoreStopped):
            await store.write(append("t", 1))
        assert len(await store.events("s")) == last, "reading goes on"

        waiting = asyncio.gather(store.recovered())
        ballast.unlink()
        async with asyncio.timeout(5):
            await waiting
        await store.write(append("s", last + 1))
        assert [one.seq for one in await store.events("s")] == list(range(1, last + 2))
    assert query(small_disk / "state", "PRAGMA integrity_check") == [("ok",)]


async def test_a_full_disk_stops_blobs_and_the_store_goes_on_when_one_fits(
    small_disk: Path, clock: ManualClock
) -> None:
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(3_200_000))
    async with await open_store(small_disk / "state", "power", clock) as store:
        with pytest.raises(StoreStopped, match="disk is full"):
            await store.put_blob(bytes(1_200_000))
        assert not store.health.accepting, "whoever waits for the store to recover must be told"
        assert not list((small_disk / "state" / "blobs").glob("??/*")), "nothing half written is left"
        ballast.unlink()
        await recovers(store)
        ref = await store.put_blob(bytes(1_200_000))
        assert len(await store.get_blob(ref.digest)) == 1_200_000


async def test_a_full_database_refuses_each_that_waits(store: SqliteStore) -> None:
    await store.write(opened("s"))
    limit(store, 60)
    works = [store.submit(append(f"t{number}", 1, _WIDE)) for number in range(4)]
    outcomes = await asyncio.gather(*works, return_exceptions=True)
    assert {type(one) for one in outcomes} == {StoreStopped}
    assert store.health.reason == "The disk is full."
    limit(store, 1 << 30)
    await recovers(store)
    await store.write(append("t0", 1, _WIDE))
    assert sorted(one.key for one in await store.sessions()) == ["s", "t0"]


def connection_of(store: SqliteStore) -> Database:
    """Return the writer's connection."""
    assert store._writer is not None
    connection = store._writer._ledger._connection
    assert connection is not None
    return connection


def limit(store: SqliteStore, pages: int) -> None:
    """Set how many pages the writer's connection may fill."""
    connection_of(store).execute(f"PRAGMA max_page_count = {pages}").fetchall()


async def test_after_an_io_error_the_connection_is_a_new_one(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store.write(opened("s"))
    first = connection_of(store)
    failing = [apsw.IOError("disk I/O error")] * 2

    def look_after(self: ledger.Ledger) -> None:
        if failing:
            raise failing.pop()
        genuine(self)

    genuine = ledger.Ledger._look_after
    monkeypatch.setattr(ledger.Ledger, "_look_after", look_after)
    with pytest.raises(StoreStopped, match="disk reports an error"):
        await store.write(append("s", 2))
    await recovers(store)
    assert connection_of(store) is not first
    seq = 2 + len(await store.events("s")) - 1
    await store.write(append("s", seq))
    assert not failing


async def test_recovered_waits_for_a_stop_and_tells_all_who_wait(store: SqliteStore) -> None:
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        waiting = [group.create_task(store.recovered()) for _ in range(3)]
        await store.write(opened("s"))
        assert not any(one.done() for one in waiting)
        limit(store, 1)
        with pytest.raises(StoreStopped):
            await store.write(append("s", 2, _WIDE))
        limit(store, 1 << 30)
    assert store.health.accepting


async def test_a_stopped_store_closes(opened_store: Opener, state: Path) -> None:
    async with opened_store() as store:
        await store.write(opened("s"))
        limit(store, 1)
        with pytest.raises(StoreStopped):
            await store.write(append("s", 2, _WIDE))
    async with opened_store() as store:
        await store.write(append("s", 2))


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
async def test_a_home_that_cannot_be_written_to_is_refused(opened_store: Opener, state: Path) -> None:
    state.mkdir(mode=0o500)
    with pytest.raises(StoreStopped) as raised:
        async with opened_store():
            pass
    assert raised.value.hint


_AS_NOBODY = """
import asyncio, os, sys
from pathlib import Path
from operant.ext.sqlite.store import open_store
from operant.kit.clock import SystemClock
from operant.sdk import StoreStopped
os.setuid(65534)
async def main():
    try:
        await open_store(Path(sys.argv[1]), "process", SystemClock())
    except StoreStopped as stopped:
        print(stopped.line())
asyncio.run(main())
"""


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can become somebody else")
async def test_somebody_elses_home_is_refused(tmp_path: Path) -> None:
    found = subprocess.run([sys.executable, "-c", _AS_NOBODY, str(tmp_path / "state")], capture_output=True, text=True)
    assert "cannot be" in found.stdout, found.stderr
    assert "writable" in found.stdout


async def test_a_descriptor_shortage_is_said_in_words(opened_store: Opener) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    async with opened_store() as store:
        await store.write(opened("s"))
        taken: list[int] = []
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 400), hard))
        try:
            with pytest.raises(OSError, match="Too many"):
                while True:
                    taken.append(os.open(os.devnull, os.O_RDONLY))
            await store.write(append("s", 2))
            with pytest.raises(StoreStopped):
                await store.put_blob(b"x")
            assert store.health.reason == "Too many files are open."
        finally:
            for handle in taken:
                os.close(handle)
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        await recovers(store)
        await store.put_blob(b"x")


@pytest.mark.parametrize("kind", [apsw.FullError, apsw.ReadOnlyError, apsw.CantOpenError, apsw.IOError, apsw.BusyError])
def test_every_reason_comes_with_what_to_do(kind: type[apsw.Error]) -> None:
    said = explained(kind("SQL logic"))
    assert said.hint
    assert "SQL" not in said.sentence


def test_the_systems_own_error_is_named() -> None:
    assert explained(apsw.IOError("x"), errno.ENOSPC).sentence == "The disk is full."
    assert explained(apsw.CantOpenError("x"), errno.EMFILE).sentence == "Too many files are open."
    assert of_system(errno.EROFS).sentence == "The home cannot be written to."
    assert "Input/output" in of_system(errno.EIO).sentence
