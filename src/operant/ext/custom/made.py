"""A custom tool as the gate sees it."""

from __future__ import annotations

from operant.ext.custom.bench import Bench, CannotUse, File
from operant.sdk import CallContext, Json, Output, ToolResult, ToolSpec, failed


class MadeTool:
    """One tool of a file; its arguments are checked where the file is imported."""

    def __init__(self, spec: ToolSpec, file: File, bench: Bench) -> None:
        self.spec = spec
        self.file = file
        self._bench = bench

    def check(self, arguments: Json) -> Json:
        """Return the arguments as they are."""
        return arguments

    async def run(self, call: CallContext, arguments: Json, output: Output) -> ToolResult:
        """Use the tool in a process of its own."""
        try:
            return await self._bench.use(call, self.spec, self.file, arguments, output)
        except CannotUse as error:
            return failed(f"{self.spec.name} failed: {error}")
