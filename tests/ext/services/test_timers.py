"""Timers of services: each service's in order, those of several services side by side."""

from __future__ import annotations

import asyncio
from pathlib import Path

from operant.sdk.testing.server import ScriptedServer
from tests.ext.services.house import house, write_skill

STUCK = """
import threading
from operant_sdk import define_service, tool

@define_service
def service(kernel):
    def begin(arguments, call):
        for name in ("a", "b", "c"):
            kernel.timer(name)
        return "set"
    def ring(data):
        kernel.log("stuck")
        threading.Event().wait()
    return {"tools": {"get_stuck": tool(begin, "Begin.")}, "timers": dict.fromkeys("abc", ring)}
"""
ORDERLY = """
import threading
from operant_sdk import define_service, tool

@define_service
def service(kernel):
    told, inside = [], []
    def begin(arguments, call):
        for name in "dcab":
            kernel.timer(name, after_s=0.01)
        return "set"
    def ring(name):
        def rang(data):
            inside.append(name)
            threading.Event().wait(0.03)
            told.append(name if len(inside) == 1 else "not alone")
            inside.pop()
        return rang
    rang = tool(lambda a, c: "".join(told), "Ask.")
    return {"tools": {"begin": tool(begin, "Begin."), "rang": rang}, "timers": {one: ring(one) for one in "abcd"}}
"""


async def test_a_service_that_is_stuck_holds_up_its_own_timers_only(tmp_path: Path, server: ScriptedServer) -> None:
    home = tmp_path / "h"
    write_skill(home, "a-stuck", {"service.py": STUCK})
    write_skill(home, "orderly", {"service.py": ORDERLY})
    async with house(home, server) as there:
        await there.grant("a-stuck")
        await there.grant("orderly")
        await there.tool("get_stuck")
        while "stuck" not in await there.log("a-stuck"):
            await asyncio.sleep(0)
        async with asyncio.timeout(4):
            await there.tool("begin")
            while len(await there.tool("rang")) < 4:
                await asyncio.sleep(0)
        assert await there.tool("rang") == "dcab"
        assert (await there.log("a-stuck")).count("stuck") == 1, "its own are told one after another"
