"""The loop. What it does next is decided by the log alone (`Standing`), so that taking a turn up again after a crash is
the same code as running it: answer the calls that are open, else finish with the reply, else make the next step.
"""

from __future__ import annotations

import logging

from operant.kernel.act import Acting
from operant.kernel.compute import Asking, Limited
from operant.kernel.conversation import Conversation
from operant.kernel.deadline import Deadline
from operant.kernel.errors import Conflict, ModelError, OperantError, StoreStopped
from operant.kernel.house import House
from operant.kernel.mailbox import LOCAL
from operant.kernel.points import (
    DISPATCH_BEFORE,
    MESSAGE_BEFORE,
    SESSION_OPEN_BEFORE,
    DispatchInput,
    DispatchOutput,
    MessageInput,
    MessageOutput,
    Reject,
    SessionOpenInput,
    SessionOpenOutput,
)
from operant.kernel.records import (
    Address,
    Agent,
    Body,
    Delta,
    Ending,
    InboxItem,
    MessageDelivered,
    MessageQueued,
    MessageReceived,
    ModelReplied,
    ModelRequest,
    Outcome,
    Part,
    SessionOpened,
    Text,
    ToolCall,
    ToolEnded,
    TurnEnded,
    TurnStarted,
)

_log = logging.getLogger("operant.turn")

RESUMES = 3
STUCK_S = 60
"""A turn taken up again so often, for so long, without getting any further is ended: it may be what kills us."""
MESSAGE_EXPIRY_S = 24 * 3600


class Ended(Exception):
    """End the turn with a reason on record and a sentence for the person."""

    def __init__(self, reason: Ending, sentence: str) -> None:
        super().__init__(sentence)
        self.reason: Ending = reason
        self.sentence = sentence


