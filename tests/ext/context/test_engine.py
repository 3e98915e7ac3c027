"""The context engine as the kernel asks it, with a model that is scripted."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from operant.ext.context.engine import setup
from operant.sdk import (
    ASSEMBLE,
    DISPATCH_BEFORE,
    Address,
    Agent,
    Asked,
    AssembleInput,
    BlobRef,
    DispatchInput,
    DispatchOutput,
    InboxItem,
    Message,
    ModelAsk,
    OverBudget,
    Reasoning,
    Text,
    ToolCall,
    ToolSpec,
)

WINDOW = 4_000
AMBIENT = "[Fri 2026-11-20 21:34 Europe/Berlin]\n"


@pytest.fixture
async def host(policy_host: Any) -> AsyncIterator[Any]:
    async with setup(policy_host, None):
        yield policy_host


def says(host: Any, *answers: str | Exception) -> None:
    left = list(answers)

    async def answer(call: ModelAsk) -> Asked:
        one = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(one, Exception):
            raise one
        return Asked(text=one)

    host.answers[ModelAsk] = answer


def talked(*words: str, summary: str = "", strategy: str = "compact") -> AssembleInput:
    """A conversation of long answers to these words, about to go on."""
    messages = [Message(role="user", parts=(Text(text=summary),))] if summary else []
    seqs, turns, seq = [0] * len(messages), [], 10
    for said in words:
        messages.append(Message(role="user", parts=(Text(text=AMBIENT), Text(text=said))))
        messages.append(Message(role="assistant", parts=(Text(text="answer " * 300),)))
        turns.append(seq)
        seqs += [seq, seq + 2]
        seq += 4
    messages.append(Message(role="user", parts=(Text(text="and now?"),)))
    return AssembleInput(
        session="s",
        agent=Agent(name="a", context_strategy=strategy),  # type: ignore[arg-type]
        model="m/m",
        window=WINDOW,
        messages=tuple(messages),
        seqs=(*seqs, seq),
        turns=(*turns, seq),
        tokens=600 * len(words),
        tools=(ToolSpec(name="b", description="", schema={}), ToolSpec(name="a", description="", schema={})),
        seq=seq,
        first=True,
    )


async def test_a_short_context_gets_prompt_and_sorted_tools(host: Any) -> None:
    output = await host.provide(ASSEMBLE, talked("hello"))

    assert output.compact is None
    assert output.system.startswith("## How to work")
    assert [spec.name for spec in output.tools] == ["a", "b"]


async def test_a_long_one_is_summarised_with_the_persons_words_kept(host: Any) -> None:
    says(host, "Asked: a house. Open: the roof.")

    output = await host.provide(ASSEMBLE, talked("never delete\nanything", "b", "c", "d"))

    compact = output.compact
    assert compact.strategy == "summary"
    assert compact.upto == 20
    head, summary, words, *said = compact.summary.split("\n")
    assert head.startswith("[A summary of the earlier conversation")
    assert summary == "Asked: a house. Open: the roof."
    assert words.startswith("[The person's own words")
    assert said == ["- never delete anything", "- b", "- c"]


async def test_the_summary_is_a_model_call_on_behalf_of_the_session(host: Any) -> None:
    says(host, "A summary.")

    await host.provide(ASSEMBLE, talked("a", "b", "c", "d"))

    [call] = host.made
    assert (call.session, call.purpose, call.max_output_tokens) == ("s", "compact", 1_000)
    transcript = call.messages[0].parts[0].text
    assert "user: [Fri 2026-11-20 21:34 Europe/Berlin]\n a\nassistant: answer" in transcript
    assert "and now?" not in transcript


async def test_an_earlier_summary_is_folded_in(host: Any) -> None:
    says(host, "First.")
    first = (await host.provide(ASSEMBLE, talked("never delete anything", "b", "c", "d"))).compact.summary
    says(host, "Second.")

    output = await host.provide(ASSEMBLE, talked("e", "f", "g", "h", summary=first))

    assert "First." in host.made[-1].messages[0].parts[0].text
    lines = output.compact.summary.split("\n")
    assert lines[1] == "Second."
    assert lines[3:] == [f"- {words}" for words in ("never delete anything", "b", "c", "e", "f", "g")]


@pytest.mark.parametrize("failure", ["", "   ", OverBudget("Today's budget does not reach.")])
async def test_without_a_summary_the_cut_is_honest_and_keeps_what_it_has(host: Any, failure: Any) -> None:
    says(host, "First.")
    first = (await host.provide(ASSEMBLE, talked("never delete anything", "b", "c", "d"))).compact.summary
    says(host, failure)

    compact = (await host.provide(ASSEMBLE, talked("e", "f", "g", "h", summary=first))).compact

    assert compact.strategy == "window"
    assert "no summary of it could be made" in compact.summary
    assert "\nFirst.\n" in compact.summary
    assert "- never delete anything\n" in compact.summary
    assert compact.summary.endswith("- g")


async def test_a_summary_is_bounded_however_long_the_model_made_it(host: Any) -> None:
    says(host, "line\n" * 10_000)

    compact = (await host.provide(ASSEMBLE, talked(*["words " * 200] * 4))).compact

    assert len(compact.summary) / 4 < WINDOW / 2 * 0.4
    assert "line\n[cut]\n" in compact.summary


async def test_a_transcript_longer_than_the_window_is_summarised_in_pieces(host: Any) -> None:
    says(host, "One.", "Two.", "Three.")
    input = msgspec.structs.replace(talked(*["words " * 900] * 6), tokens=12_000)

    compact = (await host.provide(ASSEMBLE, input)).compact

    asked = [call.messages[0].parts[0].text for call in host.made]
    assert len(asked) > 1
    assert all(len(text) < WINDOW * 4 for text in asked)
    assert "<earlier summary>\nOne.\n</earlier summary>" in asked[1]
    assert "One." not in compact.summary


def worked(results: int, size: int) -> AssembleInput:
    """A session whose turns each ran a tool, about to go on."""
    messages: list[Message] = []
    for at in range(results):
        call = ToolCall(id=f"c{at}", name="read_file", arguments='{"path":"a"}')
        messages += [
            Message(role="user", parts=(Text(text="go"), BlobRef(digest="d" * 9, size=1, name="plan.pdf"))),
            Message(role="assistant", parts=(Reasoning(text="hm"), call)),
            Message(role="tool", parts=(Text(text="r" * size),), call_id=f"c{at}", name="read_file"),
            Message(role="assistant", parts=(Text(text="done"),)),
        ]
    return msgspec.structs.replace(
        talked(),
        agent=Agent(name="a"),
        messages=tuple(messages),
        seqs=tuple(range(1, len(messages) + 1)),
        turns=tuple(range(1, len(messages) + 1, 4)),
        tokens=16_000,
        window=30_000,
        seq=len(messages),
    )


async def test_old_results_are_masked_without_asking_a_model(host: Any) -> None:
    compact = (await host.provide(ASSEMBLE, worked(6, 9_000))).compact

    assert (compact.strategy, compact.upto) == ("mask", 16)
    assert compact.summary.startswith("[This old result was taken out")
    assert host.made == []


async def test_a_transcript_shows_calls_files_and_the_ends_of_long_results(host: Any) -> None:
    says(host, "A summary.")

    await host.provide(ASSEMBLE, msgspec.structs.replace(worked(6, 9_000), overflow=True))

    transcript = host.made[0].messages[0].parts[0].text
    assert "user: go [file plan.pdf application/octet-stream]\n" in transcript
    assert 'assistant:  [calls read_file {"path":"a"}]\ntool read_file: rrr' in transcript
    assert "hm" not in transcript
    assert len(transcript) < 6 * 2_000


async def test_the_window_strategy_asks_no_model(host: Any) -> None:
    compact = (await host.provide(ASSEMBLE, talked("a", "b", "c", "d", strategy="window"))).compact

    assert compact.strategy == "window"
    assert compact.summary.startswith("[Earlier conversation was left out")
    assert host.made == []


async def test_a_message_travels_with_the_time_at_which_it_was_accepted(host: Any) -> None:
    item = InboxItem(
        id="i",
        session="s",
        parts=(Text(text="hi"),),
        address=Address(channel="local", chat="s"),
        accepted=1_795_206_840_000_000,
    )
    about = DispatchInput(session="s", agent=Agent(name="a", timezone="Europe/Berlin"), item=item)

    alone = await host.run(DISPATCH_BEFORE, about, DispatchOutput(parts=item.parts))
    beside = await host.run(DISPATCH_BEFORE, about, DispatchOutput(parts=item.parts, ambient="[3 memories]"))

    assert alone.ambient == "[Fri 2026-11-20 21:34 Europe/Berlin]"
    assert beside.ambient == "[Fri 2026-11-20 21:34 Europe/Berlin]\n[3 memories]"
