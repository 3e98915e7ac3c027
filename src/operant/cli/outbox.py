"""`operant outbox …`: messages on their way, and those that did not arrive."""

from __future__ import annotations

import click

from operant.cli import figures
from operant.cli.here import call
from operant.cli.output import json_option, print_json, print_table, say
from operant.kernel.records import text_of
from operant.kernel.syscalls import MessageList, MessageRequeue
from operant.kit.clock import SystemClock


@click.group(help="See what could not be delivered, and send it again.")
def command() -> None:
    """Hold the commands about messages."""


@command.command("list", help="List the dead letters, or what is on its way.")
@click.option("--dead/--waiting", default=True, help="What was given up, or what is on its way.")
@click.option("--session", default="", help="Only of this session.")
@json_option
def list_messages(dead: bool, session: str, as_json: bool) -> None:
    """Print messages."""
    items = call(MessageList(dead=dead, session=session))
    if as_json:
        print_json(items)
        return
    now = SystemClock().now()
    rows = [
        (
            one.id,
            f"{one.address.channel}:{one.address.chat}",
            figures.ago(one.queued, now),
            str(one.attempts),
            one.error,
            text_of(one.parts),
        )
        for one in items
    ]
    heads = ("message", "to", "queued", "attempts", "error", "text")
    print_table(heads, rows, "There are no dead letters." if dead else "Nothing is on its way.")


@command.command("requeue", help="Try a dead letter again.")
@click.argument("message_id", metavar="MESSAGE")
@json_option
def requeue(message_id: str, as_json: bool) -> None:
    """Revive a message."""
    item = call(MessageRequeue(outbox_id=message_id))
    print_json(item) if as_json else say(f"{item.id} is tried again.")
