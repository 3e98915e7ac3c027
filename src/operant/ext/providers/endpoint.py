"""Where a provider is, how it wants to be spoken to, and what is known of its models."""

from __future__ import annotations

from typing import Literal

from operant.kit.secret import Secret
from operant.sdk import Facts, Record

Auth = Literal["bearer", "x-api-key", "api-key", "x-goog-api-key"]
_HEADERS: dict[Auth, str] = {"x-api-key": "x-api-key", "api-key": "api-key", "x-goog-api-key": "x-goog-api-key"}


class Quirks(Record):
    """Where a server differs from its protocol as others speak it."""

    auth: Auth | None = None
    """How the key is sent; None: as the protocol has it."""
    query: str = ""
    """What stands behind the `?` of every address, such as `api-version=preview`."""
    output_limit: str = "max_completion_tokens"
    """Name of the chat protocol's field for the output limit."""
    stream_usage: bool = True
    """Whether the chat protocol's `stream_options` are understood."""
    markers: bool = False
    """Whether the chat protocol takes cache markers for the models of others."""
    reasoning_field: str = ""
    """Name of the chat protocol's field in which reasoning goes back."""
    charges: bool = False
    """Whether the chat protocol's `usage.cost` is what a call cost in US dollars."""
    effort_field: str = "reasoning_effort"
    """Name of the chat protocol's field for how long to think; empty where there is none."""


class Endpoint(Record):
    """A provider; `facts` are by model, `*` for all others."""

    name: str
    base_url: str
    key: Secret = Secret()
    headers: dict[str, str] = {}
    facts: dict[str, Facts] = {}
    quirks: Quirks = Quirks()

    def known(self, model: str) -> Facts:
        """Return what is known about a model."""
        return self.facts.get(model) or self.facts.get("*") or Facts()

    def address(self, path: str) -> str:
        """Return the address of a path under the base."""
        query = self.quirks.query
        joined = "&" if "?" in path else "?"
        return f"{self.base_url.rstrip('/')}{path}{joined + query if query else ''}"

    def authorization(self, usual: Auth) -> dict[str, str]:
        """Return the headers of every request; `usual` is how the protocol sends keys."""
        headers = {"Content-Type": "application/json", **self.headers}
        auth = self.quirks.auth or usual
        if self.key and auth == "bearer":
            headers["Authorization"] = f"Bearer {self.key.reveal()}"
        elif self.key:
            headers[_HEADERS[auth]] = self.key.reveal()
        return headers
