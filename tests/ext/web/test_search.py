"""Searching: each engine as its own API has it, one after the other until one answers."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec
import pytest

from operant.ext.web.settings import WebSettings
from tests.ext.web.conftest import web
from tests.kit.web import PRIVATE, Seen, reply, site

DUCK = """<html><body><div class="result results_links result--ad"><a class="result__a" href="https://ad.example">Ad</a></div>
<div class="result results_links web-result"><h2><a class="result__a"
 href="//duckduckgo.com/l/?uddg=https%3A%2F%2Fbread.example%2Frye&amp;rut=1">Rye <b>bread</b></a></h2>
<a class="result__snippet">How to bake <b>rye</b>.</a></div></body></html>"""


class Engines:
    """A server that speaks every engine's API, strictly."""

    def __init__(self) -> None:
        self.down: set[str] = set()
        self.asked: list[str] = []

    async def __call__(self, seen: Seen, writer: asyncio.StreamWriter) -> None:
        name = seen.target.split("/")[1].partition("?")[0]
        self.asked.append(name)
        answer = reply(500) if name in self.down else getattr(self, f"_{name}")(seen)
        writer.write(answer)

    def _brave(self, seen: Seen) -> bytes:
        if seen.method != "GET" or seen.headers.get("x-subscription-token") != "brave-key-1":
            return reply(401)
        query = parse_qs(urlsplit(seen.target).query)
        assert 1 <= int(query["count"][0]) <= 20
        one = {
            "title": "Rye",
            "url": "https://bread.example/rye",
            "description": "How to <strong>bake</strong>",
            "age": "May",
        }
        return _json({"web": {"results": [one]}})

    def _tavily(self, seen: Seen) -> bytes:
        body = json.loads(seen.body)
        if seen.headers.get("authorization") != "Bearer tavily-key-1" or set(body) != {"query", "max_results"}:
            return reply(401)
        return _json({"results": [{"title": "Rye", "url": "https://bread.example/rye", "content": "How", "score": 1}]})

    def _exa(self, seen: Seen) -> bytes:
        body = json.loads(seen.body)
        if seen.headers.get("x-api-key") != "exa-key-1" or "numResults" not in body:
            return reply(403)
        one = {
            "title": "Rye",
            "url": "https://bread.example/rye",
            "highlights": ["How"],
            "publishedDate": "2026-05-01T00:00",
        }
        return _json({"results": [one]})

    def _searxng(self, seen: Seen) -> bytes:
        query = parse_qs(urlsplit(seen.target).query)
        if query.get("format") != ["json"] or query.get("q") != ["bread"]:
            return reply(403)
        return _json({"results": [{"title": "Rye", "url": "https://bread.example/rye", "content": "How"}]})

    def _duckduckgo(self, seen: Seen) -> bytes:
        if seen.method != "POST" or parse_qs(seen.body.decode())["q"] != ["bread"]:
            return reply(400)
        return reply(200, DUCK.encode(), {"Content-Type": "text/html"})


def _json(value: Any) -> bytes:
    return reply(200, json.dumps(value).encode(), {"Content-Type": "application/json"})


def settings(port: int, **more: Any) -> WebSettings:
    base = f"http://127.0.0.1:{port}"
    names = ("brave", "tavily", "exa", "duckduckgo")
    own = WebSettings(endpoints={name: f"{base}/{name}" for name in names}, searxng=f"{base}/searxng")
    return msgspec.structs.replace(own, **more)


@pytest.mark.parametrize("engine", ["brave", "tavily", "exa", "searxng", "duckduckgo"])
async def test_every_engine_gives_titles_addresses_and_words(engine: str, tmp_path: Path) -> None:
    async with site(Engines(), PRIVATE) as here, web(tmp_path, settings(here.port, search=(engine,))) as host:
        host.keys = {f"{name.upper()}_API_KEY": f"{name}-key-1" for name in ("brave", "tavily", "exa")}
        text = await host.search()
    assert text.startswith("1. Rye")
    assert "https://bread.example/rye" in text
    assert "How" in text
    assert "Ad\n" not in text
    assert "<" not in text


async def test_the_next_engine_is_asked_when_one_fails(tmp_path: Path) -> None:
    engines = Engines()
    engines.down = {"searxng", "brave"}
    async with site(engines, PRIVATE) as here, web(tmp_path, settings(here.port)) as host:
        host.keys = {"BRAVE_API_KEY": "brave-key-1"}
        text = await host.search()
    assert "Rye" in text
    assert engines.asked == ["searxng", "brave", "duckduckgo"]


async def test_without_any_answer_it_says_what_each_said(tmp_path: Path) -> None:
    engines = Engines()
    engines.down = {"duckduckgo"}
    async with site(engines, PRIVATE) as here, web(tmp_path, settings(here.port, searxng="")) as host:
        host.keys = {"BRAVE_API_KEY": "wrong-key"}
        result = await host.call("web_search", query="bread")
        text = await host.search()
    assert result.outcome == "error"
    assert "brave: it refused (401). Check BRAVE_API_KEY." in text
    assert "duckduckgo: it answered 500." in text
    assert "wrong-key" not in text


async def test_results_are_from_outside_and_limited(tmp_path: Path) -> None:
    async with site(Engines(), PRIVATE) as here, web(tmp_path, settings(here.port)) as host:
        result = await host.call("web_search", query="bread", limit=1)
    assert result.labels == ("outside",)
