"""A2A 1.0 as its official client sees it: the SDK's own, over real HTTP, against the whole system."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("a2a", reason="the extra a2a is not installed")

import httpx
from a2a.client import Client, ClientConfig, create_client
from a2a.types.a2a_pb2 import (
    CancelTaskRequest,
    GetTaskRequest,
    ListTasksRequest,
    Message,
    Part,
    Role,
    SendMessageConfiguration,
    SendMessageRequest,
    StreamResponse,
    SubscribeToTaskRequest,
    Task,
    TaskState,
)
from a2a.utils import errors

from operant.kernel.records import OWNER, MessageReceived
from operant.kernel.syscalls import ApprovalAnswer, ApprovalList, SessionHistory
from operant.sdk import BlobRef, text_of
from operant.sdk.testing.server import ScriptedServer, scripted_server
from tests.ext.a2a.waiting import until
from tests.journey.gateway import Served, served

FREE = {"approval": {"send_to_agent": "allow"}}
SERVING: dict[str, object] = {
    "agents": {"operant": FREE, "coder": {**FREE, "description": "Writes code."}, "hidden": {}},
    "a2a": {"serve": ["operant", "coder"]},
}


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    async with scripted_server() as server:
        server.script("hang", [{"hang": True}])
        server.script("ask", [{"calls": [{"name": "shell", "arguments": {"command": "touch x"}}]}, {"text": "Asked."}])
        yield server


@pytest.fixture
async def house(tmp_path: Path, server: ScriptedServer) -> AsyncIterator[Served]:
    async with served(tmp_path / "home", server, SERVING) as house:
        yield house


@asynccontextmanager
async def client(
    house: Served, agent: str = "coder", *scopes: str, streaming: bool = False, token: str = "", name: str = "peer"
) -> AsyncIterator[Client]:
    """Connect as a program with a token of its own."""
    token = token or await house.add_token(name, *(scopes or (f"a2a:{agent}",)))
    async with AsyncExitStack() as stack:
        headers = {"Authorization": f"Bearer {token}"}
        http = await stack.enter_async_context(httpx.AsyncClient(headers=headers, timeout=20))
        base = f"{house.url}/a2a/{agent}" if agent else house.url
        made = await create_client(base, ClientConfig(streaming=streaming, httpx_client=http))
        yield await stack.enter_async_context(made)


def words(text: str, id: str = "m1", *, now: bool = False, history: int | None = None, **more: Any) -> Any:
    message = Message(message_id=id, role=Role.ROLE_USER, parts=[Part(text=text)], **more)
    configuration = SendMessageConfiguration(return_immediately=now, history_length=history)
    return SendMessageRequest(message=message, configuration=configuration)


async def sent(one: Client, text: str, id: str = "m1", **more: Any) -> Task:
    found = [response async for response in one.send_message(words(text, id, **more))]
    assert len(found) == 1
    return found[0].task


async def reached(one: Client, id: str, state: TaskState) -> Task:
    async with asyncio.timeout(20):
        while True:
            task = await one.get_task(GetTaskRequest(id=id))
            if task.status.state == state:
                return task


def said(task: Task) -> str:
    return "".join(part.text for artifact in task.artifacts for part in artifact.parts)


async def test_a_message_is_answered(house: Served, server: ScriptedServer) -> None:
    server.script("hi", [{"text": "Good day."}])
    async with client(house) as peer:
        task = await sent(peer, "@hi there")
        again = await peer.get_task(GetTaskRequest(id=task.id))
    assert task.status.state == TaskState.TASK_STATE_COMPLETED
    assert said(task) == "Good day."
    assert [(line.role, line.parts[0].text) for line in task.history] == [
        (Role.ROLE_USER, "@hi there"),
        (Role.ROLE_AGENT, "Good day."),
    ]
    assert task.history[0].message_id == "m1"
    assert again == task


async def test_the_model_reads_who_it_is_from_and_that_it_is_a_peer(house: Served, server: ScriptedServer) -> None:
    async with client(house) as peer:
        task = await sent(peer, "hello")
    session = f"a2a:client:peer:coder:{task.context_id}"
    events = await house.system.kernel.call(OWNER, SessionHistory(session=session))
    (received,) = [event.body for event in events if isinstance(event.body, MessageReceived)]
    assert text_of(received.parts).startswith("[Message from client:peer. It waits for your answer")
    assert received.labels == ("peer",)


async def test_returning_immediately_the_task_goes_on(house: Served, server: ScriptedServer) -> None:
    server.script("slow", [{"text": "Done.", "first_delay_ms": 200}])
    async with client(house) as peer:
        task = await sent(peer, "@slow", now=True)
        assert task.status.state in (TaskState.TASK_STATE_SUBMITTED, TaskState.TASK_STATE_WORKING)
        task = await reached(peer, task.id, TaskState.TASK_STATE_COMPLETED)
    assert said(task) == "Done."


async def test_a_stream_begins_with_the_task_and_ends_with_its_end(house: Served, server: ScriptedServer) -> None:
    server.script("work", [{"text": "Looking.", "calls": [{"name": "list_files"}]}, {"text": "Nothing there."}])
    async with client(house, streaming=True) as peer:
        seen = [one async for one in peer.send_message(words("@work"))]
    assert seen[0].WhichOneof("payload") == "task"
    kinds = [one.WhichOneof("payload") for one in seen[1:]]
    assert kinds[-2:] == ["artifact_update", "status_update"]
    assert set(kinds[:-2]) <= {"status_update"}
    assert seen[-2].artifact_update.artifact.parts[0].text == "Nothing there."
    assert seen[-1].status_update.status.state == TaskState.TASK_STATE_COMPLETED
    told = [one.status_update.status.message.parts[0].text for one in seen if one.status_update.status.message.parts]
    assert "Looking." in told


async def test_everybody_who_follows_a_task_is_told_the_same(house: Served, server: ScriptedServer) -> None:
    async with client(house, streaming=True) as peer, client(house, token=house.token) as owner:
        streaming = peer.send_message(words("@ask for it"))
        first = await anext(streaming)
        id = first.task.id
        seen: list[list[StreamResponse]] = [[], []]

        async def collect(stream: Any, into: list[StreamResponse]) -> None:
            async for one in stream:
                into.append(one)

        async def asked() -> Any:
            return await house.system.kernel.call(OWNER, ApprovalList())

        async def told() -> bool:
            return bool(seen[0] and seen[1])

        async with asyncio.timeout(20):
            (question,) = await until(asked)
            async with asyncio.TaskGroup() as group:
                group.create_task(collect(peer.subscribe(SubscribeToTaskRequest(id=id)), seen[0]))
                group.create_task(collect(peer.subscribe(SubscribeToTaskRequest(id=id)), seen[1]))
                await until(told)
                await house.system.kernel.call(OWNER, ApprovalAnswer(approval_id=question.approval_id, answer="deny"))
                await collect(streaming, [])
        with pytest.raises(errors.TaskNotFoundError):  # a task is its client's alone
            await owner.get_task(GetTaskRequest(id=id))
    assert seen[0] == seen[1]
    assert seen[0][0].task.status.state == TaskState.TASK_STATE_INPUT_REQUIRED
    assert seen[0][-1].status_update.status.state == TaskState.TASK_STATE_COMPLETED


async def test_a_question_makes_the_task_wait_for_input(house: Served, server: ScriptedServer) -> None:
    async with client(house, "coder", "a2a:coder", "approve") as peer:
        task = await sent(peer, "@ask for it")
        assert task.status.state == TaskState.TASK_STATE_INPUT_REQUIRED
        assert "May coder use shell? touch x" in task.status.message.parts[0].text
        still = await sent(peer, "maybe", "m2", task_id=task.id)
        assert still.status == task.status
        after = await sent(peer, "No, leave it.", "m3", task_id=task.id)
    assert (after.id, after.context_id) == (task.id, task.context_id)
    assert after.status.state == TaskState.TASK_STATE_COMPLETED
    assert said(after) == "Asked."


async def test_who_may_not_answer_questions_does_not_over_a2a(house: Served, server: ScriptedServer) -> None:
    async with client(house) as peer:
        task = await sent(peer, "@ask for it")
        with pytest.raises(errors.UnsupportedOperationError, match="may not call approval"):
            await sent(peer, "yes", "m2", task_id=task.id)
    assert len(await house.system.kernel.call(OWNER, ApprovalList())) == 1


async def test_a_task_is_stopped(house: Served, server: ScriptedServer) -> None:
    async with client(house) as peer:
        task = await sent(peer, "@hang on", now=True)
        await reached(peer, task.id, TaskState.TASK_STATE_WORKING)
        ended = await peer.cancel_task(CancelTaskRequest(id=task.id))
        assert ended.status.state == TaskState.TASK_STATE_CANCELED
        with pytest.raises(errors.TaskNotCancelableError):
            await peer.cancel_task(CancelTaskRequest(id=task.id))
        with pytest.raises(errors.TaskNotFoundError):
            await peer.cancel_task(CancelTaskRequest(id="none"))
    async with client(house, streaming=True, name="again") as peer:
        with pytest.raises(errors.TaskNotFoundError):
            [one async for one in peer.subscribe(SubscribeToTaskRequest(id=task.id))]
        over = await anext(peer.send_message(words("hello")))
        await reached(peer, over.task.id, TaskState.TASK_STATE_COMPLETED)
        with pytest.raises(errors.UnsupportedOperationError):
            [one async for one in peer.subscribe(SubscribeToTaskRequest(id=over.task.id))]


async def test_a_message_that_adds_to_a_task_at_work_is_part_of_it(house: Served, server: ScriptedServer) -> None:
    server.script(
        "work", [{"calls": [{"name": "list_files", "arguments": {}}], "first_delay_ms": 300}, {"text": "Both done."}]
    )
    async with client(house) as peer:
        task = await sent(peer, "@work", now=True)
        after = await sent(peer, "and this", "m2", task_id=task.id)
    assert after.id == task.id
    assert after.status.state == TaskState.TASK_STATE_COMPLETED
    assert [line.parts[0].text for line in after.history if line.role == Role.ROLE_USER] == ["@work", "and this"]


async def test_a_context_is_one_conversation(house: Served, server: ScriptedServer) -> None:
    async with client(house) as peer:
        first = await sent(peer, "hello", "m1", context_id="ours")
        second = await sent(peer, "again", "m2", context_id="ours")
        same = await sent(peer, "again", "m2", context_id="ours")
        fresh = await sent(peer, "hello", "m1")
        with pytest.raises(errors.InvalidParamsError, match="context"):
            await sent(peer, "x", "m3", context_id="not/a?context")
        with pytest.raises(errors.UnsupportedOperationError, match="completed"):
            await sent(peer, "x", "m4", task_id=first.id)
        with pytest.raises(errors.InvalidParamsError, match="another context"):
            await sent(peer, "x", "m5", task_id=first.id, context_id=fresh.context_id)
        with pytest.raises(errors.TaskNotFoundError):
            await sent(peer, "x", "m6", task_id="none")
    assert (first.context_id, second.context_id) == ("ours", "ours")
    assert first.id != second.id
    assert same.id == second.id  # what is sent again in a context is taken in once
    assert fresh.context_id not in ("", "ours")


async def test_tasks_are_listed_in_pages(house: Served, server: ScriptedServer) -> None:
    async with client(house) as peer, client(house, "coder", name="other") as other:
        tasks = [await sent(peer, f"hello {number}", f"m{number}") for number in range(5)]
        await sent(other, "not yours")
        everything = await peer.list_tasks(ListTasksRequest())
        first = await peer.list_tasks(ListTasksRequest(page_size=2))
        second = await peer.list_tasks(ListTasksRequest(page_size=2, page_token=first.next_page_token))
        last = await peer.list_tasks(ListTasksRequest(page_size=2, page_token=second.next_page_token))
        whole = await peer.list_tasks(ListTasksRequest(include_artifacts=True, history_length=1))
        mine = await peer.list_tasks(ListTasksRequest(context_id=tasks[2].context_id))
        working = await peer.list_tasks(ListTasksRequest(status=TaskState.TASK_STATE_WORKING))
        later = ListTasksRequest(status_timestamp_after=tasks[3].status.timestamp)
        recent = await peer.list_tasks(later)
        for wrong in (ListTasksRequest(page_size=0), ListTasksRequest(page_size=101), ListTasksRequest(page_token="x")):
            with pytest.raises(errors.InvalidParamsError):
                await peer.list_tasks(wrong)
    newest = [task.id for task in reversed(tasks)]
    assert [task.id for task in everything.tasks] == newest
    assert [task.id for page in (first, second, last) for task in page.tasks] == newest
    assert (last.next_page_token, first.total_size, first.page_size) == ("", 5, 2)
    assert not any(task.artifacts or task.history for task in everything.tasks)
    assert all(task.artifacts and len(task.history) == 1 for task in whole.tasks)
    assert [task.id for task in mine.tasks] == [tasks[2].id]
    assert not working.tasks
    assert tasks[4].id in [task.id for task in recent.tasks]
    assert tasks[0].id not in [task.id for task in recent.tasks]


async def test_history_is_as_long_as_it_is_wanted(house: Served, server: ScriptedServer) -> None:
    async with client(house) as peer:
        none = await sent(peer, "hello", history=0)
        one = await peer.get_task(GetTaskRequest(id=none.id, history_length=1))
        with pytest.raises(errors.InvalidParamsError):
            await peer.get_task(GetTaskRequest(id=none.id, history_length=-1))
    assert not none.history
    assert [line.role for line in one.history] == [Role.ROLE_AGENT]


async def test_files_and_data_come_along(house: Served, server: ScriptedServer) -> None:
    parts = [Part(text="Look"), Part(raw=b"%PDF-1.4", media_type="application/pdf", filename="a.pdf")]
    data = Part()
    data.data.struct_value.update({"key": "value"})
    message = Message(message_id="m1", role=Role.ROLE_USER, parts=[*parts, data])
    async with client(house) as peer:
        (response,) = [one async for one in peer.send_message(SendMessageRequest(message=message))]
        for wrong in (
            Part(raw=b"x", media_type="application/x-unknown"),
            Part(raw=b"x"),
            Part(url="http://169.254.169.254/latest"),
        ):
            bad = Message(message_id="m2", role=Role.ROLE_USER, parts=[wrong])
            with pytest.raises(errors.ContentTypeNotSupportedError):
                [one async for one in peer.send_message(SendMessageRequest(message=bad))]
    session = f"a2a:client:peer:coder:{response.task.context_id}"
    events = await house.system.kernel.call(OWNER, SessionHistory(session=session))
    (received,) = [event.body for event in events if isinstance(event.body, MessageReceived)]
    assert [part.name for part in received.parts if isinstance(part, BlobRef)] == ["a.pdf"]
    assert '{"key": "value"}' in text_of(received.parts)


async def test_tasks_outlive_the_process(tmp_path: Path, server: ScriptedServer) -> None:
    home = tmp_path / "home"
    async with served(home, server, SERVING) as house:
        token = await house.add_token("peer", "a2a:coder")
        async with client(house, token=token) as peer:
            done = await sent(peer, "hello")
            open_ = await sent(peer, "@hang on", "m2", now=True)
    server.script("hang", [{"text": "After all."}])
    async with served(home, server, SERVING) as house, client(house, token=token) as peer:
        again = await peer.get_task(GetTaskRequest(id=done.id))
        ended = await reached(peer, open_.id, TaskState.TASK_STATE_COMPLETED)
    assert again == done
    assert said(ended) == "After all."
