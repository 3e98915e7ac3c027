"""What goes beyond talking: idempotency, lists, files, models, agents, tools, figures; and the seed's shapes."""

from __future__ import annotations

import asyncio
import shlex
import shutil
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from operant.sdk.testing.server import ScriptedServer
from operant.sdk.testing.wires.pictures import picture
from tests.journey.gateway import Served, served

SCRIPT: dict[str, Any] = {
    "hello": [{"text": "Hello there."}],
    "list": [{"calls": [{"name": "list_files", "arguments": {}}]}, {"text": "Here are your files.", "chunks": 3}],
    "ask": [{"calls": [{"name": "shell", "arguments": {"command": "echo hi"}}]}, {"text": "So be it."}],
    "slow": [{"text": "Slowly.", "first_delay_ms": 400}],
    "hang": [{"text": "never", "first_delay_ms": 60_000}],
    "refused": [{"status": 401}],
    "stalls": [{"hang": True}],
}


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    made = ScriptedServer(SCRIPT)
    async with made.serving():
        yield made


@pytest.fixture
async def house(tmp_path: Path, server: ScriptedServer) -> AsyncIterator[Served]:
    async with served(tmp_path / "home", server) as made:
        yield made


CURLS = """
curl -X POST http://localhost:8000/api/chat/my-session -H "Content-Type: application/json" \\
  -d '{"message": "@list List the files"}'
curl -X POST http://localhost:8000/api/chat/my-session -H "Content-Type: application/json" \\
  -d '{"message": "@hello ...", "mode": "deep_work"}'
curl http://localhost:8000/api/status
curl http://localhost:8000/api/sessions
curl http://localhost:8000/api/sessions/my-session/history
curl http://localhost:8000/api/sessions/my-session/tasks
curl http://localhost:8000/api/usage?range=7d
curl http://localhost:8000/api/activity?limit=50
curl http://localhost:8000/api/models
curl -X POST http://localhost:8000/api/models/select -H "Content-Type: application/json" \\
  -d '{"provider": "scripted", "model_id": "one"}'
curl http://localhost:8000/api/cron
curl -X POST http://localhost:8000/api/cron/reload
curl -X DELETE http://localhost:8000/api/sessions/my-session
"""
FIELDS = {
    "/api/chat/my-session": {"response", "session_id", "mode"},
    "/api/status": {"status", "agent", "model", "provider", "base_url", "tools", "sessions", "cron_jobs", "deep_work"},
    "/api/sessions": {"sessions"},
    "/api/sessions/my-session/history": {"session_id", "messages", "token_usage"},
    "/api/sessions/my-session/tasks": {"session_id", "mode", "tasks", "summary"},
    "/api/usage": {"total", "sessions"},
    "/api/activity": {"events"},
    "/api/models": {"current", "pinned", "providers"},
    "/api/models/select": {"status", "provider", "model_id", "base_url"},
    "/api/cron": {"jobs"},
    "/api/cron/reload": {"status", "jobs_loaded"},
    "/api/sessions/my-session": {"status"},
}  # fmt: skip


@pytest.mark.skipif(not shutil.which("curl"), reason="needs curl: apt-get install curl")
async def test_the_lines_of_the_old_readme_work_with_a_token(house: Served) -> None:
    import json

    for line in CURLS.replace("\\\n", "").strip().splitlines():
        words = shlex.split(line.replace("http://localhost:8000", house.url.replace("127.0.0.1", "localhost")))
        path = next(word for word in words if word.startswith("http")).partition(str(house.port))[2].partition("?")[0]
        process = await asyncio.create_subprocess_exec(
            *words, "-s", "--fail-with-body", "-H", f"Authorization: Bearer {house.token}", stdout=subprocess.PIPE
        )
        out, _ = await process.communicate()
        assert process.returncode == 0, (line, out)
        assert set(json.loads(out)) >= FIELDS[path], line


