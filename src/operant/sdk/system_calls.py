"""The syscalls about agents, tools, models, messages, approvals and the system itself."""

from __future__ import annotations

import msgspec

from operant.kernel.act import Acting
from operant.kernel.compute import Asking
from operant.kernel.conversation import Conversation
from operant.kernel.deadline import Deadline
from operant.kernel.errors import Conflict, NotFound
from operant.kernel.kernel import Kernel
from operant.kernel.log import Stamp
from operant.kernel.mailbox import LOCAL
from operant.kernel.ports import Postpone
from operant.kernel.records import (
    Address,
    Agent,
    ApprovalAnswered,
    ApprovalAsked,
    Chosen,
    Json,
    MessageDelivered,
    MessageQueued,
    ModelRequest,
    OutboxItem,
    Parameters,
    Principal,
    SessionOpened,
    ToolCall,
    ToolResult,
    ToolSpec,
    text_of,
)
from operant.kernel.syscalls import (
    AgentGet,
    AgentList,
    AgentWhich,
    Approval,
    ApprovalAnswer,
    ApprovalList,
    Asked,
    KernelShutdown,
    KernelStatus,
    MessageRequeue,
    MessageSend,
    ModelAsk,
    Queued,
    Status,
    ToolInvoke,
    ToolList,
    allowed,
)
from operant.sdk.whole import whole


