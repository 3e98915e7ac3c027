"""Attacks of those who are in, or nearly (A8, A10, A11, A15 of the design), over real sockets."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.ext.gateway.siege import CANARY, EVIL, PATIENCE_S, Siege, bearer, besieged


@pytest.fixture
async def siege(tmp_path: Path) -> AsyncIterator[Siege]:
    async with besieged(tmp_path) as made:
        yield made


TALK: dict[str, Any] = {"model": "operant", "messages": [{"role": "user", "content": "@hello"}]}
ONE: dict[str, Any] = {"format": "operant-session/1", "session": {"key": "brought", "agent": "operant"}, "events": []}
BODIES: dict[tuple[str, str], Any] = {
    ("POST", "/api/chat/{session}"): {"message": "@hello"},
    ("POST", "/api/sessions"): {},
    ("POST", "/api/sessions/import"): {"exported": ONE},
    ("PATCH", "/api/sessions/{session}"): {"title": "mine now"},
    ("DELETE", "/api/sessions/{session}"): None,
    ("POST", "/api/sessions/{session}/fork"): {},
    ("POST", "/api/sessions/{session}/stop"): {},
    ("POST", "/api/sessions/{session}/files"): b"data",
    ("PUT", "/api/agents/{agent}/files/{path}"): b"data",
    ("POST", "/api/approvals/{approval}"): {"answer": "allow", "scope": "once"},
    ("POST", "/api/agents"): {"name": "evil"},
    ("DELETE", "/api/agents/{agent}"): None,
    ("PUT", "/api/agents/{agent}/prompt/{name}"): {"text": "Obey."},
    ("POST", "/api/tools/{tool}"): {"arguments": {"path": "x"}},
    ("POST", "/api/services/{service}/grant"): {"digest": "0" * 64},
    ("POST", "/api/services/{service}/revoke"): None,
    ("POST", "/api/services/{service}/start"): None,
    ("POST", "/api/services/{service}/stop"): None,
    ("POST", "/api/services/{service}/restart"): None,
    ("POST", "/api/models/select"): {"provider": "scripted", "model_id": "two"},
    ("POST", "/api/models/test"): {},
    ("POST", "/api/cron/reload"): None,
    ("POST", "/api/cron/{job}/run"): None,
    ("POST", "/api/cron/{job}/toggle"): None,
    ("POST", "/api/login"): {"code": "guess"},
    ("POST", "/api/logout"): None,
    ("POST", "/api/tokens"): {"name": "more", "scopes": ["admin"]},
    ("DELETE", "/api/tokens/{name}"): None,
    ("POST", "/v1/chat/completions"): TALK,
    ("POST", "/v1/responses"): {"model": "operant", "input": "@hello"},
}
"""A body that would be good, for everything that changes something; a new route must come in here."""
ALWAYS = {path for _, path in BODIES if path.startswith(("/api/cron/", "/api/log"))}
"""There are no jobs yet; who is in may go out; `/api/login` asks by itself."""
MAY: dict[str, set[str]] = {
    "read": set(),
    "approve": {"/api/approvals/{approval}"},
    "tools": {"/api/tools/{tool}"},
    "chat": {
        "/api/chat/{session}", "/api/sessions", "/api/sessions/{session}/fork", "/api/sessions/{session}/stop",
        "/api/sessions/{session}/files", "/v1/chat/completions", "/v1/responses", "PATCH /api/sessions/{session}",
    },
}  # fmt: skip
NAMES = {"session": "s", "agent": "operant", "path": "tools/evil.py", "name": "SOUL.md", "tool": "read_file"}


def filled(path: str) -> str:
    return re.sub(r"{(\w+)}", lambda found: NAMES.get(found[1], "x"), path)


def sent(body: Any) -> dict[str, Any]:
    """Return the options that send a body as it should be sent."""
    return {"data": body} if isinstance(body, bytes) else {} if body is None else {"json": body}


# ---------------------------------------------------------------------- A8: more than a token may


@pytest.mark.parametrize("scope", list(MAY))
async def test_a8_a_token_may_what_its_scope_says_and_nothing_else(siege: Siege, scope: str) -> None:
    assert set(BODIES) == set(await siege.operations())
    await siege.house.post("/api/chat/s", {"message": "@hello"})
    claims = {"X-Scopes": "admin", "X-Role": "owner", "X-Operant-Principal": "owner", "Sec-Fetch-Site": "same-origin"}
    headers = {**bearer(await siege.token("guest", scope)), **claims, **siege.own}
    for (method, path), body in BODIES.items():
        if path in ALWAYS or MAY[scope] & {path, f"{method} {path}"}:
            continue
        claimed = {"scope": "admin", "principal": "owner", **body} if isinstance(body, dict) else body
        said, text = await siege.ask(method, filled(path), headers, **sent(claimed))
        assert said == 403, (method, path, said, text)
    info = await siege.house.get("/api/sessions/s")
    assert len((await siege.house.get("/api/sessions/s/turns"))["turns"]) == 1 and "mine" not in info["title"]
    assert [one["name"] for one in await siege.house.get("/api/agents")] == ["operant"]
    assert not (siege.home / "agents" / "operant" / "workspace" / "tools" / "evil.py").exists()


SEES: dict[str, set[str]] = {"approve": {"/api/approvals"}, "tools": {"/api/tools"}}
ANYBODY_IN = {"/healthz", "/readyz", "/api/me", "/openapi.json"}


@pytest.mark.parametrize("scope", list(SEES))
async def test_a8_who_may_do_one_thing_reads_no_conversations(siege: Siege, scope: str) -> None:
    await siege.house.post("/api/chat/s", {"message": "@hello the word is xyzzy"})
    headers = bearer(await siege.token("guest", scope))
    for path in (await siege.house.get("/openapi.json"))["paths"]:
        if path in ANYBODY_IN | SEES[scope]:
            continue
        for more in ({}, {"Accept": "text/event-stream"}):
            query = "?q=xyzzy" if path.endswith("/search") else ""
            said, text = await siege.ask("GET", filled(path) + query, {**headers, **more})
            assert said in (403, 404, 405) and "xyzzy" not in text, (path, said, text)
    for path in ("/ws/s?after=0", "/ws/activity?since=1"):
        assert await siege.upgrade(headers, path) == 403


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses"])
async def test_a8_nothing_is_read_or_fetched_for_who_may_not_talk(siege: Siege, path: str) -> None:
    """Reading a request of these protocols fetches and keeps its pictures."""
    headers = bearer(await siege.token("looker", "read"))
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,!"}}
    for said in ([{"role": "user", "content": [picture]}], [{"role": "nobody"}], "no list"):
        body = {"model": "operant", "messages": said, "input": said}
        assert await siege.status("POST", path, headers, json=body) == 403
        assert await siege.status("POST", path, bearer(siege.house.token), json={**body, "input": 7}) == 400


async def codes(siege: Siege, token: str, *sent: dict[str, Any]) -> list[str]:
    """Send frames into a session and return the code of the error with which each was answered."""
    said: list[str] = []
    async with siege.stranger.ws_connect(f"{siege.house.ws}/ws/s", headers=bearer(token)) as socket:
        for frame in sent:
            await socket.send_json({"scope": "admin", "role": "owner", "capabilities": ["admin"], **frame})
            while (answer := await socket.receive_json(timeout=PATIENCE_S))["type"] != "error":
                assert answer["type"] not in ("accepted", "cleared", "mode_changed"), answer
            said.append(answer["code"])
    return said


async def test_a8_a_frame_says_nothing_about_rights(siege: Siege) -> None:
    token = await siege.token("looker", "read")
    await siege.house.post("/api/chat/s", {"message": "@ask"}, 202, headers={"Prefer": "respond-async"})
    (question,) = await asked(siege)
    approval = {"type": "approval_response", "approved": True, "approval_id": question["approval_id"], "scope": "once"}
    dispatches = [{"type": "message", "content": "hi"}, {"type": "approve_plan"}, {"type": "clear"}, {"type": "stop"}]
    claims = [{"type": "hello", "token": siege.house.token}, {"type": "auth", "scopes": ["admin"]}]
    answers = await codes(siege, token, *dispatches, approval, {**approval, "scope": "session"})
    assert answers == ["denied"] * len(answers)
    assert await codes(siege, token, *claims) == ["invalid"] * len(claims)
    assert await asked(siege) == [question]
    assert len((await siege.house.get("/api/sessions/s/turns"))["turns"]) == 1
    await siege.house.post("/api/sessions/s/stop", {})


async def asked(siege: Siege) -> list[dict[str, Any]]:
    async with asyncio.timeout(PATIENCE_S):
        while not (waiting := await siege.house.get("/api/approvals")):
            await asyncio.sleep(0)
    return waiting


async def test_a8_no_history_is_brought_in_that_says_what_was_allowed(siege: Siege) -> None:
    """Answers of a person are in the history; who may only talk must not write them there."""
    await siege.house.post("/api/chat/s", {"message": "@ask"}, 202, headers={"Prefer": "respond-async"})
    (question,) = await asked(siege)
    answer = {"answer": "allow", "scope": "session"}
    await siege.house.post(f"/api/approvals/{question['approval_id']}", answer)
    await ended(siege, "s")
    guest = bearer(await siege.token("guest", "chat"))
    exported = json.loads((await siege.ask("GET", "/api/sessions/s/export", guest))[1])
    body = {"exported": exported, "session": "forged"}
    assert await siege.status("POST", "/api/sessions/import", guest, json=body) == 403
    await siege.house.post("/api/sessions/import", {**body, "session": "mine"}, 201)


async def ended(siege: Siege, session: str) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not (await siege.house.get(f"/api/sessions/{session}/turns"))["turns"][-1].get("ended"):
            await asyncio.sleep(0)


# ---------------------------------------------------------------------- A10: settings that lead to commands

GUARDED = [
    "sandbox: false", "network: full", "network: ['*']", "permissions: {tools: ['*']}", "permissions: {deny: []}",
    "approval: {shell: allow}", "approval: {'*': allow}", "limits: {turn_s: 1}", "limits: {}",
]  # fmt: skip
DISGUISED = [
    '"sandbox": false', "? sandbox\n: false", '"s\\x61ndbox": false', "!!str sandbox: false", "{sandbox: false}",
    "a: &x {sandbox: false}\n<<: *x", "<<: {sandbox: false}", "sandbox: true\nsandbox: false", "sandbox : no",
    "description: x\r\nsandbox: false", "description: x\u2028sandbox: false\n", "SANDBOX: false", "sandbox: !!bool no",
]  # fmt: skip
"""The same, so that somebody who reads quickly does not see it; some are no settings at all."""


async def agent_file(siege: Siege, name: str) -> dict[str, Any]:
    files = await siege.house.get("/api/agents/operant/prompt")
    return next(one for one in files if one["name"] == name)


def rights(agent: dict[str, Any]) -> list[Any]:
    limits = {key: value for key, value in agent.get("limits", {}).items() if key != "max_steps"}
    return [*(agent.get(key) for key in ("sandbox", "network", "permissions", "approval")), limits]


async def test_a10_not_even_the_owner_changes_over_the_wire_what_an_agent_may_do(siege: Siege) -> None:
    path = "/api/agents/operant/prompt/AGENT.md"
    before, settings = rights(await siege.house.get("/api/agents/operant")), await agent_file(siege, "AGENT.md")
    for setting in (*GUARDED, *DISGUISED):
        for text in (
            f"---\n{setting}\n---\nHi.\n",
            f"\ufeff---\n{setting}\n---\nHi.\n",
            f"---\r\n{setting}\r\n---\r\n",
        ):
            body = {"text": text, "digest": settings.get("digest", "")}
            said = await siege.status("PUT", path, siege.own, by=siege.browser, json=body)
            now = await siege.house.get("/api/agents/operant")
            assert rights(now) == before, text
            if said == 200:  # then it was prose to every reader, and no setting
                settings = await agent_file(siege, "AGENT.md")
            else:
                assert said in (400, 403), (said, text)
    for setting in GUARDED:
        body = {"text": f"---\n{setting}\n---\nHi.\n", "digest": settings["digest"]}
        assert await siege.status("PUT", path, bearer(siege.house.token), json=body) == 403, setting


async def test_a10_a_guarded_setting_cannot_be_taken_away_either(siege: Siege) -> None:
    """A person wrote it into the file by hand."""
    file = siege.home / "agents" / "operant" / "AGENT.md"
    file.write_text("---\napproval: {read_file: deny}\npermissions: {deny: [shell]}\n---\nHi.\n")
    settings = await agent_file(siege, "AGENT.md")
    for text in ("Hi.\n", "---\n---\n", "", "---\napproval: {read_file: deny}\n---\n", "---\n- a\n---\n"):
        body = {"text": text, "digest": settings["digest"]}
        said = await siege.status("PUT", "/api/agents/operant/prompt/AGENT.md", bearer(siege.house.token), json=body)
        assert said in (400, 403), text
    kept = "---\napproval: {read_file: deny}\npermissions: {deny: [shell]}\nmax_steps: 7\neffort: low\n---\nHello.\n"
    body = {"text": kept, "digest": settings["digest"]}
    assert await siege.status("PUT", "/api/agents/operant/prompt/AGENT.md", bearer(siege.house.token), json=body) == 200
    assert (await siege.house.get("/api/agents/operant"))["limits"]["max_steps"] == 7


async def test_a10_no_route_reaches_the_settings_of_the_house(siege: Siege) -> None:
    before = {path: path.read_bytes() for path in (siege.home / "operant.yaml", siege.home / "state" / "token")}
    own = f"Authorization: Bearer {siege.house.token}"
    names = [
        "operant.yaml",
        "..%2f..%2foperant.yaml",
        "../../../operant.yaml",
        "AGENT.md%00",
        "tools%2fx.py",
        "agent.md",
    ]
    body = json.dumps({"text": "sandbox: false"}).encode()
    for name in names:
        line = f"PUT /api/agents/operant/prompt/{name}"
        assert await siege.code_of(line, own, "Content-Type: application/json", body=body) == 404, name
    for name in ("../AGENT.md", "..%2fAGENT.md", "../../../operant.yaml", "%2e%2e/%2e%2e/%2e%2e/state/token"):
        said = await siege.code_of(f"PUT /api/agents/operant/files/{name}", own, body=b"sandbox: false")
        assert said in (400, 404, 405), name
    assert {path: path.read_bytes() for path in before} == before
    assert await siege.status("POST", "/api/agents", bearer(siege.house.token), json={"name": "../evil"}) == 400


# ---------------------------------------------------------------------- A11: forms of other pages

FORMS = ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/json", ""]
"""What a form or a simple request of another page can say that its body is."""


async def test_a11_no_form_of_another_page_changes_anything(siege: Siege) -> None:
    operations = await siege.operations()
    assert len(operations) > 20
    places = (
        {"Origin": EVIL},
        {"Origin": "null"},
        {"Origin": "http://localhost:8080"},
        {"Sec-Fetch-Site": "same-site"},
        {},
    )
    for method, path in operations:
        for number, place in enumerate(places):
            kind = FORMS[(number + len(path)) % len(FORMS)]
            for headers in ({"Content-Type": "text/plain", **place}, {"Content-Type": kind, **place}):
                data = json.dumps(BODIES[method, path]) if isinstance(BODIES[method, path], dict) else "{}"
                said = await siege.status(method, filled(path), headers, by=siege.browser, data=data)
                assert said == 403, (method, path, headers)
    assert (await siege.house.get("/api/sessions"))["sessions"] == []
    assert await siege.status("POST", "/api/sessions", siege.own, by=siege.browser, data="{}") == 415


async def test_a11_nobody_changes_anything(siege: Siege) -> None:
    for method, path in await siege.operations():
        expected = 401 if path != "/api/login" else 403
        for headers in ({}, {"Content-Type": "text/plain"}, {"Cookie": "operant=x"}, {"Authorization": "Basic eDp4"}):
            assert await siege.status(method, filled(path), headers, data="{}") == expected, (method, path)
        said = await siege.status(method, filled(path), siege.own, **sent(BODIES[method, path]))
        assert said == 401, (method, path)


async def test_a11_what_only_reads_changes_nothing_however_it_is_called(siege: Siege) -> None:
    await siege.house.post("/api/chat/s", {"message": "@hello"})
    for header in ("X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override"):
        assert await siege.status("GET", "/api/sessions/s?_method=DELETE", {header: "DELETE"}, by=siege.browser) == 200
    for method in ("HEAD", "TRACE", "CONNECT", "PROPFIND", "delete"):
        said = await siege.raw(siege.request(f"{method} /api/sessions/s", f"Authorization: Bearer {siege.house.token}"))
        assert re.match(rb"HTTP/1\.[01] (400|404|405|421) ", said) and siege.house.token.encode() not in said, method
    assert len((await siege.house.get("/api/sessions"))["sessions"]) == 1


# ---------------------------------------------------------------------- A15: paths that lead out

TRAVERSALS = [
    "{up}canary.txt", "..%2f..%2f..%2f..%2fcanary.txt", "%2e%2e/%2e%2e/%2e%2e/%2e%2e/canary.txt",
    "..%252f..%252f..%252f..%252fcanary.txt", "%252e%252e/%252e%252e/canary.txt", "..\\..\\..\\..\\canary.txt",
    "..%5c..%5c..%5c..%5ccanary.txt", "%c0%ae%c0%ae/%c0%af/canary.txt", "..%c0%af..%c0%afcanary.txt", "canary.txt%00",
    "%00", "a%00/{up}canary.txt", "{root}/canary.txt", "%2f{root}/canary.txt", "//{root}/canary.txt", "/etc/passwd",
    "%2fetc%2fpasswd", "file:///etc/passwd", "\\\\host\\share\\x", "%5c%5chost%5cshare", "//host/share", "C:%5cx",
    "....//....//....//....//canary.txt", "..;/..;/..;/canary.txt", "./.././.././../canary.txt", "~/canary.txt",
    "%ef%bc%8e%ef%bc%8e/canary.txt", "..%e2%88%95..%e2%88%95canary.txt", "tools/{up}../canary.txt", "{up}state/token",
]  # fmt: skip
"""Ways to say the canary's file or another one that is none of a request's business."""
PLACES = [
    "/page/{}", "/{}", "/api/agents/operant/files/{}", "/api/sessions/s/files/{}", "/api/agents/{}/prompt",
    "/api/agents/{}", "/api/sessions/{}/export", "/v1/models/{}", "/v1/responses/{}",
    "/api/agents/operant/files?path={}",
]  # fmt: skip


async def test_a15_no_path_leads_out(siege: Siege, tmp_path: Path) -> None:
    await siege.house.post("/api/chat/s", {"message": "@hello"})
    own = f"Authorization: Bearer {siege.house.token}"
    for traversal in TRAVERSALS:
        path = traversal.format(up="../" * 4, root=tmp_path)
        for place in PLACES:
            said = await siege.raw(siege.request(f"GET {place.format(path)}", own))
            assert re.match(rb"HTTP/1\.[01] (400|404|405) ", said), (place, path, said[:80])
            for secret in (CANARY, siege.house.token, "root:x:"):
                assert secret.encode() not in said, (place, path)


async def test_a15_nothing_is_written_outside(siege: Siege, tmp_path: Path) -> None:
    def outside() -> dict[Path, bytes]:
        kept = (siege.home / "agents", siege.home / "logs", siege.home / "state", siege.home / "operant.db")
        files = (path for path in tmp_path.rglob("*") if path.is_file() and not path.name.startswith("operant.db"))
        return {path: path.read_bytes() for path in files if not [one for one in kept if path.is_relative_to(one)]}

    before = outside()
    workspace = siege.home / "agents" / "operant" / "workspace"
    (workspace / "up").symlink_to(tmp_path)
    (workspace / "link.txt").symlink_to(tmp_path / "canary.txt")
    own = f"Authorization: Bearer {siege.house.token}"
    links = ["up/canary.txt", "up/new.txt", "up/home/operant.yaml"]
    for traversal in (*TRAVERSALS, *links):
        path = traversal.format(up="../" * 4, root=tmp_path)
        await siege.code_of(f"PUT /api/agents/operant/files/{path}", own, body=b"evil")
    await siege.code_of("PUT /api/agents/operant/files/link.txt", own, body=b"evil")
    assert outside() == before
    assert not [
        path
        for path in (siege.home / "agents").rglob("*")
        if path.name in ("AGENT.md",) and b"evil" in path.read_bytes()
    ]
    for path in ("up/canary.txt", "up", "up/home/state/token"):
        said, text = await siege.ask("GET", f"/api/agents/operant/files/{path}", bearer(siege.house.token))
        assert said == 404 and CANARY not in text, path


async def test_a15_a_file_of_one_session_is_not_in_another(siege: Siege) -> None:
    data = aiohttp.payload.BytesPayload(CANARY.encode())
    async with siege.house.http.post(f"{siege.house.url}/api/sessions/s/files?name=../../x", data=data) as answer:
        ref = await answer.json()
    assert "/" not in ref["name"]
    for session in ("s", "other", "..", "%2e%2e"):
        said, text = await siege.ask("GET", f"/api/sessions/{session}/files/{ref['digest']}", bearer(siege.house.token))
        assert said == 404 and CANARY not in text, session
