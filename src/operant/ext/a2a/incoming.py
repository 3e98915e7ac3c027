"""Take in what comes over A2A from other homes and programs: letters like those between our own agents."""

from __future__ import annotations

import re

import msgspec

from operant.ext.a2a.letter import CHANNEL, Letter, Seals, about
from operant.ext.a2a.letters import Letters
from operant.ext.a2a.post import LONGEST, Post
from operant.ext.a2a.wording import asked
from operant.sdk import A2aKind, Address, BlobRef, Host, Invalid, Part, Principal, Record, Refused, Text

PEER = "peer"
"""Label of what came from another home or program."""
_CONTEXT = re.compile(r"[\w.:@+#/=-]{1,80}")
_LABEL = re.compile(r"[a-z][a-z-]{0,31}")
_STEP = re.compile(r"[^\s>]{1,100}>[^\s>]{1,100}")


class Caller(Record):
    """Who calls, and which agent."""

    principal: Principal
    agent: str

    @property
    def name(self) -> str:
        """Return the caller as senders are named."""
        return "owner" if self.principal.kind == "owner" else f"{self.principal.kind}:{self.principal.id}"


class Extra(Record):
    """What another home of ours adds to a message."""

    kind: A2aKind = "wake"
    chain: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()


class Said(Extra):
    """A message as it came."""

    text: str
    blobs: tuple[BlobRef, ...] = ()
    message_id: str = ""
    context: str = ""


class Incoming:
    """Make letters of messages."""

    def __init__(self, host: Host, post: Post, letters: Letters, seals: Seals) -> None:
        self._host = host
        self._post = post
        self._letters = letters
        self._seals = seals

    async def take(self, caller: Caller, said: Said, task: Letter | None = None) -> Letter:
        """Put a message on record; with a task it adds to that one. The same message in the same context is one."""
        if said.context and not _CONTEXT.fullmatch(said.context):
            raise Invalid(
                "This context id cannot be used.", "Take at most 80 letters, digits and . : @ + # / = _ -, or none."
            )
        known = await self._known(caller, said)
        if known is not None:
            return known
        return await self._put(self._letter(caller, said, task), said)

    async def of(self, caller: Caller, id: str) -> Letter | None:
        """Return a letter that began a task, where it is the caller's own."""
        letter = await self._letters.get(id)
        return letter if letter is not None and _theirs(letter, caller) and not letter.task else None

    async def all(self, caller: Caller) -> list[Letter]:
        """Return all letters of a caller that began a task, oldest first."""
        return [one for one in await self._letters.all() if _theirs(one, caller) and not one.task]

    # ------------------------------------------------------------------ inside

    async def _known(self, caller: Caller, said: Said) -> Letter | None:
        """Return what a client sends again: the same id in a context that it named."""
        if not said.context:
            return None
        same = [one for one in await self._letters.all() if _theirs(one, caller) and one.context == said.context]
        return next((one for one in same if one.message_id == said.message_id), None)

    def _letter(self, caller: Caller, said: Said, task: Letter | None) -> Letter:
        chain = tuple(step for step in said.chain if _STEP.fullmatch(step))
        limit = self._post.settings.hops
        if len(chain) >= limit:
            raise Refused(
                f"This would be message {len(chain) + 1} in a row among agents, and {limit} are the limit here.",
                "Finish with what there is, and tell the person.",
            )
        id = self._host.ids.new()
        context = task.context if task else said.context or id
        session = f"{CHANNEL}:{caller.name}:{caller.agent}:{context}"
        labels = {one for one in said.labels if _LABEL.fullmatch(one)}
        return Letter(
            id=id,
            kind=said.kind,
            sender=caller.name,
            to=caller.agent,
            session=session,
            address=Address(channel=CHANNEL, chat=session),
            sent=self._host.clock.now(),
            chain=(*chain, f"{caller.name}>{caller.agent}"),
            labels=tuple(sorted({*labels, PEER})),
            about=about(said.text),
            state="sent",
            message_id=said.message_id,
            context=context,
            task=task.id if task else "",
        )

    async def _put(self, letter: Letter, said: Said) -> Letter:
        if len(said.text) > LONGEST:
            raise Invalid(f"A message has at most {LONGEST:,} characters, this one {len(said.text):,}.")
        parts: tuple[Part, ...] = (*asked(letter, said.text), *said.blobs)
        letter = self._seals.seal(letter, "ask", parts, letter.labels)
        await self._letters.put(letter, owed=False)
        await self._post.deliver(letter, parts)
        return letter


def _theirs(letter: Letter, caller: Caller) -> bool:
    return bool(letter.context) and letter.sender == caller.name and letter.to == caller.agent


def bare(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """Return a message without the line that says who it is from."""
    first, *rest = parts or (Text(text=""),)
    if isinstance(first, Text) and first.text.startswith("["):
        first = msgspec.structs.replace(first, text=first.text.partition("\n")[2])
    return (first, *rest)
