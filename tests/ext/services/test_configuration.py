"""What `operant.yaml` says for a service reaches it while it runs."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from operant.sdk.testing.server import ScriptedServer
from tests.ext.services.house import House, write_skill
from tests.journey.gateway import served

PYTHON = """
from operant_sdk import define_service, tool

@define_service
def service(kernel):
    told = []
    def configured(configuration):
        if configuration.get("word") == "bad":
            raise ValueError("no such word")
        told.append(configuration.get("word", "-"))
    def say(arguments, call):
        return f"{kernel.configuration.get('word', '-')} {' '.join(told)}"
    return {"tools": {"say": tool(say, "Say.")}, "configured": configured}
"""
NODE = """
import { defineService } from "@operant/sdk";

const told = [];
defineService((kernel) => ({
  tools: {
    say: { description: "Say.", schema: {}, handler: () => `${kernel.configuration.word ?? "-"} ${told.join(" ")}` },
  },
  configured: (configuration) => {
    if (configuration.word === "bad") throw new Error("no such word");
    told.push(configuration.word ?? "-");
  },
}));
"""
UNAWARE = """
from operant_sdk import define_service, tool

@define_service
def service(kernel):
    return {"tools": {"other": tool(lambda a, c: str(kernel.configuration), "Say.")}}
"""


def configure(home: Path, told: Any) -> None:
    """Edit the configuration as a person does."""
    file = home / "operant.yaml"
    config = yaml.safe_load(file.read_text("utf-8"))
    config["services"]["configuration"] = told
    fresh = file.with_suffix(".new")
    fresh.write_text(yaml.safe_dump(config))
    fresh.replace(file)


async def until(there: House, tool: str, said: str) -> None:
    async with asyncio.timeout(10):
        while await there.tool(tool) != said:
            await asyncio.sleep(0)


@pytest.mark.parametrize(("file", "text"), [("service.py", PYTHON), ("service.mjs", NODE)])
async def test_an_edit_is_told_to_those_whom_it_concerns(
    tmp_path: Path, server: ScriptedServer, file: str, text: str
) -> None:
    if file.endswith(".mjs") and shutil.which("node") is None:
        pytest.skip("not installed: apt-get install nodejs")
    home = tmp_path / "h"
    write_skill(home, "listens", {file: text}, service=f"./{file}")
    write_skill(home, "unaware", {"service.py": UNAWARE})
    first: dict[str, object] = {"services": {"configuration": {"listens": {"word": "one"}}}}
    async with served(home, server, first) as made:
        there = House(made.system)
        await there.grant("listens")
        await there.grant("unaware")
        assert await there.tool("say") == "one "
        configure(home, {"listens": {"word": "two"}})
        await until(there, "say", "two two")
        configure(home, {"listens": {"word": "two"}, "unaware": {"a": "b"}})
        await until(there, "other", "{'a': 'b'}")
        configure(home, {})
        await until(there, "say", "- two -")
        await until(there, "other", "{}")
        for name in ("listens", "unaware"):
            assert (await there.info(name)).generation == 1, "nothing was started anew"


async def test_one_that_cannot_take_it_says_so_and_a_broken_file_changes_nothing(
    tmp_path: Path, server: ScriptedServer
) -> None:
    home = tmp_path / "h"
    write_skill(home, "listens", {"service.py": PYTHON})
    async with served(home, server, {"services": {"configuration": {"listens": {"word": "one"}}}}) as made:
        there = House(made.system)
        await there.grant("listens")
        configure(home, {"listens": {"word": "bad"}})
        async with asyncio.timeout(10):
            while "did not take its new configuration" not in await there.log("listens"):
                await asyncio.sleep(0)
        assert "no such word" in await there.log("listens")
        assert (await there.info("listens")).state == "running"
        configure(home, {"listens": {"word": 5, "other": ["x"]}})
        async with asyncio.timeout(10):
            while "services stays as it was" not in made.system.home.log.read_text("utf-8"):
                await asyncio.sleep(0)
        configure(home, {"listens": {"word": "three"}})
        await until(there, "say", "three three")
