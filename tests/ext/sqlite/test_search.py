"""The search index: behind the log, and made again from it."""

from __future__ import annotations

from pathlib import Path

import pytest

from operant.ext.sqlite import search
from operant.ext.sqlite.store import SqliteStore
from operant.sdk import Erase, Note
from tests.contract.store_parts import append
from tests.ext.sqlite.surgery import Opener, query


def note(text: str) -> Note:
    return Note(kind="k", text=text)


@pytest.mark.parametrize("damage", ["deleted", "garbage", "emptied", "of another home"])
async def test_an_index_that_is_gone_or_damaged_is_made_again(opened_store: Opener, state: Path, damage: str) -> None:
    async with opened_store() as store:
        await store.write(append("s", 1, *[note(f"zebra {number}") for number in range(20)]))
        assert len(await store.search("zebra", limit=50)) == 20
    index = state / "search.db"
    if damage == "deleted":
        index.unlink()
    elif damage == "garbage":
        index.write_bytes(b"not a database " * 1_000)
    elif damage == "emptied":
        index.write_bytes(b"")
    else:
        query(state, "UPDATE meta SET value = 'another' WHERE key = 'identity'")
    async with opened_store() as store:
        assert len(await store.search("zebra", limit=50)) == 20


async def test_a_damaged_page_of_the_index_is_no_hindrance(opened_store: Opener, state: Path) -> None:
    async with opened_store() as store:
        await store.write(append("s", 1, *[note(f"zebra w{number} " * 9) for number in range(300)]))
        assert len(await store.search("zebra", limit=500)) == 300
    index = state / "search.db"
    size = index.stat().st_size
    with index.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (size - 4096))
    async with opened_store() as store:
        assert len(await store.search("zebra", limit=500)) == 300


async def test_an_index_newer_than_the_log_is_made_again(opened_store: Opener, state: Path) -> None:
    """As when the database was put back from a backup and the index was not."""
    async with opened_store() as store:
        await store.write(append("s", 1, note("zebra")))
    backup = (state / "operant.db").read_bytes()
    async with opened_store() as store:
        await store.write(append("s", 2, note("gnu")))
        assert len(await store.search("gnu")) == 1
    (state / "operant.db").write_bytes(backup)
    async with opened_store() as store:
        await store.write(append("s", 2, note("okapi")))
        assert [len(await store.search(word)) for word in ("zebra", "gnu", "okapi")] == [1, 0, 1]


async def test_writing_does_not_touch_the_index(store: SqliteStore, state: Path) -> None:
    await store.write(append("s", 1, note("zebra")))
    assert not query(state, "SELECT name FROM sqlite_schema WHERE sql LIKE '%fts5%'")


async def test_rare_words_decide_in_a_large_history(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "_RECENT", 50)
    monkeypatch.setattr(search, "_FREQUENT", 20)
    await store.write(append("s", 1, note("the okapi"), *[note("the zebra")] * 200))
    assert [hit.seq for hit in await store.search("the okapi")] == [1]
    assert min(hit.seq for hit in await store.search("the zebra")) > 140, "only what is recent is looked through"


async def test_a_long_text_is_shown_around_the_word(store: SqliteStore) -> None:
    await store.write(append("s", 1, note("x " * 5_000 + "zebra" + " y" * 5_000)))
    [hit] = await store.search("Zebra")
    assert "zebra" in hit.text
    assert len(hit.text) < 1_000


async def test_numbers_of_erased_events_are_not_given_again(store: SqliteStore) -> None:
    """An event under a number that the index has passed would never be found."""
    await store.write(append("s", 1, note("zebra")))
    await store.write(append("t", 1, note("gnu")))
    assert len(await store.search("gnu")) == 1
    await store.write(Erase(session="t"))
    await store.write(append("u", 1, note("okapi")))
    assert len(await store.search("okapi")) == 1
    assert list(await store.search("gnu")) == []