async def test_shapes_inside_are_the_seeds(house: Served) -> None:
    await house.post("/api/chat/s", {"message": "@list now"})
    (one,) = (await house.get("/api/sessions"))["sessions"]
    assert {"session_id", "messages", "preview", "last_activity", "created_at", "token_usage"} <= set(one)
    assert set(one["token_usage"]) >= {"prompt_tokens", "completion_tokens", "total_tokens", "api_calls"}
    messages = (await house.get("/api/sessions/s/history"))["messages"]
    assert [message["role"] for message in messages] == ["user", "assistant", "tool", "assistant"]
    assert messages[2]["tool_name"] == "list_files" and messages[2]["tool_call_id"]
    usage = await house.get("/api/usage?range=today")
    assert usage["total"]["api_calls"] == 2 and usage["sessions"][0]["session_id"] == "s"
    events = (await house.get("/api/activity?limit=50"))["events"]
    result = next(one for one in events if one["type"] == "tool_result")
    assert {"session_id", "tool", "duration_ms", "success", "result_preview", "timestamp"} <= set(result)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"message": "  "}, 400), ({}, 400), ({"message": 7}, 422), ({"message": None}, 422), ([1], 422),
        ({"message": "hi", "mode": "furious"}, 422), ({"message": "hi", "agent": "nobody"}, 404),
    ],
)  # fmt: skip
async def test_bad_messages_are_refused_in_words(house: Served, body: Any, status: int) -> None:
    problem = await house.post("/api/chat/s", body, status)
    assert problem["status"] == status and problem["detail"] and problem["title"]
    assert (await house.get("/api/sessions"))["sessions"] == []


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/api/sessions/nobody", 404), ("/api/sessions/nobody/history", 404), ("/api/usage?range=never", 422),
        ("/api/activity?limit=abc", 422), ("/api/activity?limit=0", 422), ("/api/activity?limit=-1", 422),
        ("/api/nothing", 404), ("/nothing", 404), ("/api/sessions/" + "x" * 300 + "/history", 404),
    ],
)  # fmt: skip
async def test_bad_questions_too(house: Served, path: str, status: int) -> None:
    problem = await house.get(path, status)
    assert problem["status"] == status and problem["hint"]


async def test_other_ways_to_be_wrong(house: Served) -> None:
    assert (await house.post("/api/chat/" + "x" * 300, {"message": "hi"}, 400))["code"] == "invalid"
    async with house.http.post(
        f"{house.url}/api/chat/s", data="{", headers={"Content-Type": "application/json"}
    ) as one:
        assert one.status == 400
    async with house.http.post(f"{house.url}/api/chat/s", data="hi", headers={"Content-Type": "text/plain"}) as one:
        assert one.status == 415
    async with house.http.get(f"{house.url}/api/chat/s") as one:
        assert one.status == 405 and one.headers["Allow"] == "POST"


async def test_a_model_that_fails_is_a_bad_gateway(tmp_path: Path, server: ScriptedServer) -> None:
    more: dict[str, object] = {"defaults": {"limits": {"stall_s": 0.3, "stall_notice_s": 0.1, "turn_s": 30}}}
    async with served(tmp_path / "failing", server, more) as house:
        assert (await house.post("/api/chat/a", {"message": "@refused"}, 502))["code"] == "model_error"
        assert (await house.post("/api/chat/b", {"message": "@stalls"}, 504))["code"] == "model_error"


async def test_an_answer_can_be_streamed_or_fetched_later(house: Served) -> None:
    async with house.http.post(
        f"{house.url}/api/chat/s", json={"message": "@list"}, headers={"Accept": "text/event-stream"}
    ) as response:
        assert response.content_type == "text/event-stream"
        lines = (await response.text()).splitlines()
    ids = [int(line[4:]) for line in lines if line.startswith("id: ")]
    assert ids == sorted(ids) and '"type":"done"' in [line for line in lines if line.startswith("data: ")][-1]
    assert "".join(lines).count('"type":"text_delta"') >= 1
    async with house.http.post(
        f"{house.url}/api/chat/s", json={"message": "@hello"}, headers={"Prefer": "respond-async"}
    ) as response:
        assert response.status == 202
        location = response.headers["Location"]
    async with asyncio.timeout(10):
        while (await house.get(location))["state"] != "delivered":
            await asyncio.sleep(0)


