"""Errors as they go out: problem details of RFC 9457, and on `/v1` the shape that OpenAI's clients read."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from aiohttp import web

from operant.sdk import (
    Broken,
    Conflict,
    Invalid,
    ModelError,
    NotFound,
    OperantError,
    OverBudget,
    Record,
    Refused,
    Unavailable,
)

_TITLES = {
    400: "Bad request", 401: "Who is this?", 402: "Over budget", 403: "Not allowed", 404: "Not found",
    405: "Wrong method", 408: "Too slow", 409: "Conflict", 412: "Changed meanwhile", 413: "Too large",
    415: "Wrong media type", 421: "Wrong address", 422: "Does not fit", 429: "Too many tries", 500: "Fault of ours",
    502: "The model failed", 503: "Not now", 504: "The model did not answer",
}  # fmt: skip
_OURS = {"not_found": 404, "bad_request": 400, "unsupported": 400}
"""Kinds of model errors that are the request's own fault."""
_SLOW = frozenset({"timeout", "stalled"})
PROBLEM = "application/problem+json"


class Problem(Record):
    """Problem details; `hint` says what to do, `code` is the error's stable name."""

    type: str = "about:blank"
    title: str = ""
    status: int = 500
    detail: str = ""
    hint: str = ""
    code: str = ""


class Rejected(Exception):
    """End a request with a status and a sentence."""

    def __init__(
        self, status: int, sentence: str, hint: str = "", *, code: str = "", headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(sentence)
        self.status = status
        self.sentence = sentence
        self.hint = hint
        self.code = code
        self.headers = headers or {}


def rejected(error: OperantError) -> Rejected:
    """Translate an error of the system."""
    return Rejected(status_of(error), error.sentence, error.hint, code=error.code)


def status_of(error: OperantError) -> int:
    """Return the status that says the same as an error."""
    if isinstance(error, ModelError):
        return 504 if error.kind in _SLOW else _OURS.get(error.kind, 502)
    kinds = ((OverBudget, 402), (Refused, 403), (NotFound, 404), (Invalid, 400), (Conflict, 409), (Unavailable, 503))
    return next((status for kind, status in kinds if isinstance(error, kind)), 500)


def fault(error: BaseException) -> Rejected:
    """Say that something failed which should not, without saying what is inside."""
    said = Broken(f"Something in Operant failed ({type(error).__name__}).", "`operant logs` has the details.")
    return rejected(said)


def answer(problem: Rejected, path: str) -> web.Response:
    """Make the response that says what went wrong."""
    if path.startswith("/v1/"):
        return _openai(problem)
    body = Problem(
        title=_TITLES.get(problem.status, "Error"),
        status=problem.status,
        detail=problem.sentence,
        hint=problem.hint,
        code=problem.code,
    )
    data = msgspec.json.encode({"type": "about:blank", **msgspec.to_builtins(body)})
    return web.Response(status=problem.status, body=data, content_type=PROBLEM, headers=problem.headers)


def _openai(problem: Rejected) -> web.Response:
    kinds = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 429: "rate_limit_error"}
    server = problem.status >= 500  # as HTTP has it
    kind = kinds.get(problem.status, "server_error" if server else "invalid_request_error")
    message = f"{problem.sentence} {problem.hint}".rstrip()
    body = {"error": {"message": message, "type": kind, "param": None, "code": problem.code or None}}
    return web.Response(
        status=problem.status, body=msgspec.json.encode(body), content_type="application/json", headers=problem.headers
    )
