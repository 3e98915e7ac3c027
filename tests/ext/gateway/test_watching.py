"""WebSockets, with a client that is not ours: frames, resuming, several windows, slow ones."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import websockets
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from operant.ext.gateway.hub import MOST_EVENTS, TAIL, Reset, Viewer
from operant.sdk import Delta, Event, Note
from operant.sdk.testing.server import ScriptedServer
from tests.journey.gateway import Served, served

SCRIPT: dict[str, Any] = {
    "hello": [{"text": "Hello there.", "chunks": 3}],
    "list": [{"calls": [{"name": "list_files", "arguments": {}}]}, {"text": "Here are your files.", "chunks": 4}],
    "slow": [{"text": "a b c d e f g h i j", "chunks": 10, "chunk_delay_ms": 30}],
    "ask": [{"calls": [{"name": "shell", "arguments": {"command": "echo hi"}}]}, {"text": "So be it."}],
    "give": [
        {"calls": [{"name": "use_tool", "arguments": {"name": "spawn_agent", "arguments": {"tasks": ["@ask"]}}}]},
        {"text": "Given."},
    ],
    "hang": [{"text": "never", "first_delay_ms": 60_000}],
    "broken": [{"status": 400}],
}


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    made = ScriptedServer(SCRIPT)
    async with made.serving():
        yield made


@pytest.fixture
async def house(tmp_path: Path, server: ScriptedServer) -> AsyncIterator[Served]:
    async with served(tmp_path / "home", server) as made:
        yield made


class Window:
    """One connection."""

    def __init__(self, socket: Any) -> None:
        self.socket = socket

    async def send(self, **frame: Any) -> None:
        await self.socket.send(json.dumps(frame))

    async def frame(self) -> Any:
        async with asyncio.timeout(15):
            return json.loads(await self.socket.recv())

    async def until(self, kind: str) -> list[Any]:
        """Return the frames up to the first one of a type."""
        frames = [await self.frame()]
        while frames[-1]["type"] != kind:
            frames.append(await self.frame())
        return frames


@asynccontextmanager
async def window(house: Served, session: str = "s", query: str = "") -> AsyncIterator[Window]:
    headers = {"Authorization": f"Bearer {house.token}"}
    async with websockets.connect(f"{house.ws}/ws/{session}{query}", additional_headers=headers) as socket:
        yield Window(socket)


def kinds(frames: list[Any]) -> list[str]:
    return [frame["type"] for frame in frames if not frame["type"].endswith("_delta")]


async def test_a_turn_with_a_tool_has_the_frames_of_the_protocol(house: Served) -> None:
    async with window(house) as one:
        await one.send(type="message", content="@list please")
        frames = await one.until("done")
    order = [kind for kind in kinds(frames) if kind not in ("accepted", "message")]
    assert order == [
        "thinking", "thinking", "tool_call", "tool_result", "thinking", "thinking", "text", "done",
    ]  # fmt: skip
    call = next(frame for frame in frames if frame["type"] == "tool_call")
    result = next(frame for frame in frames if frame["type"] == "tool_result")
    assert call["tool"] == result["tool"] == "list_files" and call["tool_call_id"] == result["tool_call_id"]
    assert result["success"] is True and "AGENTS.md" in result["result_preview"] and result["duration_ms"] >= 0
    done = frames[-1]
    assert (done["text"], done["iterations"], done["mode"]) == ("Here are your files.", 2, "bounded")
    assert done["usage"]["total_tokens"] > 0 and done["model"] == "scripted/one"
    streamed = "".join(frame["text"] for frame in frames if frame["type"] == "text_delta")
    assert streamed == "Here are your files."
    assert all("seq" in frame for frame in frames if frame["type"] not in ("accepted", "text_delta"))


async def test_every_frame_of_a_client_is_answered(house: Served) -> None:
    async with window(house) as one:
        await one.send(type="ping")
        assert (await one.frame())["type"] == "pong"
        await one.send(type="set_mode", mode="deep_work")
        assert await one.frame() == {"type": "mode_changed", "mode": "deep_work"}
        await one.send(type="message", content="@hello")
        assert (await one.until("done"))[-1]["mode"] == "deep_work"
        await one.send(type="approve_plan", feedback="@hello")
        assert (await one.until("done"))[-1]["finish_reason"] == "done"
        await one.send(type="revise_plan", feedback="@hello shorter")
        assert (await one.until("done"))[-1]["finish_reason"] == "done"
        await one.send(type="clear")
        assert (await one.until("cleared"))[-1]["type"] == "cleared"
        await one.send(type="message", content="@hello")
        assert next(frame["seq"] for frame in await one.until("done") if "seq" in frame) == 2
    archived = (await house.get("/api/sessions?archived=true"))["sessions"]
    assert [one["title"] for one in archived] == ["s, before it was cleared"]


@pytest.mark.parametrize(
    "wrong", ["not json", "[]", "3", '{"type":"dance"}', '{"type":"message","content":7}', '{"type":"message"}', "{}"]
)
async def test_what_is_not_understood_is_said_and_nothing_else_happens(house: Served, wrong: str) -> None:
    async with window(house) as one:
        await one.socket.send(wrong)
        frame = await one.frame()
        assert frame["type"] == "error" and "Traceback" not in frame["message"]
        await one.send(type="ping")
        assert (await one.frame())["type"] == "pong"
    assert (await house.get("/api/sessions"))["sessions"] == []


async def test_a_message_that_is_sent_again_is_taken_once(house: Served) -> None:
    async with window(house) as one:
        for repeat in (False, True):
            await one.send(type="message", content="@hello", id="m-1")
            accepted = (await one.until("accepted"))[-1]
            assert (accepted["id"], accepted["repeat"]) == ("m-1", repeat)
        await house.post("/api/chat/s", {"message": "@hello again"})
    history = await house.get("/api/sessions/s/history")
    said = [message["content"] for message in history["messages"] if message["role"] == "user"]
    assert said == ["@hello", "@hello again"]


async def test_a_failing_model_is_told(house: Served) -> None:
    async with window(house) as one:
        await one.send(type="message", content="@broken")
        frames = await one.until("done")
    assert kinds(frames)[-2:] == ["error", "done"]
    assert frames[-1]["finish_reason"] == "error"
    assert [frame.get("more", False) for frame in frames[-2:]] == [True, False]


async def test_a_question_is_answered_from_another_window(house: Served) -> None:
    async with window(house) as one, window(house) as two:
        await one.send(type="message", content="@ask")
        asked = (await two.until("approval_request"))[-1]
        assert asked["tool"] == "shell" and asked["input"]["command"] == "echo hi"
        await two.send(type="approval_response", tool_call_id=asked["tool_call_id"], approved=False, reason="no")
        resolved = next(frame for frame in await one.until("done") if frame["type"] == "approval_resolved")
        assert (resolved["approved"], resolved["reason"]) == (False, "no")
        await one.send(type="approval_response", tool_call_id=asked["tool_call_id"], approved=True)
        assert (await one.until("error"))[-1]["code"] == "not_found"


async def test_the_question_of_a_sub_agent_is_asked_and_answered_here(house: Served) -> None:
    async with window(house) as one:
        await one.send(type="message", content="@give")
        asked = (await one.until("approval_request"))[-1]
        assert asked["tool"] == "shell"
        assert "operant/worker" in asked["question"]
        await one.send(type="approval_response", approval_id=asked["approval_id"], approved=False, reason="no")
        resolved = next(frame for frame in await one.until("done") if frame["type"] == "approval_resolved")
        assert (resolved["approved"], resolved["reason"]) == (False, "no")


async def test_stop_stops(house: Served) -> None:
    async with window(house) as one:
        await one.send(type="message", content="@hang")
        await one.until("thinking")
        await one.send(type="stop")
        assert (await one.until("done"))[-1]["finish_reason"] == "stopped"


async def test_windows_see_the_same(house: Served) -> None:
    async with window(house) as one, window(house) as two, window(house, query="?view=events&after=0") as raw:
        await one.send(type="message", content="@list")
        mine = [frame for frame in await one.until("done") if "seq" in frame]
        theirs = [frame for frame in await two.until("done") if "seq" in frame]
        assert mine == theirs
        events = []
        while not events or events[-1]["event"]["type"] != "turn.ended":
            frame = await raw.frame()
            if frame["type"] == "event":
                events.append(frame)
        assert [frame["seq"] for frame in events] == list(range(1, len(events) + 1))


async def test_who_comes_late_sees_what_was_said_so_far(house: Served) -> None:
    async with window(house) as one:
        await one.send(type="message", content="@slow")
        heard = 0
        while heard < 3:
            heard += (await one.frame())["type"] == "text_delta"
        async with window(house, query="?after=0") as late:
            frames = await late.until("done")
    text = "".join(frame["text"] for frame in frames if frame["type"] == "text_delta")
    assert text == "a b c d e f g h i j"


async def test_resuming_at_any_point_misses_nothing_and_repeats_nothing(house: Served) -> None:
    for message in ("@list", "@hello", "@ask"):
        async with window(house) as one:
            await one.send(type="message", content=message)
            if message == "@ask":
                asked = (await one.until("approval_request"))[-1]
                await one.send(type="approval_response", approval_id=asked["approval_id"], approved=True)
            await one.until("done")
    async with window(house, query="?after=0") as one:
        whole = [frame for _ in range(3) for frame in await one.until("done")]
    for cut in range(len(whole)):
        first = whole[:cut]
        known = max((frame["seq"] for frame in first if not frame.get("more")), default=0)
        async with window(house, query=f"?after={known}") as again:
            await again.send(type="ping")
            rest = [frame for frame in await again.until("pong") if frame["type"] != "pong"]
            while not rest or rest[-1]["seq"] < whole[-1]["seq"]:
                if known == whole[-1]["seq"]:
                    break
                rest.append(await again.frame())
        kept = [frame for frame in first if frame["seq"] <= known]
        assert [frame["seq"] for frame in kept + rest] == [frame["seq"] for frame in whole]
        assert [frame["type"] for frame in kept + rest] == [frame["type"] for frame in whole]
    async with window(house) as one:
        await one.send(type="resume", seq=0)
        first_turn = whole[: [frame["type"] for frame in whole].index("done") + 1]
        assert [frame["seq"] for frame in await one.until("done")] == [frame["seq"] for frame in first_turn]


async def test_resuming_across_a_restart(tmp_path: Path, server: ScriptedServer) -> None:
    async with served(tmp_path / "home", server) as house, window(house) as one:
        await one.send(type="message", content="@list", id="m-1")
        before = [frame for frame in await one.until("done") if "seq" in frame]
    async with served(tmp_path / "home", server) as house, window(house, query="?after=0") as one:
        after = await one.until("done")
        assert [(frame["seq"], frame["type"]) for frame in after] == [(frame["seq"], frame["type"]) for frame in before]
        await one.send(type="message", content="@list", id="m-1")
        assert (await one.until("accepted"))[-1]["repeat"] is True


async def test_everything_is_watched_at_once(house: Served) -> None:
    async with window(house, "activity") as all_of_it:
        await house.post("/api/chat/a", {"message": "@list"})
        frames = await all_of_it.until("turn_ended")
        await house.post("/api/chat/b", {"message": "@hello"})
        frames += await all_of_it.until("turn_ended")
    assert {frame["session_id"] for frame in frames} == {"a", "b"}
    assert {"tool_call", "tool_result", "model_reply", "message"} <= {frame["type"] for frame in frames}
    since = frames[3]["at"]
    async with window(house, "activity", f"?since={since}") as again:
        seen: set[tuple[str, int]] = set()
        while len(seen) < len({(one["session_id"], one["seq"]) for one in frames if one["at"] >= since}):
            frame = await again.frame()
            key = (frame["session_id"], frame["seq"])
            assert key not in seen
            seen.add(key)


async def test_a_client_that_does_not_read_holds_up_nobody_and_loses_nothing(house: Served) -> None:
    headers = {"Authorization": f"Bearer {house.token}"}
    address = f"{house.ws}/ws/s?view=events&after=0"
    async with websockets.connect(address, additional_headers=headers, max_queue=1) as sleeper:
        await house.post("/api/chat/s", {"message": "@hello"})
        history = house.system.kernel.log.history("s")
        from operant.kernel.log import Stamp

        async with asyncio.timeout(20):
            for _ in range(60):
                await history.append(Stamp(), *(Note(kind="x", text="y" * 200) for _ in range(100)))
        end = history.seq
        seen: list[int] = []
        async with asyncio.timeout(30):
            while not seen or seen[-1] < end:
                frame = json.loads(await sleeper.recv())
                if frame["type"] == "event":
                    seen.append(frame["seq"])
    assert seen == list(range(1, end + 1)) and end > 6_000


# ---------------------------------------------------------------------------- the queue of one watcher


def event(seq: int, kind: str = "note") -> Event:
    return Event(session="s", seq=seq, id=str(seq), type=kind, at=seq, body=Note(kind="x"))


def delta(text: str, kind: str = "text", call: str = "") -> Delta:
    return Delta(session="s", turn="t", kind=kind, text=text, call_id=call)  # type: ignore[arg-type]


class Store:
    """Events that can be read again."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.reads = 0

    async def read(self, session: str, after: int) -> tuple[Event, ...]:
        self.reads += 1
        return tuple(self.events[after : after + 500])


