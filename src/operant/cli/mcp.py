"""`operant mcp …`: servers of the Model Context Protocol, and being one."""

from __future__ import annotations

import os
from typing import Any

import click

from operant.cli.here import call, home, with_link
from operant.cli.inert import one_line
from operant.cli.output import coloured, dim, json_option, print_json, print_table, say, strong
from operant.kernel.errors import Missing
from operant.kernel.records import Json
from operant.kernel.syscalls import McpAdd, McpApprove, McpList, McpLogout, McpRemove, McpServer, McpTest, McpTool

_COLOURS = {"connected": "green", "failed": "red", "new": "yellow", "changed": "yellow", "refused": "red"}
_WIDTH = 70


@click.group(help="Add, list, test, log in to, approve and remove MCP servers, and be one (serve).")
def command() -> None:
    """Hold the commands about MCP."""


@command.command("list", help="List the servers, and how each stands.")
@json_option
def list_servers(as_json: bool) -> None:
    """Print servers."""
    servers = call(McpList())
    if as_json:
        print_json(servers)
        return
    rows = [(one.name, _state(one), _counts(one), one.source, one_line(one.where, _WIDTH)) for one in servers]
    print_table(
        ("server", "state", "tools", "from", "where"), rows, "There are no servers. `operant mcp add NAME …` adds one."
    )


@command.command("test", help="Connect to a server, and show what it has.")
@click.argument("name")
@json_option
def test(name: str, as_json: bool) -> None:
    """Print a server."""
    found = call(McpTest(server=name))
    if as_json:
        print_json(found)
        return
    about = f"{found.version}, protocol {found.protocol}{', logged in' if found.login else ''}"
    say(f"{strong(found.name)}  {_painted(found.state)}  {dim(about)}")
    for tool in found.tools:
        say(f"  {tool.name}  {_painted(tool.state) if tool.state != 'offered' else ''}".rstrip())
        say(dim(f"      {one_line(_about(tool), _WIDTH)}"))
    more = [f"{found.left_out:,} tools that are too many"] if found.left_out else []
    more += [f"{found.resources} resources"] if found.resources else []
    more += [f"{found.prompts} prompts"] if found.prompts else []
    for line in more:
        say(f"  and {line}")
    if any(tool.state in ("new", "changed") for tool in found.tools):
        say(f"Read what changed, then: operant mcp approve {found.name}")


@command.command("add", help="Add a server: NAME --url URL, or NAME -- COMMAND ARGUMENTS….")
@click.argument("name")
@click.argument("program", nargs=-1)
@click.option("--url", default="", help="The address of a server over HTTP.")
@click.option("--env", multiple=True, metavar="NAME=VALUE", help="A variable for it; ${NAME} takes it from yours.")
@click.option("--header", multiple=True, metavar="NAME=VALUE", help="A header of every request; ${NAME} as above.")
@json_option
def add(
    name: str, program: tuple[str, ...], url: str, env: tuple[str, ...], header: tuple[str, ...], as_json: bool
) -> None:
    """Add a server."""
    if bool(url) == bool(program):
        raise click.UsageError("Give either --url URL, or -- COMMAND ARGUMENTS….")
    settings: Json = {"url": url} if url else {"command": program[0], "args": list(program[1:])}
    for key, pairs in (("env", env), ("headers", header)):
        if pairs:
            settings[key] = dict(_pair(pair) for pair in pairs)
    before = next((one.where for one in call(McpList()) if one.name == name), "")
    added = call(McpAdd(server=name, settings=settings))
    if as_json:
        print_json(added)
        return
    instead = f", in place of {one_line(before, _WIDTH)}" if before else ""
    say(f"{added.name} is there{instead}. What it has: operant mcp test {added.name}")


@command.command("remove", help="Take a server out of mcp.json, with what was approved of it.")
@click.argument("name")
@json_option
def remove(name: str, as_json: bool) -> None:
    """Remove a server."""
    call(McpRemove(server=name))
    print_json({"name": name, "removed": True}) if as_json else say(f"{name} is gone.")


@command.command("approve", help="Approve what a server's tools say now, so that they are offered again.")
@click.argument("name")
@click.argument("tool", default="")
@json_option
def approve(name: str, tool: str, as_json: bool) -> None:
    """Approve tools."""
    fresh = call(McpApprove(server=name, tool=tool))
    if as_json:
        print_json({"name": name, "approved": fresh})
        return
    say(f"Offered now: {', '.join(one_line(one, _WIDTH) for one in fresh)}." if fresh else "Nothing had changed.")


@command.command("login", help="Log in to a server over HTTP, in your browser; the login is kept over restarts.")
@click.argument("name")
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=0,
    metavar="N",
    help="The port the browser comes back to; 0: a free one.",
)
@click.option("--paste", is_flag=True, help="The browser is on another machine: paste the address it ends at.")
@json_option
def login(name: str, port: int, paste: bool, as_json: bool) -> None:
    """Log in."""
    from operant.cli.callback import Return, logged_in

    found = with_link(lambda link: logged_in(link, name, Return(port, paste)), work=False)
    if as_json:
        print_json(found)
        return
    offered = sum(tool.state == "offered" for tool in found.tools)
    say(f"{found.name} is {found.state}: {'1 tool' if offered == 1 else f'{offered} tools'}.")


@command.command("logout", help="Forget the login to a server.")
@click.argument("name")
@json_option
def logout(name: str, as_json: bool) -> None:
    """Log out."""
    had = call(McpLogout(server=name))
    if as_json:
        print_json({"name": name, "logged_out": had})
        return
    say(f"The login to {name} is forgotten." if had else f"There was no login to {name}.")


@command.command("serve", help="Be an MCP server on standard input and output, for a program that starts this.")
def serve() -> None:
    """Serve."""
    from operant.app.config import load_config
    from operant.app.neighbours import find_all
    from operant.ext.mcp.settings import McpSettings
    from operant.kit.clock import SystemClock
    from operant.kit.ids import SystemIds

    try:
        from operant.ext.mcp.serve.stdio import serve as serve_stdio
    except ImportError as error:
        raise Missing("MCP needs a package that is not there.", "pip install 'operant[mcp]'") from error
    settings: Any = load_config(home().path, os.environ, find_all(home().path).extensions).sections.get("mcp")
    ids = SystemIds(SystemClock().now)
    with_link(lambda link: serve_stdio(link, (settings or McpSettings()).serve, ids.new))


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise click.UsageError(f"{text!r} is not NAME=VALUE.")
    return name, value


def _state(one: McpServer) -> str:
    return f"{one.state}: {one_line(one.sentence, _WIDTH)}" if one.sentence else one.state


def _painted(state: str) -> str:
    return coloured(state, _COLOURS[state]) if state in _COLOURS else state


def _counts(one: McpServer) -> str:
    held = sum(tool.state in ("new", "changed") for tool in one.tools)
    offered = sum(tool.state == "offered" for tool in one.tools)
    return f"{offered} ({held} to approve)" if held else str(offered)


def _about(tool: McpTool) -> str:
    return tool.why or tool.description or "(no description)"
