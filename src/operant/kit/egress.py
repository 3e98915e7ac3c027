"""The one way out: what may be dialled is decided here, for every tool, provider, delivery and sandboxed command.

A URL is read by one parser, and what it says is both judged and dialled. A name is resolved once, every answer is
judged, and the answers are what is dialled: nobody resolves again behind our back (DNS rebinding).
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
import socket
from collections.abc import Awaitable, Callable, Sequence
from enum import Enum
from typing import NamedTuple
from urllib.parse import quote

from operant.kit.address import FAKE, IP, METADATA_NAMES, Network, is_metadata, kind_of, lan

Resolver = Callable[[str, int], Awaitable[Sequence[str]]]
"""Return the addresses of a name, best first. Raises `OSError` when there are none."""

CONNECT_S = 15.0
LONGEST_URL = 16_384

PORTS = {
    "http": 80, "https": 443, "ws": 80, "wss": 443, "ftp": 21, "irc": 6667, "ircs": 6697,
    "imap": 143, "imaps": 993, "smtp": 25, "smtps": 465, "mqtt": 1883, "mqtts": 8883,
}  # fmt: skip
"""The port of a scheme where a URL names none."""

_SHAPE = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/?#]*)([^?#]*)(\?[^#]*)?(#.*)?", re.DOTALL)
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_NEVER = re.compile(r"[\x00-\x20\x7f-\xa0\\\u2028\u2029\ud800-\udfff]")
_AUTHORITY = re.compile(r"(\[[^\[\]]*\]|[^:\[\]]*)(?::([0-9]{0,5}))?")
_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMBER = re.compile(r"0[xX][0-9a-fA-F]*|[0-9]+")
_SAFE = "!$&'()*+,;=:@/%~-._"


class Denied(Exception):
    """Refuse to dial; the message is one sentence for a model or a person."""


class Unresolved(Denied):
    """Report a name that has no address, or none that could be had."""


class Place(NamedTuple):
    """Where a URL leads: the scheme, the host as it is judged and dialled, the port, and the URL with just these."""

    scheme: str
    host: str
    port: int
    url: str

    @property
    def origin(self) -> str:
        """Return scheme, host and port as one text."""
        return f"{self.scheme}://{_bracketed(self.host)}:{self.port}"

    @property
    def address(self) -> IP | None:
        """Return the address that the host is; None for a name."""
        return _literal(self.host)


class Reach(Enum):
    """How far a call may reach."""

    PUBLIC = "public"
    """Public addresses, and what the owner has made reachable by the setting `egress.private`."""
    NAMED = "named"
    """The owner wrote this very address down, or it is a server on this machine: all but metadata services."""


def parse(url: str, schemes: Sequence[str] = ("http", "https")) -> Place:
    """Read a URL, the only way in which we do. Raises `Denied`, and nothing else."""
    if len(url) > LONGEST_URL:
        raise Denied(f"The address is longer than {LONGEST_URL} characters.")
    if _NEVER.search(url):
        raise Denied("The address has a space, a backslash or a control character in it.")
    shape = _SHAPE.fullmatch(url)
    if shape is None:
        scheme = _SCHEME.match(url)
        if scheme is not None and scheme[1].lower() not in schemes:
            raise Denied(f"Only {' and '.join(schemes)} addresses can be used, not {scheme[1].lower()[:20]}.")
        raise Denied(f"This is not an address such as {schemes[0]}://example.org/page.")
    scheme = shape[1].lower()
    if scheme not in schemes:
        raise Denied(f"Only {' and '.join(schemes)} addresses can be used, not {scheme[:20]}.")
    host, port = parse_host(shape[2], PORTS.get(scheme, 0))
    default = PORTS.get(scheme) == port
    path = quote(shape[3], safe=_SAFE) or ("/" if scheme in ("http", "https", "ws", "wss") else "")
    rest = quote(shape[4] or "", safe=_SAFE + "?[]") + quote(shape[5] or "", safe=_SAFE + "?#")
    return Place(scheme, host, port, f"{scheme}://{_bracketed(host)}{'' if default else f':{port}'}{path}{rest}")


def parse_host(authority: str, port: int = 0) -> tuple[str, int]:
    """Read `host`, `host:port` or `[v6]:port` and return the host in its normal form. Raises `Denied`."""
    if "@" in authority:
        raise Denied("An address must not have a user name or a password in it.")
    parts = None if _NEVER.search(authority) else _AUTHORITY.fullmatch(authority)
    if parts is None or not parts[1]:
        raise Denied("The address has no host that can be read.")
    number = int(parts[2]) if parts[2] else port
    if not 0 < number < 65_536:
        raise Denied("The address has no port between 1 and 65535.")
    return normal(parts[1]), number


def normal(host: str) -> str:
    """Return the one spelling of a host: lower case, punycode, no final dot, addresses as they are dialled."""
    if host.startswith("["):
        try:
            return str(ipaddress.IPv6Address(_unzoned(host[1:-1])))
        except ValueError:
            raise Denied("The address has something in brackets that is not an IPv6 address.") from None
    name = (host if host.isascii() else _ascii(host)).lower().removesuffix(".")
    labels = name.split(".")
    if _NUMBER.fullmatch(labels[-1]):
        return _old_ipv4(labels)
    if len(name) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
        raise Denied("The address has a host name that cannot be one.")
    return name


def _unzoned(text: str) -> str:
    if "%" in text:
        raise Denied("An IPv6 address with a zone is not dialled.")
    return text


def _ascii(host: str) -> str:
    """Return the punycode of a name; this is also where full-width digits and dots become plain ones."""
    import idna

    try:
        return idna.encode(host, uts46=True).decode("ascii")
    except (idna.IDNAError, UnicodeError, ValueError, IndexError):
        raise Denied("The address has a host name that cannot be one.") from None


def _old_ipv4(labels: list[str]) -> str:
    """Read 127.1, 2130706433, 0x7f.1 and 0177.0.0.1 as every C library does, so that they are judged as it dials."""
    if len(labels) > 4 or not all(_NUMBER.fullmatch(label) for label in labels):
        raise Denied("The address has a host that ends in a number but is not an IPv4 address.")
    try:
        numbers = [_number(label) for label in labels]
    except ValueError:
        raise Denied("The address has a host that ends in a number but is not an IPv4 address.") from None
    *front, last = numbers
    if any(one > 255 for one in front) or last >= 256 ** (4 - len(front)):
        raise Denied("The address has an IPv4 address with a number that is too large.")
    whole = sum(one << (24 - 8 * place) for place, one in enumerate(front)) + last
    return str(ipaddress.IPv4Address(whole))


def _number(text: str) -> int:
    if len(text) > 40:
        raise ValueError("too long")
    if text[:2] in ("0x", "0X"):
        return int(text[2:] or "0", 16)
    return int(text, 8 if text.startswith("0") and len(text) > 1 else 10)


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _literal(host: str) -> IP | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


class Allowance:
    """What the setting `egress.private` makes reachable: networks, addresses and host names."""

    def __init__(self, entries: Sequence[str] = ()) -> None:
        """Raise `Denied` for an entry that is none of these."""
        self._networks: list[Network] = []
        self._names: set[str] = set()
        for entry in entries:
            network = lan(entry.strip())
            if network is None:
                self._names.add(normal(entry.strip()))
            else:
                self._networks.append(network)

    def covers(self, host: str, ip: IP) -> bool:
        """Tell whether an address of a host is allowed."""
        if host in self._names:
            return True
        plain = ip.ipv4_mapped if isinstance(ip, ipaddress.IPv6Address) and ip.ipv4_mapped else ip
        return any(plain.version == network.version and plain in network for network in self._networks)


class Egress:
    """Decide what may be dialled, and dial it."""

    def __init__(self, private: Sequence[str] = (), resolve: Resolver | None = None) -> None:
        """Take the entries of `egress.private` and, for tests, another DNS. Raises `Denied` for a wrong entry."""
        self._allowance = Allowance(private)
        self._ask = resolve or _system_resolve

    async def resolve(self, place: Place, reach: Reach = Reach.PUBLIC) -> tuple[str, ...]:
        """Return the addresses of a place, each of them checked: one that may not be dialled denies all.

        Raises `Denied`; `Unresolved` when there is no address.
        """
        self.check_name(place.host)
        ip = place.address
        if ip is not None:
            return (self.check_address(place.host, ip, reach),)
        try:
            answers = await self._ask(place.host, place.port)
        except (OSError, UnicodeError) as error:
            raise Unresolved(f"{place.host} was not found.") from error
        if reach is Reach.NAMED:  # a name in the home network often has a link-local address too, which needs a zone
            answers = [answer for answer in answers if "%" not in answer]
        if not answers:
            raise Unresolved(f"{place.host} was not found.")
        return tuple(dict.fromkeys(self._checked(place.host, answer, reach) for answer in answers))

    def check_name(self, host: str) -> None:
        """Raise `Denied` for a name that is always refused."""
        if host in METADATA_NAMES:
            raise Denied(f"{host} is a metadata service, which is never called.")

    def check_address(self, host: str, ip: IP, reach: Reach) -> str:
        """Return an address of a host as it is dialled. Raises `Denied`."""
        if is_metadata(ip):
            raise Denied(f"{host} is a metadata service, which is never called.")
        if reach is Reach.PUBLIC:
            kind = kind_of(ip)
            if kind and not self._allowance.covers(host, ip):
                raise Denied(_refusal(host, ip, kind))
        return str(ip)

    def _checked(self, host: str, answer: str, reach: Reach) -> str:
        ip = _literal(answer)
        if ip is None or (isinstance(ip, ipaddress.IPv6Address) and ip.scope_id is not None):
            raise Denied(f"{host} has an address that cannot be judged.")
        return self.check_address(host, ip, reach)

    async def open(
        self, place: Place, reach: Reach = Reach.PUBLIC, *, tls: bool = False, connect_s: float = CONNECT_S
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect to a place, trying its checked addresses in turn.

        Raises `Denied`, `OSError`, and `TimeoutError` when `connect_s` seconds are over.
        """
        async with asyncio.timeout(connect_s):
            addresses = await self.resolve(place, reach)
            return await self.open_checked(addresses, place, tls=tls, each_s=connect_s / len(addresses))

    async def open_checked(
        self, addresses: Sequence[str], place: Place, *, tls: bool = False, each_s: float = CONNECT_S
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect to the first of the addresses, as `resolve` returned them, that answers. Raises `OSError`."""
        fault: OSError = OSError(f"{place.host} has no address")
        for address in addresses:
            try:
                async with asyncio.timeout(each_s):
                    return await asyncio.open_connection(
                        address, place.port, ssl=tls or None, server_hostname=place.host if tls else None
                    )
            except OSError as error:  # a TimeoutError is one
                fault = error
        raise fault


def _refusal(host: str, ip: IP, kind: str) -> str:
    where = host if str(ip) == host else f"{host} ({ip})"
    hint = " If a proxy on this machine answers for all names, name" if kind == FAKE else " If it is meant, name"
    entry = "198.18.0.0/15" if kind == FAKE else "it"
    return f"{where} is not dialled: {kind}.{hint} {entry} in the setting egress.private."


async def _system_resolve(host: str, port: int) -> Sequence[str]:
    found = await asyncio.get_running_loop().getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG
    )
    return [str(one[4][0]) for one in found]
