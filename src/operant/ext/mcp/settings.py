"""The settings of MCP: servers of others, and what this one offers."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from operant.kit.secret import Secret
from operant.sdk import Record

NAME = r"^[A-Za-z0-9]([A-Za-z0-9-]|_(?!_)){0,31}$"
"""A server's name is part of its tools' names, in which `__` separates."""


class OAuthSettings(Record):
    """Who we are to a remote server that wants OAuth 2.1, where it does not register us by itself."""

    client_id: Annotated[str, Meta(description="The client id.")] = ""
    client_secret: Annotated[Secret | None, Meta(description="The secret that belongs to it.")] = None
    issuer: Annotated[str, Meta(description="The authorization server they are for: no other one sees them.")] = ""
    scope: Annotated[str, Meta(description="Scopes to ask for, with spaces between them.")] = ""
    grant: Annotated[
        Literal["", "client_credentials", "authorization_code"],
        Meta(description="As a program, or by a login in a browser; empty: as a program where there is a secret."),
    ] = ""

    @property
    def by_person(self) -> bool:
        """Tell whether somebody logs in."""
        return self.grant == "authorization_code" or not (self.grant or self.client_secret)


class ServerSettings(Record):
    """One server, in the shape that other programs use in `mcpServers`: `command` or `url`, and what belongs to it."""

    command: Annotated[str, Meta(description="The program of a server on this machine.")] = ""
    args: Annotated[tuple[str, ...], Meta(description="Its arguments.")] = ()
    env: Annotated[dict[str, Secret], Meta(description="All variables it gets beside PATH, HOME and the like.")] = {}
    cwd: Annotated[str, Meta(description="Where it runs; empty: the home.")] = ""
    url: Annotated[str, Meta(description="The address of a server that is reached over HTTP.")] = ""
    type: Annotated[
        Literal["", "stdio", "http", "streamable-http", "streamableHttp"], Meta(description="Told by the other keys.")
    ] = ""
    headers: Annotated[dict[str, Secret], Meta(description="Headers of every request, such as Authorization.")] = {}
    oauth: Annotated[
        OAuthSettings | None, Meta(description="Who we are, where the server wants OAuth and knows us.")
    ] = None
    disabled: Annotated[bool, Meta(description="Not used for now.")] = False
    timeout: Annotated[float, Meta(gt=0, le=3600, description="Seconds that a call may take.")] = 120.0
    agents: Annotated[tuple[str, ...], Meta(description="Agents that have it, by name or pattern.")] = ("*",)
    tools: Annotated[tuple[str, ...], Meta(description="Its tools that are offered, by name or pattern.")] = ("*",)
    deny: Annotated[tuple[str, ...], Meta(description="Its tools that are not, whatever `tools` says.")] = ()
    trusted: Annotated[
        bool, Meta(description="Believe its hints: a tool that says it only reads is run without asking.")
    ] = False


class ServeSettings(Record):
    """What other programs get of this one."""

    http: Annotated[bool, Meta(description="Answer at `/mcp` of the gateway, to those who hold a token.")] = True
    agent: Annotated[str, Meta(description="Whom they talk to; empty: the default agent.")] = ""
    tools: Annotated[
        tuple[str, ...], Meta(description="The agent's tools that they may use themselves, by name or pattern.")
    ] = ()
    skills: Annotated[bool, Meta(description="Whether they may read the agent's skills.")] = True


class McpSettings(Record):
    """Servers of the Model Context Protocol; those in `mcp.json` of the home are used too."""

    servers: Annotated[
        dict[Annotated[str, Meta(pattern=NAME)], ServerSettings],
        Meta(description="Servers by name, as other programs write them below `mcpServers`."),
    ] = {}
    listed: Annotated[
        int, Meta(ge=0, description="Up to so many tools of all servers are told to the model; more are searched.")
    ] = 20
    serve: Annotated[ServeSettings, Meta(description="What other programs get of this one.")] = ServeSettings()
