"""Requests without an SDK in between, for what no SDK would send or show."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import httpx2

from operant.sdk.testing.server import ScriptedServer

CHAT = "/v1/chat/completions"
RESPONSES = "/v1/responses"
MESSAGES = "/v1/messages"
GEMINI = "/v1beta/models/one:generateContent"
STREAM = "/v1beta/models/one:streamGenerateContent?alt=sse"
KEYS = {
    MESSAGES: {"x-api-key": "k", "anthropic-version": "2023-06-01"},
    GEMINI: {"x-goog-api-key": "k"},
    STREAM: {"x-goog-api-key": "k"},
}


@dataclass
class Raw:
    """An answer as it came."""

    status: int
    text: str

    @property
    def json(self) -> Any:
        return json.loads(self.text)

    @property
    def events(self) -> list[Any]:
        """Return the events' data, the one that is no JSON as it is."""
        found = [line.removeprefix("data: ") for line in self.text.splitlines() if line.startswith("data: ")]
        return [json.loads(one) if one.startswith("{") else one for one in found]

    @property
    def sentence(self) -> str:
        """Return what an error says."""
        return self.json["error"]["message"]


async def post(server: ScriptedServer, path: str, body: Any, headers: dict[str, str] | None = None) -> Raw:
    """Send a body, with the keys that the protocol wants unless headers are given."""
    plain = KEYS.get(path, {}) if headers is None else headers
    async with httpx2.AsyncClient(base_url=server.root, verify=False, timeout=5) as http:
        got = await http.post(path, content=body if isinstance(body, bytes) else json.dumps(body), headers=plain)
        return Raw(got.status_code, got.text)


async def get(server: ScriptedServer, path: str, headers: dict[str, str]) -> Raw:
    """Get a page."""
    async with httpx2.AsyncClient(base_url=server.root, verify=False, timeout=5) as http:
        got = await http.get(path, headers=headers)
        return Raw(got.status_code, got.text)
