"""Saving what can be read out of a damaged database."""

from __future__ import annotations

from pathlib import Path

import pytest

from operant.ext.sqlite.salvage import salvage
from operant.sdk import Broken, Note, PutValue
from tests.contract.store_parts import accept, append, opened, queued
from tests.ext.sqlite.surgery import Opener, find, flip, query


async def written(opened_store: Opener) -> None:
    async with opened_store() as store:
        for key in ("a", "b", "c"):
            notes = [Note(kind="k", text=f"<{key}:{seq}>" + "x" * 900) for seq in range(2, 81)]
            await store.write(opened(key), append(key, 2, *notes))
        await store.write(accept("m"), append("c", 81, queued("o")), PutValue(namespace="n", key="k", value=b"v"))


async def test_everything_sound_is_saved_and_a_note_stands_for_what_is_not(opened_store: Opener, state: Path) -> None:
    await written(opened_store)
    database = state / "operant.db"
    for seq in (7, 40):
        flip(database, find(database, f"<b:{seq}>".encode()) + 20)
    before = database.read_bytes()

    saved = salvage(state, "now")

    assert (saved.events, saved.lost, saved.sessions) == (239, 2, 3)
    assert (state / saved.kept_as).read_bytes() == before, "the damaged file is kept as it is"
    async with opened_store() as store:
        events = await store.events("b")
        assert [one.seq for one in events] == list(range(1, 81))
        assert [one.seq for one in events if isinstance(one.body, Note) and one.body.kind == "lost"] == [7, 40]
        assert [len(await store.events(key)) for key in "ac"] == [80, 81]
        assert list(await store.damages()) == []
        assert len(await store.search("lost damaged", limit=9)) == 2
        assert [one.id for one in await store.inbox("s")] == ["m"]
        assert [one.id for one in await store.outbox()] == ["o"]
        assert await store.value("n", "k") == b"v"
        await store.write(append("b", 81))
        assert all(one.ok for one in await store.look_over(full=True))


async def test_torn_pages_cost_only_what_was_on_them(opened_store: Opener, state: Path) -> None:
    await written(opened_store)
    database = state / "operant.db"
    for words in (b"<a:20>", b"<b:50>"):
        page = find(database, words) // 4096 * 4096
        with database.open("r+b") as file:
            file.seek(page)
            file.write(b"\xff" * 4096)
    saved = salvage(state, "now")
    assert saved.lost < 20
    async with opened_store() as store:
        assert [len(await store.events(key)) for key in "abc"] == [80, 80, 81]
        assert (await store.sessions())[0].state == "idle"


async def test_a_lost_header_costs_nothing(opened_store: Opener, state: Path) -> None:
    await written(opened_store)
    with (state / "operant.db").open("r+b") as file:
        file.write(bytes(100))
    with pytest.raises(Broken):
        async with opened_store():
            pass
    saved = salvage(state, "now")
    assert (saved.events, saved.lost) == (241, 0)
    async with opened_store() as store:
        assert len(await store.events("a")) == 80


async def test_what_stands_in_the_log_is_saved(opened_store: Opener, state: Path, tmp_path: Path) -> None:
    from tests.ext.sqlite.surgery import crashed_copy

    async with opened_store() as store:
        await store.write(opened("s"), append("s", 2, *[None] * 20))
        copy = crashed_copy(state, tmp_path / "copy")
    assert salvage(copy, "now").events == 21
    assert query(copy, "SELECT count(*) FROM events") == [(21,)]


async def test_nothing_is_changed_where_nothing_can_be_read(state: Path) -> None:
    state.mkdir()
    database = state / "operant.db"
    database.write_bytes(b"no database " * 1_000)
    with pytest.raises(Broken):
        salvage(state, "now")
    assert database.read_bytes() == b"no database " * 1_000
    assert [path.name for path in state.iterdir()] == ["operant.db"]
