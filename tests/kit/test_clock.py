"""Time and ids."""

from __future__ import annotations

import re

from operant.kit.clock import SystemClock
from operant.kit.ids import SystemIds


def test_the_clock_counts_microseconds_and_its_monotonic_side_never_goes_back() -> None:
    clock = SystemClock()
    assert 1_700_000_000_000_000 < clock.now() < 5_000_000_000_000_000
    assert clock.monotonic() <= clock.monotonic()


def test_ids_are_uuids_of_version_7_that_begin_with_their_time() -> None:
    made = SystemIds(lambda: 0x0123_4567_89AB * 1000).new()
    assert re.fullmatch(r"01234567-89ab-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", made)


def test_ids_sort_in_the_order_in_which_they_were_made_even_when_the_clock_is_set_back() -> None:
    times = iter([5_000_000] * 2000 + [1_000_000] * 2000 + [9_000_000] * 2000)
    ids = SystemIds(lambda: next(times))
    made = [ids.new() for _ in range(6000)]
    assert made == sorted(made)
    assert len(set(made)) == len(made)


def test_ids_stay_in_order_when_the_random_part_begins_at_its_end() -> None:
    ids = SystemIds(lambda: 5_000_000, entropy=lambda count: b"\xff" * count)
    made = [ids.new() for _ in range(1000)]
    assert made == sorted(made)
    assert {one[:13] for one in made} == {"00000000-1388"}


def test_jitter_is_from_0_up_to_1() -> None:
    assert SystemIds(lambda: 0, entropy=lambda count: b"\x00" * count).jitter() == 0
    assert 0.999 < SystemIds(lambda: 0, entropy=lambda count: b"\xff" * count).jitter() < 1
