"""What a refusal means: what money or waiting can mend, and what neither can."""

from __future__ import annotations

import json
from typing import Any

import pytest

from operant.ext.providers.chat import OpenAIChat
from operant.ext.providers.endpoint import Endpoint
from operant.ext.providers.http_model import HttpModel
from operant.kit.clock import SystemClock
from operant.kit.http import Http
from operant.kit.secret import Secret
from operant.sdk import Message, ModelError, ModelRequest, Text
from operant.sdk.testing.server import scripted_server
from operant.sdk.testing.store import MemoryStore

ASKED = ModelRequest(model="one", system="", messages=(Message(role="user", parts=(Text(text="@go"),)),))


async def refused(status: int, body: Any, **step: Any) -> ModelError:
    clock = SystemClock()
    async with (
        scripted_server({"go": [{"status": status, "body": json.dumps(body), **step}]}) as server,
        Http() as http,
    ):
        endpoint = Endpoint(name="there", base_url=server.url, key=Secret("sk-canary-123", "THERE_KEY"))
        model = HttpModel(endpoint, OpenAIChat(endpoint, MemoryStore(clock)), http, clock)
        with pytest.raises(ModelError) as caught:
            async for _ in model.stream(ASKED):
                pass
    assert "sk-canary" not in caught.value.line()
    return caught.value


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (
            429,
            {"message": "You exceeded your current quota.", "type": "insufficient_quota", "code": "insufficient_quota"},
        ),
        (429, {"message": "Your account is suspended.", "type": "exceeded_current_quota_error"}),
        (429, {"message": "Insufficient balance or no resource package.", "code": "1113"}),
        (402, {"message": "Insufficient Balance", "type": "unknown_error", "code": "invalid_request_error"}),
        (402, {"message": "This request requires more credits.", "code": 402}),
        (400, {"message": "Your credit balance is too low to access the API.", "type": "invalid_request_error"}),
    ],
)
async def test_an_account_without_money_is_not_asked_again_and_the_person_is_told_where_to_look(
    status: int, error: dict[str, Any]
) -> None:
    failed = await refused(status, {"error": error}, retry_after="1")
    assert (failed.kind, failed.retriable) == ("auth", False)
    assert failed.hint == "The account at there has no credit: see its billing page."


async def test_a_wrong_key_names_its_variable() -> None:
    failed = await refused(401, {"error": {"message": "Wrong key sk-canary-123."}})
    assert (failed.kind, failed.hint) == ("auth", "Check the key: THERE_KEY.")


async def test_too_many_requests_may_work_later_and_google_says_when_in_the_body() -> None:
    said = "You exceeded your current quota, please check your plan and billing details."
    details = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "7.5s"}]
    body = {"error": {"code": 429, "message": said, "status": "RESOURCE_EXHAUSTED", "details": details}}
    failed = await refused(429, body)
    assert (failed.kind, failed.retriable, failed.retry_after) == ("rate_limited", True, 7.5)
    assert (await refused(429, [body])).retry_after == 7.5
    assert (await refused(429, body, retry_after="3")).retry_after == 3.0


@pytest.mark.parametrize("body", ["", "<html>", [], {"error": "no"}, {"error": {"message": 5}}, {"message": None}])
async def test_a_body_in_no_known_shape_is_a_refusal_all_the_same(body: Any) -> None:
    assert (await refused(429, body)).kind == "rate_limited"
