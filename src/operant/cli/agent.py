"""`operant agent …`: who answers."""

from __future__ import annotations

import sys

import click

from operant.cli.here import call, home
from operant.cli.output import dim, json_option, print_json, print_table, say, say_text, strong
from operant.kernel.records import Agent
from operant.kernel.syscalls import AgentGet, AgentList, AgentWhich


@click.group(help="List, add and remove agents.")
def command() -> None:
    """Hold the commands about agents."""


@command.command("list", help="List the agents.")
@json_option
def list_agents(as_json: bool) -> None:
    """Print agents."""
    agents = call(AgentList())
    if as_json:
        print_json(agents)
        return
    rows = [(one.name, ", ".join(one.models) or "found by itself", one.description) for one in agents]
    print_table(("agent", "models", "about"), rows, "There are no agents. `operant init` makes one.")


@command.command("show", help="Show one agent: its settings and its prompt.")
@click.argument("name", default="")
@json_option
def show(name: str, as_json: bool) -> None:
    """Print one agent."""
    agent = call(AgentGet(agent=name))
    if as_json:
        print_json(agent)
        return
    say(strong(agent.name) + (f"  {agent.description}" if agent.description else ""))
    for key, value in _settings(agent):
        say_text(f"  {key:<17} {value}")
    say()
    say_text(agent.prompt or "(no prompt)")


def _settings(agent: Agent) -> list[tuple[str, str]]:
    rules = ", ".join(f"{name}: {answer}" for name, answer in agent.approval.items())
    return [
        ("models", ", ".join(agent.models) or "found by itself"),
        ("workspace", agent.workspace),
        ("tools", ", ".join(agent.permissions.tools) or "none"),
        ("denied tools", ", ".join(agent.permissions.deny) or "none"),
        ("helpers", ", ".join(agent.helpers) or "none"),
        ("approval", rules or "as the guard decides"),
        ("most steps", str(agent.limits.max_steps)),
        ("arrival", agent.arrival),
        ("context", f"{agent.context_strategy} at {agent.context_ratio:.0%}"),
        ("time zone", agent.timezone),
    ]


@command.command("which", help="Tell which agent answers a message from somewhere, and why.")
@click.option("--channel", default="", help="Such as telegram.")
@click.option("--account", default="")
@click.option("--chat", default="")
@click.option("--thread", default="")
@click.option("--user", default="")
@json_option
def which(as_json: bool, **place: str) -> None:
    """Print who answers."""
    chosen = call(AgentWhich(**place))
    print_json(chosen) if as_json else say(f"{strong(chosen.agent)}: {chosen.why}.")


@command.command("add", help="Make a new agent; its files are yours to edit.")
@click.argument("name")
@click.option("--description", default="", help="One line about it.")
@click.option("--model", "models", multiple=True, help="A model as provider/model; may be repeated.")
@json_option
def add(name: str, description: str, models: tuple[str, ...], as_json: bool) -> None:
    """Make an agent's files."""
    from operant.app.agents import add_agent

    place = home()
    add_agent(place, name, description=description, models=models)
    path = place.agents / name / "AGENT.md"
    if as_json:
        print_json({"name": name, "path": str(path)})
        return
    say(f"{name} is there: operant chat --agent {name}")
    say(dim(f"Its settings and prompt are in {path}."))


@command.command("remove", help="Put an agent's files aside; nothing is deleted.")
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
def remove(name: str, yes: bool, as_json: bool) -> None:
    """Remove an agent, once a person has said yes."""
    from operant.app.agents import remove_agent
    from operant.kit.clock import SystemClock

    if not yes:
        if not sys.stdin.isatty():
            raise click.UsageError(f"The files of {name} would be put aside; say --yes.")
        click.confirm(f"Put the files of {name} aside?", abort=True, err=True)
    aside = remove_agent(home(), name, SystemClock().now())
    print_json({"name": name, "aside": str(aside)}) if as_json else say(f"{name} is gone; its files are in {aside}.")
