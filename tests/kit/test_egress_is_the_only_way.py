"""F9: no other code opens a connection. Every import and every call in the tree that could is looked at."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import operant

SOURCE = Path(operant.__file__).parent

CLIENTS = {
    "aiohttp", "aiosmtplib", "curl_cffi", "ftplib", "http.client", "httpx", "imaplib", "paramiko", "poplib", "pycurl",
    "requests", "smtplib", "telnetlib", "urllib.request", "urllib3", "websocket", "websockets", "xmlrpc.client",
}  # fmt: skip
"""Packages that open connections by themselves."""

DIALS = {
    "create_connection", "create_datagram_endpoint", "getaddrinfo", "gethostbyaddr", "gethostbyname",
    "gethostbyname_ex", "open_connection", "sock_connect", "connect_ex", "start_tls",
}  # fmt: skip
"""Names of functions that dial or resolve."""

MAY_IMPORT = {
    "kit/http.py": "is the client",
    "kit/browserlike.py": "is the client's second engine; it is told the addresses that were checked",
}

SERVES = "ext/gateway/"
"""What listens may import aiohttp for its server, and nothing of its client."""

CLIENT_NAMES = {"ClientSession", "TCPConnector", "UnixConnector", "request"}

MAY_HOLD_SOCKETS = {
    "app/daemon.py": "asks the kernel who is at the other end of its own socket",
    "app/supervise.py": "is woken by signals through a pair of sockets",
    "app/serve.py": "tells the service manager on its Unix socket that we are ready",
    "kit/egress.py": "names kinds of addresses",
    "kit/endpoint.py": "connects programs of one user",
    "kit/forward.py": "listens inside a sandbox and leads to the proxy's socket",
    "kit/http.py": "names kinds of addresses",
    "kit/typed.py": "is a command inside a shell, and speaks through the one socket that it was given",
    "sdk/remote.py": "is handed a socket that kit/endpoint.py has connected",
}

MAY_DIAL = {
    "kit/egress.py": "is the way out",
    "kit/endpoint.py": "connects programs of one user: a Unix socket, on Windows a loopback port",
    "sdk/remote.py": "wraps a socket that kit/endpoint.py has connected",
}


def modules() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def imports(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and _name(node.func) in ("import_module", "__import__"):
            yield from (str(given.value) for given in node.args if isinstance(given, ast.Constant))


def dials(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute | ast.Name) and _name(node) in DIALS:
            yield _name(node)
        elif isinstance(node, ast.ImportFrom):
            yield from (alias.name for alias in node.names if alias.name in DIALS)


def _name(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def clients(tree: ast.AST) -> set[str]:
    return {name for name in CLIENTS for found in imports(tree) if found == name or found.startswith(name + ".")}


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_f9_no_other_code_opens_a_connection(path: Path) -> None:
    tree = ast.parse(path.read_text("utf-8"))
    place = path.relative_to(SOURCE).as_posix()
    if place.startswith(SERVES):
        assert clients(tree) <= {"aiohttp"}
        assert not {name for name in imports(tree) if name.rpartition(".")[2] in CLIENT_NAMES}
    elif place not in MAY_IMPORT:
        assert not clients(tree), "use kit.http: host.http in an extension"
    if place not in MAY_HOLD_SOCKETS:
        assert "socket" not in set(imports(tree)), "use kit.egress: host.http.egress.open in an extension"
    if place not in MAY_DIAL:
        assert not set(dials(tree)), "use kit.egress: host.http.egress.open in an extension"


def test_every_exception_is_still_needed() -> None:
    trees = {
        place: ast.parse((SOURCE / place).read_text("utf-8")) for place in {*MAY_IMPORT, *MAY_HOLD_SOCKETS, *MAY_DIAL}
    }
    assert all(clients(trees[place]) for place in MAY_IMPORT)
    assert all("socket" in set(imports(trees[place])) for place in MAY_HOLD_SOCKETS)
    assert all(set(dials(trees[place])) for place in MAY_DIAL)


@pytest.mark.parametrize(
    "code",
    [
        "import aiohttp", "import urllib.request", "from urllib import request", "from http import client",
        "def f():\n    from curl_cffi import requests", "import importlib\nimportlib.import_module('httpx')",
        "import asyncio\nasyncio.open_connection('a', 1)", "from socket import create_connection",
        "loop.create_connection(f, 'a', 1)", "socket.getaddrinfo('a', 1)",
    ],
)  # fmt: skip
def test_the_test_finds_what_it_looks_for(code: str) -> None:
    tree = ast.parse(code)
    assert clients(tree) or set(dials(tree))
