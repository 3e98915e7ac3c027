"""Migrations, rights, and the clean end."""

from __future__ import annotations

import os
from pathlib import Path

import apsw
import pytest

from operant.ext.sqlite.schema import MIGRATIONS
from operant.sdk import Broken, StoreStopped
from tests.contract.store_parts import opened
from tests.ext.sqlite.surgery import Opener, query

_BROKEN = "CREATE TABLE novelty (x); INSERT INTO nowhere VALUES (1)"


async def test_a_migration_that_fails_halfway_changes_nothing(
    opened_store: Opener, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened_store() as store:
        await store.write(opened("s"))
    with monkeypatch.context() as later, pytest.raises(StoreStopped, match="nowhere"):
        later.setattr("operant.ext.sqlite.connection.MIGRATIONS", (*MIGRATIONS, _BROKEN))
        async with opened_store():
            pass
    assert query(state, "SELECT name FROM sqlite_schema WHERE name = 'novelty'") == []
    async with opened_store() as store:
        assert len(await store.events("s")) == 1


async def test_another_programs_database_is_refused(opened_store: Opener, state: Path) -> None:
    state.mkdir()
    other = apsw.Connection(str(state / "operant.db"))
    other.execute("CREATE TABLE theirs (x)")
    other.close()
    with pytest.raises(Broken, match="another program"):
        async with opened_store():
            pass


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT key FROM sessions WHERE open = 1",
        "SELECT session FROM inbox WHERE state = 'waiting'",
        "SELECT max(n) FROM events",
        "SELECT seq FROM events WHERE session = 1 ORDER BY seq DESC LIMIT 1",
        "SELECT 1 FROM blob_refs WHERE digest = 'x'",
        "SELECT sum(input) FROM usage WHERE session = 's'",
    ],
)
async def test_a_start_reads_no_more_of_a_large_history_than_it_needs(
    opened_store: Opener, state: Path, sql: str
) -> None:
    async with opened_store() as store:
        await store.write(opened("s"))
    [step] = [str(row[3]) for row in query(state, f"EXPLAIN QUERY PLAN {sql}")]
    assert "SEARCH" in step or "USING" in step, step


@pytest.mark.parametrize("mask", [0o000, 0o022])
async def test_files_are_for_their_owner_only(opened_store: Opener, state: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        async with opened_store() as store:
            await store.write(opened("s"))
            await store.search("x")
            found = {path.name: path.stat().st_mode & 0o077 for path in (state, *state.rglob("*"))}
    finally:
        os.umask(before)
    assert {"state", "operant.db", "operant.db-wal", "operant.db-shm", "operant.db.open", "search.db"} <= set(found)
    assert set(found.values()) == {0}


async def test_loose_rights_are_tightened(opened_store: Opener, state: Path) -> None:
    async with opened_store() as store:
        await store.write(opened("s"))
    state.chmod(0o755)
    (state / "operant.db").chmod(0o644)
    async with opened_store():
        assert state.stat().st_mode & 0o077 == 0
        assert (state / "operant.db").stat().st_mode & 0o077 == 0


async def test_a_clean_end_leaves_one_file(opened_store: Opener, state: Path) -> None:
    async with opened_store() as store:
        await store.write(opened("s"))
        await store.head("s")
        assert (state / "operant.db.open").exists()
    assert sorted(path.name for path in state.iterdir() if path.is_file() and "search" not in path.name) == [
        "operant.db"
    ]
