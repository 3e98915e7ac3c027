"""The wire svc/1, played from one transcript against services in five guises, and hardened against bad ones."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from operant.kit.background import Background, started
from tests.ext.services.house import SDK
from tests.kit.test_background import Launched

HERE = Path(__file__).parent
SCHEMA = json.loads((HERE.parents[2] / "docs" / "reference" / "svc-1.schema.json").read_text("utf-8"))
MIRRORS = {
    "Python SDK": ((sys.executable, "-m", "operant_sdk"), "sdk.py", ()),
    "TypeScript SDK": (("node",), "sdk.mjs", ("node",)),
    "Python by hand": ((sys.executable,), "byhand.py", ()),
    "JavaScript by hand": (("node",), "byhand.mjs", ("node",)),
    "Perl by hand": (("perl",), "byhand.pl", ("perl",)),
    "Bash by hand": (("bash",), "byhand.sh", ("jq", "socat")),
    "Go by hand": ((), "byhand.go", ("go",)),
}
TOKEN = "t" * 64
PATH = f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin"


class Peer:
    """Operant's end of the wire, played by hand."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, program: Background) -> None:
        self.reader, self.writer, self.program = reader, writer, program
        self.kept: dict[str, Any] = {}

    async def play(self, step: dict[str, Any]) -> None:
        """Send, then expect; the first step is the service's."""
        if "sends" in step and not str(step["sends"].get("id", "")).startswith("$id"):
            self.send(step["sends"])
        if "gets" in step:
            message = await self.receive(step["is"])
            self.fits(step["gets"], message, step["is"])
            if step.get("keeps"):
                self.kept[step["keeps"]] = message["id"]
            if str(step.get("sends", {}).get("id", "")) == "$id":
                self.kept["id"] = message["id"]
                self.send(step["sends"])
        if "ends" in step:
            async with asyncio.timeout(10):
                await self.program.exited.wait()
            assert self.program.code == step["ends"], step["is"]

    def send(self, message: dict[str, Any]) -> None:
        id = message.get("id")
        known = self.kept.get(id[1:]) if isinstance(id, str) and id.startswith("$") else id
        filled = {"jsonrpc": "2.0", **message, **({"id": known} if "id" in message else {})}
        self.writer.write(json.dumps(filled, ensure_ascii=False).encode() + b"\n")

    async def receive(self, what: str) -> dict[str, Any]:
        try:
            async with asyncio.timeout(10):
                line = await self.reader.readline()
        except TimeoutError:
            raise AssertionError(f"nothing came: {what}") from None
        assert line, f"it hung up: {what}"
        message = json.loads(line)
        method = message.get("method", "")
        if method in SCHEMA["methods"]:
            jsonschema.validate(message["params"], {**SCHEMA["methods"][method]["params"], "$defs": SCHEMA["$defs"]})
        return message

    def fits(self, wanted: Any, message: Any, what: str) -> None:
        """Compare: what is wanted must be there, more may be."""
        if wanted == "$any":
            return
        if isinstance(wanted, dict):
            assert isinstance(message, dict), f"{what}: {message}"
            for key, value in wanted.items():
                assert key in message, f"{what}: {message}"
                self.fits(value, message[key], what)
            return
        assert message == wanted, f"{what}: {message}"


def built(folder: Path) -> str:
    """Compile a Go program; what it is made of is kept beside the interpreter, so that only the first time is slow."""
    cache = Path(sys.prefix) / "go-cache"
    env = {"PATH": PATH, "HOME": str(cache), "GOCACHE": str(cache), "GOFLAGS": "-mod=mod", "GOTOOLCHAIN": "local"}
    words = ["go", "build", "-o", "mirror", "byhand.go"]
    subprocess.run(words, cwd=folder, env=env, check=True, capture_output=True, timeout=150)
    return str(folder / "mirror")


@asynccontextmanager
async def facing(folder: Path, guise: str) -> AsyncIterator[Peer]:
    """Start a service in one of its guises and take its call."""
    words, file, needs = MIRRORS[guise]
    missing = [program for program in needs if shutil.which(program, path=PATH) is None]
    if missing:
        pytest.skip(f"not installed: apt-get install {' '.join(missing)}")
    home = folder / "service"
    home.mkdir()
    shutil.copy(HERE / "mirrors" / file, home / file)
    (home / "node_modules" / "@operant").mkdir(parents=True)
    (home / "node_modules" / "@operant" / "sdk").symlink_to(SDK / "typescript")
    script = built(home) if file.endswith(".go") else str(home / file)
    path = folder / "s"
    called: asyncio.Queue[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = asyncio.Queue()
    server = await asyncio.start_unix_server(lambda *pair: called.put_nowait(pair), path)
    said = bytearray()
    env = {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "PYTHONPATH": str(SDK / "python"),
        "OPERANT_SERVICE_SOCKET": str(path),
        "OPERANT_SERVICE_TOKEN": TOKEN,
    }
    program = await started(Launched((*words, script), str(home), env, False), said.extend)
    try:
        async with asyncio.timeout(10):
            reader, writer = await called.get()
        yield Peer(reader, writer, program)
        writer.close()
    except AssertionError as error:
        raise AssertionError(f"{error}\n{said.decode()}") from error
    finally:
        await program.end()
        server.close()


@pytest.mark.timeout(180)  # Go compiles its standard library the first time
@pytest.mark.parametrize("guise", MIRRORS)
async def test_the_transcript(tmp_path: Path, guise: str) -> None:
    steps = json.loads((HERE / "transcript.json").read_text("utf-8"))
    async with facing(tmp_path, guise) as peer:
        for step in steps:
            await peer.play(step)


def test_what_operant_sends_in_the_transcript_is_as_the_schema_says() -> None:
    for step in json.loads((HERE / "transcript.json").read_text("utf-8")):
        method = step.get("sends", {}).get("method", "")
        if method in SCHEMA["methods"]:
            wanted = {**SCHEMA["methods"][method]["params"], "$defs": SCHEMA["$defs"]}
            jsonschema.validate(step["sends"]["params"], wanted)
