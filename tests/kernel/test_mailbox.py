"""Messages on their way out: in order, retried, never silently twice, never silently lost."""

from __future__ import annotations

import asyncio

from operant.kernel.errors import Invalid, Unavailable, Uncertain
from operant.kernel.kernel import Kernel
from operant.kernel.log import Stamp
from operant.kernel.ports import Hand
from operant.kernel.records import OWNER, Address, MessageQueued, SessionOpened, Text, text_of
from operant.kernel.syscalls import MessageRequeue, MessageSend, SessionOpen
from operant.sdk.testing.fakes import MemoryChannel
from operant.sdk.testing.store import MemoryStore
from operant.sdk.testing.system import Bench

WHERE = Address(channel="memory", chat="c")


async def send(kernel: Kernel, text: str, where: Address = WHERE) -> str:
    await kernel.call(OWNER, SessionOpen(session="s"))
    return (await kernel.call(OWNER, MessageSend(session="s", parts=(Text(text=text),), address=where))).outbox_id


async def settled(kernel: Kernel, outbox_id: str) -> str:
    async with asyncio.timeout(10):
        while True:
            item = await kernel.store.outbox_item(outbox_id)
            assert item is not None
            if item.state in {"delivered", "dead"}:
                return item.state
            await asyncio.sleep(0)


def running(bench: Bench, *channels: MemoryChannel) -> Kernel:
    kernel = bench.kernel()
    for channel in channels:
        kernel.outbox.register(channel)
    return kernel


def words(channel: MemoryChannel) -> list[tuple[str, bool]]:
    return [(text_of(item.parts), repeat) for item, repeat in channel.sent]


async def test_messages_to_one_address_arrive_in_order_through_failures() -> None:
    bench, channel = Bench(), MemoryChannel()
    channel.failures = [Unavailable("Too many requests."), Unavailable("Busy.")]
    kernel = running(bench, channel)
    async with kernel.running():
        letters = [await send(kernel, text) for text in ("one", "two", "three")]
        assert [await settled(kernel, letter) for letter in letters] == ["delivered"] * 3
    assert words(channel) == [("one", False), ("two", False), ("three", False)]


async def test_a_refused_message_is_a_dead_letter_that_can_be_queued_again() -> None:
    bench, channel = Bench(), MemoryChannel()
    channel.failures = [Invalid("The chat is gone.")]
    kernel = running(bench, channel)
    async with kernel.running():
        letter = await send(kernel, "hello")
        assert await settled(kernel, letter) == "dead"
        await kernel.call(OWNER, MessageRequeue(outbox_id=letter))
        assert await settled(kernel, letter) == "delivered"
    assert words(channel) == [("hello", False)]


async def test_a_slow_address_does_not_hold_up_another() -> None:
    bench, channel = Bench(), MemoryChannel()
    channel.failures = [Unavailable("Down.")] * 3
    other = MemoryChannel("other")
    kernel = running(bench, channel, other)
    async with kernel.running():
        await send(kernel, "slow")
        letter = await send(kernel, "quick", Address(channel="other", chat="c"))
        assert await settled(kernel, letter) == "delivered"


async def left_handed(bench: Bench) -> None:
    """Leave a letter that was handed over when the process was killed."""
    bench.store = MemoryStore(bench.clock)
    body = MessageQueued(outbox_id="o1", parts=(Text(text="hello"),), address=WHERE)
    log = bench.kernel().log
    await log.history("s").append(Stamp(agent="operant"), SessionOpened(agent="operant"), body)
    await bench.store.write(Hand(outbox_id="o1", attempts=1))


async def test_an_unknown_outcome_is_asked_of_the_platform_and_not_repeated() -> None:
    bench, channel = Bench(), MemoryChannel()
    await left_handed(bench)
    assert bench.store is not None
    item = await bench.store.outbox_item("o1")
    assert item is not None
    channel.sent.append((item, False))
    kernel = running(bench, channel)
    async with kernel.running():
        assert await settled(kernel, "o1") == "delivered"
    assert len(channel.sent) == 1


async def test_what_the_platform_does_not_have_is_sent_without_a_mark() -> None:
    bench, channel = Bench(), MemoryChannel()
    await left_handed(bench)
    kernel = running(bench, channel)
    async with kernel.running():
        assert await settled(kernel, "o1") == "delivered"
    assert words(channel) == [("hello", False)]


class Forgetful(MemoryChannel):
    """A platform that cannot tell what it has."""

    async def find(self, item: object) -> None:
        raise Unavailable("This platform has no search.")


async def test_where_nobody_can_tell_the_repeat_is_marked() -> None:
    bench, channel = Bench(), Forgetful()
    await left_handed(bench)
    kernel = running(bench, channel)
    async with kernel.running():
        assert await settled(kernel, "o1") == "delivered"
    assert words(channel) == [("hello", True)]


async def test_a_send_without_an_answer_is_treated_as_an_unknown_outcome() -> None:
    bench, channel = Bench(), Forgetful()
    channel.failures = [Uncertain("No answer in 30 s.")]
    kernel = running(bench, channel)
    async with kernel.running():
        assert await settled(kernel, await send(kernel, "hello")) == "delivered"
    assert words(channel) == [("hello", True)]


async def test_an_expired_message_is_a_dead_letter() -> None:
    bench, channel = Bench(), MemoryChannel()
    bench.store = MemoryStore(bench.clock)
    body = MessageQueued(outbox_id="o1", parts=(Text(text="late"),), address=WHERE, expires=bench.clock.now() + 1)
    await bench.kernel().log.history("s").append(Stamp(agent="operant"), SessionOpened(agent="operant"), body)
    bench.clock.advance(60)
    kernel = running(bench, channel)
    async with kernel.running():
        assert await settled(kernel, "o1") == "dead"
    assert channel.sent == []
