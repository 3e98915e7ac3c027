"""HTTP, WebSocket, the OpenAI protocol and the web page: one door, for those who hold a token."""

from operant.sdk import Extension

extension = Extension(
    name="gateway",
    setup="operant.ext.gateway.setup:setup",
    settings="operant.ext.gateway.settings:GatewaySettings",
    essential=True,
    skill="web",
)
