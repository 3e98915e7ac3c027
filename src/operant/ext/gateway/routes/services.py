"""The services of skills: what runs, and what the owner lets run."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from operant.ext.gateway.api import Call, Nothing, Route
from operant.sdk import (
    Record,
    ServiceGrant,
    ServiceInfo,
    ServiceList,
    ServiceLogs,
    ServiceRevoke,
    SkillReload,
    SkillStart,
    SkillStop,
)


class GrantBody(Record):
    """The content that was looked at: when the folder has another by now, nothing is allowed."""

    digest: Annotated[str, Meta(min_length=64, max_length=64)]


class LinesQuery(Record):
    """How many of the last lines."""

    lines: Annotated[int, Meta(ge=1, le=5_000)] = 200


class Services:
    """Answer the routes about services."""

    def routes(self) -> list[Route]:
        """Return the routes."""
        tag, one = "services", "/api/services/{service}"
        return [
            Route("GET", "/api/services", self.list, "List the services of skills.", tag, returns=tuple[ServiceInfo, ...]),
            Route("POST", f"{one}/grant", self.grant, "Let a service run, as long as its content stays as it is.", tag, body=GrantBody, returns=ServiceInfo),
            Route("POST", f"{one}/revoke", self.revoke, "Take back what a service may do; it ends.", tag, returns=ServiceInfo),
            Route("POST", f"{one}/start", self.start, "Start a service, also one that failed.", tag, returns=ServiceInfo),
            Route("POST", f"{one}/stop", self.stop, "Stop a service; a guard that is stopped guards nothing.", tag, returns=ServiceInfo),
            Route("POST", f"{one}/restart", self.restart, "Start a service anew.", tag, returns=tuple[ServiceInfo, ...]),
            Route("GET", f"{one}/logs", self.logs, "Return the last lines that a service wrote.", tag, LinesQuery, returns=tuple[str, ...]),
        ]  # fmt: skip

    async def list(self, call: Call[Nothing, None]) -> tuple[ServiceInfo, ...]:
        """List services."""
        return await call.client.call(ServiceList())

    async def grant(self, call: Call[Nothing, GrantBody]) -> ServiceInfo:
        """Let a service run."""
        return await call.client.call(ServiceGrant(service=call.path("service"), digest=call.body.digest))

    async def revoke(self, call: Call[Nothing, None]) -> ServiceInfo:
        """Take it back."""
        return await call.client.call(ServiceRevoke(service=call.path("service")))

    async def start(self, call: Call[Nothing, None]) -> ServiceInfo:
        """Start a service."""
        return await call.client.call(SkillStart(skill=call.path("service")))

    async def stop(self, call: Call[Nothing, None]) -> ServiceInfo:
        """Stop a service."""
        return await call.client.call(SkillStop(skill=call.path("service")))

    async def restart(self, call: Call[Nothing, None]) -> tuple[ServiceInfo, ...]:
        """Start it anew."""
        return await call.client.call(SkillReload(skill=call.path("service")))

    async def logs(self, call: Call[LinesQuery, None]) -> tuple[str, ...]:
        """Return the last lines."""
        return await call.client.call(ServiceLogs(service=call.path("service"), lines=call.query.lines))
