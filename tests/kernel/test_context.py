"""The projection: grown is rebuilt, byte for byte, and always what a provider takes."""

from __future__ import annotations

from typing import Literal

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from operant.kernel.context import Context
from operant.kernel.records import (
    Body,
    ContextCompacted,
    Event,
    Message,
    MessageReceived,
    ModelReplied,
    Text,
    ToolCall,
    ToolEnded,
    TurnEnded,
    TurnStarted,
    Usage,
)

texts = st.text(max_size=12)


@st.composite
def histories(draw: st.DrawFn) -> list[Body]:
    """Turns as they happen, with damage: some ends and results are missing."""
    bodies: list[Body] = []
    number = 0
    for _ in range(draw(st.integers(0, 6))):
        bodies.append(MessageReceived(parts=(Text(text=draw(texts)),), ambient=draw(texts)))
        bodies.append(TurnStarted())
        for _ in range(draw(st.integers(0, 3))):
            calls: list[ToolCall] = []
            for _ in range(draw(st.integers(0, 3))):
                number += 1
                calls.append(ToolCall(id=f"c{number}", name="t", arguments="{}"))
            usage = Usage(input=draw(st.integers(0, 50)), output=1)
            bodies.append(ModelReplied(parts=(Text(text=draw(texts)), *calls), model="m", provider="p", usage=usage))
            for call in draw(st.permutations(calls)):
                if draw(st.integers(0, 9)):
                    parts = (Text(text=draw(texts)),)
                    bodies.append(ToolEnded(call_id=call.id, name="t", outcome="ok", parts=parts))
        if draw(st.integers(0, 9)):
            bodies.append(TurnEnded(reason="done"))
        if draw(st.booleans()):
            strategies: list[Literal["summary", "mask", "window"]] = ["summary", "mask", "window"]
            strategy = draw(st.sampled_from(strategies))
            upto = draw(st.integers(0, len(bodies)))
            starts = [at for at, body in enumerate(bodies, 1) if isinstance(body, MessageReceived) and at <= upto]
            cut = (starts[-1] - 1) if starts else 0
            bodies.append(ContextCompacted(upto=cut, summary=draw(texts), strategy=strategy))
    return bodies


def grown(bodies: list[Body]) -> Context:
    context = Context()
    for seq, body in enumerate(bodies, 1):
        context.apply(Event(session="s", seq=seq, id="", type=body.type, at=0, body=body))
    return context


@given(histories())
def test_grown_from_a_snapshot_is_the_same_as_rebuilt(bodies: list[Body]) -> None:
    whole = grown(bodies)
    for at, body in enumerate(bodies, 1):
        if not isinstance(body, TurnEnded):
            continue
        data = msgspec.msgpack.encode(grown(bodies[:at]).state())
        resumed = Context(msgspec.msgpack.decode(data, type=type(whole.state())))
        for seq, later in enumerate(bodies[at:], at + 1):
            resumed.apply(Event(session="s", seq=seq, id="", type=later.type, at=0, body=later))
        assert msgspec.json.encode(resumed.messages) == msgspec.json.encode(whole.messages)
        assert resumed.tokens == whole.tokens


@given(histories())
def test_every_call_is_followed_by_exactly_its_results(bodies: list[Body]) -> None:
    owed: list[str] = []
    for message in grown(_closed(bodies)).messages:
        if message.role == "tool":
            assert message.call_id in owed
            owed.remove(message.call_id)
            continue
        assert owed == []
        owed = [part.id for part in message.parts if isinstance(part, ToolCall)]
    assert owed == []


def _closed(bodies: list[Body]) -> list[Body]:
    return [*bodies, TurnEnded(reason="done")]


def test_a_summary_stands_for_what_went_before_and_a_mask_for_results() -> None:
    call = ToolCall(id="c", name="t", arguments="{}")
    turn: list[Body] = [
        MessageReceived(parts=(Text(text="do"),)),
        TurnStarted(),
        ModelReplied(parts=(call,), model="m", provider="p"),
        ToolEnded(call_id="c", name="t", outcome="ok", parts=(Text(text="long " * 100),)),
        ModelReplied(parts=(Text(text="done"),), model="m", provider="p"),
        TurnEnded(reason="done"),
    ]
    masked = grown([*turn, ContextCompacted(upto=6, summary="[masked]", strategy="mask")])
    assert masked.messages[2] == Message(role="tool", parts=(Text(text="[masked]"),), call_id="c", name="t")
    cut = grown([*turn, *turn, ContextCompacted(upto=6, summary="before: did it", strategy="summary")])
    assert cut.messages[0].parts == (Text(text="before: did it"),)
    assert len(cut.messages) == 1 + 4
    assert cut.turns == (7,)
