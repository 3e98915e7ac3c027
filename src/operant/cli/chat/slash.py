"""What a line that begins with `/` does."""

from __future__ import annotations

import shutil
from collections.abc import Awaitable, Callable

from operant.cli import figures
from operant.cli.chat.loop import Chat
from operant.kernel.records import Usage
from operant.kernel.syscalls import KernelStatus, SessionGet, SessionHistory, SessionList, SessionUpdate
from operant.kit.clock import SystemClock
from operant.kit.nearest import nearest

Handler = Callable[[Chat, str], Awaitable[None]]


async def carry_out(chat: Chat, line: str) -> None:
    """Carry out a command, or say which one was probably meant."""
    name, _, rest = line[1:].partition(" ")
    found = COMMANDS.get(name)
    if found is None:
        near = nearest(name, COMMANDS)
        await chat.say(f"There is no command /{name}." + (f" Did you mean /{near}?" if near else " See /help."))
        return
    await found[1](chat, rest.strip())


async def _help(chat: Chat, words: str) -> None:
    lines = [f"/{name:<10} {line}" for name, (line, _) in COMMANDS.items()]
    keys = (
        "Enter sends · Alt-Enter or Ctrl-J: new line · Ctrl-C stops the turn · Ctrl-D leaves · // sends a line with /"
    )
    await chat.say("\n".join(["commands:", *lines, keys]))


async def _new(chat: Chat, words: str) -> None:
    info = await chat.enter()
    await chat.say(f"a new session: {info.key}")


async def _sessions(chat: Chat, words: str) -> None:
    sessions = await chat.client.call(SessionList(limit=20))
    if words:
        chosen = [one.key for number, one in enumerate(sessions, 1) if words in (str(number), one.key)]
        await chat.enter((await chat.client.call(SessionGet(session=chosen[0] if chosen else words))).key)
        await chat.say(f"session: {chat.key}")
        return
    now = SystemClock().now()
    lines = [
        f"{'*' if one.key == chat.key else ' '}{number:>3}  {one.title or one.key}  "
        f"({one.agent}, {figures.ago(one.updated, now)})"
        for number, one in enumerate(sessions, 1)
    ]
    await chat.say("\n".join(["sessions (/sessions NUMBER goes there):", *lines]))


async def _model(chat: Chat, words: str) -> None:
    if words:
        await chat.client.call(SessionUpdate(session=chat.key, model="" if words == "default" else words))
        return
    info = await chat.client.call(SessionGet(session=chat.key))
    status = await chat.client.call(KernelStatus())
    known = ", ".join(status.models) or "none"
    await chat.say(
        f"model: {info.model or 'the agent decides'}; providers: {known}. "
        "/model NAME chooses, /model default gives it back."
    )


async def _stop(chat: Chat, words: str) -> None:
    if not await chat.stop():
        await chat.say("nothing is running")


async def _usage(chat: Chat, words: str) -> None:
    info = await chat.client.call(SessionGet(session=chat.key))
    usage: Usage = info.usage
    await chat.say(f"this session: {usage.calls} model calls · {figures.used(usage)}")


async def _trace(chat: Chat, words: str) -> None:
    from operant.cli.timeline import tell
    from operant.cli.waterfall import draw

    info = await chat.client.call(SessionGet(session=chat.key))
    events = await chat.client.call(SessionHistory(session=chat.key, after=max(info.events - 300, 0)))
    turns = tell(events)
    await chat.say(
        "\n".join(draw(turns[-1:], shutil.get_terminal_size().columns - 4)) if turns else "nothing has happened yet"
    )


async def _quit(chat: Chat, words: str) -> None:
    chat.left.set()


COMMANDS: dict[str, tuple[str, Handler]] = {
    "help": ("show this", _help),
    "new": ("start a new session", _new),
    "sessions": ("list sessions; with a number or key, go there", _sessions),
    "model": ("show the model, or choose one for this session", _model),
    "stop": ("stop what runs", _stop),
    "usage": ("show what this session has used", _usage),
    "trace": ("show the last turn as a timeline", _trace),
    "quit": ("leave", _quit),
}
