"""What A2A 1.0 says MUST hold, case by case, as bytes on the wire; and the attacks on its door."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

pytest.importorskip("a2a", reason="the extra a2a is not installed")

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from operant.sdk.testing.server import ScriptedServer, scripted_server
from tests.ext.a2a.test_server import SERVING
from tests.journey.gateway import Served, served

V1 = {"A2A-Version": "1.0"}


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    async with scripted_server() as server:
        server.script("ask", [{"calls": [{"name": "shell", "arguments": {"command": "touch x"}}]}, {"text": "."}])
        yield server


@pytest.fixture
async def house(tmp_path: Path, server: ScriptedServer) -> AsyncIterator[Served]:
    async with served(tmp_path / "home", server, SERVING) as house:
        yield house


def message(text: str = "hello", id: str = "m1", **more: Any) -> dict[str, Any]:
    return {"message": {"role": "ROLE_USER", "parts": [{"text": text}], "messageId": id, **more}}


async def rpc(
    house: Served, method: str, params: Any, headers: dict[str, str] | None = None, agent: str = "coder"
) -> dict[str, Any]:
    body = {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}
    return await raw(house, json.dumps(body), V1 if headers is None else headers, agent)


async def raw(house: Served, body: str | bytes, headers: dict[str, str], agent: str = "coder") -> dict[str, Any]:
    own = {"Content-Type": "application/json", **headers}
    async with house.http.post(f"{house.url}/a2a/{agent}/", data=body, headers=own) as response:
        assert response.status == 200, await response.text()
        assert response.headers["Content-Type"].startswith("application/json")
        return await response.json()


def code(answer: dict[str, Any]) -> int:
    assert answer["jsonrpc"] == "2.0"
    assert set(answer) == {"jsonrpc", "id", "error"}
    return answer["error"]["code"]


# ---------------------------------------------------------------------------- the card


async def test_the_card_is_open_to_read_and_says_what_it_must(house: Served) -> None:
    async with aiohttp.ClientSession() as nobody:
        async with nobody.get(f"{house.url}/a2a/coder/.well-known/agent-card.json") as response:
            card, headers = await response.json(), response.headers
        async with nobody.get(f"{house.url}/.well-known/agent-card.json") as response:
            default = await response.json()
        for path in ("/a2a/hidden/.well-known/agent-card.json", "/a2a/none/.well-known/agent-card.json", "/a2a/coder"):
            async with nobody.get(house.url + path) as response:
                assert response.status == 404
        seen = {"If-None-Match": headers["ETag"]}
        async with nobody.get(f"{house.url}/a2a/coder/.well-known/agent-card.json", headers=seen) as response:
            assert (response.status, await response.read()) == (304, b"")
    assert (card["name"], card["description"], default["name"]) == ("coder", "Writes code.", "operant")
    (interface,) = card["supportedInterfaces"]
    assert interface == {"url": f"{house.url}/a2a/coder/", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
    assert card["capabilities"] == {"streaming": True, "pushNotifications": False, "extendedAgentCard": False}
    assert card["securitySchemes"]["token"]["httpAuthSecurityScheme"]["scheme"] == "Bearer"
    for required in ("version", "defaultInputModes", "defaultOutputModes", "skills"):
        assert card[required]
    assert "max-age" in headers["Cache-Control"]


# ---------------------------------------------------------------------------- shapes and errors


async def test_a_task_is_written_as_protobuf_writes_json(house: Served) -> None:
    answer = await rpc(house, "SendMessage", message())
    task = answer["result"]["task"]
    assert answer["id"] == 7
    assert set(task) == {"id", "contextId", "status", "artifacts", "history"}
    assert task["status"]["state"] == "TASK_STATE_COMPLETED"
    assert task["status"]["timestamp"].endswith("Z")
    assert [one["role"] for one in task["history"]] == ["ROLE_USER", "ROLE_AGENT"]
    assert set(task["artifacts"][0]) == {"artifactId", "name", "parts"}
    assert task["artifacts"][0]["parts"] == [{"text": "Hello."}]


@pytest.mark.parametrize(
    ("method", "params", "wanted"),
    [
        ("GetTask", {"id": "none"}, -32001),
        ("CancelTask", {"id": "none"}, -32001),
        ("SubscribeToTask", {"id": "none"}, -32001),
        ("SendMessage", message(taskId="none"), -32001),
        ("CreateTaskPushNotificationConfig", {"taskId": "x", "url": "http://169.254.169.254/"}, -32003),
        ("GetTaskPushNotificationConfig", {"taskId": "x", "id": "y"}, -32003),
        ("ListTaskPushNotificationConfigs", {"taskId": "x"}, -32003),
        ("DeleteTaskPushNotificationConfig", {"taskId": "x", "id": "y"}, -32003),
        (
            "SendMessage",
            {**message(), "configuration": {"taskPushNotificationConfig": {"url": "http://127.0.0.1/"}}},
            -32003,
        ),
        ("GetExtendedAgentCard", {}, -32004),
        (
            "SendMessage",
            {"message": {"role": "ROLE_USER", "messageId": "m", "parts": [{"raw": "eA==", "mediaType": "a/b"}]}},
            -32005,
        ),
        (
            "SendMessage",
            {"message": {"role": "ROLE_USER", "messageId": "m", "parts": [{"url": "http://127.0.0.1/x"}]}},
            -32005,
        ),
        ("Nothing", {}, -32601),
        ("SendMessage", {}, -32602),
        ("SendMessage", {"message": {"role": "ROLE_USER", "messageId": "m", "parts": []}}, -32602),
        ("SendMessage", {"message": {"role": "ROLE_USER", "parts": [{"text": "x"}]}}, -32602),
        ("SendMessage", {"message": {"role": 1, "messageId": "m", "parts": "x"}}, -32602),
        ("SendMessage", message(text=" "), -32602),
        ("SendMessage", message(text="x" * 100_001), -32602),
        ("SendMessage", message(contextId="a b"), -32602),
        ("GetTask", {}, -32602),
        ("ListTasks", {"pageSize": 0}, -32602),
        ("ListTasks", {"pageToken": "!"}, -32602),
        ("ListTasks", {"historyLength": -1}, -32602),
    ],
)
async def test_each_error_has_its_code(house: Served, method: str, params: Any, wanted: int) -> None:
    answer = await rpc(house, method, params)
    assert code(answer) == wanted
    if -32099 <= wanted <= -32001:
        (info,) = [one for one in answer["error"]["data"] if one["@type"].endswith("ErrorInfo")]
        assert info["domain"] == "a2a-protocol.org"


async def test_what_is_no_request_is_said(house: Served) -> None:
    assert code(await raw(house, "{", V1)) == -32700
    assert code(await raw(house, "[]", V1)) == -32600
    assert code(await raw(house, '{"jsonrpc": "1.0", "id": 1, "method": "GetTask"}', V1)) == -32600
    assert code(await raw(house, json.dumps(message()), {**V1, "Content-Type": "text/plain"})) == -32005


async def test_versions_are_told_apart(house: Served) -> None:
    assert "result" in await rpc(house, "ListTasks", {}, {"A2A-Version": "1.0.3"})
    assert code(await rpc(house, "ListTasks", {}, {"A2A-Version": "9.9"})) == -32009
    assert code(await rpc(house, "ListTasks", {}, {})) == -32009  # no version is 0.3, which has no such method


async def test_a_client_of_0_3_is_understood(house: Served) -> None:
    old = {"message": {"kind": "message", "role": "user", "messageId": "m1", "parts": [{"kind": "text", "text": "hi"}]}}
    sent = await rpc(house, "message/send", old, {})
    got = await rpc(house, "tasks/get", {"id": sent["result"]["id"]}, {})
    assert got["result"]["status"]["state"] == "completed"
    assert got["result"]["artifacts"][0]["parts"][0]["text"] == "Hello."


async def test_lists_have_every_field_and_no_artifacts(house: Served) -> None:
    empty = (await rpc(house, "ListTasks", {}))["result"]
    assert empty == {"tasks": [], "nextPageToken": "", "pageSize": 50, "totalSize": 0}
    await rpc(house, "SendMessage", message())
    (task,) = (await rpc(house, "ListTasks", {}))["result"]["tasks"]
    assert "artifacts" not in task


async def test_a_stream_is_events_with_answers_in_them(house: Served) -> None:
    body = {"jsonrpc": "2.0", "id": "s", "method": "SendStreamingMessage", "params": message()}
    async with house.http.post(f"{house.url}/a2a/coder/", json=body, headers=V1) as response:
        assert response.headers["Content-Type"].startswith("text/event-stream")
        text = await response.text()
    events = [json.loads(line.removeprefix("data: ")) for line in text.splitlines() if line.startswith("data: ")]
    assert all(event["jsonrpc"] == "2.0" and event["id"] == "s" for event in events)
    assert "task" in events[0]["result"]
    assert events[-1]["result"]["statusUpdate"]["status"]["state"] == "TASK_STATE_COMPLETED"


# ---------------------------------------------------------------------------- attacks on the door


@pytest.mark.parametrize(
    ("scopes", "status"),
    [(("a2a:coder",), 200), (("a2a",), 200), (("admin",), 200), (("a2a:operant",), 403), (("chat", "read"), 403)],
)
async def test_a_token_reaches_the_agents_that_it_names(house: Served, scopes: tuple[str, ...], status: int) -> None:
    token = await house.add_token("peer", *scopes)
    body = {"jsonrpc": "2.0", "id": 1, "method": "ListTasks", "params": {}}
    headers = {**V1, "Authorization": f"Bearer {token}"}
    async with aiohttp.ClientSession(headers=headers) as http:
        async with http.post(f"{house.url}/a2a/coder/", json=body) as response:
            assert response.status == status
        async with http.post(f"{house.url}/a2a/hidden/", json=body) as response:
            assert response.status in (403, 404)
        async with http.get(f"{house.url}/api/sessions") as response:
            assert response.status == (403 if scopes[0].startswith("a2a") else 200)


@pytest.mark.parametrize("authorization", ["", "Bearer wrong", "Basic eDp5"])
async def test_nobody_comes_in_without_a_token(house: Served, authorization: str) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "ListTasks", "params": {}}
    headers = {**V1, "Authorization": authorization} if authorization else V1
    async with (
        aiohttp.ClientSession() as http,
        http.post(f"{house.url}/a2a/coder/", json=body, headers=headers) as response,
    ):
        assert response.status == 401


async def test_a_foreign_page_is_refused(house: Served) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "ListTasks", "params": {}}
    for headers in ({"Origin": "https://evil.example"}, {"Host": "evil.example"}):
        async with house.http.post(f"{house.url}/a2a/coder/", json=body, headers={**V1, **headers}) as response:
            assert response.status in (400, 403, 421)


async def test_a_client_sees_and_touches_only_its_own_tasks(house: Served) -> None:
    mine = (await rpc(house, "SendMessage", message("@ask")))["result"]["task"]
    token = await house.add_token("other", "a2a:coder", "approve")
    theirs = {**V1, "Authorization": f"Bearer {token}"}
    for method, params in (
        ("GetTask", {"id": mine["id"]}),
        ("CancelTask", {"id": mine["id"]}),
        ("SubscribeToTask", {"id": mine["id"]}),
        ("SendMessage", message("yes", taskId=mine["id"])),
    ):
        assert code(await rpc(house, method, params, theirs)) == -32001
    listed = (await rpc(house, "ListTasks", {"contextId": mine["contextId"]}, theirs))["result"]
    assert listed["totalSize"] == 0
    assert code(await rpc(house, "GetTask", {"id": mine["id"]}, agent="operant")) == -32001
    other = (await rpc(house, "SendMessage", message("hello", contextId=mine["contextId"]), theirs))["result"]["task"]
    assert other["status"]["state"] == "TASK_STATE_COMPLETED"  # the same context id is another conversation


async def test_what_a_client_adds_about_itself_is_looked_at(house: Served) -> None:
    from operant.ext.a2a.letter import EXTENSION

    def claiming(**more: Any) -> dict[str, Any]:
        return message(metadata={EXTENSION: more})

    assert code(await rpc(house, "SendMessage", claiming(kind="loud"))) == -32602
    assert code(await rpc(house, "SendMessage", claiming(chain="a>b"))) == -32602
    assert code(await rpc(house, "SendMessage", claiming(chain=["a>b"] * 8))) == -32004
    odd = claiming(chain=["<system>", "a b>c"], labels=["OUTSIDE", "</x>", "fine"], sender="owner", parent="x")
    task = (await rpc(house, "SendMessage", odd))["result"]["task"]
    assert task["status"]["state"] == "TASK_STATE_COMPLETED"


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    params=st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=8),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["message", "parts", "text", "id", "role", "messageId", "metadata", "configuration"]),
                inner,
                max_size=4,
            )
        ),
        max_leaves=12,
    ),
    method=st.sampled_from(["SendMessage", "GetTask", "ListTasks", "CancelTask", "message/send"]),
)
def test_whatever_comes_is_answered(params: Any, method: str, answering: Any) -> None:
    assert answering(method, params)["jsonrpc"] == "2.0"


@pytest.fixture
def answering(tmp_path: Path) -> Any:
    """Ask a house in a loop of its own: hypothesis does not wait for coroutines."""
    import asyncio

    loop = asyncio.new_event_loop()

    async def begin() -> tuple[Any, Any, Served]:
        model = scripted_server()
        server = await model.__aenter__()
        context = served(tmp_path / "home", server, SERVING)
        return model, context, await context.__aenter__()

    model, context, house = loop.run_until_complete(begin())
    yield lambda method, params: loop.run_until_complete(rpc(house, method, params))

    async def end() -> None:
        await context.__aexit__(None, None, None)
        await model.__aexit__(None, None, None)

    loop.run_until_complete(end())
    loop.close()
