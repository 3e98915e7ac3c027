"""Lives and deaths of a system, and the count at the end."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

SCRIPT = [
    {"text": "First I keep it.", "calls": [{"name": "keep", "arguments": {"name": "{1}-a"}}]},
    {"calls": [{"name": "push", "arguments": {"name": "{1}-b"}}]},
    {"calls": [{"name": "keep", "arguments": {"name": "{1}-c"}}]},
    {"calls": [{"name": "push", "arguments": {"name": "{1}-d"}}]},
    {"text": "Answered {1}."},
]
POINTS = (
    "received",
    "accepted",
    "acknowledging",
    "claimed",
    "computing",
    "streaming",
    "replied",
    "intended",
    "acting",
    "acted",
    "queued",
    "sending",
    "sent",
)
CONFIG = """\
defaults: {{models: [scripted/one]}}
providers: {{scripted: {{base_url: {url}, prices: {{one: {{input: 1.0, output: 2.0}}}}}}}}
agents: {{operant: {{arrival: queue, approval: {{push: allow}}}}}}
"""


@dataclass
class Count:
    """What came out of many lives: all zero is right.

    `given_up` are turns that ended because they were killed four times in a row without getting any further, as the
    rule about poison messages says; the person was told, so they are neither lost nor answered.
    """

    lost: int = 0
    given_up: int = 0
    doubled: int = 0
    out_of_order: int = 0
    kills: int = 0
    slowest_s: float = 0.0

    def __str__(self) -> str:
        return (
            f"{self.kills} kills: {self.lost} lost, {self.doubled} doubled, {self.out_of_order} out of order, "
            f"slowest recovery {self.slowest_s:.2f} s"
        )


class Trial:
    """One home and the lives on it."""

    def __init__(self, home: Path, url: str, messages: int = 4) -> None:
        self.home = home
        self.messages = messages
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        (home / "operant.yaml").write_text(CONFIG.format(url=url))
        self.count = Count()

    def start(self, fault: str = "") -> subprocess.Popen[bytes]:
        """Start a life, to be ended by a fault or by us."""
        env = {**os.environ, "OPERANT_FAULT": fault, "OPERANT_HOME": str(self.home)}
        arguments = [sys.executable, "-m", "tests.crash.child", str(self.home), str(self.messages)]
        root = Path(__file__).parents[2]
        return subprocess.Popen(arguments, env=env, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def die_at(self, point: str, number: int) -> bool:
        """Live until a point is passed the n-th time; False when it was not passed so often."""
        life = self.start(f"{point}:{number}")
        _, said = life.communicate(timeout=60)
        if life.returncode == 0:
            return False
        assert life.returncode == -9, said.decode()
        self.count.kills += 1
        return True

    def die_after(self, seconds: float) -> bool:
        """Live for a while after being ready; False when everything was done before."""
        life = self.start()
        assert life.stdout is not None
        life.stdout.readline()
        try:
            _, said = life.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            life.kill()
            life.communicate()
            self.count.kills += 1
            return True
        assert life.returncode == 0, said.decode()
        return False

    def finish(self) -> Count:
        """Live to the end, and count."""
        began = time.monotonic()
        life = self.start()
        _, said = life.communicate(timeout=60)
        assert life.returncode == 0, said.decode()
        self.count.slowest_s = max(self.count.slowest_s, time.monotonic() - began)
        self._count()
        return self.count

    def _count(self) -> None:
        state = self.home / "state" / "extensions" / "crash"
        replies = [line.split(" ", 3) for line in (state / "platform").read_text().splitlines()]
        answered = Counter(words for _, _, _, words in replies)
        for number in range(self.messages):
            times = answered.get(f"Answered m{number}.", 0)
            self.count.lost += times == 0
            self.count.doubled += max(0, times - 1)
        told = sum(times for words, times in answered.items() if "got no further" in words)
        self.count.given_up, self.count.lost = told, max(0, self.count.lost - told)
        self.count.doubled += sum(times - 1 for times in Counter(id for id, *_ in replies).values())
        for chat in {chat for _, _, chat, _ in replies}:
            said = [words for _, _, one, words in replies if one == chat and words.startswith("Answered")]
            order = [int(words.split("m")[-1].rstrip(".")) for words in said]
            self.count.out_of_order += order != sorted(order)
        pushed = Counter((state / "pushed").read_text().splitlines())
        self.count.doubled += sum(times - 1 for times in pushed.values())


def random_kills(trial: Trial, kills: int, seed: int, between: tuple[float, float]) -> None:
    """Kill at any time until there were so many kills or everything is done."""
    pick = random.Random(seed)
    while trial.count.kills < kills and trial.die_after(pick.uniform(*between)):
        pass


Progress = Callable[[str], None]
