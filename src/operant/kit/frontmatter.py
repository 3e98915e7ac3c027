"""Split a Markdown file into its YAML frontmatter and its body."""

from __future__ import annotations

from dataclasses import dataclass

from operant.kit.yaml import Document, YamlError, read_yaml

_FENCE = "---"


@dataclass(frozen=True)
class Matter:
    """The settings at the head of a file (with the lines of the file), and the text below them."""

    settings: Document
    body: str


def read_matter(text: str) -> Matter:
    """Split a file; one without frontmatter is all body. Raises `YamlError`."""
    lines = text.removeprefix("\ufeff").splitlines(keepends=True)
    if not lines or lines[0].rstrip() != _FENCE:
        return Matter(Document(None), "".join(lines))
    for index, line in enumerate(lines[1:], 1):
        if line.rstrip() == _FENCE:
            head = "".join(lines[1:index])
            return Matter(read_yaml(head, first_line=2), "".join(lines[index + 1 :]).lstrip("\r\n"))
    raise YamlError(1, f"the frontmatter that begins here is never closed with {_FENCE}")
