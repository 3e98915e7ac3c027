"""`operant tool …`: what agents can do."""

from __future__ import annotations

import json
from typing import Any, cast

import click

from operant.cli.here import call, with_link
from operant.cli.output import dim, json_option, print_json, print_table, say, say_text
from operant.kernel.records import text_of
from operant.kernel.syscalls import ToolInvoke, ToolList


@click.group(help="List tools, and run one by hand.")
def command() -> None:
    """Hold the commands about tools."""


@command.command("list", help="List the tools.")
@click.option("--agent", default="", help="Only those that this agent may use.")
@json_option
def list_tools(agent: str, as_json: bool) -> None:
    """Print tools."""
    tools = call(ToolList(agent=agent))
    if as_json:
        print_json(tools)
        return
    rows = [(one.name, one.effect, _first_line(one.description)) for one in tools]
    print_table(("tool", "effect", "about"), rows, "There are no tools.")
    if not agent:
        say(dim("An agent may have others, as those of MCP servers: operant tool list --agent NAME"))


@command.command("run", help='Run a tool through the gate, such as: tool run shell \'{"command": "date"}\'')
@click.argument("name")
@click.argument("arguments", default="{}")
@click.option("--agent", default="", help="As this agent.")
@click.option("--session", default="", help="On record in this session.")
@json_option
def run(name: str, arguments: str, agent: str, session: str, as_json: bool) -> int:
    """Run one tool; what it could not do is a failure of the command."""
    try:
        parsed = json.loads(arguments)
    except ValueError as error:
        raise click.UsageError(f"The arguments are not JSON: {error}.") from error
    if not isinstance(parsed, dict):
        raise click.UsageError('The arguments must be an object, such as {"path": "notes.md"}.')
    request = ToolInvoke(name=name, arguments=cast("dict[str, Any]", parsed), agent=agent, session=session)
    result = with_link(lambda link: link.call(request))  # guards are there only in a system that works
    if as_json:
        print_json(result)
    else:
        say_text(text_of(result.parts))
    return {"ok": 0, "denied": 3}.get(result.outcome, 1)


def _first_line(text: str) -> str:
    return text.split("\n", 1)[0]
