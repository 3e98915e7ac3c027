"""`operant trace`: what a session did and where its time went, or what became of one message."""

from __future__ import annotations

import shutil
from collections.abc import Sequence

import click
import msgspec

from operant.cli import figures
from operant.cli.here import with_link
from operant.cli.inert import one_line
from operant.cli.kin import works_for_another
from operant.cli.output import json_option, print_json, say, say_text, strong
from operant.cli.timeline import Break, TurnTold, tell
from operant.cli.waterfall import draw, total
from operant.kernel.errors import NotFound
from operant.kernel.records import SessionInfo, text_of
from operant.kernel.syscalls import BlobGet, MessageTrace, SessionGet, SessionHistory, SessionList, Traced
from operant.sdk.client import Client

_CHUNK = 1_000_000
_EXCERPT = 80
_MOST = 1_000
"""Sessions among which those of sub-agents are looked for."""


@click.command(help="Show a session (default: the last changed) as a timeline, or what became of one message.")
@click.argument("session", default="")
@click.option("--message", "inbox_id", default="", metavar="ID", help="Explain one accepted message.")
@click.option("-n", "--turns", "count", default=0, help="Only the last so many turns.")
@json_option
def command(session: str, inbox_id: str, count: int, as_json: bool) -> None:
    """Print a trace."""
    if inbox_id:
        _show_message(inbox_id, as_json)
        return
    info, turns, below = with_link(lambda client: _told(client, session), work=False)
    turns = turns[-count:] if count else turns
    if as_json:
        print_json({"session": info, "turns": turns, "below": below})
        return
    say_text(f"{info.key}  {info.title}".rstrip())
    for line in draw(turns, shutil.get_terminal_size((120, 24)).columns):
        say(line)
    copied = info.parent and not works_for_another(info)
    nothing = "Its history is a copy; its turns ran elsewhere." if copied else "No turn has run in it yet."
    say(total(turns) if turns else nothing)
    for one in below:
        say_text(f"└ {one.key}  {one.agent}, {one.state}, {figures.used(one.usage)}  {one.title}")


async def _told(client: Client, key: str) -> tuple[SessionInfo, list[TurnTold], list[SessionInfo]]:
    if not key:
        sessions = await client.call(SessionList(limit=1))
        if not sessions:
            raise NotFound("There are no sessions yet.", "`operant chat` starts one.")
        key = sessions[0].key
    info = await client.call(SessionGet(session=key))
    turns = tell(await client.call(SessionHistory(session=key)))
    others = await client.call(SessionList(limit=_MOST))
    below = sorted((one for one in others if one.parent == key and works_for_another(one)), key=_key)
    return info, [await _located(client, turn) for turn in turns], below


def _key(info: SessionInfo) -> str:
    return info.key


async def _located(client: Client, turn: TurnTold) -> TurnTold:
    """Find the byte at which each request left the one before it."""
    breaks = tuple([await _compared(client, one) for one in turn.breaks])
    return msgspec.structs.replace(turn, breaks=breaks)


async def _compared(client: Client, one: Break) -> Break:
    if one.part == "messages":
        return one
    try:
        old = (await client.call(BlobGet(digest=one.old, limit=_CHUNK))).encode()
        new = (await client.call(BlobGet(digest=one.new, limit=_CHUNK))).encode()
    except NotFound:
        return one
    byte = first_difference(old, new)
    text = new[byte : byte + _EXCERPT].decode(errors="ignore")
    return msgspec.structs.replace(one, byte=byte, text=text)


def first_difference(old: bytes, new: bytes) -> int:
    """Return where two texts part; the length of the shorter when one begins with the other."""
    for index, (left, right) in enumerate(zip(old, new, strict=False)):
        if left != right:
            return index
    return min(len(old), len(new))


def _show_message(inbox_id: str, as_json: bool) -> None:
    traced = with_link(lambda client: _ask(client, inbox_id), work=False)
    if as_json:
        print_json(traced)
        return
    item = traced.item
    say(f"{strong(traced.state)}  {one_line(traced.sentence, 200)}")
    say(
        f"  accepted {figures.moment(item.accepted)} from {one_line(item.author or 'somebody', 60)} "
        f"in {one_line(item.session, 80)}"
    )
    say_text(f"  {one_line(text_of(item.parts), 100)}")
    _say_replies(traced)
    for line in draw(_turns(traced), shutil.get_terminal_size((120, 24)).columns):
        say(line)


async def _ask(client: Client, inbox_id: str) -> Traced:
    return await client.call(MessageTrace(inbox_id=inbox_id))


def _turns(traced: Traced) -> Sequence[TurnTold]:
    return tell(traced.events)


def _say_replies(traced: Traced) -> None:
    for reply in traced.replies:
        error = f": {one_line(reply.error, 100)}" if reply.error else ""
        say(f"  reply {reply.id}: {reply.state} after {reply.attempts} attempts{error}")