class SystemCalls:
    """Carry out the calls that are not about one session's history."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel

    def register(self) -> None:
        """Put the calls into the kernel's table."""
        add = self._kernel.syscalls.register
        add(AgentList, self.agents)
        add(AgentGet, self.agent)
        add(AgentWhich, self.which)
        add(ToolList, self.tools)
        add(ToolInvoke, self.invoke)
        add(ModelAsk, self.ask)
        add(MessageSend, self.send)
        add(MessageRequeue, self.requeue)
        add(ApprovalList, self.approvals)
        add(ApprovalAnswer, self.answer)
        add(KernelStatus, self.status)
        add(KernelShutdown, self.shutdown)

    # ------------------------------------------------------------------ agents, tools, models

    async def agents(self, who: Principal, call: AgentList) -> tuple[Agent, ...]:
        """List the agents."""
        return tuple(self._kernel.agents.list())

    async def agent(self, who: Principal, call: AgentGet) -> Agent:
        """Return one agent."""
        return self._kernel.agents.get(call.agent)

    async def which(self, who: Principal, call: AgentWhich) -> Chosen:
        """Tell which agent answers."""
        address = Address(channel=call.channel, chat=call.chat, thread=call.thread, account=call.account)
        return self._kernel.agents.which(address, call.user)

    async def tools(self, who: Principal, call: ToolList) -> tuple[ToolSpec, ...]:
        """List the tools."""
        agent = self._kernel.agents.get(call.agent) if call.agent else None
        return self._kernel.gate.offered(agent)

    async def invoke(self, who: Principal, call: ToolInvoke) -> ToolResult:
        """Run a tool through the gate, on record."""
        whole(call)
        kernel = self._kernel
        agent = kernel.agents.get(call.agent)
        key = call.session or f"tools/{agent.name}"
        talk = await kernel.sessions.get(key).conversation()
        if talk.standing.open:
            raise Conflict(f"A turn is at work in {key}.", "Wait for it, or name another session.")
        if talk.history.seq == 0:
            await talk.record(SessionOpened(agent=agent.name, channel=LOCAL, chat=key, title="Tools run by hand"))
        if call.name not in {spec.name for spec in kernel.gate.offered(agent)}:
            raise NotFound(f"The agent {agent.name} has no tool {call.name!r}.", "`operant tool list` shows its tools.")
        limits = agent.limits
        async with Deadline(limits.turn_s, limits.stall_notice_s, lambda idle: None) as deadline:
            acting = Acting(kernel.house, talk, agent, deadline)
            request = ToolCall(id=kernel.ids.new(), name=call.name, arguments=_json(call.arguments))
            result = await acting.single(
                request, f"{who.kind}:{who.id}", may_decide=allowed(who, ApprovalAnswer.capability)
            )
        await talk.flush()
        return result

    async def ask(self, who: Principal, call: ModelAsk) -> Asked:
        """Make a model call on behalf of a session."""
        kernel = self._kernel
        talk = await self._talk(call.session)
        agent = kernel.agents.get(talk.info.agent)

        async def make(model: str, overflow: bool) -> ModelRequest:
            return ModelRequest(
                model=model,
                system=call.system,
                messages=call.messages,
                parameters=Parameters(max_output_tokens=call.max_output_tokens),
                session=call.session,
            )

        body = await kernel.compute.run(Asking(talk=talk, agent=agent, make=make, purpose=call.purpose))
        await talk.flush()
        return Asked(text=text_of(body.parts))

    # ------------------------------------------------------------------ messages

    async def send(self, who: Principal, call: MessageSend) -> Queued:
        """Queue a message for a person."""
        kernel = self._kernel
        talk = await self._talk(call.session)
        if talk.history.seq == 0:
            raise NotFound(f"There is no session {call.session!r}.")
        info = talk.info
        home = Address(channel=info.channel or LOCAL, chat=info.chat or call.session, thread=info.thread)
        address = call.address or home
        outbox_id = kernel.ids.new()
        queued = MessageQueued(outbox_id=outbox_id, parts=call.parts, address=address)
        done = [MessageDelivered(outbox_id=outbox_id)] if kernel.outbox.pulls(address) else []
        await talk.history.append(Stamp(agent=info.agent, actor=f"{who.kind}:{who.id}"), queued, *done)
        return Queued(outbox_id=outbox_id)

    async def requeue(self, who: Principal, call: MessageRequeue) -> OutboxItem:
        """Try a dead letter again."""
        store = self._kernel.store
        item = await store.outbox_item(call.outbox_id)
        if item is None or item.state != "dead":
            raise NotFound(f"There is no dead letter {call.outbox_id!r}.", "`operant outbox list --dead` shows them.")
        await store.write(Postpone(outbox_id=item.id, next_at=0, attempts=0, expires=0))
        again = await store.outbox_item(item.id)
        if again is None:
            raise NotFound(f"The letter {item.id} is gone.")
        self._kernel.outbox.post(again)
        return again

    # ------------------------------------------------------------------ approvals

    async def approvals(self, who: Principal, call: ApprovalList) -> tuple[Approval, ...]:
        """List the questions that wait for a person."""
        keys = [call.session] if call.session else await self._kernel.store.unfinished()
        found: list[Approval] = []
        for key in keys:
            talk = await self._talk(key)
            found += [self._approval(talk, asked) for asked in talk.standing.questions]
        return tuple(found)

    async def answer(self, who: Principal, call: ApprovalAnswer) -> Approval:
        """Answer a question."""
        waiting = await self.approvals(who, ApprovalList())
        found = [one for one in waiting if one.approval_id.startswith(call.approval_id) and call.approval_id]
        if len(found) != 1:
            raise NotFound(
                f"{'Several questions begin' if found else 'No question waits'} with id {call.approval_id!r}.",
                "`operant approval list` shows what waits.",
            )
        question = found[0]
        talk = await self._talk(question.session)
        call_id = next(a.call_id for a in talk.standing.questions if a.approval_id == question.approval_id)
        await talk.history.append(
            Stamp(agent=talk.info.agent, turn=talk.standing.turn, actor=f"{who.kind}:{who.id}"),
            ApprovalAnswered(
                approval_id=question.approval_id,
                call_id=call_id,
                answer=call.answer,
                scope=call.scope,
                by=who.id,
                reason=call.reason,
            ),
        )
        return question

    def _approval(self, talk: Conversation, asked: ApprovalAsked) -> Approval:
        return Approval(
            approval_id=asked.approval_id,
            session=talk.key,
            agent=talk.info.agent,
            name=asked.name,
            arguments=asked.arguments,
            question=asked.question,
            asked=talk.standing.started,
            expires=asked.expires,
            call_id=asked.call_id,
        )

    # ------------------------------------------------------------------ the system

    async def status(self, who: Principal, call: KernelStatus) -> Status:
        """Tell how the system is."""
        kernel = self._kernel
        health = kernel.store.health
        return Status(
            version=kernel.version,
            ready=kernel.accepting,
            accepting=kernel.accepting and health.accepting,
            reason=health.reason,
            hint=health.hint,
            sessions_open=len(await kernel.store.unfinished()),
            turns=len(kernel.sessions.working),
            pid=kernel.pid,
            problems=tuple(kernel.problems()),
            extensions=kernel.extensions,
            models=kernel.compute.providers,
            damages=tuple(await kernel.store.damages()),
            dropped=dict(kernel.hooks.dropped),
            started=kernel.started,
        )

    async def shutdown(self, who: Principal, call: KernelShutdown) -> None:
        """Ask whoever runs the system to stop it."""
        self._kernel.stopping.set()

    async def _talk(self, key: str) -> Conversation:
        return await self._kernel.sessions.get(key).conversation()


def _json(arguments: Json) -> str:
    return msgspec.json.encode(arguments).decode()
