"""A whole turn over every protocol: what goes wrong has one outcome, and the person is told where it matters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from operant.kernel.records import Event, MessageQueued, ModelFailed, ModelReplied, ToolEnded, TurnEnded, text_of
from operant.sdk.testing.server import ScriptedServer, scripted_server
from tests.journey.house import ended, say, system

PROTOCOLS = ("openai", "responses", "anthropic", "gemini")
WRITE = {
    "text": "I write.",
    "reasoning": "hm",
    "calls": [{"name": "write_file", "arguments": {"path": "a.txt", "content": "x"}}],
}
READ = {"calls": [{"name": "read_file", "arguments": {"path": "a.txt"}}, {"name": "list_files", "arguments": {}}]}


@pytest.fixture(params=PROTOCOLS)
def protocol(request: pytest.FixtureRequest) -> str:
    return request.param


def told(events: list[Event]) -> list[str]:
    return [text_of(event.body.parts) for event in events if isinstance(event.body, MessageQueued)]


def failures(events: list[Event]) -> list[tuple[str, str]]:
    return [(event.body.error, event.body.then) for event in events if isinstance(event.body, ModelFailed)]


def ending(events: list[Event]) -> str:
    assert isinstance(events[-1].body, TurnEnded)
    return events[-1].body.reason


async def turns(
    tmp_path: Path, server: ScriptedServer, protocol: str, *texts: str, more: dict[str, object] | None = None
) -> list[Event]:
    async with system(tmp_path / "home", server, more, protocol=protocol) as made:
        events: list[Event] = []
        for number, text in enumerate(texts, 1):
            await say(made, text)
            events = await ended(made, number)
    return events


async def test_a_loop_of_tools_and_a_second_turn(tmp_path: Path, protocol: str) -> None:
    async with scripted_server({"go": [WRITE, READ, {"text": "Done."}]}) as server:
        events = await turns(tmp_path, server, protocol, "@go", "hello")
    assert told(events) == ["Done.", "Hello."]
    assert [event.body.outcome for event in events if isinstance(event.body, ToolEnded)] == ["ok"] * 3
    usage = [event.body.usage for event in events if isinstance(event.body, ModelReplied)]
    assert all(one.input and one.output and one.usd for one in usage)
    assert usage[-1].cached


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ({"status": 429, "retry_after": "0"}, "rate_limited"),
        ({"status": 500}, "server"),
        ({"status": 529}, "overloaded"),
        ({"cut_after": 2}, "cut"),
        ({"error_event": 2}, ""),
    ],
)
async def test_what_passes_is_tried_again_and_nothing_is_said_twice(
    tmp_path: Path, protocol: str, fault: dict[str, Any], kind: str
) -> None:
    step = {"text": "All of it.", "chunks": 3, "times": 1, **fault}
    async with scripted_server({"go": [step]}) as server:
        events = await turns(tmp_path, server, protocol, "@go")
    assert told(events) == ["All of it."]
    assert [then for _, then in failures(events)] == ["retry"]
    assert failures(events)[0][0] == kind or not kind


async def test_a_stall_is_ended_and_tried_again(tmp_path: Path, protocol: str) -> None:
    step = {"text": "All of it.", "chunks": 3, "times": 1, "stall_after": 2}
    impatient: dict[str, object] = {"defaults": {"models": ["scripted/one"], "limits": {"stall_s": 0.3}}}
    async with scripted_server({"go": [step]}) as server:
        events = await turns(tmp_path, server, protocol, "@go", more=impatient)
    assert told(events) == ["All of it."]
    assert set(failures(events)) == {("stalled", "retry")}  # a slow machine stalls more than once


async def test_a_wrong_key_takes_the_next_model(tmp_path: Path, protocol: str) -> None:
    chain: dict[str, object] = {"defaults": {"models": ["scripted/one", "offline/offline"]}}
    async with scripted_server({"go": [{"status": 401}]}) as server:
        events = await turns(tmp_path, server, protocol, "@go", more=chain)
    assert failures(events) == [("auth", "next offline/offline")]
    assert ending(events) == "done"


async def test_too_long_compacts_once_and_then_says_so(tmp_path: Path, protocol: str) -> None:
    body = '{"error": {"message": "This request exceeds the maximum context length."}}'
    async with scripted_server({"go": [{"status": 400, "body": body}]}) as server:
        events = await turns(tmp_path, server, protocol, "hello", "@go")
    # Whose words the server goes by after the compaction differs; once is enough in each case.
    assert failures(events) in (
        [("context_overflow", "compact")],
        [("context_overflow", "compact"), ("context_overflow", "fail")],
    )
    assert (ending(events) == "error") == (len(failures(events)) == 2)
    assert len(failures(events)) == 1 or "context length" in told(events)[-1]


async def test_an_empty_answer_is_asked_for_again_and_then_said(tmp_path: Path, protocol: str) -> None:
    async with scripted_server({"go": [{"text": ""}]}) as server:
        events = await turns(tmp_path, server, protocol, "@go")
    assert [kind for kind, _ in failures(events)] == ["empty", "empty"]
    assert "empty answer" in told(events)[-1]


async def test_an_answer_that_was_cut_by_the_limit_says_so(tmp_path: Path, protocol: str) -> None:
    async with scripted_server({"go": [{"text": "So far", "finish": "length"}]}) as server:
        events = await turns(tmp_path, server, protocol, "@go")
    assert "output limit" in told(events)[-1]


async def test_what_is_withheld_is_said(tmp_path: Path, protocol: str) -> None:
    async with scripted_server({"go": [{"blocked": True}]}) as server:
        events = await turns(tmp_path, server, protocol, "@go")
    assert "withheld" in told(events)[-1] or "refused" in told(events)[-1]
    assert ending(events) == "error"


async def test_a_model_without_tools_still_answers_and_the_record_says_why(tmp_path: Path, protocol: str) -> None:
    body = '{"error": {"message": "one does not support tools"}}'
    step = {"text": "Without.", "status": 400, "body": body, "times": 1}
    async with scripted_server({"go": [step]}) as server:
        events = await turns(tmp_path, server, protocol, "@go")
    assert told(events) == ["Without."]
    assert failures(events) == [("unsupported", "retry")]
