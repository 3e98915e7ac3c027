"""There is one HTTP client, and the setting `egress.private` says what it may reach."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from operant.app.build import running
from operant.app.config import load_config
from operant.app.home import Home
from operant.kernel.errors import Invalid
from operant.kit.http import Get, HttpError
from operant.sdk import Extension, Host, Unavailable
from tests.app.stand_ins import STORE, chosen

CALLER = Extension(name="caller", setup="tests.app.test_one_client:caller")


@asynccontextmanager
async def caller(host: Host, settings: None) -> AsyncGenerator[None]:
    """Call a port of this machine on which nobody is, and break with what comes of it."""
    try:
        await host.http.fetch(Get("http://127.0.0.1:9/"))
    except HttpError as error:
        raise Unavailable(f"{type(error).__name__}: {error}") from error
    yield


async def problem(home: Path, private: str) -> str:
    settings = {"OPERANT_EGRESS__PRIVATE": private}
    async with running(Home(home), chosen(STORE, CALLER, overrides=settings)) as system:
        (told,) = system.problems()
    return told


async def test_extensions_reach_what_the_setting_names_and_no_more(tmp_path: Path) -> None:
    assert "HttpDenied: 127.0.0.1 is not dialled: this machine." in await problem(tmp_path / "a", "[192.168.0.0/16]")
    assert "HttpUnreachable" in await problem(tmp_path / "b", "[127.0.0.1]")


def test_a_setting_that_names_nothing_is_told_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "operant.yaml").write_text("egress:\n  private: [10.0.0.0/8, 'no host', nas.local]\n", "utf-8")
    with pytest.raises(Invalid, match=r"operant\.yaml:[12]: .*'no host' is not a network, address or host name"):
        load_config(tmp_path, {})
