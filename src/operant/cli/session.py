"""`operant session …`: conversations."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from operant.cli import figures
from operant.cli.here import call
from operant.cli.inert import quoted
from operant.cli.kin import works_for_another
from operant.cli.output import PROMPT, coloured, dim, json_option, print_json, print_table, say, say_text, strong
from operant.kernel.records import Event, SessionInfo, text_of
from operant.kernel.syscalls import (
    Exported,
    SessionArchive,
    SessionErase,
    SessionExport,
    SessionFork,
    SessionGet,
    SessionHistory,
    SessionImport,
    SessionList,
    SessionSearch,
    SessionStop,
)
from operant.kit.clock import SystemClock


@click.group(help="List, show, stop, search, copy and erase conversations.")
def command() -> None:
    """Hold the commands about sessions."""


@command.command("list", help="List sessions, the last changed first.")
@click.option("-n", "--limit", default=50, show_default=True, type=click.IntRange(1))
@click.option("--archived", is_flag=True, help="Those taken out of the list.")
@click.option("--agent", default="", help="Only this agent's.")
@click.option("--tree", is_flag=True, help="Sub-agents, and copies, below where they come from.")
@json_option
def list_sessions(limit: int, archived: bool, agent: str, tree: bool, as_json: bool) -> None:
    """Print sessions."""
    sessions = call(SessionList(limit=limit, archived=archived, agent=agent))
    if as_json:
        print_json(sessions)
        return
    now = SystemClock().now()
    rows = [
        (
            f"{'│ ' * (depth - 1)}└ {one.key}" if depth else one.key,
            one.state,
            one.agent,
            figures.ago(one.updated, now),
            str(one.events),
            figures.used(one.usage),
            one.title,
        )
        for depth, one in (_tree(sessions) if tree else ((0, one) for one in sessions))
    ]
    heads = ("session", "state", "agent", "changed", "events", "used", "title")
    print_table(heads, rows, "There are no sessions yet. `operant chat` starts one.")


def _tree(sessions: Sequence[SessionInfo]) -> Iterator[tuple[int, SessionInfo]]:
    """Yield sessions with their depth, each before those that work for it; these in the order of their calls."""
    listed = {one.key for one in sessions}
    waiting = [(0, one) for one in reversed(sessions) if one.parent not in listed]
    while waiting:
        depth, one = waiting.pop()
        yield depth, one
        below = sorted((child for child in sessions if child.parent == one.key), key=lambda child: child.key)
        waiting.extend((depth + 1, child) for child in reversed(below))


@command.command("show", help="Show a session's messages; --all shows every event.")
@click.argument("session")
@click.option("-n", "--limit", default=0, help="Only the last so many events.")
@click.option("--all", "every", is_flag=True, help="Show every event.")
@json_option
def show(session: str, limit: int, every: bool, as_json: bool) -> None:
    """Print one session."""
    info = call(SessionGet(session=session))
    after = max(info.events - limit, 0) if limit else 0
    events = call(SessionHistory(session=session, after=after))
    if as_json:
        print_json({"session": info, "events": events})
        return
    _say_info(info)
    for event in events:
        _say_event(event, every)


def _say_info(info: SessionInfo) -> None:
    say_text(f"{info.key}  {info.title}".rstrip())
    how = "works for" if works_for_another(info) else "a copy of"
    works = f" · {how} {info.parent}" if info.parent else ""
    say(dim(f"{info.agent} · {info.state} · {info.events} events · {figures.used(info.usage)}{works}"))
    say()


def _say_event(event: Event, every: bool) -> None:
    body = event.body
    at = figures.clock_time(event.at)
    if event.type == "message.received" and not every:
        say(f"{dim(at)} {strong(PROMPT)}")
        say_text(text_of(getattr(body, "parts", ())))
    elif event.type == "message.queued" and not every:
        say(f"{dim(at)} {coloured('=', 'cyan')}")
        say_text(text_of(getattr(body, "parts", ())))
    elif every:
        import msgspec

        say_text(f"{event.seq:>5} {at} {event.type:<20} {msgspec.json.encode(body).decode()}")


@command.command("export", help="Write a session, with everything that belongs to it, as JSON.")
@click.argument("session")
@click.argument("path", default="-", type=click.Path(dir_okay=False))
def export(session: str, path: str) -> None:
    """Write an export."""
    import msgspec

    exported = call(SessionExport(session=session))
    data = msgspec.json.format(msgspec.json.encode(exported), indent=2)
    if path == "-":
        sys.stdout.write(quoted(data.decode()) + "\n")
        return
    Path(path).write_bytes(data + b"\n")
    say(f"{len(exported.events)} events of {session} are in {path}.")


@command.command("import", help="Make a session of an export.")
@click.argument("path", type=click.Path(exists=True, dir_okay=False, allow_dash=True))
@click.option("--as", "key", default="", help="Give it another key.")
@json_option
def import_(path: str, key: str, as_json: bool) -> None:
    """Read an export."""
    import msgspec

    data = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    try:
        exported = msgspec.json.decode(data, type=Exported)
    except msgspec.MsgspecError as error:
        raise click.UsageError(f"{path} is not an exported session: {error}.") from error
    info = call(SessionImport(exported=exported, session=key))
    print_json(info) if as_json else say(f"{info.key}: {info.events} events.")


@command.command("stop", help="Stop what runs in a session.")
@click.argument("session")
@json_option
def stop(session: str, as_json: bool) -> None:
    """Stop a turn."""
    call(SessionGet(session=session))
    stopped = call(SessionStop(session=session))
    print_json(stopped) if as_json else say("Stopped." if stopped.stopped else "Nothing was running.")


@command.command("archive", help="Take a session out of the list; its history stays.")
@click.argument("session")
@click.option("--undo", is_flag=True, help="Bring it back.")
@json_option
def archive(session: str, undo: bool, as_json: bool) -> None:
    """Archive or bring back."""
    info = call(SessionArchive(session=session, archived=not undo))
    print_json(info) if as_json else say(f"{info.key} is {'back' if undo else 'archived'}.")


@command.command("fork", help="Start a new session with a copy of this one's history.")
@click.argument("session")
@click.option("--upto", default=0, help="Only up to this event.")
@click.option("--title", default="")
@json_option
def fork(session: str, upto: int, title: str, as_json: bool) -> None:
    """Copy a session."""
    info = call(SessionFork(session=session, upto=upto, title=title))
    print_json(info) if as_json else say(
        f"{info.key}: {info.events} events. Go there: operant chat --session {info.key}"
    )


@command.command("search", help="Find events by words.")
@click.argument("words", nargs=-1, required=True)
@click.option("--session", default="", help="Only in this session.")
@click.option("-n", "--limit", default=20, show_default=True, type=click.IntRange(1))
@json_option
def search(words: tuple[str, ...], session: str, limit: int, as_json: bool) -> None:
    """Search the history."""
    hits = call(SessionSearch(query=" ".join(words), session=session, limit=limit))
    if as_json:
        print_json(hits)
        return
    rows = [(one.session, str(one.seq), figures.moment(one.at), one.type, one.text) for one in hits]
    print_table(("session", "event", "when", "type", "text"), rows, "Nothing was found.")


@command.command("erase", help="Remove every trace of a session. This cannot be undone.")
@click.argument("session")
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
def erase(session: str, yes: bool, as_json: bool) -> None:
    """Erase a session, once a person has said yes."""
    info = call(SessionGet(session=session))
    if not yes:
        if not sys.stdin.isatty():
            raise click.UsageError(f"{info.key} would be erased for good; say --yes.")
        click.confirm(f"Erase {info.key} with its {info.events} events for good?", abort=True, err=True)
    erased = call(SessionErase(session=session))
    print_json(erased) if as_json else say(f"{session} is erased.")
