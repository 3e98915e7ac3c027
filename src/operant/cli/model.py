"""`operant model …`: which models there are, and which one answers."""

from __future__ import annotations

from collections.abc import Sequence

import click

from operant.cli.here import call
from operant.cli.inert import inert
from operant.cli.output import json_option, print_json, print_table, say
from operant.kernel.errors import NotFound, OperantError
from operant.kernel.records import Agent
from operant.kernel.syscalls import AgentGet, KernelStatus, ModelInfo, ModelList, SessionGet, SessionOpen, SessionUpdate
from operant.sdk.client import Client

MAIN = "main"


@click.group(help="See which models there are, and choose one.")
def command() -> None:
    """Hold the commands about models."""


@command.command("list", help="List the models that are used when nobody names one, best first, and all providers.")
@json_option
def list_models(as_json: bool) -> None:
    """Print models."""
    models = _models()
    providers = call(KernelStatus()).models
    if as_json:
        print_json({"models": models, "providers": providers})
        return
    rows = [(one.model, f"{one.window:,}" if one.window else "", one.why) for one in models]
    print_table(("model", "window", "why"), rows, "No model was found.")
    say(f"\nproviders: {inert(', '.join(providers)) or 'none'}")


@command.command("use", help="Choose a session's model, as provider/model; `default` goes back to the agent's.")
@click.argument("model")
@click.option("--session", default=MAIN, show_default=True)
@json_option
def use(model: str, session: str, as_json: bool) -> None:
    """Set a session's model."""
    name = "" if model == "default" else model
    if session == MAIN:
        call(SessionOpen(session=MAIN))
    else:
        call(SessionGet(session=session))
    info = call(SessionUpdate(session=session, model=name))
    print_json(info) if as_json else say(
        f"{session} uses {inert(name) or 'what its agent says'} from its next step on."
    )


async def explain(client: Client) -> str:
    """Say in one line which model answers and why."""
    agent = await client.call(AgentGet())
    if agent.models:
        return _configured(agent)
    try:
        models = await client.call(ModelList())
    except OperantError:
        return ""  # whoever knows about models is switched off; the first turn will say so
    return models[0].why or f"Using {models[0].model}." if models else "No model was found."


def _configured(agent: Agent) -> str:
    return f"Using {agent.models[0]}, because the settings of {agent.name} say so."


def _models() -> Sequence[ModelInfo]:
    try:
        return call(ModelList())
    except NotFound:
        return ()
