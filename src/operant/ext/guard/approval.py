"""What an agent's `approval` map says about a call.

A key is a tool's name or a pattern of names (`*`), and may carry a pattern over the call's main argument:
`shell`, `write_*`, `shell(git status*)`. The most specific key that fits decides; among equals `deny` wins
over `ask` and `ask` over `allow`. Where no key fits, the tool's effect decides.

A pattern over a command line is a convenience against needless questions, not a boundary; the sandbox is the
boundary. So an `allow` with such a pattern fits only commands that a shell runs as the single program that they
look like, while `ask` and `deny` are tried on every piece of a command, and on what it looks like with invisible
characters taken out.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any, Literal, cast

from operant.sdk import Json, Record, ToolSpec

Answer = Literal["ask", "allow", "deny"]

_KEY = re.compile(r"(?P<name>[^()\s]+)(?:\((?P<pattern>.*)\))?", re.DOTALL)
_SHELL_SIGNS = re.compile(r"[;&|$`<>(){}\n\r\0]")
_COMMAND_NAMES = frozenset({"command", "cmd", "script", "code"})
_BY_EFFECT: dict[str, Answer] = {"read": "allow", "idempotent": "allow", "external": "ask"}
_STRICTNESS: dict[Answer, int] = {"allow": 0, "ask": 1, "deny": 2}


class Decision(Record):
    """What to do with a call, and which words of the owner say so."""

    answer: Answer
    why: str


def decide(approval: Mapping[str, Answer], spec: ToolSpec, arguments: Json) -> Decision:
    """Return what the map, or else the tool's effect, says about a call; a key that cannot be read denies."""
    best: tuple[tuple[int, ...], Decision] | None = None
    argument = main_argument(spec, arguments)
    for key, answer in approval.items():
        parsed = _KEY.fullmatch(key)
        if parsed is None:
            return Decision(answer="deny", why=f"the approval rule {key!r} cannot be read; write tool or tool(pattern)")
        name, pattern = parsed["name"], parsed["pattern"]
        if not fits(name, spec.name) or not _covers(pattern, argument, answer, _is_command(spec)):
            continue
        weight = (*_specificity(name, pattern), _STRICTNESS[answer])
        if best is None or weight > best[0]:
            best = (weight, Decision(answer=answer, why=f"the approval rule {key!r} says so"))
    if best is not None:
        return best[1]
    return Decision(answer=_BY_EFFECT[spec.effect], why=f"its effect is {spec.effect}")


def main_argument(spec: ToolSpec, arguments: Json) -> str | None:
    """Return the argument that patterns are about: the first one that the tool's schema calls a string."""
    name = _main_name(spec)
    value = arguments.get(name) if name else None
    return value if isinstance(value, str) else None


def fits(pattern: str, text: str) -> bool:
    """Tell whether a text is as a pattern says, in which `*` stands for any characters."""
    first, *rest = pattern.split("*")
    if not rest:
        return pattern == text
    *middle, last = rest
    if not text.startswith(first):
        return False
    at = len(first)
    for piece in middle:
        found = text.find(piece, at)
        if found < 0:
            return False
        at = found + len(piece)
    return len(text) - len(last) >= at and text.endswith(last)


def _covers(pattern: str | None, argument: str | None, answer: Answer, command: bool) -> bool:
    if pattern is None or pattern == "*":
        return True
    if argument is None:
        return answer != "allow" and fits(pattern, "")
    if answer != "allow":
        return any(fits(pattern, one) for one in _readings(argument, command))
    return fits(pattern, argument) and not (command and _SHELL_SIGNS.search(argument))


def _readings(argument: str, command: bool) -> Iterator[str]:
    """Yield everything that a forbidding pattern is tried on."""
    plain = "".join(char for char in unicodedata.normalize("NFKC", argument) if unicodedata.category(char) != "Cf")
    for text in (argument, plain) if plain != argument else (argument,):
        yield text
        if command:
            for piece in _SHELL_SIGNS.split(text):
                yield " ".join(piece.split())


def _specificity(name: str, pattern: str | None) -> tuple[int, ...]:
    """Rank a key: an exact name before a pattern, an argument before none, then by how much is spelt out."""
    argument = "" if pattern is None or pattern == "*" else pattern
    return (
        "*" not in name,
        len(name) - name.count("*"),
        bool(argument),
        len(argument) - argument.count("*"),
        bool(argument) and "*" not in argument,
    )


def _is_command(spec: ToolSpec) -> bool:
    return spec.name == "shell" or _main_name(spec) in _COMMAND_NAMES


def _main_name(spec: ToolSpec) -> str:
    properties = cast(dict[str, Any], spec.schema.get("properties") or {})
    return next((name for name, schema in properties.items() if _is_string(schema)), "")


def _is_string(schema: Any) -> bool:
    if not isinstance(schema, dict):
        return False
    described = cast(dict[str, Any], schema)
    kind = described.get("type")
    if kind == "string" or (isinstance(kind, list) and "string" in kind):
        return True
    return any(_is_string(one) for one in cast(list[Any], described.get("anyOf") or []))
