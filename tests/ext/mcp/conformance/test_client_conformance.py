"""The official conformance suite against our client: the suite is the server, a whole system of ours uses it."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from tests.ext.mcp.conformance.suite import bring
from tests.ext.mcp.house import ROOT

_LOGINS = (
    "metadata-default", "metadata-var1", "metadata-var2", "metadata-var3", "scope-from-www-authenticate",
    "scope-from-scopes-supported", "scope-omitted-when-undefined", "scope-step-up", "scope-retry-limit",
    "token-endpoint-auth-basic", "token-endpoint-auth-post", "token-endpoint-auth-none", "pre-registration",
    "resource-mismatch", "offline-access-scope", "offline-access-not-supported", "authorization-server-migration",
    "iss-supported", "iss-not-advertised", "iss-supported-missing", "iss-wrong-issuer", "iss-unexpected",
    "iss-normalized", "metadata-issuer-mismatch", "client-credentials-basic",
)  # fmt: skip
SCENARIOS = {
    "2025-11-25": (
        "initialize", "tools_call", "sse-retry", "auth/metadata-default", "auth/scope-step-up",
        "auth/token-endpoint-auth-none", "auth/pre-registration", "auth/client-credentials-basic",
    ),
    "2026-07-28": (
        "tools_call", "request-metadata", "http-standard-headers", "http-custom-headers", "http-invalid-tool-headers",
        "json-schema-ref-no-deref", "json-schema-2020-12-preservation", *(f"auth/{name}" for name in _LOGINS),
    ),
}  # fmt: skip
"""Not run: a client id that is the address of a document (`basic-cimd`), since a home has no public address to put it
at; signed assertions, DPoP and what firms hand out, which we do not speak; logins of 2025-03-26; questions of a server
to the client (elicitation, request state), which we decline; skills of other servers, which we do not load."""


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
