"""Putting a system together: what breaks alone, and what nothing runs without."""

from __future__ import annotations

import asyncio
import json
import logging
from pathlib import Path

import pytest

from operant.app.build import running
from operant.app.extensions import find_extensions
from operant.app.home import Home
from operant.kernel.errors import Broken, Conflict, Invalid, Missing
from operant.kernel.records import OWNER
from operant.kernel.syscalls import KernelStatus
from operant.sdk import Extension
from tests.app.stand_ins import DOORS, HERE, POLICY, STORE, chosen


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


async def test_the_first_start_makes_the_home(home: Home) -> None:
    async with running(home, chosen()) as system:
        status = await system.kernel.call(OWNER, KernelStatus())
    assert home.exists
    assert status.ready and status.pid and status.problems == ()
    assert status.models == ("scripted",)


@pytest.mark.parametrize(
    ("setup", "reason"),
    [
        (f"{HERE}:broken", "ZeroDivisionError: by design"),
        (f"{HERE}:nothing_of_that_name", "cannot be loaded"),
        ("no.such.module:setup", "cannot be loaded"),
        (f"{HERE}:clashing", "takes whatever"),
    ],
)
async def test_a_broken_extension_is_named_and_the_others_run(home: Home, setup: str, reason: str) -> None:
    bad = Extension(name="zbad", setup=setup)
    async with running(home, chosen(STORE, POLICY, bad)) as system:
        status = await system.kernel.call(OWNER, KernelStatus())
    assert status.extensions == ("policy", "store")
    (problem,) = status.problems
    assert problem.startswith("extension zbad: ")
    assert reason in problem


async def test_an_extension_that_breaks_later_breaks_alone(home: Home) -> None:
    bad = Extension(name="bad", setup=f"{HERE}:collapsing")
    async with running(home, chosen(STORE, POLICY, bad)) as system:
        async with asyncio.timeout(5):
            while "bad" in system.residence.names:
                await asyncio.sleep(0)
        status = await system.kernel.call(OWNER, KernelStatus())
    assert status.ready
    assert "extension bad" in status.problems[0]


async def test_nothing_starts_without_an_essential_extension(home: Home) -> None:
    guard = Extension(name="guard", setup=f"{HERE}:broken", essential=True)
    with pytest.raises(Broken, match="guard"):
        async with running(home, chosen(STORE, POLICY, guard)):
            pytest.fail("it runs without its guard")
    async with running(home, chosen()) as system:
        assert system.kernel.accepting


async def test_without_a_store_the_error_names_what_is_missing(home: Home) -> None:
    with pytest.raises(Missing, match="store"):
        async with running(home, chosen(POLICY)):
            pytest.fail("it runs without a store")


async def test_a_disabled_extension_does_not_run(home: Home) -> None:
    overrides = {"OPERANT_EXTENSIONS__DISABLED": "[doors]"}
    async with running(home, chosen(STORE, POLICY, DOORS, overrides=overrides)) as system:
        assert system.residence.names == ("policy", "store")


async def test_one_home_has_one_system(home: Home) -> None:
    async with running(home, chosen()):
        with pytest.raises(Conflict):
            async with running(home, chosen()):
                pytest.fail("two systems run on one home")


async def test_what_ends_a_start_is_in_the_log(home: Home) -> None:
    home.init()
    home.config.write_text("defaults: {max_stepps: 1}\n", "utf-8")
    with pytest.raises(Invalid):
        async with running(home, chosen()):
            pytest.fail("it runs with a wrong configuration")
    (line,) = home.log.read_text("utf-8").splitlines()
    assert "did you mean max_steps?" in json.loads(line)["message"]


async def test_secrets_stay_out_of_the_log(home: Home) -> None:
    env = {"SOME_API_KEY": "canary-of-the-environment"}
    async with running(home, chosen(env=env)):
        logging.getLogger("operant.test").info("sent with %s", "canary-of-the-environment")
    assert "canary" not in home.log.read_text("utf-8")
    assert "sent with ***" in home.log.read_text("utf-8")
    assert home.log.stat().st_mode & 0o777 == 0o600


def test_ours_can_all_be_declared() -> None:
    found = find_extensions()
    assert found.unusable == ()
    assert [one.name for one in found.extensions] == sorted(one.name for one in found.extensions)


def test_a_folder_that_cannot_be_imported_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "some_extensions"
    for name, text in [
        ("", ""),
        ("good", "from operant.sdk import Extension\nextension = Extension(name='good', setup='a:b')"),
        ("bad", "import no_such_module"),
        ("odd", "extension = 7"),
    ]:
        (package / name).mkdir(parents=True, exist_ok=True)
        (package / name / "__init__.py").write_text(text, "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    found = find_extensions("some_extensions", group="nobody.uses.this")
    assert [one.name for one in found.extensions] == ["good"]
    assert {one.name for one in found.unusable} == {"bad", "odd"}
