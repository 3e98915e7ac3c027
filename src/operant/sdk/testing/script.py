"""What the scripted model says: a pure function of the request, so that it does not matter who is killed when."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

import msgspec

_NAME = re.compile(r"@([\w-]+)")
_PLACE = re.compile(r"\{(\d+)\}")


class Call(msgspec.Struct, forbid_unknown_fields=True):
    """A tool call; `raw_args` is sent as it is, also where it is no JSON."""

    name: str
    arguments: dict[str, Any] | None = None
    raw_args: str | None = None
    id: str | None = None


class Step(msgspec.Struct, forbid_unknown_fields=True):
    """One reply, and what goes wrong with it; `times` limits the faults to the first so many requests.

    `cut_after`, `stall_after` and `error_event` count a stream's events; a reply in one piece breaks in its middle.
    `finish` and `usage` are in the words of the chat protocol, which the other protocols translate, or in their own.
    """

    text: str = ""
    chunks: int = 1
    reasoning: str = ""
    redacted: bool = False
    """The reasoning is only given encrypted, where a protocol has such a thing."""
    calls: list[Call] = []
    finish: str | None = None
    usage: dict[str, Any] | None = None
    status: int = 200
    retry_after: str | float | None = None
    headers: dict[str, str] = {}
    body: str | None = None
    delay_ms: float = 0
    first_delay_ms: float = 0
    chunk_delay_ms: float = 0
    cut_after: int | None = None
    stall_after: int | None = None
    hang: bool = False
    duplicate_chunk: bool = False
    no_done: bool = False
    error_event: int | None = None
    """An error in the stream after so many events; a reply in one piece is an error instead."""
    refusal: bool = False
    """The model declines, in the words of `text`."""
    blocked: bool = False
    """A content filter lets nothing through."""
    crlf: bool = False
    split_utf8: bool = False
    times: int | None = None

    def healthy(self) -> Step:
        """Return the same reply with nothing wrong about it."""
        return Step(
            text=self.text,
            chunks=self.chunks,
            reasoning=self.reasoning,
            redacted=self.redacted,
            calls=self.calls,
            finish=self.finish,
            usage=self.usage,
        )


class Made(NamedTuple):
    """A call as a reply has it; `arguments` may be no JSON."""

    id: str
    name: str
    arguments: str


class Chosen(msgspec.Struct):
    """The step that answers a request; `key` counts how often it was asked for."""

    step: Step
    key: str
    words: list[str]
    depth: int

    @property
    def id(self) -> str:
        """Return what tells this reply from the others of a conversation."""
        return hashlib.sha256(f"{self.key}/{self.depth}".encode()).hexdigest()[:12]

    @property
    def text(self) -> str:
        """Return what is said, with its places filled."""
        return filled(self.step.text, self.words)

    @property
    def thoughts(self) -> str:
        """Return what is thought, with its places filled."""
        return filled(self.step.reasoning, self.words)


def read(steps: Any) -> list[Step]:
    """Make a script of plain data. Raises `msgspec.ValidationError`."""
    return msgspec.convert(steps, list[Step])


def choose(messages: Sequence[Mapping[str, Any]], scripts: Mapping[str, Sequence[Step]]) -> Chosen:
    """Find the step: the script named where the user last began to speak, at the number of replies since then.

    A message has a `role` (`user`, `assistant`, `tool` for what only brings results, or another) and a `content`:
    words, or parts of which some have a `text`. A conversation that goes on after the last step gets that step again.
    """
    start = _beginning(messages)
    said = _text(messages[start]) if messages else ""
    named = next((found for found in _NAME.finditer(said) if found[1] in scripts), None)
    name = named[1] if named else ""
    words = said[named.end() :].split() if named else []
    number = sum(one.get("role") == "assistant" for one in messages[start:])
    steps = scripts.get(name, ())
    step = steps[min(number, len(steps) - 1)] if steps else Step(text="Hello.")
    return Chosen(step=step, key=f"{name}/{number}/{' '.join(words)}", words=words, depth=len(messages))


def _beginning(messages: Sequence[Mapping[str, Any]]) -> int:
    """Return where the last run of user messages begins, 0 where nobody spoke."""
    roles = [one.get("role") for one in messages]
    return max((at for at, role in enumerate(roles) if role == "user" and roles[at - 1 : at] != ["user"]), default=0)


def filled(text: str, words: Sequence[str]) -> str:
    """Put the words that followed the script's name in place of `{1}`, `{2}` and so on."""

    def word(match: re.Match[str]) -> str:
        number = int(match[1]) - 1
        return words[number] if 0 <= number < len(words) else match[0]

    return _PLACE.sub(word, text)


def calls_of(chosen: Chosen, prefix: str = "call") -> list[Made]:
    """Return id, name and arguments of each call; `prefix` is how a protocol's ids begin."""
    made: list[Made] = []
    for at, call in enumerate(chosen.step.calls):
        raw = call.raw_args
        arguments = raw if raw is not None else _encoded(call.arguments or {}, chosen.words)
        digest = hashlib.sha256(f"{chosen.key}/{chosen.depth}/{at}".encode()).hexdigest()[:12]
        made.append(Made(call.id if call.id is not None else f"{prefix}_{digest}", call.name, arguments))
    return made


def pieces_of(text: str, count: int) -> list[str]:
    """Cut a text into at most so many pieces; none where there is no text."""
    if not text:
        return []
    size = max(1, -(-len(text) // max(1, count)))
    return [text[at : at + size] for at in range(0, len(text), size)]


def _encoded(arguments: Mapping[str, Any], words: Sequence[str]) -> str:
    return msgspec.json.encode({name: _placed(value, words) for name, value in arguments.items()}).decode()


def _placed(value: Any, words: Sequence[str]) -> Any:
    """Fill the texts of a value before it is encoded: a word with a quote must not break the JSON."""
    if isinstance(value, str):
        return filled(value, words)
    if isinstance(value, list):
        return [_placed(one, words) for one in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {name: _placed(one, words) for name, one in cast("dict[str, Any]", value).items()}
    return value


def _text(message: Mapping[str, Any]) -> str:
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    return "".join(str(part.get("text") or "") for part in content)
