"""Read a file with a page and write what is readable of it: `FILE URL INLINE_LINKS(0|1)`."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec

from operant.kit.readable.page import read_page


def main(path: str, url: str, inline: str) -> None:
    """Write a page as JSON."""
    sys.setrecursionlimit(5000)
    page = read_page(Path(path).read_text("utf-8", "replace"), url, inline_links=inline == "1")
    sys.stdout.buffer.write(msgspec.json.encode(page))


if __name__ == "__main__":
    main(*sys.argv[1:])
