"""Read YAML: the safe loader, duplicate keys are errors, and every value knows its line."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

KeyPath = tuple[str | int, ...]

_MOST_NODES = 50_000
_DEEPEST = 50


class YamlError(ValueError):
    """Say what is wrong with a text, and in which line (from 1; 0 when it is not known)."""

    def __init__(self, line: int, sentence: str) -> None:
        super().__init__(f"line {line}: {sentence}")
        self.line = line
        self.sentence = sentence


@dataclass(frozen=True)
class Document:
    """What a text says, and the line of each key and item by its path."""

    data: Any
    lines: dict[KeyPath, int] = field(default_factory=dict[KeyPath, int])

    def line(self, path: KeyPath) -> int:
        """Return the line of a path, or of the nearest thing around it."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)


def read_yaml(text: str, first_line: int = 1) -> Document:
    """Read one document. Raises `YamlError`."""
    import yaml

    loader_class: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    loader: Any = None
    try:
        _check_depth(yaml.parse(text, Loader=loader_class), first_line)
        loader = loader_class(text)
        node: Any = loader.get_single_node()
        if node is None:
            return Document(None)
        lines: dict[KeyPath, int] = {}
        _Walk(loader, lines, first_line).walk(node, ())
        return Document(loader.construct_document(node), lines)
    except yaml.MarkedYAMLError as error:
        mark: Any = error.problem_mark or error.context_mark
        raise YamlError(mark.line + first_line if mark else 0, _sentence(error)) from error
    except YamlError:
        raise
    except (yaml.YAMLError, ValueError, ArithmeticError, LookupError, TypeError, AttributeError) as error:
        # Constructors of dates, numbers and binaries raise whatever their text runs into.
        raise YamlError(0, f"this is not YAML: {_first_line(error)}") from error
    finally:
        if loader is not None:
            loader.dispose()


def write_yaml(data: object) -> str:
    """Write plain data as YAML, keys in their order."""
    import yaml

    text = yaml.safe_dump(data, sort_keys=False, allow_unicode=True)
    if read_yaml(text).data == data:
        return text
    return yaml.safe_dump(data, sort_keys=False)  # rare letters that the reader takes for line ends, escaped


def _check_depth(events: Any, first_line: int) -> None:
    """Refuse deep nesting while nothing is built: the C composer recurses without a limit and would crash."""
    depth = 0
    for event in events:
        kind = type(event).__name__
        depth += kind.endswith("StartEvent") - kind.endswith("EndEvent")
        if depth > _DEEPEST:
            raise YamlError(event.start_mark.line + first_line, "this is nested too deeply")


def _sentence(error: Any) -> str:
    words = [part for part in (error.context, error.problem) if part]
    return "this is not YAML: " + ", ".join(words)


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


class _Walk:
    """Note the line of everything below a node; refuse duplicate and unusable keys."""

    def __init__(self, loader: Any, lines: dict[KeyPath, int], first_line: int) -> None:
        self._loader = loader
        self._lines = lines
        self._first = first_line
        self._above: set[int] = set()
        self._seen = 0

    def walk(self, node: Any, path: KeyPath) -> None:
        self._seen += 1
        if self._seen > _MOST_NODES:
            raise YamlError(node.start_mark.line + self._first, "this is too long, or its aliases multiply")
        self._lines.setdefault(path, node.start_mark.line + self._first)
        if id(node) in self._above:
            raise YamlError(self._lines[path], "an alias refers to what it stands in")
        self._above.add(id(node))
        if node.id == "mapping":
            self._mapping(node, path)
        elif node.id == "sequence":
            for index, item in enumerate(node.value):
                self.walk(item, (*path, index))
        self._above.discard(id(node))

    def _mapping(self, node: Any, path: KeyPath) -> None:
        seen: dict[str, int] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + self._first
            if key_node.id != "scalar":
                raise YamlError(line, "a key must be a word")
            key = str(key_node.value)
            if key in seen:
                raise YamlError(line, f"the key {key!r} stands here again; it is also in line {seen[key]}")
            seen[key] = line
            self._lines[(*path, key)] = line
            self.walk(value_node, (*path, key))
