"""Usage: tokens and money, in total and taken apart."""

from __future__ import annotations

from operant.ext.gateway.api import Call, Route
from operant.ext.gateway.frames import usage_of
from operant.ext.gateway.sessions import Previews
from operant.sdk import Json, NotFound, Record, SessionGet, UsageLine, UsageRange, UsageReport

_SESSIONS = 50


class UsageQuery(Record):
    """From when on: `today` and the days before it, in UTC."""

    range: UsageRange = "7d"


class UsageRoutes:
    """Answer the route about usage."""

    def __init__(self, previews: Previews) -> None:
        self._previews = previews

    def routes(self) -> list[Route]:
        """Return the routes."""
        return [Route("GET", "/api/usage", self.usage, "Show tokens and money by day, model, agent and session.", "usage", UsageQuery, returns=Json)]  # fmt: skip

    async def usage(self, call: Call[UsageQuery, None]) -> Json:
        """Report usage."""
        report = await call.client.call(UsageReport(range=call.query.range))
        sessions = [await self._session(call, line) for line in report.sessions[:_SESSIONS]]
        return {
            "range": report.range,
            "since_day": report.since_day,
            "total": _line(report.total),
            "sessions": sessions,
            "days": [_line(line) for line in report.days],
            "models": [_line(line) for line in report.models],
            "agents": [_line(line) for line in report.agents],
            "purses": [_line(line) for line in report.purses],
            "rows": report.rows,
        }

    async def _session(self, call: Call[UsageQuery, None], line: UsageLine) -> Json:
        try:
            info = await call.client.call(SessionGet(session=line.name))
            preview = info.title or await self._previews.of(call.client, info)
        except NotFound:
            preview = "(deleted)"
        return {"session_id": line.name, "preview": preview, **_line(line)}


def _line(line: UsageLine) -> Json:
    return {"name": line.name, **usage_of(line.usage), "cached_share": line.cached_share}
