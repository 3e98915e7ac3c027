"""Everything that only LiteLLM knows: a provider whose models are `litellm/<its name for them>`.

It runs in a process of its own that is started with the first call, and reaches the network through our proxy, so that
the egress judges what it dials.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import sys
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from importlib.util import find_spec
from typing import NamedTuple

import msgspec

from operant.ext.providers.chat import OpenAIChat
from operant.ext.providers.endpoint import Endpoint, Quirks
from operant.ext.providers.http_model import HttpModel
from operant.kit.background import started
from operant.kit.proc import CannotStart
from operant.kit.proxy import Proxy
from operant.kit.secret import Secret
from operant.sdk import Facts, Host, ModelError, ModelRequest, StreamPart

NAME = "litellm"
START_S = 60.0
_ARGV = (sys.executable, "-m", "operant.ext.providers.litellm_child")


def is_there() -> bool:
    """Tell whether LiteLLM is installed."""
    return find_spec("litellm") is not None


class _Start(NamedTuple):
    argv: tuple[str, ...]
    cwd: str
    env: dict[str, str]
    contained: bool = False
    fds: tuple[int, ...] = ()


class LiteLLM:
    """The provider; make it inside `open`."""

    name = NAME

    def __init__(self, host: Host) -> None:
        self._host = host
        self._stack = AsyncExitStack()
        self._starting = asyncio.Lock()
        self._model: HttpModel | None = None

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[LiteLLM]:
        """Keep the process, once there is one, while the context is open."""
        async with self._stack:
            yield self

    def facts(self, model: str) -> Facts:
        """Return a cautious guess: what it knows of models, it knows in its own process."""
        return self._model.facts(model) if self._model else Facts()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamPart, None]:
        """Yield deltas and then one `Reply`. Raises only `ModelError`."""
        async with self._starting:
            if self._model is None:
                self._model = await self._start()
        async with aclosing(self._model.stream(request)) as parts:
            async for part in parts:
                yield part

    async def _start(self) -> HttpModel:
        token, pass_word = secrets.token_urlsafe(24), secrets.token_urlsafe(24)
        way = await self._stack.enter_async_context(Proxy(self._host.http.egress, token=pass_word).serving_tcp())
        proxy = f"http://operant:{pass_word}@127.0.0.1:{way}"
        env = {
            **os.environ,
            "OPERANT_LITELLM_TOKEN": token,
            **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), proxy),
            **dict.fromkeys(("NO_PROXY", "no_proxy"), ""),
        }
        said: asyncio.Queue[bytes] = asyncio.Queue()
        try:
            program = await started(_Start(_ARGV, "/", env), said.put_nowait)
        except CannotStart as error:
            raise ModelError("unreachable", f"LiteLLM cannot be started: {error}") from error
        self._stack.push_async_callback(program.end)
        port = await _port(said)
        endpoint = Endpoint(
            name=NAME,
            base_url=f"http://127.0.0.1:{port}/v1",
            key=Secret(token, NAME),
            quirks=Quirks(output_limit="max_tokens"),
        )
        return HttpModel(endpoint, OpenAIChat(endpoint, self._host.blobs), self._host.http, self._host.clock)


async def _port(said: asyncio.Queue[bytes]) -> int:
    """Read the line that says where it listens."""
    text = b""
    try:
        async with asyncio.timeout(START_S):
            while b"\n" not in text:
                text += await said.get()
        return msgspec.json.decode(text.split(b"\n")[0], type=dict[str, int])["port"]
    except (TimeoutError, msgspec.MsgspecError, KeyError) as error:
        raise ModelError("unreachable", "LiteLLM did not start; `pip install 'operant[litellm]'` anew.") from error