async def test_a_key_makes_one_turn_also_across_a_restart(tmp_path: Path, server: ScriptedServer) -> None:
    headers = {"Idempotency-Key": "order-7"}
    async with served(tmp_path / "home", server) as house:
        body = {"message": "@slow"}
        both = await asyncio.gather(*(house.post("/api/chat/s", body, headers=headers) for _ in range(2)))
        assert both[0] == both[1]
        assert (await house.post("/api/chat/s", {"message": "@hello"}, 409, headers=headers))["code"] == "conflict"
        fork = await house.post("/api/sessions/s/fork", {}, 201, headers=headers)
        assert await house.post("/api/sessions/s/fork", {}, 201, headers=headers) == fork
        assert (await house.post("/api/sessions/s/fork", {"title": "x"}, 409, headers=headers))["code"] == "conflict"
    async with served(tmp_path / "home", server) as house:
        assert await house.post("/api/chat/s", {"message": "@slow"}, headers=headers) == both[0]
        assert await house.post("/api/sessions/s/fork", {}, 201, headers=headers) == fork
        assert len((await house.get("/api/sessions"))["sessions"]) == 2
    assert len(server.requests) == 1


async def test_lists_have_tags_and_pages(house: Served) -> None:
    for number in range(5):
        await house.post(f"/api/chat/s{number}", {"message": "@hello"})
    async with house.http.get(f"{house.url}/api/sessions") as response:
        tag = response.headers["ETag"]
    async with house.http.get(f"{house.url}/api/sessions", headers={"If-None-Match": tag}) as response:
        assert response.status == 304
    seen: list[str] = []
    before = 0
    while True:
        page = await house.get(f"/api/sessions?limit=2&before={before}")
        seen += [one["session_id"] for one in page["sessions"]]
        before = page.get("next", 0)
        if not before:
            break
    assert seen == ["s4", "s3", "s2", "s1", "s0"]
    first = await house.get("/api/sessions/s0/events?limit=3")
    rest = await house.get(f"/api/sessions/s0/events?after={first['next']}")
    assert [one["seq"] for one in first["events"] + rest["events"]] == list(range(1, first["end"] + 1))
    assert (await house.get("/api/sessions/search?q=hello"))[0]["session"].startswith("s")


async def test_sessions_are_changed_copied_carried_and_deleted(house: Served) -> None:
    await house.post("/api/chat/s", {"message": "@hello"})
    async with house.http.patch(f"{house.url}/api/sessions/s", json={"title": "T", "archived": True}) as response:
        changed = await response.json()
    assert (changed["title"], changed["state"]) == ("T", "archived")
    exported = await house.get("/api/sessions/s/export")
    loaded = await house.post("/api/sessions/import", {"exported": exported, "session": "copy"}, 201)
    assert loaded["session_id"] == "copy"
    await house.post("/api/chat/copy", {"message": "@hang"}, 202, headers={"Prefer": "respond-async"})
    async with house.http.delete(f"{house.url}/api/sessions/copy") as response:
        assert (await response.json())["status"] == "deleted"
    await house.get("/api/sessions/copy", 404)
    turn = (await house.get("/api/sessions/s/turns"))["turns"][0]
    trace = await house.get(f"/api/sessions/s/turns/{turn['turn']}")
    assert trace["events"][-1]["type"] == "turn.ended"
    await house.get("/api/sessions/s/turns/none", 404)


async def test_questions_are_listed_and_answered(house: Served) -> None:
    await house.post("/api/chat/s", {"message": "@ask"}, 202, headers={"Prefer": "respond-async"})
    async with asyncio.timeout(10):
        while not (waiting := await house.get("/api/approvals")):
            await asyncio.sleep(0)
    assert (waiting[0]["name"], waiting[0]["arguments"]["command"]) == ("shell", "echo hi")
    await house.post(f"/api/approvals/{waiting[0]['approval_id']}", {"answer": "allow"})
    await house.post(f"/api/approvals/{waiting[0]['approval_id']}", {"answer": "allow"}, 404)


