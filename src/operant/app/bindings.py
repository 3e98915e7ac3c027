"""Which agent answers where: the list `bindings` of the configuration."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated

from msgspec import Meta

from operant.kernel.records import Address, Chosen, Record

ANY = "any"

Place = str | int
"""Ids of chats are often numbers, which YAML reads as such."""


class Binding(Record):
    """One rule: an agent, and where it answers; what is left out is `any`. `*` stands for any characters."""

    agent: Annotated[str, Meta(min_length=1, description="The agent that answers.")]
    channel: Annotated[Place, Meta(description="The channel, such as telegram.")] = ANY
    account: Annotated[Place, Meta(description="The account there, where there are several.")] = ANY
    chat: Annotated[Place, Meta(description="The chat.")] = ANY
    thread: Annotated[Place, Meta(description="The thread; an empty text: outside of threads.")] = ANY
    user: Annotated[Place, Meta(description="Who writes.")] = ANY

    def fits(self, address: Address, user: str) -> bool:
        """Tell whether the rule is about a message."""
        return all(fits(str(rule), value) for rule, value in self._pairs(address, user))

    def words(self) -> str:
        """Say what the rule asks for."""
        named = self._pairs(Address(channel="channel", chat="chat", thread="thread", account="account"), "user")
        return ", ".join(f"{name}: {rule}" for rule, name in named if rule != ANY) or "everywhere"

    def _pairs(self, address: Address, user: str) -> list[tuple[Place, str]]:
        return [
            (self.channel, address.channel),
            (self.account, address.account),
            (self.chat, address.chat),
            (self.thread, address.thread),
            (self.user, user),
        ]


class Bindings:
    """The rules that `read` returns, as they are then."""

    def __init__(self, read: Callable[[], Sequence[Binding]]) -> None:
        self._read = read

    def which(self, address: Address, user: str, default: str) -> Chosen:
        """Return who answers: the agent of the first rule that fits, else the default one."""
        rules = self._read()
        for number, rule in enumerate(rules, 1):
            if rule.fits(address, user):
                return Chosen(agent=rule.agent, why=f"binding {number} says so ({rule.words()})", bound=True)
        there = "no binding fits" if rules else "there are no bindings"
        return Chosen(agent=default, why=f"{there}, so the default agent answers")


def fits(rule: str, value: str) -> bool:
    """Tell whether a value is as a rule says."""
    if rule in (ANY, "*"):
        return True
    first, *rest = rule.split("*")
    if not rest:
        return rule == value
    *middle, last = rest
    if not value.startswith(first):
        return False
    at = len(first)
    for piece in middle:
        found = value.find(piece, at)
        if found < 0:
            return False
        at = found + len(piece)
    return len(value) - len(last) >= at and value.endswith(last)
