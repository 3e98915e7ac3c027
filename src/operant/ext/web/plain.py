"""The first tier: one request that looks like a browser's on the wire."""

from __future__ import annotations

import re

from operant.ext.web.page import CannotFetch, Raw
from operant.kit.http import Get, Http, HttpDenied, HttpError
from operant.sdk import Record

_CHARSET = re.compile(r"charset\s*=\s*[\"']?([\w.:-]+)", re.IGNORECASE)
_CHALLENGED = frozenset((401, 403, 406, 429, 503))
_CHALLENGES = (
    b"cf-chl",
    b"challenge-platform",
    b"cf-turnstile",
    b"just a moment",
    b"captcha",
    b"are you a robot",
    b"are you human",
    b"verify you are human",
    b"bot detection",
    b"automated access",
    b"enable javascript and cookies",
    b"datadome",
    b"perimeterx",
    b"access denied",
)
_WORDS = {
    400: "bad request",
    401: "a login is needed",
    403: "forbidden",
    404: "not found",
    410: "gone",
    429: "too many requests",
    451: "withheld for legal reasons",
    500: "server error",
    502: "bad gateway",
    503: "not available now",
}


class Asked(Record):
    """An answer; `challenge` says why another tier should try, and is empty where that helps nothing."""

    raw: Raw | None = None
    refusal: str = ""
    challenge: str = ""


async def ask(http: Http, url: str, max_bytes: int, total_s: float) -> Asked:
    """Ask once. Raises `CannotFetch` for what no other tier could get either."""
    try:
        got = await http.fetch(Get(url=url, browser=True, max_bytes=max_bytes, total_s=total_s))
    except HttpDenied as error:
        raise CannotFetch(f"{error}") from error
    except HttpError as error:
        return Asked(refusal=f"{url} cannot be read: {error}", challenge="")
    if got.status >= 400:
        words = _WORDS.get(got.status, "")
        refusal = f"{got.url} answered {got.status}{f' ({words})' if words else ''}."
        return Asked(refusal=refusal, challenge=_challenge(got.status, got.body))
    kind = got.headers.get("content-type", "")
    charset = _CHARSET.search(kind)
    raw = Raw(
        url=got.url,
        body=got.body,
        media_type=kind.partition(";")[0].strip().lower(),
        charset=charset[1] if charset else "",
        tier=got.engine,
        truncated=got.truncated,
    )
    return Asked(raw=raw)


def _challenge(status: int, body: bytes) -> str:
    """Tell a server that takes us for a robot from one that has nothing for anybody."""
    if status not in _CHALLENGED:
        return ""
    beginning = body[:60_000].lower()
    return "it asks for proof of a human" if any(mark in beginning for mark in _CHALLENGES) else f"it answered {status}"
