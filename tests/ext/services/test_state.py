"""What services keep, listed a page at a time."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from operant.sdk.testing.server import ScriptedServer
from tests.ext.services.house import House, house, write_skill

PYTHON = """
import json
from operant_sdk import Failed, define_service, tool

def told(values, next=None):
    keys = list(values)
    return json.dumps([len(keys), *keys[:1], *keys[-1:], keys == sorted(keys), next])

@define_service
def service(kernel):
    def fill(arguments, call):
        for n in range(arguments["most"]):
            kernel.state.set(f"k/{n:05}", "x" * arguments["size"])
        kernel.state.set("other", "1")
        return "filled"
    def raw(arguments, call):
        try:
            found = kernel.call("service.state.list", **arguments["given"])
        except Failed as error:
            return json.dumps(error.code)
        return told(found["values"], found["next"]) if "values" in found else told(found)
    def page(arguments, call):
        found = kernel.state.page(**arguments["given"])
        return told(found["values"], found["next"])
    def count(arguments, call):
        return told(kernel.state.list(arguments["prefix"]))
    return {"tools": {name: tool(handler, "Do it.") for name, handler in
                      {"fill": fill, "raw": raw, "page": page, "count": count}.items()}}
"""
NODE = """
import { defineService } from "@operant/sdk";

const schema = { type: "object" };
const told = (values, next = null) => {
  const keys = Object.keys(values);
  const sorted = keys.join() === [...keys].sort().join();
  return JSON.stringify([keys.length, ...keys.slice(0, 1), ...keys.slice(-1), sorted, next]);
};
defineService((kernel) => ({
  tools: {
    fill: { description: "Do it.", schema, handler: async ({ most, size }) => {
      for (let n = 0; n < most; n++) await kernel.state.set(`k/${String(n).padStart(5, "0")}`, "x".repeat(size));
      await kernel.state.set("other", "1");
      return "filled";
    } },
    page: { description: "Do it.", schema, handler: async ({ given: { prefix, ...more } }) => {
      const { values, next } = await kernel.state.page(prefix, more);
      return told(values, next);
    } },
    count: { description: "Do it.", schema, handler: async ({ prefix }) => told(await kernel.state.list(prefix)) },
  },
}));
"""


async def ask(there: House, name: str, **given: Any) -> Any:
    return json.loads(await there.tool(name, given=given))


async def test_it_is_listed_as_ever_or_by_the_page(tmp_path: Path, server: ScriptedServer) -> None:
    home = tmp_path / "h"
    write_skill(home, "keeps", {"service.py": PYTHON})
    async with house(home, server) as there:
        await there.grant("keeps")
        await there.tool("fill", most=1203, size=1)
        assert await ask(there, "raw") == [1204, "k/00000", "other", True, None], "who knows of no pages gets all"
        assert await ask(there, "raw", prefix="k/", limit=1000) == [1000, "k/00000", "k/00999", True, "k/00999"]
        assert await ask(there, "raw", after="k/00199") == [1000, "k/00200", "k/01199", True, "k/01199"]
        assert await ask(there, "raw", prefix="k/", after="k/00999") == [203, "k/01000", "k/01202", True, None]
        assert await ask(there, "raw", after="k/01201", limit=2) == [2, "k/01202", "other", True, None]
        assert await ask(there, "raw", after="z", limit=1) == [0, True, None]
        assert [await ask(there, "raw", limit=limit) for limit in (0, -1, 1001)] == ["invalid"] * 3


@pytest.mark.parametrize(("file", "text"), [("service.py", PYTHON), ("service.mjs", NODE)])
async def test_the_sdks_list_more_than_one_message_holds(
    tmp_path: Path, server: ScriptedServer, file: str, text: str
) -> None:
    if file.endswith(".mjs") and shutil.which("node") is None:
        pytest.skip("not installed: apt-get install nodejs")
    home = tmp_path / "h"
    write_skill(home, "keeps", {file: text}, service=f"./{file}")
    async with house(home, server) as there:
        await there.grant("keeps")
        await there.tool("fill", most=30, size=100_000)
        assert json.loads(await there.tool("count", prefix="k/")) == [30, "k/00000", "k/00029", True, None]
        assert await ask(there, "page", prefix="k/", limit=3) == [3, "k/00000", "k/00002", True, "k/00002"]
        most = await ask(there, "page", prefix="k/", after="k/00002")
        assert most == [10, "k/00003", "k/00012", True, "k/00012"], "as many as fit into a message"
