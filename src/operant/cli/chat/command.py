"""`operant chat`."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

import click

from operant.cli.here import home, with_link
from operant.cli.output import dim, say

if TYPE_CHECKING:
    from operant.app.connect import Link

MAIN = "main"
"""The session of the default agent when none is named; other agents have one of their own."""


@click.command(help="Talk in the terminal; without a terminal, a line in and a line out.")
@click.option("--agent", default="", help="Who answers.")
@click.option("--session", default="", help="Go on with this session.")
def command(agent: str, session: str) -> int:
    """Open a chat."""
    return with_link(lambda link: talk(link, agent, session))


async def talk(link: Link, agent: str = "", session: str = "", greeting: str = "") -> int:
    """Chat until the person leaves, and return the exit code."""
    key = session or (f"{MAIN}/{agent}" if agent else MAIN)
    if sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM") != "dumb":
        return await _in_terminal(link, agent, key, greeting)
    return await _plain(link, agent, key)


async def _in_terminal(link: Link, agent: str, key: str, greeting: str) -> int:
    from operant.cli.chat.loop import Chat
    from operant.cli.chat.pieces import Notice
    from operant.cli.chat.slash import carry_out
    from operant.cli.chat.terminal import Terminal

    terminal = Terminal(home().state / "chat_history")
    async with Chat(link, terminal, agent, carry_out) as chat:
        if greeting:
            await terminal.show([Notice(greeting)])
        with suppress(NotImplementedError):  # Windows has no such signal
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, chat.left.set)
        await chat.enter(key, agent)
        await terminal.run(chat)
        if link.hosting and chat.story.turn:
            say(dim("Letting it finish for a moment; what is not done goes on at the next start."))
        return 0


async def _plain(link: Link, agent: str, key: str) -> int:
    from operant.cli.chat.loop import Chat
    from operant.cli.chat.plain import Plain
    from operant.cli.chat.slash import carry_out

    screen = Plain()
    async with Chat(link, screen, agent, carry_out) as chat:
        await chat.enter(key, agent, quiet=True)
        await screen.run(chat)
        return 1 if chat.broken else 0
