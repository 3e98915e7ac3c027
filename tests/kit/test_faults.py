"""Dying at a named point."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from operant.kit.faults import no_faults, read_faults

DIE = """
from operant.kit.faults import read_faults
fault = read_faults("here:2")
for step in range(9):
    fault("there")
    print(step, flush=True)
    fault("here")
"""


def test_without_a_setting_nothing_dies() -> None:
    assert read_faults("") is no_faults
    no_faults("here")


def test_the_process_dies_when_the_point_is_passed_the_nth_time() -> None:
    ended = subprocess.run([sys.executable, "-c", DIE], capture_output=True, text=True, check=False, timeout=20)
    assert ended.returncode == -signal.SIGKILL
    assert ended.stdout.split() == ["0", "1"]


@pytest.mark.parametrize("setting", ["here:x", "here:0", "here:"])
def test_a_setting_that_is_none_is_refused(setting: str) -> None:
    with pytest.raises(ValueError):
        read_faults(setting)
