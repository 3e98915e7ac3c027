"""Where contexts are cut: properties over histories of all shapes."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from operant.ext.context.cuts import MASK, Cut, View, due, weight
from operant.sdk import Agent, AssembleInput, Message, Text, ToolCall

WINDOW = 4_000


@dataclass(frozen=True)
class Step:
    """One reply with some calls, whose results come back in reverse order when there are several."""

    words: int
    results: tuple[int, ...]


@dataclass(frozen=True)
class Spoken:
    words: int
    steps: tuple[Step, ...]


steps = st.builds(Step, words=st.integers(1, 800), results=st.lists(st.integers(1, 3_000), max_size=3).map(tuple))
spoken = st.builds(Spoken, words=st.integers(1, 2_000), steps=st.lists(steps, max_size=4).map(tuple))
conversations = st.lists(spoken, min_size=1, max_size=12)


def assembled(
    turns: list[Spoken], strategy: str = "compact", *, first: bool = True, overflow: bool = False, summary: int = 0
) -> AssembleInput:
    messages: list[Message] = []
    seqs: list[int] = []
    began: list[int] = []
    seq = 0
    if summary:
        messages.append(Message(role="user", parts=(Text(text="s" * summary),)))
        seqs.append(0)
        seq = 50
    for turn in turns:
        seq += 1
        began.append(seq)
        messages.append(Message(role="user", parts=(Text(text="u" * turn.words),)))
        seqs.append(seq)
        for step in turn.steps:
            seq += 2
            calls = tuple(ToolCall(id=f"call{at}", name="t", arguments="{}") for at in range(len(step.results)))
            messages.append(Message(role="assistant", parts=(Text(text="a" * step.words), *calls)))
            seqs.append(seq)
            for at, size in reversed(list(enumerate(step.results))):
                seq += 2
                messages.append(Message(role="tool", parts=(Text(text="r" * size),), call_id=f"call{at}"))
                seqs.append(seq)
    return AssembleInput(
        session="s",
        agent=Agent(name="a", context_strategy=strategy),  # type: ignore[arg-type]
        model="m/m",
        window=WINDOW,
        messages=tuple(messages),
        seqs=tuple(seqs),
        turns=tuple(began),
        tokens=sum(weight(message.parts) for message in messages) + 100,
        tools=(),
        seq=seq,
        first=first,
        overflow=overflow,
    )


def planned(input: AssembleInput) -> Cut | None:
    return View(input, 100).plan() if due(input) else None


def kept(input: AssembleInput, cut: Cut) -> tuple[Message, ...]:
    """What stays, as the kernel sees it: everything after `upto`."""
    return tuple(one for one, seq in zip(input.messages, input.seqs, strict=True) if seq > cut.upto)


@given(conversations, st.sampled_from(["compact", "mask", "window"]), st.booleans(), st.integers(0, 900))
@settings(max_examples=200)
def test_a_call_is_never_split_from_its_result(
    turns: list[Spoken], strategy: str, overflow: bool, summary: int
) -> None:
    input = assembled(turns, strategy, overflow=overflow, summary=summary)
    cut = planned(input)
    if cut is None:
        return

    stays = kept(input, cut)
    assert stays == input.messages[cut.index :]
    assert cut.upto > 0
    assert stays
    asked: set[str] = set()
    for message in stays:
        asked |= {part.id for part in message.parts if isinstance(part, ToolCall)}
        assert message.role != "tool" or message.call_id in asked


@given(conversations, st.sampled_from(["compact", "window"]))
@settings(max_examples=200)
def test_what_stays_fits(turns: list[Spoken], strategy: str) -> None:
    """Unless its newest step or message alone is larger than there is room for."""
    input = assembled(turns, strategy)
    cut = planned(input)
    if cut is None or cut.strategy == "mask":
        return

    stays = kept(input, cut)
    size = sum(weight(message.parts) for message in stays)
    last = max(at for at, message in enumerate(stays) if message.role != "tool")
    assert size <= 0.8 * WINDOW / 2 or last == 0


@given(conversations, st.booleans())
@settings(max_examples=200)
def test_masks_save_a_large_step_and_masking_again_changes_nothing(turns: list[Spoken], first: bool) -> None:
    input = assembled(turns, "mask", first=first)
    cut = planned(input)
    if cut is None or cut.strategy != "mask":
        return

    masked = tuple(
        Message(role="tool", parts=(Text(text=MASK),), call_id=message.call_id)
        if message.role == "tool" and seq <= cut.upto and weight(message.parts) > weight((Text(text=MASK),))
        else message
        for message, seq in zip(input.messages, input.seqs, strict=True)
    )
    saved = sum(weight(one.parts) for one in input.messages) - sum(weight(one.parts) for one in masked)
    assert saved >= 0.2 * WINDOW / 2
    again = AssembleInput(
        session="s",
        agent=input.agent,
        model="m/m",
        window=WINDOW,
        messages=masked,
        seqs=input.seqs,
        turns=input.turns,
        tokens=input.tokens - saved,
        tools=(),
        seq=input.seq + 1,
        first=first,
    )
    cut_again = planned(again)
    assert cut_again is None or cut_again.strategy != "mask" or cut_again.upto > cut.upto


@given(conversations, st.sampled_from(["compact", "mask", "window"]), st.booleans(), st.booleans())
def test_the_same_context_is_cut_the_same_way(turns: list[Spoken], strategy: str, first: bool, overflow: bool) -> None:
    one = assembled(turns, strategy, first=first, overflow=overflow)
    other = assembled(turns, strategy, first=first, overflow=overflow)

    assert planned(one) == planned(other)


@given(conversations, st.sampled_from(["compact", "mask", "window"]))
def test_a_refused_request_gets_shorter_wherever_something_can_go(turns: list[Spoken], strategy: str) -> None:
    input = assembled(turns, strategy, overflow=True)

    cut = planned(input)

    assert (cut is not None) is (len(input.messages) > 1 and input.messages[1].role != "tool")
    assert cut is None or cut.strategy != "mask"


def test_nothing_happens_below_the_limit_nor_within_a_turn_that_has_room() -> None:
    short = [Spoken(words=400, steps=())] * 3
    long = [Spoken(words=2_000, steps=())] * 5

    assert planned(assembled(short)) is None
    assert planned(assembled(long)) is not None
    assert planned(assembled(long, first=False)) is None


def test_a_long_turn_is_cut_before_the_provider_refuses_it() -> None:
    endless = [Spoken(words=100, steps=(Step(words=400, results=(1_000,)),) * 12)]
    input = assembled(endless, first=False)

    cut = planned(input)

    assert input.tokens > 0.9 * WINDOW
    assert cut is not None
    assert cut.strategy == "mask"


def test_old_results_are_masked_before_anything_is_summarised() -> None:
    chatty = [Spoken(words=60, steps=(Step(words=60, results=(2_200,)),))] * 5
    wordy = [Spoken(words=2_500, steps=(Step(words=100, results=()),))] * 4

    masked, summarised = planned(assembled(chatty)), planned(assembled(wordy))

    assert masked is not None and masked.strategy == "mask"
    assert summarised is not None and summarised.strategy == "summary"


def test_a_prompt_that_leaves_no_room_does_not_cause_a_summary_in_every_turn() -> None:
    input = assembled([Spoken(words=200, steps=())] * 2)
    crowded = AssembleInput(
        session="s",
        agent=input.agent,
        model="m/m",
        window=WINDOW,
        messages=input.messages,
        seqs=input.seqs,
        turns=input.turns,
        tokens=2_500,
        tools=(),
        seq=9,
        first=True,
    )

    assert View(crowded, 2_400).plan() is None


def test_a_summary_that_stands_alone_is_not_summarised_again() -> None:
    input = assembled([Spoken(words=3_000, steps=())], overflow=True, summary=6_000)

    assert planned(input) is None
