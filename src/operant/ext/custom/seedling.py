"""Tools as the first Operator wrote them: `@Tool(name=…, description=…, model=…)` over a pydantic model."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from operant.sdk import CallContext, Invalid, Json, Output, Text, ToolResult, ToolSpec, failed

_MODULES = ("operator_use", "operator_use.tools", "operator_use.tools.service")


class SeedResult:
    """A result by its old name."""

    def __init__(self, text: str, success: bool) -> None:
        self.text = text
        self.success = success

    @classmethod
    def success_result(cls, output: Any = "", **_: Any) -> SeedResult:
        """Say that it worked."""
        return cls(str(output), True)

    @classmethod
    def error_result(cls, error: Any = "", **_: Any) -> SeedResult:
        """Say that it did not."""
        return cls(str(error), False)


class SeedTool:
    """A function, or an async one, with a pydantic model of its arguments."""

    def __init__(self, name: str, description: str, model: Any = None, **_: Any) -> None:
        schema: Json = {"type": "object", "properties": {}} if model is None else model.model_json_schema()
        self.spec = ToolSpec(name=name, description=description, schema=schema, deferred=True)
        self._model = model
        self._function: Callable[..., Any] | None = None

    def __call__(self, function: Callable[..., Any]) -> SeedTool:
        """Take the function."""
        self._function = function
        return self

    def check(self, arguments: Json) -> Json:
        """Return the arguments as the model has them. Raises `Invalid`."""
        if self._model is None:
            return arguments
        try:
            return self._model(**arguments).model_dump()
        except (ValueError, TypeError) as error:
            words = " ".join(str(error).split())
            raise Invalid(f"The arguments do not fit {self.spec.name}: {words}") from error

    async def run(self, call: CallContext, arguments: Json, output: Output) -> ToolResult:
        """Call the function."""
        assert self._function is not None
        result = self._function(**arguments)
        if inspect.isawaitable(result):
            result = await result
        if isinstance(result, SeedResult):
            return ToolResult(parts=(Text(text=result.text),)) if result.success else failed(result.text)
        return ToolResult(parts=(Text(text=str(result)),))


def offer_seed_names() -> None:
    """Make `from operator_use.tools.service import Tool, ToolResult` work; only in the process of a custom tool."""
    for name in _MODULES:
        sys.modules.setdefault(name, ModuleType(name))
    service: Any = sys.modules[_MODULES[-1]]
    service.Tool, service.ToolResult = SeedTool, SeedResult