class Turn:
    """Handle one dispatch."""

    def __init__(self, house: House, talk: Conversation, agent: Agent) -> None:
        self._house = house
        self._talk = talk
        self._agent = agent
        limits = agent.limits
        self.deadline = Deadline(limits.turn_s, limits.stall_notice_s, self._notice)
        self._acting = Acting(house, talk, agent, self.deadline)

    @property
    def id(self) -> str:
        """Return the turn's id; empty before it is on record."""
        return self._talk.standing.turn

    def stop(self) -> None:
        """End the turn now: cancel the model's stream, kill what tools run."""
        self.deadline.stop()

    async def run(self, item: InboxItem | None, problem: str = "") -> None:
        """Work until the turn has ended; without an item, go on with the open one. A problem ends it at once.

        Raises `StoreStopped` or `Conflict` when it cannot be put on record; the turn is then still open in the log.
        """
        ended = await self._supervised(item, problem)
        if ended is not None:
            await self._end(ended)
        self._talk.snapshot()
        await self._talk.flush()
        self._house.faults("queued")

    async def _supervised(self, item: InboxItem | None, problem: str) -> Ended | None:
        try:
            async with self.deadline:
                await (self._begin(item) if item else self._resume())
                if problem:
                    return Ended("error", problem)
                return await self._loop()
        except TimeoutError:
            if self.deadline.stopped:
                return Ended("stopped", "")
            minutes = self._agent.limits.turn_s / 60
            return Ended("budget", f"I stopped after {minutes:g} minutes, the time limit of a turn.")
        except Ended as ended:
            return ended
        except Limited as limit:
            return Ended(limit.ending, limit.sentence)
        except (StoreStopped, Conflict):
            raise
        except OperantError as error:
            return Ended("error", error.line())
        except Exception as error:  # noqa: BLE001  # supervisor: a fault of ours ends one turn, not the process
            _log.exception("turn %s of %s failed", self.id, self._talk.key)
            return Ended("error", f"Something in Operant failed ({type(error).__name__}); the log has the details.")

    async def _loop(self) -> Ended | None:
        standing = self._talk.standing
        while standing.open:
            if standing.calls:
                await self._acting.answer(tuple(standing.calls.values()))
            elif standing.reply is not None:
                await self._finish(standing.reply)
            else:
                await self._steer()
                await self._step()
            self.deadline.beat()
        return None

    # ------------------------------------------------------------------ beginning and end

    async def _begin(self, item: InboxItem) -> None:
        talk = self._talk
        talk.stamp_as(self._agent.name, self._house.ids.new(), item.author, item.trigger)
        if talk.history.seq == 0:
            await self._open(item)
        refusal = await self._receive(item)
        await talk.record(TurnStarted(trigger=item.trigger, mode=item.mode))
        self._house.faults("claimed")
        if refusal:
            raise Ended("rejected", refusal)

    async def _open(self, item: InboxItem) -> None:
        about = SessionOpenInput(session=self._talk.key, agent=self._agent, item=item)
        ruling = await self._house.hooks.run(SESSION_OPEN_BEFORE, about, SessionOpenOutput())
        where = item.address
        await self._talk.record(
            SessionOpened(
                agent=self._agent.name,
                channel=where.channel,
                chat=where.chat,
                thread=where.thread,
                title=ruling.output.title,
            ),
            *ruling.notes,
        )

    async def _resume(self) -> None:
        talk = self._talk
        standing = talk.standing
        talk.stamp_as(self._agent.name, standing.turn, standing.author, standing.trigger)
        await talk.record(TurnStarted(trigger="resume", mode=talk.standing.mode))
        stuck = self._house.clock.now() - standing.stuck_since > STUCK_S * 1_000_000
        if standing.resumed > RESUMES and stuck:
            raise Ended("error", f"I tried {RESUMES} times to go on with this and got no further, so I stopped.")

    async def _receive(self, item: InboxItem) -> str:
        """Put a message into the history; return why it was refused, if it was."""
        about = DispatchInput(session=self._talk.key, agent=self._agent, item=item)
        start = DispatchOutput(parts=item.parts, labels=item.labels)
        ruling = await self._house.hooks.run(DISPATCH_BEFORE, about, start)
        output = ruling.output
        body = MessageReceived(
            parts=output.parts,
            author=item.author,
            inbox_id=item.id,
            external_id=item.external_id,
            reply_to=item.reply_to,
            address=item.address,
            labels=output.labels,
            ambient=output.ambient,
        )
        await self._talk.record(body, *ruling.notes)
        return ruling.verdict.reason if isinstance(ruling.verdict, Reject) else ""

    async def _steer(self) -> None:
        """Let messages that came in meanwhile join this turn, where the agent wants it so."""
        if self._agent.arrival != "steer":
            return
        while item := self._house.inbox.take(self._talk.key):
            await self._receive(item)

    async def _finish(self, reply: ModelReplied) -> None:
        said: list[Part] = [part for part in reply.parts if isinstance(part, Text) and part.text.strip()]
        if reply.finish == "length":
            said.append(Text(text="\n\n[The answer was cut off at the model's output limit.]"))
        standing = self._talk.standing
        ended = TurnEnded(reason="done", usage=standing.usage, steps=standing.steps)
        await self._talk.record(*await self._message(tuple(said)), ended)

    async def _end(self, ended: Ended) -> None:
        """Close the turn so that the history is valid, and tell the person why."""
        standing = self._talk.standing
        outcome: Outcome = "cancelled" if ended.reason == "stopped" else "interrupted"
        bodies: list[Body] = [
            ToolEnded(call_id=call.id, name=call.name, outcome=outcome, parts=(Text(text="(stopped)"),))
            for call in standing.calls.values()
        ]
        if ended.sentence:
            bodies += await self._message((Text(text=ended.sentence),))
        usage, steps = standing.usage, standing.steps
        bodies.append(TurnEnded(reason=ended.reason, usage=usage, steps=steps, sentence=ended.sentence))
        await self._talk.record(*bodies)

    async def _message(self, parts: tuple[Part, ...]) -> list[Body]:
        """Make the events that bring words to the person."""
        house, talk = self._house, self._talk
        address = talk.standing.address or Address(channel=LOCAL, chat=talk.key)
        about = MessageInput(session=talk.key, agent=self._agent, channel=address.channel, chat=address.chat)
        ruling = await house.hooks.run(MESSAGE_BEFORE, about, MessageOutput(parts=parts))
        if isinstance(ruling.verdict, Reject) or not ruling.output.parts:
            return list(ruling.notes)
        outbox_id = house.ids.new()
        queued = MessageQueued(
            outbox_id=outbox_id,
            parts=ruling.output.parts,
            address=address,
            reply_to=talk.standing.reply_to,
            expires=house.clock.now() + MESSAGE_EXPIRY_S * 1_000_000,
        )
        delivered = [MessageDelivered(outbox_id=outbox_id)] if house.outbox.pulls(address) else []
        return [*ruling.notes, queued, *delivered]

    # ------------------------------------------------------------------ one step

    async def _step(self) -> None:
        reply = await self._house.compute.run(Asking(talk=self._talk, agent=self._agent, make=self._request))
        self._house.faults("replied")
        if not any(isinstance(part, ToolCall | Text) for part in reply.parts):
            raise ModelError("empty", f"{reply.model} gave an empty answer.")

    async def _request(self, model: str, overflow: bool) -> ModelRequest:
        provider, own_name = self._house.compute.find(model)
        tools = self._house.gate.shown(self._agent, self._talk.key)
        window = provider.facts(own_name).window
        return await self._house.prefix.request(self._talk, self._agent, model, window, tools, overflow)

    def _notice(self, idle_s: float) -> None:
        """Tell whoever looks that the turn is alive but nothing moves."""
        running = ", ".join(sorted({one.name for one in self._talk.standing.running.values()}))
        text = f"Still waiting for {running or 'the model'} ({idle_s:.0f} s)."
        self._house.log.show(Delta(session=self._talk.key, turn=self.id, kind="notice", text=text))
        if self._talk.standing.address is not None:
            self._house.outbox.notice(self._talk.standing.address, text)
