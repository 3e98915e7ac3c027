"""Agents, tools and approvals."""

from __future__ import annotations

from typing import Any, Literal

from operant.ext.gateway.api import Call, Nothing, Route
from operant.ext.gateway.problem import Rejected
from operant.sdk import (
    Agent,
    AgentCreate,
    AgentFile,
    AgentFiles,
    AgentGet,
    AgentList,
    AgentRemove,
    AgentUpdate,
    Approval,
    ApprovalAnswer,
    ApprovalList,
    Json,
    Record,
    SkillGet,
    SkillInfo,
    SkillList,
    SkillText,
    ToolInvoke,
    ToolList,
    ToolResult,
    ToolSpec,
)


class ApprovalsQuery(Record):
    """The questions of one session (empty: all)."""

    session: str = ""


class AnswerBody(Record):
    """Yes or no; `session` lets the same call pass for the rest of the session."""

    answer: Literal["allow", "deny"]
    scope: Literal["once", "session"] = "once"
    reason: str = ""


class NewAgentBody(Record):
    """A new agent."""

    name: str
    description: str = ""
    models: tuple[str, ...] = ()


class FileBody(Record):
    """The text of a file; `digest` is of the one that it replaces."""

    text: str
    digest: str = ""


class ToolsQuery(Record):
    """Whose tools (empty: all)."""

    agent: str = ""


class SkillsQuery(Record):
    """Whose skills (empty: those of the default agent)."""

    agent: str = ""


class RunBody(Record):
    """Arguments of a tool, and for whom it runs."""

    arguments: dict[str, Any] = {}
    agent: str = ""
    session: str = ""


class Work:
    """Answer the routes about who works, with what, and what they ask."""

    def routes(self) -> list[Route]:
        """Return the routes."""
        agent = "/api/agents/{agent}"
        return [
            Route("GET", "/api/approvals", self.approvals, "List what waits for a yes or no.", "approvals", ApprovalsQuery, returns=tuple[Approval, ...]),
            Route("POST", "/api/approvals/{approval}", self.answer, "Answer a question.", "approvals", body=AnswerBody, returns=Approval),
            Route("GET", "/api/agents", self.agents, "List the agents and what they may do.", "agents", returns=tuple[Agent, ...]),
            Route("POST", "/api/agents", self.create, "Make a new agent.", "agents", body=NewAgentBody, returns=Agent, status=201),
            Route("GET", agent, self.agent, "Show one agent.", "agents", returns=Agent),
            Route("DELETE", agent, self.remove, "Put an agent's files aside; nothing is deleted.", "agents", returns=Json),
            Route("GET", f"{agent}/prompt", self.files, "Show the files that make an agent what it is.", "agents", returns=tuple[AgentFile, ...]),
            Route("PUT", f"{agent}/prompt/{{name}}", self.write, "Write one of them; what the agent may do cannot be changed here.", "agents", body=FileBody, returns=AgentFile),
            Route("GET", "/api/skills", self.skills, "List the skills that an agent finds.", "skills", SkillsQuery, returns=tuple[SkillInfo, ...]),
            Route("GET", "/api/skills/{skill}", self.skill, "Show a skill with its instructions.", "skills", SkillsQuery, returns=SkillText),
            Route("GET", "/api/tools", self.tools, "List tools.", "tools", ToolsQuery, returns=tuple[ToolSpec, ...]),
            Route("POST", "/api/tools/{tool}", self.run, "Run a tool through the gate, on record.", "tools", body=RunBody, returns=ToolResult),
        ]  # fmt: skip

    async def approvals(self, call: Call[ApprovalsQuery, None]) -> tuple[Approval, ...]:
        """List questions."""
        return await call.client.call(ApprovalList(session=call.query.session))

    async def answer(self, call: Call[Nothing, AnswerBody]) -> Approval:
        """Answer a question."""
        body = call.body
        answer = ApprovalAnswer(
            approval_id=call.path("approval"), answer=body.answer, scope=body.scope, reason=body.reason
        )
        return await call.client.call(answer)

    async def agents(self, call: Call[Nothing, None]) -> tuple[Agent, ...]:
        """List agents."""
        return await call.client.call(AgentList())

    async def agent(self, call: Call[Nothing, None]) -> Agent:
        """Show one agent."""
        return await call.client.call(AgentGet(agent=call.path("agent")))

    async def create(self, call: Call[Nothing, NewAgentBody]) -> Agent:
        """Make an agent."""
        body = call.body
        return await call.client.call(AgentCreate(agent=body.name, description=body.description, models=body.models))

    async def remove(self, call: Call[Nothing, None]) -> Json:
        """Put an agent aside."""
        return {"status": "removed", "aside": await call.client.call(AgentRemove(agent=call.path("agent")))}

    async def files(self, call: Call[Nothing, None]) -> tuple[AgentFile, ...]:
        """Show an agent's files."""
        return await call.client.call(AgentFiles(agent=call.path("agent")))

    async def write(self, call: Call[Nothing, FileBody]) -> AgentFile:
        """Write one of them; `If-Match` may stand for the digest."""
        body = call.body
        digest = body.digest or call.request.headers.get("If-Match", "").strip('"')
        update = AgentUpdate(agent=call.path("agent"), name=call.path("name"), text=body.text, digest=digest)
        return await call.client.call(update)

    async def skills(self, call: Call[SkillsQuery, None]) -> tuple[SkillInfo, ...]:
        """List skills."""
        return await call.client.call(SkillList(agent=call.query.agent))

    async def skill(self, call: Call[SkillsQuery, None]) -> SkillText:
        """Show one skill."""
        return await call.client.call(SkillGet(skill=call.path("skill"), agent=call.query.agent))

    async def tools(self, call: Call[ToolsQuery, None]) -> tuple[ToolSpec, ...]:
        """List tools."""
        return await call.client.call(ToolList(agent=call.query.agent))

    async def run(self, call: Call[Nothing, RunBody]) -> ToolResult:
        """Run a tool."""
        body = call.body
        if len(call.path("tool")) > 200:  # no name is so long
            raise Rejected(404, "There is no such tool.", code="not_found")
        invoke = ToolInvoke(name=call.path("tool"), arguments=body.arguments, agent=body.agent, session=body.session)
        return await call.client.call(invoke)
