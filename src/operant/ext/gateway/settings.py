"""The section `gateway` of the configuration."""

from __future__ import annotations

from ipaddress import ip_address
from typing import Annotated

from msgspec import Meta

from operant.sdk import Record

DEFAULT_PORT = 8000


CHANNEL = "http"
"""The channel of all who come by the gateway; whoever is answered there reads the history."""


class Tls(Record):
    """Files for encrypted connections."""

    certificate: Annotated[str, Meta(description="File with the certificate and its chain (PEM); empty: no TLS.")] = ""
    key: Annotated[str, Meta(description="File with its private key (PEM).")] = ""


class GatewaySettings(Record):
    """Where the gateway listens, and who may come in."""

    host: Annotated[str, Meta(description="Address to listen on; other than loopback only with TLS or `insecure`.")] = (
        "127.0.0.1"
    )
    port: Annotated[
        Annotated[int, Meta(ge=0, le=65535)] | None,
        Meta(description="Port to listen on; null: 8000, or the next one that is free; 0: any."),
    ] = None
    names: Annotated[
        tuple[str, ...], Meta(description="More names under which browsers may reach it, such as `nas.local`.")
    ] = ()
    origins: Annotated[
        tuple[str, ...], Meta(description="Origins of other pages that may use it, such as `https://my.example.org`.")
    ] = ()
    proxies: Annotated[
        tuple[str, ...], Meta(description="Addresses of reverse proxies whose `X-Forwarded-…` headers are believed.")
    ] = ()
    tls: Annotated[Tls, Meta(description="Files for encrypted connections.")] = Tls()
    insecure: Annotated[bool, Meta(description="Allow a listening address beyond this machine without TLS.")] = False
    open: Annotated[
        bool, Meta(description="Open the page when Operant starts in a terminal on a machine with a screen.")
    ] = True
    upload_mb: Annotated[int, Meta(ge=1, le=4096, description="Size of an upload at most, in MiB.")] = 32
    connections: Annotated[int, Meta(ge=8, description="Connections that may be open at once.")] = 2000

    def __post_init__(self) -> None:
        """Refuse to be open to a network without encryption, unless somebody means it."""
        if bool(self.tls.certificate) != bool(self.tls.key):
            raise ValueError("`tls` needs both `certificate` and `key`")
        for address in self.proxies:
            ip_address(address)
        if not (is_loopback(self.host) or self.tls.certificate or self.insecure):
            raise ValueError(
                f"{self.host} can be reached from outside, and there is no TLS: set `tls`, or `insecure: true` "
                "(--insecure) if something in front of it encrypts"
            )


def is_loopback(host: str) -> bool:
    """Tell whether an address to listen on can be reached from this machine only."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
