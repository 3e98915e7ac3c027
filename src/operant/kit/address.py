"""What an IP address is: public, or something that a page from outside has no business with.

The tables are the special-purpose registries of IANA, and the metadata services of the large clouds. Python's own
`is_global` is not enough: it changed between versions, and it calls multicast global.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator

IP = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

FAKE = "a fake-IP range of some proxies (198.18.0.0/15)"

_SPECIAL: tuple[tuple[str, str], ...] = (
    ("0.0.0.0/8", "this machine"),
    ("10.0.0.0/8", "a private network"),
    ("100.64.0.0/10", "a network of a provider (CGNAT)"),
    ("127.0.0.0/8", "this machine"),
    ("169.254.0.0/16", "link-local"),
    ("172.16.0.0/12", "a private network"),
    ("192.0.0.0/24", "reserved for protocols"),
    ("192.0.2.0/24", "an address for documentation"),
    ("192.88.99.0/24", "a 6to4 relay"),
    ("192.168.0.0/16", "a private network"),
    ("198.18.0.0/15", FAKE),
    ("198.51.100.0/24", "an address for documentation"),
    ("203.0.113.0/24", "an address for documentation"),
    ("224.0.0.0/4", "multicast"),
    ("240.0.0.0/4", "reserved"),
    ("::/128", "this machine"),
    ("::1/128", "this machine"),
    ("64:ff9b:1::/48", "a local NAT64 range"),
    ("100::/64", "a discard range"),
    ("2001::/32", "a Teredo tunnel"),
    ("2001::/23", "reserved for protocols"),
    ("2001:db8::/32", "an address for documentation"),
    ("2002::/16", "a 6to4 tunnel"),
    ("3fff::/20", "an address for documentation"),
    ("fc00::/7", "a private network"),
    ("fe80::/10", "link-local"),
    ("fec0::/10", "a private network"),
    ("ff00::/8", "multicast"),
)
SPECIAL: tuple[tuple[Network, str], ...] = tuple((ipaddress.ip_network(one), what) for one, what in _SPECIAL)

UNICAST = ipaddress.IPv6Network("2000::/3")
"""All that IANA has given out of IPv6 for the open network; what is outside of it is not public, known or not."""

MAPPED = ipaddress.IPv6Network("::ffff:0:0/96")
NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
NAT64_LOCAL = ipaddress.IPv6Network("64:ff9b:1::/48")
COMPATIBLE = ipaddress.IPv6Network("::/96")

METADATA: frozenset[IP] = frozenset(
    ipaddress.ip_address(one)
    for one in (
        "100.100.100.200",  # Alibaba
        "168.63.129.16",  # Azure
        "169.254.0.23",  # Tencent
        "169.254.42.42",  # Scaleway
        "169.254.169.254",  # nearly all
        "169.254.170.2",  # AWS, containers
        "169.254.170.23",  # AWS, pods
        "192.0.0.192",  # Oracle
        "fd00:42::42",  # Scaleway
        "fd00:c1::a9fe:a9fe",  # Oracle
        "fd00:ec2::23",  # AWS, pods
        "fd00:ec2::254",  # AWS
        "fd20:ce::254",  # Google
    )
)
METADATA_NAMES = frozenset(
    (
        "instance-data",
        "instance-data.ec2.internal",
        "metadata",
        "metadata.azure.internal",
        "metadata.goog",
        "metadata.google.internal",
        "metadata.tencentyun.com",
    )
)


def kind_of(ip: IP) -> str:
    """Return what makes an address not public, in words; empty for a public one.

    An address that is another one in a wrapper (mapped, NAT64) is what is inside.
    """
    if isinstance(ip, ipaddress.IPv6Address) and (ip in MAPPED or ip in NAT64):
        return kind_of(_last(ip))
    for network, what in SPECIAL:
        if ip.version == network.version and ip in network:
            return what
    if isinstance(ip, ipaddress.IPv6Address):
        return "" if ip in UNICAST else "not a public address"
    return "" if ip.is_global else "not a public address"


def is_metadata(ip: IP) -> bool:
    """Tell whether an address, or one that it carries inside, is a cloud's metadata service."""
    return any(one in METADATA for one in _carried(ip))


def _carried(ip: IP) -> Iterator[IP]:
    yield ip
    if isinstance(ip, ipaddress.IPv4Address):
        return
    if ip in MAPPED or ip in NAT64 or ip in NAT64_LOCAL or ip in COMPATIBLE:
        yield _last(ip)
    if ip.sixtofour is not None:
        yield ip.sixtofour
    if ip.teredo is not None:
        yield from ip.teredo


def _last(ip: ipaddress.IPv6Address) -> ipaddress.IPv4Address:
    return ipaddress.IPv4Address(int(ip) & 0xFFFF_FFFF)


def lan(text: str) -> Network | None:
    """Return an address or a network as a network; None for anything else."""
    try:
        return ipaddress.ip_network(text, strict=False)
    except ValueError:
        return None
