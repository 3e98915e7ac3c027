"""Half a character in a text (a lone surrogate) at every public door: refused in one sentence, or replaced."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import inspect

from operant.app.ask import ask
from operant.kernel.records import OWNER
from operant.kernel.syscalls import ToolInvoke
from operant.kit.endpoint import dial
from operant.sdk import Client, Invalid, SessionDispatch, SessionGet, Syscall, Text, text_of
from operant.sdk.local import LocalClient
from operant.sdk.remote import RemoteClient
from operant.sdk.testing.server import ScriptedServer
from tests.cli.process import Operant
from tests.journey.gateway import Served, served
from tests.journey.house import ended, say

HALF = "x\udcff"
RAW = '{"command": "echo \\ud800"}'
SCRIPT: dict[str, Any] = {
    "raw": [{"calls": [{"name": "shell", "raw_args": RAW}]}, {"text": "so"}],
    "forwarded": [
        {"calls": [{"name": "use_tool", "raw_args": f'{{"name": "shell", "arguments": {RAW}}}'}]},
        {"text": "so"},
    ],
}


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[Served]:
    server = ScriptedServer(SCRIPT)
    async with server.serving(), served(tmp_path / "h", server) as made:
        yield made


@asynccontextmanager
async def clients(house: Served) -> AsyncIterator[tuple[Client, Client]]:
    """Open the way in this process and the one over the socket."""
    remote = await RemoteClient.over(dial(house.system.home.socket, 5))
    async with asyncio.TaskGroup() as group:
        group.create_task(remote.run())
        yield LocalClient(lambda: house.system.kernel, OWNER), remote
        await remote.close()


def sample(kind: inspect.Type, text: str) -> Any:
    """Return data of a type, in which every text is this one."""
    match kind:
        case inspect.StrType() | inspect.AnyType():
            return text
        case inspect.LiteralType():
            return kind.values[0]
        case inspect.VarTupleType() | inspect.ListType() | inspect.SetType() | inspect.FrozenSetType():
            return [sample(kind.item_type, text)]
        case inspect.DictType():
            return {sample(kind.key_type, text): sample(kind.value_type, text)}
        case inspect.UnionType():
            return sample(next(one for one in kind.types if not isinstance(one, inspect.NoneType)), text)
        case inspect.StructType():
            tag = {kind.tag_field: kind.tag} if kind.tag_field else {}
            return {**tag, **{field.encode_name: sample(field.type, text) for field in kind.fields}}
        case inspect.BytesType():
            return ""
        case _:
            return isinstance(kind, inspect.BoolType) or 1


def calls(house: Served, text: str) -> list[Syscall[Any]]:
    """Return every call once for each of its fields that can have this text somewhere."""
    made: list[Syscall[Any]] = []
    for call in house.system.kernel.syscalls.table.values():
        fields: Any = inspect.type_info(call)
        for chosen in fields.fields:
            data = {one.encode_name: sample(one.type, "a") for one in fields.fields if one.required}
            data[chosen.encode_name] = sample(chosen.type, text)
            if ascii(text)[1:-1] in ascii(data):
                made.append(msgspec.convert(data, call))
    return made


async def test_every_call_with_half_a_character_is_refused_before_anything_is_done(house: Served) -> None:
    made = calls(house, HALF)
    assert len({type(call) for call in made}) > 60
    async with clients(house) as doors:
        for call in made:
            for door in doors:
                with pytest.raises(Invalid, match="half a character") as refused:
                    await door.call(call)
                assert "\n" not in refused.value.line()
        for door in doors:
            with pytest.raises(Invalid, match="half a character"):
                await anext(door.follow(HALF))
        with pytest.raises(Invalid, match=r"tool\.invoke .* half a character"):
            await house.system.kernel.call(OWNER, ToolInvoke(name="shell", arguments={"command": [HALF]}))
        with pytest.raises(Invalid, match="half a character"):
            ask(house.system.home.socket, "session.get", {"session": HALF})


async def test_whatever_is_said_is_kept_as_it_was_or_refused(house: Served) -> None:
    loop = asyncio.get_running_loop()

    async def said(text: str, key: str) -> None:
        async with clients(house) as doors:
            for door in doors:
                try:
                    await door.call(SessionDispatch(session=key, parts=(Text(text=text or "-"),)))
                    assert (await door.call(SessionGet(session=key))).key == key
                except Invalid as error:
                    error.line().encode()
        body = json.dumps({"content": text, "text": text, "key": key, "title": text})
        for method, path in (("POST", "/api/sessions"), ("POST", f"/api/sessions/{key!a}/messages")):
            async with house.http.request(method, house.url + path.replace("'", ""), data=body) as answer:
                assert answer.status < 500, await answer.text()

    @settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
    @given(st.text(st.characters(categories=["L", "Cs", "Cc"]), max_size=8), st.text("a\ud800é/ ", max_size=4))
    def all_of_it(text: str, key: str) -> None:
        asyncio.run_coroutine_threadsafe(said(text, key), loop).result(60)

    await asyncio.to_thread(all_of_it)


async def test_half_a_character_over_http_and_websocket_is_the_callers_mistake(house: Served) -> None:
    paths = (await house.get("/openapi.json"))["paths"]
    body = json.dumps(dict.fromkeys(("content", "text", "session", "name", "title", "prompt", "input"), HALF))
    for path, ones in paths.items():
        for method in ones:
            for half in ("%ED%A0%80", "%FF"):
                url = house.url + path.replace("{", "").replace("}", half) + f"?session={half}&q={half}&prefix={half}"
                headers = {"Content-Type": "application/json"}
                async with house.http.request(method, url, data=body, headers=headers) as answer:
                    assert answer.status < 500, (method, url, await answer.text())
    async with house.http.ws_connect(f"{house.ws}/ws/s") as window:
        await window.send_str(json.dumps({"type": "message", "content": HALF}))
        assert (await window.receive_json(timeout=10))["type"] == "error"


@pytest.mark.parametrize("way", ["raw", "forwarded"])
async def test_arguments_of_a_model_go_back_to_it(house: Served, way: str) -> None:
    await say(house.system, f"@{way}")
    events = await ended(house.system)
    results = [text_of(event.body.parts) for event in events if event.type == "tool.ended"]  # type: ignore[union-attr]
    assert len(results) == 1
    assert "not a JSON object" in results[0] or "surrogate" in results[0], results


def test_words_that_are_no_utf8_on_a_command_line(tmp_path: Path) -> None:
    operant = Operant(tmp_path / "h")
    for words in (
        ("run", HALF),
        ("run", "hello", "--session", HALF),
        ("tool", "run", "shell", json.dumps({"command": HALF})),
        ("tool", "run", "shell", f'{{"command": "{HALF}"}}'),
        ("session", "show", HALF),
        ("session", "list", "--agent", HALF),
        ("chat", "--session", HALF),
        ("kv", "get", "a", HALF),
    ):
        ran = operant(*words)
        assert "went wrong that should not" not in ran.err, (words, ran.err)
        assert ran.code in (2, 4), (words, ran)
    with operant.serving():
        ran = operant("session", "show", HALF)
        assert ran.code == 2, ran
        assert "half a character" in ran.err
