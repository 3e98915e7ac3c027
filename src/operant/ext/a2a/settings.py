"""The section `a2a` of the configuration."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from operant.kit.secret import Secret
from operant.sdk import Record

EVERYBODY = "*"


class Peer(Record, forbid_unknown_fields=True):
    """Another home, or any server that speaks A2A 1.0."""

    url: Annotated[str, Meta(description="Its address, such as `https://nas.example.org:8000`, without a path of A2A.")]
    token: Annotated[Secret | None, Meta(description="A token of its, named and not written: ${WORK_TOKEN}.")] = None


class A2aSettings(Record):
    """Who may write to whom, and how far messages may go on from agent to agent."""

    allow: Annotated[
        dict[str, tuple[str, ...]],
        Meta(description="Whom an agent may send messages: names or patterns with `*`; the key `*` is all others."),
    ] = {}
    minutes: Annotated[
        float, Meta(gt=0, le=7 * 24 * 60, description="How long an answer is waited for when nothing else is said.")
    ] = 60.0
    hops: Annotated[int, Meta(ge=1, le=64, description="How often a message may lead to a further one.")] = 8
    rounds: Annotated[
        int, Meta(ge=1, le=64, description="How often one agent may send the same one a message in such a chain.")
    ] = 3
    open: Annotated[int, Meta(ge=1, le=1000, description="Answers that one session may wait for at once.")] = 16
    serve: Annotated[
        tuple[str, ...],
        Meta(
            description="Agents that other homes and programs reach over A2A with a token: names or patterns with `*`."
        ),
    ] = ()
    peers: Annotated[
        dict[str, Peer],
        Meta(description="Other homes by name: `coder@work` is the agent `coder` of the peer `work`, `@work` its own."),
    ] = {}
