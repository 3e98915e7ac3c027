"""`operant approval …`: what waits for a person."""

from __future__ import annotations

import click

from operant.cli import figures
from operant.cli.calls import whole
from operant.cli.here import call, rest_note
from operant.cli.inert import inert
from operant.cli.output import dim, json_option, print_json, say, strong
from operant.kernel.errors import NotFound
from operant.kernel.syscalls import Approval, ApprovalAnswer, ApprovalList
from operant.kit.clock import SystemClock


@click.group(help="See and answer what waits for your yes or no.")
def command() -> None:
    """Hold the commands about approvals."""


@command.command("list", help="Show what waits, exactly as it would run.")
@click.option("--session", default="", help="Only in this session.")
@json_option
def list_approvals(session: str, as_json: bool) -> None:
    """Print open questions."""
    waiting = call(ApprovalList(session=session))
    if as_json:
        print_json(waiting)
        return
    if not waiting:
        say("Nothing waits for you.")
    for one in waiting:
        _say(one)


def _say(one: Approval) -> None:
    asked = figures.ago(one.asked, SystemClock().now())
    say(f"{strong(one.approval_id)}  {dim(f'{inert(one.agent)} in {inert(one.session)}, asked {asked}')}")
    say(f"  {inert(one.question) or 'May this run?'}")
    for line in (inert(one.name), *whole(one.arguments)):
        say(f"    {line}")


@command.command("allow", help="Let it run. ID may be the end of one, or `last`.")
@click.argument("approval_id", metavar="ID")
@click.option("--session", "for_session", is_flag=True, help="And the same call again for the rest of its session.")
@json_option
def allow(approval_id: str, for_session: bool, as_json: bool) -> None:
    """Say yes."""
    one = _find(approval_id)
    scope = "session" if for_session else "once"
    answered = call(ApprovalAnswer(approval_id=one.approval_id, answer="allow", scope=scope))
    print_json(answered) if as_json else _say_answered("Allowed", answered)


@command.command("deny", help="Do not let it run. ID may be the end of one, or `last`.")
@click.argument("approval_id", metavar="ID")
@click.argument("reason", default="")
@json_option
def deny(approval_id: str, reason: str, as_json: bool) -> None:
    """Say no."""
    one = _find(approval_id)
    answered = call(ApprovalAnswer(approval_id=one.approval_id, answer="deny", reason=reason))
    print_json(answered) if as_json else _say_answered("Denied", answered)


def _say_answered(word: str, answered: Approval) -> None:
    say(f"{word}: {inert(answered.name)} in {inert(answered.session)}.")
    if note := rest_note():
        say(dim(note))


def _find(given: str) -> Approval:
    """Return the one question that is meant."""
    waiting = call(ApprovalList())
    if given == "last" and waiting:
        return max(waiting, key=lambda one: one.asked)
    found = [one for one in waiting if one.approval_id == given] or [
        one for one in waiting if len(given) >= 4 and one.approval_id.endswith(given)
    ]
    if len(found) != 1:
        raise NotFound(f"No question {given!r} waits for an answer.", "See: operant approval list.")
    return found[0]
