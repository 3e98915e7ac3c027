"""Make a tool of a typed function.

    @tool(effect="read")
    async def read_file(path: Annotated[str, "relative to the workspace"], call: CallContext) -> str:
        '''Read a text file.'''

The schema comes from the annotations, the description from the docstring. Two parameter names are filled in by the
kernel and are not part of the schema: `call` (who asks) and `output` (live output).
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, get_type_hints

import msgspec

from operant.kernel.errors import Invalid
from operant.kernel.ports import CallContext, Output
from operant.kernel.records import Effect, Json, Text, ToolResult, ToolSpec

Returned = str | ToolResult
ToolFunction = Callable[..., Returned | Awaitable[Returned]]
"""A plain function holds up everything else while it runs; only a tool in a process of its own should be one."""

_FILLED_IN = frozenset({"call", "output"})


class FunctionTool:
    """A tool that is a function."""

    def __init__(
        self,
        function: ToolFunction,
        *,
        effect: Effect = "external",
        timeout_s: float = 120.0,
        name: str = "",
        deferred: bool = False,
        forwards: bool = False,
    ) -> None:
        self._function = function
        self._arguments = _arguments_type(function)
        self._wants = _FILLED_IN & set(inspect.signature(function).parameters)
        self.spec = ToolSpec(
            name=name or getattr(function, "__name__", "tool"),
            description=inspect.getdoc(function) or "",
            schema=_schema_of(self._arguments),
            effect=effect,
            timeout_s=timeout_s,
            deferred=deferred,
            forwards=forwards,
        )

    def check(self, arguments: Json) -> Json:
        """Return the arguments as the schema has them. Raises `Invalid` naming what is wrong."""
        try:
            return msgspec.structs.asdict(msgspec.convert(arguments, self._arguments))
        except msgspec.ValidationError as error:
            raise Invalid(f"The arguments do not fit {self.spec.name}: {error}.") from error

    async def run(self, call: CallContext, arguments: Json, output: Output) -> ToolResult:
        """Call the function; words that it returns become an `ok` result."""
        filled: dict[str, Any] = {"call": call, "output": output}
        returned = self._function(**arguments, **{name: filled[name] for name in self._wants})
        if inspect.isawaitable(returned):
            returned = await returned
        if isinstance(returned, ToolResult):
            return returned
        return ToolResult(parts=(Text(text=returned),))


def tool(
    *,
    effect: Effect = "external",
    timeout_s: float = 120.0,
    name: str = "",
    deferred: bool = False,
    forwards: bool = False,
) -> Callable[[ToolFunction], FunctionTool]:
    """Make a tool of the decorated function.

    `effect`: `read` changes nothing, `idempotent` may be run again with the same key, `external` (the default) is
    never repeated by itself. A `deferred` tool is found by searching, and reached through one that `forwards`.
    """

    def wrap(function: ToolFunction) -> FunctionTool:
        return FunctionTool(
            function, effect=effect, timeout_s=timeout_s, name=name, deferred=deferred, forwards=forwards
        )

    return wrap


def failed(sentence: str) -> ToolResult:
    """Make the result of a tool that could not do what was asked."""
    return ToolResult(parts=(Text(text=sentence),), outcome="error")


def _arguments_type(function: ToolFunction) -> type[msgspec.Struct]:
    hints = get_type_hints(function, include_extras=True)
    fields: list[Any] = []
    for name, parameter in inspect.signature(function).parameters.items():
        if name in _FILLED_IN:
            continue
        kind = _described(hints[name])
        fields.append((name, kind) if parameter.default is parameter.empty else (name, kind, parameter.default))
    return msgspec.defstruct(
        getattr(function, "__name__", "tool"), fields, kw_only=True, forbid_unknown_fields=True, frozen=True
    )


def _described(kind: Any) -> Any:
    """Let a plain string in `Annotated` be the description of a parameter."""
    words = [note for note in getattr(kind, "__metadata__", ()) if isinstance(note, str)]
    if not words:
        return kind
    return Annotated[kind.__origin__, msgspec.Meta(description=words[0])]


def _schema_of(arguments: type[msgspec.Struct]) -> Json:
    schema = msgspec.json.schema(arguments)
    definitions: Json = schema.get("$defs", {})
    top: Json = dict(definitions.pop(arguments.__name__))
    top.pop("title", None)
    return {**top, "$defs": definitions} if definitions else top
