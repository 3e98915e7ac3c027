"""R1 to R12 and random kills: nothing lost, nothing done or said twice, in order."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from operant.sdk.testing.server import spawned_server
from tests.crash.harness import POINTS, SCRIPT, Trial, random_kills

pytestmark = [pytest.mark.crash, pytest.mark.timeout(240)]


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with spawned_server({"work": SCRIPT}) as server:
        yield server.url


@pytest.mark.parametrize("point", POINTS)
def test_killed_at_a_point_nothing_is_lost_or_doubled(point: str, tmp_path: Path, url: str) -> None:
    trial = Trial(tmp_path / "home", url)
    assert trial.die_at(point, 1)
    trial.die_at(point, 3)
    count = trial.finish()
    assert (count.lost, count.doubled, count.out_of_order) == (0, 0, 0)


@pytest.mark.parametrize("seed", range(3))
def test_killed_at_any_time_nothing_is_lost_or_doubled(seed: int, tmp_path: Path, url: str) -> None:
    trial = Trial(tmp_path / "home", url, messages=200)
    random_kills(trial, kills=6, seed=seed, between=(0.02, 0.35))
    assert trial.count.kills > 0
    count = trial.finish()
    assert (count.lost, count.doubled, count.out_of_order) == (0, 0, 0)
