"""The official conformance suite, brought by npm into a cache of the tests; it wants a newer Node than many have."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

HERE = Path(__file__).parent
VERSIONS = {"2025-11-25": "0.1.16", "2026-07-28": "0.2.0-alpha.12"}
NODE = "node@24"
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
    node = folder / "node_modules" / "node" / "bin" / "node"
    program = folder / "node_modules" / _PACKAGE / "dist" / "index.js"
    if not (node.exists() and program.exists()):
        _install(folder, VERSIONS[revision])
    if not (node.exists() and program.exists()):
        pytest.skip("npm did not bring Node and the suite")
    return Suite(str(node), str(program))


def _install(folder: Path, version: str) -> None:
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("there is no npm to bring the conformance suite")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "package.json").write_text('{"private": true}')
    quick = ["--no-audit", "--no-fund", "--prefer-offline", "--fetch-retries=0", "--loglevel=error"]
    try:
        done = subprocess.run(
            [npm, "install", *quick, NODE, f"{_PACKAGE}@{version}"],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=_INSTALL_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        pytest.skip("npm took too long to bring the conformance suite")
    if done.returncode:
        pytest.skip(f"npm could not bring the conformance suite: {done.stderr.strip()[-300:]}")
