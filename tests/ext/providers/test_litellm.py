"""LiteLLM in its own process: a stand-in for the package here, as it cannot be in one environment with our oracles."""

from __future__ import annotations

import textwrap
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from operant.ext.providers.litellm import LiteLLM
from operant.kit.clock import SystemClock
from operant.kit.http import Http
from operant.sdk import Message, ModelError, ModelRequest, Reply, Text, TextDelta, text_of
from operant.sdk.testing.store import MemoryStore

PACKAGE = """
import os

class Chunk:
    def __init__(self, data):
        self.data = data

    def model_dump_json(self, exclude_none):
        import json
        return json.dumps(self.data)

async def acompletion(model, messages, stream, **more):
    if model == "broken":
        raise ValueError("no such model")
    words = f"{model} through a proxy: {os.environ['HTTPS_PROXY'].startswith('http://operant:')}"

    async def pieces():
        for word in words.split(" "):
            yield Chunk({"choices": [{"index": 0, "delta": {"content": word + " "}}]})
        yield Chunk({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
        yield Chunk({"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3}})

    return pieces()
"""


@pytest.fixture
async def lite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[LiteLLM]:
    (tmp_path / "litellm.py").write_text(textwrap.dedent(PACKAGE))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    async with Http() as http:
        clock = SystemClock()
        host: Any = SimpleNamespace(http=http, clock=clock, blobs=MemoryStore(clock))
        async with LiteLLM(host).open() as lite:
            yield lite


def asking(model: str) -> ModelRequest:
    return ModelRequest(model=model, system="", messages=(Message(role="user", parts=(Text(text="hi"),)),))


async def test_it_starts_with_the_first_call_and_streams_behind_our_proxy(lite: LiteLLM) -> None:
    for model in ("one/model", "two/model"):
        parts = [part async for part in lite.stream(asking(model))]
        reply = parts[-1]
        assert isinstance(reply, Reply)
        assert text_of(reply.parts) == f"{model} through a proxy: True "
        assert sum(isinstance(part, TextDelta) for part in parts) > 3
        assert (reply.usage.input, reply.usage.output) == (7, 3)


async def test_what_it_raises_is_a_failure_with_its_words(lite: LiteLLM) -> None:
    with pytest.raises(ModelError, match="no such model"):
        [part async for part in lite.stream(asking("broken"))]
