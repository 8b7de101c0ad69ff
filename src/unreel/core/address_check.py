"""Check of the addresses that unreel connects to, and the name resolution that goes with it.

Cloud machines get their credentials from metadata services at link-local and a few fixed addresses. A recipe, a reply
or a redirect may name such an address, also through a host name or inside another address. Callers connect to the
addresses that `resolve_host` returns and never resolve the name a second time.
"""

import ipaddress
import socket

from unreel.core.errors import InvalidValueError

IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
Peer = tuple[str, int]

_METADATA = frozenset(
    ipaddress.ip_address(address)
    for address in (
        "100.100.100.200",
        "168.63.129.16",
        "192.0.0.192",
        "fd00:ec2::254",
        "fd20:ce::254",
    )
)
"""Addresses of metadata services that are not link-local: Alibaba, Azure, Oracle, AWS and Google over IPv6."""
_BROADCAST = ipaddress.IPv4Address("255.255.255.255")
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_LOCAL_NAT64 = ipaddress.IPv6Network("64:ff9b:1::/48")
_COMPATIBLE = ipaddress.IPv6Network("::/96")
_ISATAP = 0x5EFE
_LAST_32 = 0xFFFFFFFF


class RefusedAddressError(InvalidValueError):
    """Error for an address to which unreel never connects."""


def parse_ip_address(text: str) -> IpAddress | None:
    """Return the IP address that `text` spells, or `None` if it is a name."""
    try:
        return ipaddress.ip_address(text.strip("[]").partition("%")[0])
    except ValueError:
        return None


def _parse_legacy_address(text: str) -> IpAddress | None:
    """Return the IPv4 address for a number such as 2852039166 or 0xa9fea9fe, as the C library does."""
    try:
        return ipaddress.IPv4Address(socket.inet_aton(text))
    except (OSError, ValueError):
        return None


def unwrap_ipv6_address(address: IpAddress) -> tuple[IpAddress, ...]:
    """Return embedded IPv4 addresses (mapped, 6to4, Teredo, ISATAP, NAT64, ...), else the address."""
    if isinstance(address, ipaddress.IPv4Address) or address.is_loopback or address.is_unspecified:
        return (address,)
    number = int(address)
    embedded = [address.ipv4_mapped, address.sixtofour, *(address.teredo or ())]
    is_isatap = (number >> 32) & 0xFFFF == _ISATAP
    if is_isatap or any(address in net for net in (_NAT64, _LOCAL_NAT64, _COMPATIBLE)):
        embedded.append(ipaddress.IPv4Address(number & _LAST_32))
    if address in _LOCAL_NAT64:
        # RFC 6052: a prefix of 48 bits carries 16 bits, an octet of zero, 16 bits.
        high, low = (number >> 64) & 0xFFFF, (number >> 40) & 0xFFFF
        embedded.append(ipaddress.IPv4Address(high << 16 | low))
    return tuple(filter(None, embedded)) or (address,)


def is_forbidden_address(address: IpAddress) -> bool:
    """Return whether `address` is link-local, metadata, multicast, broadcast or unspecified."""
    return any(
        ip.is_link_local
        or ip.is_multicast
        or ip.is_unspecified
        or ip == _BROADCAST
        or ip in _METADATA
        for ip in (address, *unwrap_ipv6_address(address))
    )


def require_allowed_addresses(host: str, addresses: list[str]) -> None:
    """Raise if unreel must not connect to one of the addresses of `host`.

    Raise `RefusedAddressError` if an address is link-local, metadata, multicast or unspecified.
    """
    for text in addresses:
        address = parse_ip_address(text) or _parse_legacy_address(text)
        if address is not None and is_forbidden_address(address):
            prefix = "" if text == host else f"{host} resolves to "
            raise RefusedAddressError(
                f"{prefix}{text}, a link-local, metadata, multicast or unspecified address, to which unreel never connects"
            )


def resolve_host(host: str, port: int) -> list[Peer]:
    """Resolve `host` and return its checked addresses.

    Connect to these addresses, and do not resolve `host` again. Raise `RefusedAddressError` if
    unreel must not connect to one of the addresses, or `OSError` if the name cannot be resolved.
    """
    rows = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    peers = list(dict.fromkeys((str(row[4][0]), int(row[4][1])) for row in rows))
    require_allowed_addresses(host, [address for address, _ in peers])
    return peers
