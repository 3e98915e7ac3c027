"""The agent side of the protocol: every request of an editor, made of syscalls."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import PurePath

from acp import PROTOCOL_VERSION, RequestError
from acp.helpers import ContentBlock
from acp.interfaces import Client as Editor
from acp.schema import (
    AcpMcpServer,
    AgentCapabilities,
    ClientCapabilities,
    CloseSessionResponse,
    ForkSessionResponse,
    HttpMcpServer,
    Implementation,
    InitializeResponse,
    ListSessionsResponse,
    LoadSessionResponse,
    McpCapabilities,
    McpServerStdio,
    NewSessionResponse,
    PromptCapabilities,
    PromptResponse,
    ResumeSessionResponse,
    SessionCapabilities,
    SessionCloseCapabilities,
    SessionForkCapabilities,
    SessionInfo,
    SessionListCapabilities,
    SessionResumeCapabilities,
    SetSessionConfigOptionResponse,
    SetSessionModeResponse,
    SseMcpServer,
    TextContentBlock,
    Usage,
)

import operant
from operant.cli.acp.choices import AGENT
from operant.cli.acp.seat import PLACES, Seat
from operant.cli.acp.talk import Talk
from operant.kernel.errors import Invalid, NotFound, OperantError
from operant.kernel.records import TurnEnded
from operant.kernel.syscalls import AgentGet, KvList, SessionFork, SessionGet, SessionList
from operant.kit.clock import SystemClock
from operant.kit.ids import SystemIds
from operant.sdk.client import Client

_PAGE = 100
_INVALID, _INTERNAL, _NOT_FOUND = -32602, -32603, -32002

McpServers = Sequence[HttpMcpServer | SseMcpServer | AcpMcpServer | McpServerStdio] | None


class Desk:
    """Answer one editor. The names and arguments of the methods are those of the SDK."""

    def __init__(self, client: Client, group: asyncio.TaskGroup, agent: str, shared: str) -> None:
        self._client = client
        self._group = group
        self._agent = agent
        self._shared = shared
        self._ids = SystemIds(SystemClock().now)
        self._seats: dict[str, Seat] = {}
        self._editor: Editor | None = None

    def on_connect(self, conn: Editor) -> None:
        """Take the way back to the editor."""
        self._editor = conn

    def leave(self) -> None:
        """Let go of all sessions; what runs in them goes on."""
        for seat in self._seats.values():
            if seat.talk is not None:
                seat.talk.leave()

    async def initialize(
        self,
        protocol_version: int,
        client_capabilities: ClientCapabilities | None = None,
        client_info: Implementation | None = None,
        **meta: object,
    ) -> InitializeResponse:
        """Say what there is. Nobody logs in: who can start this program is the owner."""
        sessions = SessionCapabilities(
            list=SessionListCapabilities(),
            resume=SessionResumeCapabilities(),
            fork=SessionForkCapabilities(),
            close=SessionCloseCapabilities(),
        )
        return InitializeResponse(
            protocol_version=PROTOCOL_VERSION,
            agent_info=Implementation(name="operant", title="Operant", version=operant.__version__),
            auth_methods=[],
            agent_capabilities=AgentCapabilities(
                load_session=True,
                prompt_capabilities=PromptCapabilities(image=True, audio=False, embedded_context=True),
                mcp_capabilities=McpCapabilities(http=False, sse=False),
                session_capabilities=sessions,
            ),
        )

    async def authenticate(self, method_id: str, **meta: object) -> None:
        """Refuse: there is no way to log in because none is needed."""
        raise RequestError(_INVALID, "Operant needs no login here.")

    # ------------------------------------------------------------------ sessions

    async def new_session(
        self, cwd: str, additional_directories: list[str] | None = None, mcp_servers: McpServers = None, **meta: object
    ) -> NewSessionResponse:
        """Begin a session; it is on record from its first message on."""
        with _told():
            agent = await self._client.call(AgentGet(agent=self._agent))
            seat = Seat(
                key=self._ids.new(), cwd=_whole(cwd), agent=agent, shared=self._shared, word=_unused(mcp_servers)
            )
            choices = await seat.choices(self._client)
        self._seats[seat.key] = seat
        return NewSessionResponse(session_id=seat.key, modes=choices.modes, config_options=[*choices.options])

    async def load_session(
        self,
        cwd: str,
        session_id: str,
        mcp_servers: McpServers = None,
        additional_directories: list[str] | None = None,
        **meta: object,
    ) -> LoadSessionResponse:
        """Take up a session and show all of it."""
        with _told():
            seat = await self._take_up(session_id, cwd, mcp_servers, show=True)
            choices = await seat.choices(self._client)
        return LoadSessionResponse(modes=choices.modes, config_options=[*choices.options])

    async def resume_session(
        self,
        session_id: str,
        cwd: str,
        additional_directories: list[str] | None = None,
        mcp_servers: McpServers = None,
        **meta: object,
    ) -> ResumeSessionResponse:
        """Take up a session that the editor still shows."""
        with _told():
            seat = await self._take_up(session_id, cwd, mcp_servers, show=False)
            choices = await seat.choices(self._client)
        return ResumeSessionResponse(modes=choices.modes, config_options=[*choices.options])

    async def fork_session(
        self,
        session_id: str,
        cwd: str,
        additional_directories: list[str] | None = None,
        mcp_servers: McpServers = None,
        **meta: object,
    ) -> ForkSessionResponse:
        """Go on with a copy of a session; what was allowed there is asked again."""
        with _told():
            copy = await self._client.call(SessionFork(session=session_id))
            seat = await self._take_up(copy.key, cwd, mcp_servers, show=False)
            choices = await seat.choices(self._client)
        return ForkSessionResponse(session_id=copy.key, modes=choices.modes, config_options=[*choices.options])

    async def list_sessions(
        self, cwd: str | None = None, cursor: str | None = None, **meta: object
    ) -> ListSessionsResponse:
        """List the sessions that an editor began, the last changed first; `cursor` is the time of the last one."""
        with _told():
            if cursor and not cursor.isdecimal():
                raise Invalid("This is no cursor of a list.", "Take the one that the last answer had.")
            places = await self._client.call(KvList(namespace=PLACES))
            infos = await self._client.call(SessionList(limit=_PAGE, before=int(cursor or 0)))
        sessions = [
            SessionInfo(session_id=one.key, cwd=places[one.key], title=one.title or None, updated_at=_time(one.updated))
            for one in infos
            if one.key in places and cwd in (None, places[one.key])
        ]
        more = str(infos[-1].updated) if len(infos) == _PAGE else None
        return ListSessionsResponse(sessions=sessions, next_cursor=more)

    async def close_session(self, session_id: str, **meta: object) -> CloseSessionResponse:
        """Stop what runs in a session and let go of it; it can be loaded again."""
        seat = self._seats.pop(session_id, None)
        if seat is not None and seat.talk is not None:
            with _told():
                await seat.talk.cancel()
            seat.talk.leave()
        return CloseSessionResponse()

    async def set_session_mode(self, session_id: str, mode_id: str, **meta: object) -> SetSessionModeResponse:
        """Choose the agent of a session that has no message yet."""
        with _told():
            await self._seat(session_id).choose(self._client, AGENT, mode_id)
        return SetSessionModeResponse()

    async def set_config_option(
        self, config_id: str, session_id: str, value: str | bool, **meta: object
    ) -> SetSessionConfigOptionResponse:
        """Choose the agent or the model of a session."""
        with _told():
            seat = self._seat(session_id)
            await seat.choose(self._client, config_id, str(value))
            choices = await seat.choices(self._client)
        return SetSessionConfigOptionResponse(config_options=[*choices.options])

    # ------------------------------------------------------------------ prompts

    async def prompt(self, session_id: str, prompt: list[ContentBlock], **meta: object) -> PromptResponse:
        """Send a message and answer when its turn is over; one that comes meanwhile steers the same turn."""
        with _told():
            seat = self._seat(session_id)
            first = next((block.text for block in prompt if isinstance(block, TextContentBlock)), "")
            talk = await seat.open(self._client, self._join, first)
            reason, ended = await talk.prompt(prompt)
        return PromptResponse(stop_reason=reason, usage=_usage(ended))

    async def cancel(self, session_id: str, **meta: object) -> None:
        """Stop the running turn of a session."""
        seat = self._seats.get(session_id)
        if seat is not None and seat.talk is not None:
            await seat.talk.cancel()

    async def ext_method(self, method: str, params: dict[str, object]) -> dict[str, object]:
        """Refuse what is not in the protocol."""
        raise RequestError.method_not_found(f"_{method}")

    async def ext_notification(self, method: str, params: dict[str, object]) -> None:
        """Let pass what is not in the protocol and wants no answer."""

    # ------------------------------------------------------------------ inside

    def _seat(self, session_id: str) -> Seat:
        seat = self._seats.get(session_id)
        if seat is None:
            raise NotFound(f"There is no session {session_id!r} here.", "Begin a new one, or load it.")
        return seat

    def _join(self, key: str, workspace: str) -> Talk:
        if self._editor is None:
            raise NotFound("Nobody is connected.")
        return Talk(self._client, self._editor, self._group, key, workspace)

    async def _take_up(self, key: str, cwd: str, servers: McpServers, *, show: bool) -> Seat:
        place = _whole(cwd)
        info = await self._client.call(SessionGet(session=key))
        agent = await self._client.call(AgentGet(agent=info.agent))
        before = self._seats.pop(key, None)
        if before is not None and before.talk is not None:
            before.talk.leave()
        talk = self._join(info.key, agent.workspace)
        talk.word = _unused(servers)
        seat = Seat(key=info.key, cwd=place, agent=agent, shared=self._shared, model=info.model, talk=talk)
        places = await self._client.call(KvList(namespace=PLACES, prefix=key))
        if places.get(key) != place:
            await seat.sit(self._client)
        await talk.read(show=show)
        await talk.attend()
        self._seats[key] = seat
        return seat


@contextmanager
def _told() -> Generator[None]:
    """Say our errors in the protocol's words."""
    try:
        yield
    except NotFound as error:
        raise RequestError(_NOT_FOUND, error.line()) from error
    except Invalid as error:
        raise RequestError(_INVALID, error.line()) from error
    except OperantError as error:
        raise RequestError(_INTERNAL, error.line()) from error


def _whole(cwd: str) -> str:
    if not PurePath(cwd).is_absolute() or "\0" in cwd:
        raise Invalid(f"{cwd!r} is no whole path.", "The working directory of a session is given in full.")
    return cwd


def _unused(servers: McpServers) -> str:
    """Say which servers the editor offers in vain."""
    names = ", ".join(one.name for one in servers or ())
    return f"Not used: the MCP servers of the editor ({names})." if names else ""


def _time(at: int) -> str:
    return datetime.fromtimestamp(at / 1_000_000, UTC).isoformat()


def _usage(ended: TurnEnded) -> Usage:
    one = ended.usage
    return Usage(
        total_tokens=one.input + one.output,
        input_tokens=one.input,
        output_tokens=one.output,
        thought_tokens=one.reasoning,
        cached_read_tokens=one.cached,
        cached_write_tokens=one.cache_write,
    )