Steps = st.lists(st.one_of(st.integers(1, 400), st.just("read"), st.just("delta")), max_size=30)


@given(steps=Steps, start=st.integers(0, 5))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_whatever_the_pace_every_event_comes_once_and_in_order(steps: list[int | str], start: int) -> None:
    async def play() -> list[int]:
        store = Store()
        store.events = [event(seq) for seq in range(1, start + 1)]
        viewer = Viewer("s", 0, store.read)
        got: list[int] = []
        stream = viewer.seen()

        async def take(most: int) -> None:
            while len(got) < most:
                one = await anext(stream)
                if isinstance(one, Event):
                    got.append(one.seq)

        for step in steps:
            if step == "read":
                await take(len(got) + (len(store.events) - len(got)) // 2)
            elif step == "delta":
                viewer.offer(delta("x"))
            else:
                for _ in range(int(step)):
                    store.events.append(event(len(store.events) + 1))
                    viewer.offer(store.events[-1])
        async with asyncio.timeout(10):
            await take(len(store.events))
        await stream.aclose()
        return got

    got = asyncio.run(play())
    assert got == list(range(1, len(got) + 1))


async def test_deltas_wait_as_one_text() -> None:
    viewer = Viewer("s", -1, Store().read)
    for letter in "abc":
        viewer.offer(delta(letter))
    viewer.offer(delta("thinking", "reasoning"))
    viewer.offer(event(7))
    stream = viewer.seen()
    shown = [await anext(stream) for _ in range(3)]
    assert [getattr(one, "text", "") for one in shown] == ["abc", "thinking", ""]
    await stream.aclose()


async def test_of_a_tools_output_the_end_is_kept() -> None:
    viewer = Viewer("s", -1, Store().read)
    for number in range(100):
        viewer.offer(delta(f"{number:04}" * 1_000, "tool", "c"))
    stream = viewer.seen()
    one = await anext(stream)
    assert isinstance(one, Delta) and len(one.text) == TAIL and one.text.endswith("0099")
    await stream.aclose()


async def test_a_queue_has_an_end_and_the_store_has_the_rest() -> None:
    store = Store()
    viewer = Viewer("s", 0, store.read)
    for seq in range(1, 3 * MOST_EVENTS):
        store.events.append(event(seq))
        viewer.offer(store.events[-1])
    stream = viewer.seen()
    got = [(await anext(stream)) for _ in range(3 * MOST_EVENTS - 1)]
    assert [one.seq for one in got if isinstance(one, Event)] == list(range(1, 3 * MOST_EVENTS))
    await stream.aclose()


async def test_a_history_that_begins_anew_is_told() -> None:
    store = Store()
    store.events = [event(seq) for seq in range(1, 4)]
    viewer = Viewer("s", 0, store.read)
    stream = viewer.seen()
    assert [getattr(await anext(stream), "seq", 0) for _ in range(3)] == [1, 2, 3]
    viewer.offer(Reset(session="s"))
    viewer.offer(event(1))
    assert isinstance(await anext(stream), Reset)
    again = await anext(stream)
    assert isinstance(again, Event) and again.seq == 1
    await stream.aclose()