async def test_files_go_up_to_the_model_and_come_down_harmless(house: Served, server: ScriptedServer) -> None:
    image, evil = picture("blue"), b"<script>alert(1)</script>"
    refs = []
    for name, data in (("blue.png", image), ("evil.html", evil), ("../../x.svg", b"<svg onload=alert(1)>")):
        async with house.http.post(f"{house.url}/api/sessions/s/files?name={name}", data=data) as response:
            assert response.status == 201
            refs.append(await response.json())
    assert "/" not in refs[2]["name"]
    await house.post("/api/chat/s", {"message": "@hello look", "attachments": refs})
    assert "image_url" in str(server.requests[-1].body)
    assert {one["digest"] for one in await house.get("/api/sessions/s/files")} == {one["digest"] for one in refs}
    for ref, shown in zip(refs, (True, False, False), strict=True):
        async with house.http.get(f"{house.url}/api/sessions/s/files/{ref['digest']}") as response:
            assert response.headers["Content-Disposition"].startswith("inline" if shown else "attachment")
            assert response.content_type == ("image/png" if shown else "application/octet-stream")
            assert "sandbox" in response.headers["Content-Security-Policy"]
            tag = response.headers["ETag"]
        again = house.http.get(f"{house.url}/api/sessions/s/files/{ref['digest']}", headers={"If-None-Match": tag})
        async with again as response:
            assert response.status == 304
    await house.post("/api/chat/other", {"message": "@hello"})
    await house.get(f"/api/sessions/other/files/{refs[0]['digest']}", 404)


async def test_the_workspace_is_looked_into_and_written_to(house: Served) -> None:
    files = f"{house.url}/api/agents/operant/files"
    async with house.http.put(f"{files}/notes/a.txt", data=b"one") as response:
        assert response.status == 200
    assert "notes/a.txt" in [one["path"] for one in await house.get("/api/agents/operant/files?path=notes")]
    async with house.http.get(f"{files}/notes/a.txt") as response:
        assert await response.read() == b"one"
        assert response.headers["Content-Disposition"].startswith("attachment")
    await house.get("/api/agents/operant/files/none.txt", 404)


async def test_prompts_are_edited_by_who_has_read_them(house: Served) -> None:
    files = {one["name"]: one for one in await house.get("/api/agents/operant/prompt")}
    place = f"{house.url}/api/agents/operant/prompt/SOUL.md"
    digest = files["SOUL.md"].get("digest", "")
    async with house.http.put(place, json={"text": "Kind.", "digest": digest}) as response:
        assert response.status == 200
    async with house.http.put(place, json={"text": "Other.", "digest": digest}) as response:
        assert response.status == 409
    assert "Kind." in (await house.get("/api/agents/operant"))["prompt"]
    async with house.http.put(f"{house.url}/api/agents/operant/prompt/EVIL.md", json={"text": "x"}) as response:
        assert response.status == 404
    assert (await house.post("/api/agents", {"name": "helper"}, 201))["name"] == "helper"
    async with house.http.delete(f"{house.url}/api/agents/helper") as response:
        assert (await response.json())["status"] == "removed"
    async with house.http.delete(f"{house.url}/api/agents/operant") as response:
        assert response.status == 409


async def test_tools_models_and_figures(house: Served) -> None:
    names = [one["name"] for one in await house.get("/api/tools")]
    assert "read_file" in names
    result = await house.post("/api/tools/list_files", {"arguments": {}})
    assert "AGENTS.md" in result["parts"][0]["text"]
    await house.post("/api/tools/nothing", {"arguments": {}}, 404)
    found = await house.get("/api/models/search?q=sonnet")
    assert found["models"] and found["query"] == "sonnet"
    await house.post("/api/chat/s", {"message": "@hello"})
    await house.post("/api/models/select", {"provider": "offline", "model_id": "commands", "session": "s"})
    assert (await house.post("/api/chat/s", {"message": "list files"}))["model"] == "offline/commands"
    async with house.http.get(f"{house.url}/metrics") as response:
        lines = (await response.text()).splitlines()
    values = dict(line.rsplit(" ", 1) for line in lines if line and not line.startswith("#"))
    assert float(values["operant_ready"]) == 1
    assert float(values['operant_http_requests_total{method="POST",path="/api/chat/{session}",status="200"}']) == 2
    assert any(name.startswith("operant_tokens_total") for name in values)
    assert all(check["state"] != "fail" for check in await house.get("/api/doctor"))
    assert any("listening" in line["message"] for line in await house.get("/api/logs"))
    for part in ("memory", "jobs", "users"):
        assert await house.get(f"/api/{part}") == []
    await house.post("/api/cron/none/run", {}, 404)
