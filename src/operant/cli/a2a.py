"""`operant a2a …`: messages between agents."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import click
from msgspec import convert

from operant.cli import figures
from operant.cli.here import call, rest_note, with_link
from operant.cli.inert import inert
from operant.cli.output import dim, json_option, print_json, print_table, say, say_text
from operant.kernel.syscalls import A2aList, A2aMessage, A2aSend
from operant.kit.clock import SystemClock

if TYPE_CHECKING:
    from operant.app.connect import Link

LOOK_S = 20.0
"""How long one look for an answer lasts; the next one follows at once."""


@click.group(help="Send agents messages, and see those between them.")
def command() -> None:
    """Hold the commands about messages between agents."""


@command.command("send", help="Send an agent a message: on record, started, or with an answer (default).")
@click.argument("text")
@click.option("--silent", "kind", flag_value="silent", help="On record; nothing starts.")
@click.option("--notify", "kind", flag_value="notify", help="It starts a turn; no answer is owed.")
@click.option("--wake", "kind", flag_value="wake", default=True, help="An answer is owed, and waited for.")
@click.option("--to", default="", help="The agent, or agent@peer in another home; the default agent if left out.")
@click.option("--session", default="", help="Into this session of the agent; one for this sender if left out.")
@click.option("--from", "sender", default="", help="Send as the agent of this session; the answer goes there.")
@click.option("--minutes", default=0.0, type=click.FloatRange(0), help="How long an answer is waited for.")
@json_option
@click.pass_context
def send(ctx: click.Context, as_json: bool, **words: Any) -> None:
    """Send a message; print the answer where one is owed to whoever sits here."""
    request = convert(words, A2aSend)
    waits = request.kind == "wake" and not request.sender
    sent = with_link(lambda link: _answered(link, request)) if waits else call(request)
    if as_json:
        print_json(sent)
    elif sent.state == "answered":
        say_text(sent.answer)
    else:
        say(dim(_became(sent)))
        if request.kind != "silent" and "@" not in sent.to and (note := rest_note()):
            say(dim(note))
    ctx.exit(1 if waits and sent.state != "answered" else 0)


async def _answered(link: Link, request: A2aSend) -> A2aMessage:
    """Send, and wait for the answer until its deadline: in a session of this home, or from another home."""
    sent = await link.call(request)
    clock = SystemClock()
    try:
        while sent.state != "answered" and (left := (sent.deadline - clock.now()) / 1_000_000) > 0:
            (sent,) = await link.call(A2aList(id=sent.id, wait_s=min(left, LOOK_S)))
    except asyncio.CancelledError:  # Ctrl-C: what is sent is sent
        click.echo(f"It was sent all the same. What becomes of it: operant a2a show {sent.id}", err=True)
        raise
    return sent


def _became(sent: A2aMessage) -> str:
    words = {
        "silent": "It is on record.",
        "notify": "It was handed over.",
        "wake": f"An answer is owed to {inert(sent.sender_session)}.",
    }
    where = f", session {inert(sent.session)}" if sent.session else ""
    if sent.kind == "wake" and not sent.sender_session:
        return f"No answer came in time. Should one come later: operant a2a show {sent.id}"
    return f"{words[sent.kind]} {inert(sent.to)}{where}."


@command.command("list", help="List messages between agents, the last sent first.")
@click.option("--session", default="", help="Only to or from this session.")
@click.option("--open", "only_open", is_flag=True, help="Only those that an answer is owed to.")
@click.option("-n", "--limit", default=50, show_default=True, type=click.IntRange(1))
@json_option
def list_messages(session: str, only_open: bool, limit: int, as_json: bool) -> None:
    """Print messages."""
    found = call(A2aList(session=session, open=only_open, limit=limit))
    if as_json:
        print_json(found)
        return
    now = SystemClock().now()
    rows = [
        (one.id, figures.ago(one.sent, now), one.sender, one.to, one.kind, one.state, str(one.hops), one.text)
        for one in found
    ]
    heads = ("message", "sent", "from", "to", "kind", "state", "hops", "text")
    print_table(heads, rows, "No agent has sent another one a message yet.")


@command.command("show", help="Show one message with its answer.")
@click.argument("message")
@json_option
def show(message: str, as_json: bool) -> None:
    """Print one message."""
    (one,) = call(A2aList(id=message))
    if as_json:
        print_json(one)
        return
    say(f"{inert(one.sender)} to {inert(one.to)}, {one.kind}: {inert(one.text)}")
    say(dim(f"{one.state}; it went into session {inert(one.session)}"))
    if one.answer:
        say_text(one.answer)
