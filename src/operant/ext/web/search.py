"""Searching the web with what there is: an engine with a key, a server of one's own, or DuckDuckGo without either."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import parse_qs, urlencode, urljoin, urlsplit

import msgspec

from operant.ext.web.settings import WebSettings
from operant.kit.egress import Reach
from operant.kit.http import Get, Http, HttpError
from operant.sdk import Host, Record

if TYPE_CHECKING:
    from operant.kit.readable.tree import Node

_ADDRESSES = {
    "brave": "https://api.search.brave.com/res/v1/web/search",
    "tavily": "https://api.tavily.com/search",
    "exa": "https://api.exa.ai/search",
    "duckduckgo": "https://html.duckduckgo.com/html/",
}
KEYS = {"brave": "BRAVE_API_KEY", "tavily": "TAVILY_API_KEY", "exa": "EXA_API_KEY"}
_SNIPPET_CHARS = 300
_TIMEOUT_S = 20.0


class Result(Record):
    """One result."""

    title: str
    url: str
    snippet: str = ""
    date: str = ""


class CannotSearch(Exception):
    """Say in one sentence why an engine gave nothing."""


class Search:
    """Ask engines in order until one answers."""

    def __init__(self, host: Host, settings: WebSettings) -> None:
        self._host = host
        self._http: Http = host.http
        self._settings = settings
        self._engines: Mapping[str, Callable[[str, int], Awaitable[list[Result]]]] = {
            "brave": self._brave,
            "tavily": self._tavily,
            "exa": self._exa,
            "searxng": self._searxng,
            "duckduckgo": self._duckduckgo,
        }

    async def find(self, query: str, limit: int) -> tuple[str, list[Result]]:
        """Return the engine that answered and its results. Raises `CannotSearch` when none did."""
        faults: list[str] = []
        for name in self._order():
            try:
                return name, (await self._engines[name](query, limit))[:limit]
            except CannotSearch as error:
                faults.append(f"{name}: {error}")
            except HttpError as error:
                faults.append(f"{name}: {error}")
        raise CannotSearch("Nothing could be searched. " + " ".join(faults))

    def _order(self) -> tuple[str, ...]:
        if self._settings.search:
            return tuple(name for name in self._settings.search if name in self._engines)
        keyed = [name for name, key in KEYS.items() if self._host.variable(key)]
        own = ["searxng"] if self._settings.searxng else []
        return (*own, *keyed, "duckduckgo")

    async def _brave(self, query: str, limit: int) -> list[Result]:
        headers = {"Accept": "application/json", "X-Subscription-Token": self._key("brave")}
        address = f"{self._address('brave')}?{urlencode({'q': query, 'count': min(limit, 20)})}"
        found = await self._json("brave", Get(url=address, headers=headers))
        return [
            _result(one, "title", "url", "description", "age") for one in _list(_dict(found.get("web")).get("results"))
        ]

    async def _tavily(self, query: str, limit: int) -> list[Result]:
        body = msgspec.json.encode({"query": query, "max_results": min(limit, 20)})
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self._key('tavily')}"}
        found = await self._json("tavily", Get(url=self._address("tavily"), headers=headers, method="POST", body=body))
        return [_result(one, "title", "url", "content", "published_date") for one in _list(found.get("results"))]

    async def _exa(self, query: str, limit: int) -> list[Result]:
        wanted = {"query": query, "numResults": min(limit, 25), "contents": {"highlights": {"maxCharacters": 300}}}
        headers = {"Content-Type": "application/json", "x-api-key": self._key("exa")}
        request = Get(url=self._address("exa"), headers=headers, method="POST", body=msgspec.json.encode(wanted))
        found = await self._json("exa", request)
        results: list[Result] = []
        for one in _list(found.get("results")):
            highlights = one.get("highlights") or [one.get("text") or ""]
            snippet = _cut(" ".join(str(part) for part in highlights))
            date = str(one.get("publishedDate") or "")[:10]
            results.append(
                Result(title=str(one.get("title") or ""), url=str(one.get("url")), snippet=snippet, date=date)
            )
        return results

    async def _searxng(self, query: str, limit: int) -> list[Result]:
        base = self._settings.searxng.rstrip("/") + "/"
        address = f"{urljoin(base, 'search')}?{urlencode({'q': query, 'format': 'json'})}"
        found = await self._json("searxng", Get(url=address, reach=Reach.NAMED))
        return [_result(one, "title", "url", "content", "publishedDate") for one in _list(found.get("results"))]

    async def _duckduckgo(self, query: str, limit: int) -> list[Result]:
        form = {"Content-Type": "application/x-www-form-urlencoded"}
        body = urlencode({"q": query, "b": "", "kl": ""}).encode()
        request = Get(url=self._address("duckduckgo"), headers=form, method="POST", body=body, browser=True)
        got = await self._fetch("duckduckgo", request)
        from operant.kit.readable.tree import parsed

        root = parsed(got.decode("utf-8", "replace"))
        results = [_duck(one) for one in root.walk() if "result" in one.get("class").split()]
        found = [one for one in results if one is not None]
        if not found and "no-results" not in got.decode("utf-8", "replace"):
            raise CannotSearch("it answered with something else than results; it may ask for proof of a human.")
        return found

    async def _json(self, engine: str, request: Get) -> dict[str, Any]:
        data = await self._fetch(engine, request)
        try:
            return msgspec.json.decode(data, type=dict[str, Any])
        except msgspec.MsgspecError as error:
            raise CannotSearch("its answer is no JSON.") from error

    async def _fetch(self, engine: str, request: Get) -> bytes:
        named = engine in self._settings.endpoints or engine == "searxng"
        reach = Reach.NAMED if named else Reach.PUBLIC
        got = await self._http.fetch(msgspec.structs.replace(request, reach=reach, total_s=_TIMEOUT_S))
        if got.status in (401, 403):
            hint = f" Check {KEYS[engine]}." if engine in KEYS else ""
            raise CannotSearch(f"it refused ({got.status}).{hint}")
        if got.status != 200:
            raise CannotSearch(f"it answered {got.status}.")
        return got.body

    def _address(self, engine: str) -> str:
        return self._settings.endpoints.get(engine) or _ADDRESSES[engine]

    def _key(self, engine: str) -> str:
        key = self._host.variable(KEYS[engine])
        if not key:
            raise CannotSearch(f"{KEYS[engine]} is not set.")
        return key


def _duck(node: Node) -> Result | None:
    """Read one result of DuckDuckGo's page without scripts; advertisements are none."""
    if "result--ad" in node.get("class"):
        return None
    link = next((one for one in node.walk() if "result__a" in one.get("class").split()), None)
    if link is None:
        return None
    snippet = next((one for one in node.walk() if "result__snippet" in one.get("class").split()), None)
    place = link.get("href")
    target = parse_qs(urlsplit(place).query).get("uddg", [place])[0]
    words = " ".join(snippet.text().split()) if snippet else ""
    return Result(title=" ".join(link.text().split()), url=urljoin("https:", target), snippet=_cut(words))


def _result(one: dict[str, Any], title: str, url: str, snippet: str, date: str) -> Result:
    from operant.kit.readable.tree import parsed

    words = " ".join(parsed(str(one.get(snippet) or "")).text().split())
    return Result(
        title=str(one.get(title) or ""), url=str(one.get(url) or ""), snippet=_cut(words), date=str(one.get(date) or "")
    )


def _list(value: Any) -> list[dict[str, Any]]:
    found = cast("list[Any]", value) if isinstance(value, list) else []
    return [cast("dict[str, Any]", one) for one in found if isinstance(one, dict)]


def _dict(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _cut(words: str) -> str:
    return words if len(words) <= _SNIPPET_CHARS else f"{words[:_SNIPPET_CHARS]}…"
