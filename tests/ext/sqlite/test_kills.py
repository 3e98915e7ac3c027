"""What was acknowledged is there after `kill -9`."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from operant.ext.sqlite.store import open_store
from operant.sdk.testing.fakes import ManualClock

_CHILD = """
import asyncio, sys
from pathlib import Path
from operant.ext.sqlite.store import open_store
from operant.sdk.testing.fakes import ManualClock
from tests.contract.store_parts import NOW, append

async def write(store, key):
    seq = 0
    while True:
        seq += 1
        await store.write(append(key, seq))
        print(key, seq, flush=True)

async def main():
    store = await open_store(Path(sys.argv[1]), "process", ManualClock(NOW))
    await asyncio.gather(*(write(store, f"s{number}") for number in range(8)))

asyncio.run(main())
"""


@pytest.mark.crash
@pytest.mark.parametrize("lines", [1, 40, 700])
async def test_acknowledged_events_survive_a_kill(tmp_path: Path, clock: ManualClock, lines: int) -> None:
    child = subprocess.Popen([sys.executable, "-c", _CHILD, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    heard = "".join(child.stdout.readline() for _ in range(lines))
    child.kill()
    heard += child.stdout.read()
    child.stdout.close()
    child.wait()

    ends: dict[str, int] = {}
    for key, seq in re.findall(r"^(s\d) (\d+)$", heard.rpartition("\n")[0], re.MULTILINE):
        ends[key] = max(int(seq), ends.get(key, 0))
    assert ends
    async with await open_store(tmp_path, "process", clock) as store:
        for key, end in ends.items():
            seqs = [one.seq for one in await store.events(key)]
            assert seqs == list(range(1, len(seqs) + 1))
            assert len(seqs) >= end
        assert list(await store.damages()) == []
