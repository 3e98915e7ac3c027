"""How the system is: status, health, metrics, log, doctor; and the parts that are not here yet, as empty lists."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

from aiohttp import web
from msgspec import Meta

from operant.ext.gateway.api import Call, Nothing, Route
from operant.ext.gateway.metrics import Metrics
from operant.sdk import (
    AgentGet,
    Check,
    Json,
    KernelExamine,
    KernelStatus,
    LogLine,
    LogTail,
    ModelList,
    NotFound,
    Record,
    SessionList,
    ToolList,
    Unavailable,
    UsageReport,
)

_MOST_SESSIONS = 500


class LogQuery(Record):
    """How many lines from the end."""

    lines: Annotated[int, Meta(ge=1, le=2_000)] = 200


class DoctorQuery(Record):
    """Whether to read every event and every blob."""

    full: bool = False


class SystemRoutes:
    """Answer the routes about the system itself."""

    def __init__(self, ready: Callable[[], bool], metrics: Metrics) -> None:
        self._ready = ready
        self._metrics = metrics

    def routes(self) -> list[Route]:
        """Return the routes."""
        text = "text/plain"
        return [
            Route("GET", "/healthz", self.health, "Tell that the process lives.", "open", returns=Json),
            Route("GET", "/readyz", self.readiness, "Tell whether messages are accepted: 200, else 503.", "open", returns=Json),
            Route("GET", "/metrics", self.metrics, "Show figures for Prometheus.", "system", sends=text),
            Route("GET", "/api/status", self.status, "Show what runs.", "system", returns=Json),
            Route("GET", "/api/logs", self.logs, "Show the end of the log.", "system", LogQuery, returns=tuple[LogLine, ...]),
            Route("GET", "/api/doctor", self.doctor, "Look at everything and say what to do.", "system", DoctorQuery, returns=tuple[Check, ...]),
            Route("GET", "/api/cron", self.jobs, "List the jobs.", "jobs", returns=Json),
            Route("POST", "/api/cron/reload", self.reload, "Read the jobs again.", "jobs", returns=Json),
            Route("POST", "/api/cron/{job}/run", self.no_job, "Run a job now.", "jobs", returns=Json),
            Route("POST", "/api/cron/{job}/toggle", self.no_job, "Switch a job on or off.", "jobs", returns=Json),
            *(
                Route("GET", f"/api/{part}", self.none, f"List {part}: none, until that part of Operant is here.", part, returns=tuple[Json, ...])
                for part in ("memory", "jobs", "users")
            ),
        ]  # fmt: skip

    async def health(self, call: Call[Nothing, None]) -> Json:
        """Tell that the process lives."""
        return {"status": "ok"}

    async def readiness(self, call: Call[Nothing, None]) -> Json:
        """Tell whether messages are accepted."""
        if not self._ready():
            raise Unavailable("Operant is starting or stopping.", "Ask again in a moment.")
        return {"status": "ready"}

    async def status(self, call: Call[Nothing, None]) -> Json:
        """Show what runs."""
        client = call.client
        status = await client.call(KernelStatus())
        agent = await client.call(AgentGet())
        chain = await client.call(ModelList())
        provider, _, model = (chain[0].model if chain else "").partition("/")
        tools = await client.call(ToolList(agent=agent.name))
        sessions = await client.call(SessionList(limit=_MOST_SESSIONS))
        return {
            "status": "ok" if status.ready else "starting",
            "agent": agent.name,
            "model": model,
            "provider": provider,
            "base_url": "",
            "tools": [tool.name for tool in tools],
            "sessions": len(sessions),
            "cron_jobs": 0,
            "deep_work": {
                "max_iterations": agent.limits.max_steps,
                "token_budget": agent.limits.turn_tokens,
                "warning_threshold": 0.8,
            },
            "version": status.version,
            "accepting": status.accepting,
            "reason": status.reason,
            "hint": status.hint,
            "sessions_open": status.sessions_open,
            "turns": status.turns,
            "extensions": status.extensions,
            "models": status.models,
            "problems": status.problems,
            "damages": status.damages,
            "started": status.started,
            "pid": status.pid,
        }

    async def logs(self, call: Call[LogQuery, None]) -> tuple[LogLine, ...]:
        """Show the log."""
        return await call.client.call(LogTail(lines=call.query.lines))

    async def doctor(self, call: Call[DoctorQuery, None]) -> tuple[Check, ...]:
        """Look at everything."""
        return await call.client.call(KernelExamine(full=call.query.full))

    async def metrics(self, call: Call[Nothing, None]) -> web.Response:
        """Show figures."""
        status = await call.client.call(KernelStatus())
        report = await call.client.call(UsageReport(range="all"))
        text = self._metrics.text(status, report, _memory())
        return web.Response(text=text, content_type="text/plain", charset="utf-8")

    async def jobs(self, call: Call[Nothing, None]) -> Json:
        """List jobs."""
        await call.client.call(KernelStatus())
        return {"jobs": []}

    async def reload(self, call: Call[Nothing, None]) -> Json:
        """Read jobs again."""
        await call.client.call(KernelStatus())
        return {"status": "reloaded", "jobs_loaded": 0}

    async def no_job(self, call: Call[Nothing, None]) -> Json:
        """Say that there is no such job."""
        raise NotFound(f"There is no job {call.path('job')!r}.", "Jobs come with a later part of Operant.")

    async def none(self, call: Call[Nothing, None]) -> tuple[Json, ...]:
        """List nothing, to those who may look."""
        await call.client.call(KernelStatus())
        return ()


def _memory() -> int:
    """Return the bytes of memory that this process holds; 0 where nobody can tell."""
    try:
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    except (OSError, ValueError, IndexError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")
