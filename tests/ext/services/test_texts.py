"""Texts of services that hold half a character: replaced by the SDKs, refused by Operant."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from operant.sdk.testing.server import ScriptedServer
from tests.ext.services.house import house, write_skill

PYTHON = r"""
from operant_sdk import define_service, tool

HALF = "a\ud800z"

@define_service
def service(kernel):
    def give(arguments, call):
        kernel.log(f"said {HALF}")
        kernel.state.set("k", HALF + "\\ud800")
        if arguments.get("fail"):
            raise ValueError(HALF)
        return kernel.state.get("k") + HALF
    return {"tools": {"give": tool(give, "Give.")}}
"""
NODE = r"""
import { defineService } from "@operant/sdk";

const HALF = "a\ud800z";

defineService((kernel) => ({
  tools: {
    give: {
      description: "Give.",
      schema: { type: "object" },
      handler: async (args) => {
        kernel.log(`said ${HALF}`);
        await kernel.state.set("k", HALF + "\\ud800");
        if (args.fail) throw new Error(HALF);
        return (await kernel.state.get("k")) + HALF;
      },
    },
  },
}));
"""


@pytest.mark.parametrize(("file", "text"), [("service.py", PYTHON), ("service.mjs", NODE)])
async def test_the_sdks_replace_half_a_character(tmp_path: Path, server: ScriptedServer, file: str, text: str) -> None:
    if file.endswith(".mjs") and shutil.which("node") is None:
        pytest.skip("not installed: apt-get install nodejs")
    write_skill(tmp_path / "h", "gives", {file: text}, service=f"./{file}")
    async with house(tmp_path / "h", server) as there:
        info = await there.grant("gives")
        assert info.state == "running", await there.log("gives")
        assert await there.tool("give") == "a\ufffdz\\ud800a\ufffdz"
        assert "a\ufffdz" in await there.tool("give", fail=True)
        assert await there.tool("give") == "a\ufffdz\\ud800a\ufffdz", "it is still there"
        assert "said a\ufffdz" in await there.log("gives")
        assert (await there.info("gives")).generation == info.generation
