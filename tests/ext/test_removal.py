"""Removing a feature removes the feature and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from operant.app.extensions import find_extensions
from operant.kernel.errors import OperantError
from operant.kernel.records import OWNER, TurnEnded
from operant.kernel.syscalls import KernelStatus, SessionList
from operant.sdk.testing.server import scripted_server
from tests.journey.house import ended, say, system

EXTENSIONS = {one.name: one for one in find_extensions().extensions}
ESSENTIAL = sorted(name for name, one in EXTENSIONS.items() if one.essential)
OTHERS = sorted(name for name, one in EXTENSIONS.items() if not one.essential)
NEEDED_TO_ANSWER = {"context": "session.assemble", "providers": "compute.model"}


@pytest.mark.parametrize("name", OTHERS)
async def test_without_it_the_rest_works_or_says_what_is_missing(name: str, tmp_path: Path) -> None:
    without: dict[str, object] = {"extensions": {"disabled": [name]}}
    async with scripted_server() as server, system(tmp_path / "home", server, without) as made:
        status = await made.kernel.call(OWNER, KernelStatus())
        assert set(status.extensions) == set(EXTENSIONS) - {name}
        await say(made, "hello")
        last = (await ended(made))[-1].body
        assert isinstance(last, TurnEnded)
        if name in NEEDED_TO_ANSWER:
            assert last.reason == "error"
            assert NEEDED_TO_ANSWER[name] in last.sentence
        else:
            assert last.reason == "done"
        assert len(await made.kernel.call(OWNER, SessionList())) == 1


async def test_without_a_store_the_start_names_it(tmp_path: Path) -> None:
    without: dict[str, object] = {"extensions": {"disabled": ["sqlite"]}}
    async with scripted_server() as server:
        with pytest.raises(OperantError, match="store"):
            async with system(tmp_path / "home", server, without):
                pass
