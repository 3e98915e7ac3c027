"""The official conformance suite against our client: the suite is the server, a whole system of ours uses it."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from tests.ext.mcp.conformance.suite import bring
from tests.ext.mcp.house import ROOT

SCENARIOS = {
    "2025-11-25": ("initialize", "tools_call", "sse-retry", "auth/client-credentials-basic"),
    "2026-07-28": (
        "tools_call", "request-metadata", "http-standard-headers", "http-custom-headers", "http-invalid-tool-headers",
        "json-schema-ref-no-deref", "json-schema-2020-12-preservation", "auth/client-credentials-basic",
    ),
}  # fmt: skip
"""Not run: logins through a browser and the other kinds of OAuth, which we do not speak; questions of a server to the
client (elicitation, request state), which we decline; skills of other servers, which we do not load."""


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.xdist_group("conformance")
@pytest.mark.parametrize("revision", list(SCENARIOS))
async def test_the_suite_is_served_as_it_wants(tmp_path: Path, pytestconfig: pytest.Config, revision: str) -> None:
    suite = bring(Path(str(pytestconfig.cache.mkdir("conformance"))), revision)  # type: ignore[union-attr]
    command = f"{sys.executable} -m tests.ext.mcp.conformance.program"
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    two = asyncio.Semaphore(2)

    async def run(scenario: str) -> str:
        async with two:
            words = ["client", "--command", command, "--scenario", scenario, "--timeout", "60000"]
            code, said = await suite.run(words, tmp_path, env)
        return "" if code == 0 else f"{scenario}: {said[-2_000:]}"

    assert not [one for one in await asyncio.gather(*map(run, SCENARIOS[revision])) if one]
