"""Blobs live as long as somebody refers to them."""

from __future__ import annotations

from pathlib import Path

import pytest

from operant.ext.sqlite.blobs import BlobFiles
from operant.ext.sqlite.store import GRACE_S, SqliteStore
from operant.sdk import (
    Accept,
    Append,
    BlobRef,
    Body,
    ContextOpened,
    Damaged,
    Erase,
    InboxItem,
    MessageReceived,
    Note,
    NotFound,
    Text,
    ToolEnded,
    Unknown,
)
from operant.sdk.testing.fakes import ManualClock
from tests.contract.store_parts import HERE, NOW, append, event


def files(state: Path) -> list[str]:
    return sorted(path.name for path in (state / "blobs").glob("??/*"))


async def put(store: SqliteStore, words: str) -> BlobRef:
    return await store.put_blob(words.encode(), "text/plain")


async def test_a_blob_stands_under_its_digest_for_its_owner_only(store: SqliteStore, state: Path) -> None:
    ref = await put(store, "words")
    path = state / "blobs" / ref.digest[:2] / ref.digest
    assert path.read_bytes() == b"words"
    assert [oct(one.stat().st_mode & 0o777) for one in (path, path.parent)] == ["0o600", "0o700"]


async def test_a_changed_blob_is_damaged(store: SqliteStore, state: Path) -> None:
    ref = await put(store, "words")
    (state / "blobs" / ref.digest[:2] / ref.digest).write_bytes(b"worms")
    with pytest.raises(Damaged):
        await store.get_blob(ref.digest)


async def test_a_cut_blob_is_written_again(store: SqliteStore, state: Path) -> None:
    ref = await put(store, "words")
    (state / "blobs" / ref.digest[:2] / ref.digest).write_bytes(b"wo")
    await put(store, "words")
    assert await store.get_blob(ref.digest) == b"words"


def bodies(ref: BlobRef) -> list[Body | Unknown]:
    """Every way in which an event refers to a blob."""
    return [
        MessageReceived(parts=(Text(text="see"), ref)),
        ToolEnded(call_id="c", outcome="ok", artifacts=(ref,)),
        ContextOpened(system=ref, tools=ref),
        Note(kind="k", data={"file": {"type": "blob", "digest": ref.digest, "size": 1}}),
        Unknown(data={"deep": [{"type": "blob", "digest": ref.digest, "size": 1}]}),
    ]


@pytest.mark.parametrize("way", range(5))
async def test_what_an_event_refers_to_is_not_collected(
    store: SqliteStore, state: Path, clock: ManualClock, way: int
) -> None:
    ref, other = await put(store, "kept"), await put(store, "nobody's")
    body = bodies(ref)[way]
    kind = "mood.changed" if isinstance(body, Unknown) else ""
    await store.write(Append(events=(event("s", 1, body, kind=kind),), agent="main"))
    assert await store.collect() == 0, "both are young"
    clock.advance(GRACE_S + 1)

    assert await store.collect() == 1
    assert files(state) == [ref.digest]
    with pytest.raises(NotFound):
        await store.get_blob(other.digest)


async def test_what_a_waiting_message_refers_to_is_not_collected(
    store: SqliteStore, state: Path, clock: ManualClock
) -> None:
    ref = await put(store, "kept")
    await store.write(Accept(item=InboxItem(id="m", session="s", parts=(ref,), address=HERE, accepted=NOW)))
    clock.advance(GRACE_S + 1)
    assert await store.collect() == 0
    assert files(state) == [ref.digest]


async def test_what_is_put_again_is_young_again(store: SqliteStore, state: Path, clock: ManualClock) -> None:
    ref = await put(store, "words")
    clock.advance(GRACE_S - 1)
    await put(store, "words")
    clock.advance(2)
    assert await store.collect() == 0
    assert files(state) == [ref.digest]


async def test_words_that_look_like_a_reference_are_none(store: SqliteStore, state: Path, clock: ManualClock) -> None:
    ref = await put(store, "words")
    await store.write(append("s", 1, Note(kind="k", text=f'{{"type":"blob","digest":"{ref.digest}"}}')))
    clock.advance(GRACE_S + 1)
    assert await store.collect() == 1


async def test_erasing_takes_the_blobs_of_a_session_and_leaves_shared_ones(store: SqliteStore, state: Path) -> None:
    own, shared, again = await put(store, "own"), await put(store, "shared"), await put(store, "again")
    await store.write(append("s", 1, *[MessageReceived(parts=(ref,)) for ref in (own, shared, again)]))
    await store.write(append("t", 1, MessageReceived(parts=(shared,))))
    await put(store, "again")  # somebody is about to refer to it

    await store.write(Erase(session="s"))
    await store.close()
    assert files(state) == sorted([shared.digest, again.digest])


async def test_what_an_interrupted_write_left_is_swept(store: SqliteStore, state: Path, clock: ManualClock) -> None:
    ref = await put(store, "words")
    (state / "blobs" / ref.digest[:2] / ".tmpabc").write_bytes(b"wo")
    clock.advance(100 * 365 * 86_400.0)
    await store.collect()
    assert files(state) == []


async def test_erased_words_leave_the_disk(store: SqliteStore, state: Path) -> None:
    await store.write(append("s", 1, *[Note(kind="k", text="unspeakable " * 50)] * 40), append("t", 1))
    assert len(await store.search("unspeakable")) == 20
    await store.write(Erase(session="s"))
    assert list(await store.search("unspeakable")) == []
    await store.close()
    for path in state.glob("*.db*"):
        assert b"unspeakable" not in path.read_bytes(), path.name


def test_a_blob_that_goes_while_old_ones_are_looked_for_is_passed_over(tmp_path: Path) -> None:
    for name in ("a" * 64, "a" * 63 + "b"):
        (tmp_path / "aa").mkdir(exist_ok=True)
        (tmp_path / "aa" / name).write_bytes(b"x")
    clock = ManualClock()
    clock.advance(4e9)
    found = BlobFiles(tmp_path, clock, sync=False).older(1)
    first = next(found)
    for path in (tmp_path / "aa").iterdir():
        path.unlink()
    assert len(first) == 64 and list(found) == []
