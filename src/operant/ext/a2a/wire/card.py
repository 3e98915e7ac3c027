"""What an agent says about itself to other homes and programs."""

from __future__ import annotations

import hashlib

import msgspec
from a2a.types.a2a_pb2 import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    HTTPAuthSecurityScheme,
    SecurityRequirement,
    SecurityScheme,
    StringList,
)
from google.protobuf.json_format import MessageToDict

from operant.ext.a2a.wire.shapes import INPUT_MODES, TEXT
from operant.sdk import Agent, HttpRequest, HttpResponse

PROTOCOL = "1.0"


def card_of(agent: Agent, url: str, version: str) -> AgentCard:
    """Make the card of an agent that is reached at an address, which ends in a slash."""
    words = agent.description or f"{agent.name}, an agent of an Operant home."
    return AgentCard(
        name=agent.name,
        description=words,
        version=version or "0",
        supported_interfaces=[AgentInterface(url=url, protocol_binding="JSONRPC", protocol_version=PROTOCOL)],
        capabilities=AgentCapabilities(streaming=True, push_notifications=False, extended_agent_card=False),
        security_schemes={
            "token": SecurityScheme(
                http_auth_security_scheme=HTTPAuthSecurityScheme(
                    scheme="Bearer", description="A token of the home with the scope a2a, or a2a: and the agent's name."
                )
            )
        },
        security_requirements=[SecurityRequirement(schemes={"token": StringList()})],
        default_input_modes=list(INPUT_MODES),
        default_output_modes=list(TEXT),
        skills=[AgentSkill(id="conversation", name="Conversation", description=words, tags=["conversation"])],
    )


def served(card: AgentCard, request: HttpRequest) -> HttpResponse:
    """Answer with a card, or say that the client has it already."""
    body = msgspec.json.encode(MessageToDict(card), order="sorted")
    etag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    headers = (("ETag", etag), ("Cache-Control", "public, max-age=300"), ("Content-Type", "application/json"))
    if etag in request.header("if-none-match"):
        return HttpResponse(status=304, headers=headers[:2])
    return HttpResponse(headers=headers, body=body)
