"""Lean: a stable prefix, few tokens of our own, and requests that can be made again from the log alone."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import msgspec

from operant.ext.providers.chat_wire import Requests
from operant.ext.providers.endpoint import Quirks
from operant.kernel.context import Context
from operant.kernel.ports import Facts
from operant.kernel.records import ContextCompacted, ModelReplied, ModelRequest, ToolSpec
from operant.sdk.testing.server import scripted_server
from tests.journey.house import ended, say, system

WORK = [
    {"text": "I look around.", "calls": [{"name": "list_files", "arguments": {}}]},
    {"calls": [{"name": "write_file", "arguments": {"path": "{1}.txt", "content": "{1} " * 40}}]},
    {"text": "Wrote {1}."},
]


async def test_hello_costs_little(tmp_path: Path) -> None:
    async with scripted_server() as server, system(tmp_path / "home", server) as made:
        await say(made, "hello")
        await ended(made)
        body = server.requests[0].body
    ours = len(body["messages"][0]["content"]) + len(msgspec.json.encode(body["tools"]))
    assert ours / 4 <= 2_500


async def test_every_request_is_the_last_one_and_a_suffix_also_over_turns(tmp_path: Path) -> None:
    async with scripted_server({"work": WORK}) as server, system(tmp_path / "home", server) as made:
        for number in range(4):
            await say(made, f"@work file{number}")
            await ended(made, number + 1)
        requests = server.requests
    tail = len(b'],"stream":true,"stream_options":{"include_usage":true}}')
    raw = [msgspec.json.encode(one.body["messages"])[:-1] for one in requests]
    assert all(later.startswith(earlier) for earlier, later in pairwise(raw))
    assert all(len(one) > tail for one in raw)


async def test_the_log_alone_gives_every_request_again_byte_for_byte(tmp_path: Path) -> None:
    async with scripted_server({"work": WORK}) as server, system(tmp_path / "home", server, window=4_000) as made:
        for number in range(12):
            await say(made, f"@work file{number}")
            events = await ended(made, number + 1)
        store = made.kernel.store
        replayed: list[bytes] = []
        context = Context()
        for event in events:
            if isinstance(event.body, ModelReplied) and event.body.purpose == "turn":
                assert context.opened is not None
                system_prompt = (await store.get_blob(context.opened.system.digest)).decode()
                tools = msgspec.json.decode(
                    await store.get_blob(context.opened.tools.digest), type=tuple[ToolSpec, ...]
                )
                request = ModelRequest(model="one", system=system_prompt, messages=context.messages, tools=tools)
                replayed.append(await Requests(store, Quirks()).body(request, Facts()))
            context.apply(event)
        sent = [one.body for one in server.requests if one.body.get("tools")]
    assert any(isinstance(event.body, ContextCompacted) for event in events)
    assert [msgspec.json.decode(one) for one in replayed] == sent
