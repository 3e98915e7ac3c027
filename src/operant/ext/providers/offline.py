"""The built-in `offline` model: a command interpreter without intelligence, said to be so.

It answers from the request alone: the person's last message holds the commands, and the number of replies since then
says which one is next. So it drives the real tools, and a turn of it can be taken up again anywhere.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Callable
from typing import Any

import msgspec

from operant.sdk import (
    Facts,
    Message,
    ModelRequest,
    Part,
    Price,
    Reply,
    StreamPart,
    Text,
    TextDelta,
    ToolCall,
    Usage,
    text_of,
)

NAME = "offline"
MODEL = "offline/commands"

_HELP = """I am the offline model: a command interpreter without intelligence, here so that everything else can be \
seen working. Give me a model by a key such as ANTHROPIC_API_KEY or OPENAI_API_KEY, or start Ollama or LM Studio. \
Until then I understand, one a line or joined by `then`:

- `list files` or `list files in DIR`
- `read FILE`, `write FILE: TEXT`, `edit FILE: OLD -> NEW`
- `search TEXT` or `search TEXT in DIR`
- `run "COMMAND"`
- `!tool NAME {"argument": "value"}`"""

_Arguments = dict[str, Any]
_Rule = tuple[re.Pattern[str], str, Callable[[re.Match[str]], _Arguments]]


def _rule(pattern: str, tool: str, arguments: Callable[[re.Match[str]], _Arguments]) -> _Rule:
    return (re.compile(pattern, re.IGNORECASE | re.DOTALL), tool, arguments)


_RULES: tuple[_Rule, ...] = (
    _rule(r"list(?: the)? files(?: (?:in|of) (?P<a>\S+))?", "list_files", lambda m: {"path": m["a"] or "."}),
    _rule(r"read (?P<a>\S+)", "read_file", lambda m: {"path": m["a"]}),
    _rule(r"write (?P<a>[^\s:]+): ?(?P<b>.*)", "write_file", lambda m: {"path": m["a"], "content": m["b"]}),
    _rule(
        r"edit (?P<a>[^\s:]+): ?(?P<b>.+?) -> (?P<c>.*)",
        "edit_file",
        lambda m: {"path": m["a"], "old": m["b"], "new": m["c"]},
    ),
    _rule(
        r"search(?: for)? (?P<a>.+?)(?: in (?P<b>\S+))?",
        "search_files",
        lambda m: {"pattern": re.escape(m["a"]), "path": m["b"] or "."},
    ),
    _rule(r"run (?P<q>[\"'`]?)(?P<a>.+)(?P=q)", "shell", lambda m: {"command": m["a"]}),
    _rule(r"fetch (?P<a>\S+)", "web_fetch", lambda m: {"url": m["a"]}),
    _rule(r"remember(?: that)? (?P<a>.+)", "save_memory", lambda m: {"content": m["a"]}),
)
_FORWARDING = "use_tool"
_TOOL = re.compile(r"!tool (?P<name>[\w-]+) ?(?P<arguments>.*)", re.DOTALL)
_JOINED = re.compile(r"\n+|\s+then\s+", re.IGNORECASE)
_AMBIENT = re.compile(r"\A\[[^\]\n]*\]\n")


class Offline:
    """A model that needs no network."""

    name = NAME

    def facts(self, model: str) -> Facts:
        """Cost nothing, see nothing."""
        return Facts(price=Price(input=0.0, output=0.0), images=False)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamPart, None]:
        """Yield the answer word by word, then the reply."""
        text, calls = _answer(request)
        for word in re.findall(r"\S+\s*|\s+", text):
            yield TextDelta(text=word)
        parts: tuple[Part, ...] = (*((Text(text=text),) if text else ()), *calls)
        size = sum(len(text_of(message.parts)) for message in request.messages) + len(request.system)
        usage = Usage(input=size // 4, output=len(text) // 4 + 1, calls=1)
        finish = "tool_calls" if calls else "stop"
        yield Reply(parts=parts, model=request.model, provider=NAME, finish=finish, usage=usage)


def _answer(request: ModelRequest) -> tuple[str, tuple[ToolCall, ...]]:
    """Return what comes next: a call, or what all calls brought."""
    start = max((at for at, one in enumerate(request.messages) if one.role == "user"), default=-1)
    said = text_of(request.messages[start].parts) if start >= 0 else ""
    since = request.messages[start + 1 :]
    commands = [one.strip() for one in _JOINED.split(_AMBIENT.sub("", said)) if one.strip()]
    done = [message for message in since if message.role == "tool"]
    step = sum(message.role == "assistant" for message in since)
    if step < len(commands):
        name, arguments = _parsed(commands[step])
        if not name:
            return (_HELP if not done else _unknown(commands[step])), ()
        call = _call(request, name, arguments)
        missing = f"`{commands[step]}` needs the tool `{name}`, which is not installed here."
        return ("", (call,)) if call else (missing, ())
    return (_summary(done) if done else _HELP), ()


def _call(request: ModelRequest, name: str, arguments: str) -> ToolCall | None:
    """Make a call, through the tool that forwards where we are not told about the one that is meant."""
    there = {tool.name for tool in request.tools}
    if name not in there and _FORWARDING in there:
        name, arguments = _FORWARDING, f'{{"name":{msgspec.json.encode(name).decode()},"arguments":{arguments}}}'
    return ToolCall(id=f"call_{len(request.messages)}", name=name, arguments=arguments) if name in there else None


def _parsed(command: str) -> tuple[str, str]:
    by_hand = _TOOL.fullmatch(command)
    if by_hand:
        return by_hand["name"], by_hand["arguments"].strip() or "{}"
    for pattern, tool, arguments in _RULES:
        match = pattern.fullmatch(command)
        if match:
            return tool, msgspec.json.encode(arguments(match)).decode()
    return "", ""


def _summary(done: list[Message]) -> str:
    if len(done) == 1:
        return f"{done[0].name}:\n\n```\n{text_of(done[0].parts).rstrip()}\n```"
    return "\n\n".join(
        f"{at}. {one.name}:\n\n```\n{text_of(one.parts).rstrip()}\n```" for at, one in enumerate(done, 1)
    )


def _unknown(command: str) -> str:
    return f"I did what I understood, and do not understand `{command}`. I am the offline model; say `help`."
