"""What a status other than 200 means, in one sentence."""

from __future__ import annotations

import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any

import msgspec

from operant.ext.providers.endpoint import Endpoint
from operant.kit.http import HttpResponse
from operant.sdk import Clock, ModelError, ModelErrorKind

_STATUS: dict[int, ModelErrorKind] = {
    401: "auth",
    402: "auth",
    403: "auth",
    404: "not_found",
    408: "timeout",
    413: "context_overflow",
    429: "rate_limited",
    503: "overloaded",
    529: "overloaded",
}
_TOO_LONG = (
    "context_length",
    "context length",
    "context window",
    "too long",
    "maximum context",
    "too many tokens",
    "exceeds the maximum number of tokens",
    "exceed context limit",
)
_CODES: dict[str, ModelErrorKind] = {
    "api_error": "server",
    "authentication_error": "auth",
    "billing_error": "auth",
    "bio_policy": "content_filter",
    "content_filter": "content_filter",
    "context_length_exceeded": "context_overflow",
    "image_content_policy_violation": "content_filter",
    "insufficient_quota": "auth",
    "invalid_prompt": "content_filter",
    "misalignment_policy_violation": "content_filter",
    "model_not_found": "not_found",
    "not_found_error": "not_found",
    "overloaded_error": "overloaded",
    "permission_error": "auth",
    "rate_limit_error": "rate_limited",
    "rate_limit_exceeded": "rate_limited",
    "request_too_large": "context_overflow",
    "server_error": "server",
    "server_overloaded": "overloaded",
    "slow_down": "overloaded",
    "timeout_error": "timeout",
    "vector_store_timeout": "timeout",
}
"""What an error inside a stream means: its status was 200."""
_UNPAID = frozenset(
    (
        "billing_error",
        "billing_hard_limit_reached",
        "billing_not_active",
        "exceeded_current_quota_error",
        "insufficient_balance",
        "insufficient_quota",
    )
)
"""Codes of an account without money: some send them as 429, but no waiting helps."""
_BROKE = ("credit balance is too low", "insufficient balance", "insufficient credit", "out of credits")
_DELAY = re.compile(r'"retryDelay":\s*"(\d+(?:\.\d+)?)s"')
"""Where Google says how long to wait: not in a header."""
_CANNOT = ("does not support", "not supported", "unsupported", "no endpoints found that support", "not enabled for")
_WHAT = ("image", "vision", "multimodal", "tool", "function call")


async def refusal(response: HttpResponse, endpoint: Endpoint, clock: Clock) -> ModelError:
    """Say what a refusal means; the key is never in the sentence."""
    body = await response.text()
    told = told_in(body)
    said = told.message or ""
    unpaid = response.status == 402 or is_unpaid(told)
    kind = "auth" if unpaid else kind_of(response.status, said)
    hint = ""
    if unpaid:
        hint = f"The account at {endpoint.name} has no credit: see its billing page."
    elif kind == "auth":
        hint = f"Check the key: {endpoint.key.name or f'providers.{endpoint.name}.api_key'}."
    said = hidden(said, endpoint)
    sentence = f"{endpoint.name} refused ({response.status}){': ' + said if said else '.'}"
    wait = retry_after(response.headers, clock.now())
    delay = _DELAY.search(body)
    if wait is None and delay is not None:
        wait = float(delay[1])
    return ModelError(kind, sentence, hint, retry_after=wait)


def failure(endpoint: Endpoint, code: str, said: str) -> ModelError:
    """Say what an error means that came inside a stream; what nobody has named may be better a moment later."""
    refused = code == "invalid_request_error" or code.startswith(("invalid_", "unsupported_"))
    kind = _CODES.get(code) or kind_of(400 if refused else 500, said)
    reason = hidden(said[:300], endpoint) or code or "it gave no reason."
    return ModelError(kind, f"{endpoint.name} failed in the middle: {reason}")


def hidden(said: str, endpoint: Endpoint) -> str:
    """Return a sentence of a server without the key in it."""
    secret = endpoint.key.reveal()
    return said.replace(secret, "***") if secret else said


def kind_of(status: int, said: str) -> ModelErrorKind:
    """Name the kind of a refusal."""
    kind = _STATUS.get(status, "server" if status >= 500 else "bad_request")
    folded = said.casefold()
    if kind == "bad_request" and any(words in folded for words in _TOO_LONG):
        return "context_overflow"
    if kind in ("bad_request", "not_found") and lacking(said):
        return "unsupported"
    return kind


def lacking(said: str) -> str:
    """Return what a model cannot take by a server's words: `images`, `tools`, or nothing."""
    folded = said.casefold()
    if not any(words in folded for words in _CANNOT):
        return ""
    what = next((word for word in _WHAT if word in folded), "")
    return {"": "", "tool": "tools", "function call": "tools"}.get(what, "images")


class Told(msgspec.Struct):
    """What an error body says: a sentence, and the code for it under either name."""

    message: str | None
    code: Any = None
    type: Any = None


class _Nested(msgspec.Struct):
    error: Told


def told_in(body: str) -> Told:
    """Find the sentence in an error body; Google wraps it in a list."""
    for shape in (_Nested, Told, list[_Nested]):
        try:
            found = msgspec.json.decode(body, type=shape)
        except msgspec.MsgspecError:
            continue
        if isinstance(found, list):
            found = found[0] if found else Told(None)
        told = found.error if isinstance(found, _Nested) else found
        return Told((told.message or "")[:300], told.code, told.type)
    return Told(body.strip().splitlines()[0][:200] if body.strip() else "")


def is_unpaid(told: Told) -> bool:
    """Tell whether an account has run out of money."""
    folded = (told.message or "").casefold()
    named = any(isinstance(code, str) and code in _UNPAID for code in (told.code, told.type))
    return named or any(words in folded for words in _BROKE)


def retry_after(headers: Mapping[str, str], now: int) -> float | None:
    """Read how long to wait, in seconds: milliseconds, seconds or a date. `now` is in microseconds."""
    try:
        if "retry-after-ms" in headers:
            return max(0.0, float(headers["retry-after-ms"]) / 1000)
        value = headers.get("retry-after", "")
        if not value:
            return None
        if value.replace(".", "", 1).isdigit():
            return float(value)
        return max(0.0, parsedate_to_datetime(value).timestamp() - now / 1_000_000)
    except ValueError:
        return None
