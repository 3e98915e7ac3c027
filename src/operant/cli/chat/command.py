"""`operant chat`."""

from __future__ import annotations

import os
import sys

import click

from operant.cli.here import home, with_link
from operant.sdk.client import Client

MAIN = "main"
"""The session of the default agent when none is named; other agents have one of their own."""


@click.command(help="Talk in the terminal; without a terminal, a line in and a line out.")
@click.option("--agent", default="", help="Who answers.")
@click.option("--session", default="", help="Go on with this session.")
def command(agent: str, session: str) -> int:
    """Open a chat."""
    return with_link(lambda client: talk(client, agent, session))


async def talk(client: Client, agent: str = "", session: str = "", greeting: str = "") -> int:
    """Chat until the person leaves, and return the exit code."""
    key = session or (f"{MAIN}/{agent}" if agent else MAIN)
    if sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM") != "dumb":
        return await _in_terminal(client, agent, key, greeting)
    return await _plain(client, agent, key)


async def _in_terminal(client: Client, agent: str, key: str, greeting: str) -> int:
    from operant.cli.chat.loop import Chat
    from operant.cli.chat.pieces import Notice
    from operant.cli.chat.slash import carry_out
    from operant.cli.chat.terminal import Terminal

    terminal = Terminal(home().state / "chat_history")
    async with Chat(client, terminal, agent, carry_out) as chat:
        if greeting:
            await terminal.show([Notice(greeting)])
        await chat.enter(key, agent)
        await terminal.run(chat)
        return 0


async def _plain(client: Client, agent: str, key: str) -> int:
    from operant.cli.chat.loop import Chat
    from operant.cli.chat.plain import Plain
    from operant.cli.chat.slash import carry_out

    screen = Plain()
    async with Chat(client, screen, agent, carry_out) as chat:
        await chat.enter(key, agent, quiet=True)
        await screen.run(chat)
        return 1 if chat.broken else 0
