"""Allowed remote locations: only those that the user named."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote, urlsplit

from unreel.core.address_check import (
    IpAddress,
    Peer,
    parse_address,
    resolve_host,
    unwrap_addresses,
)
from unreel.core.errors import InvalidSettingError, InvalidValueError

SCHEMES: Final = ("s3", "https", "http")
LOCALHOST: Final = "localhost"
_PORTS: Final = {"https": 443, "http": 80}
_SETTING: Final = "UNREEL_FETCH_FROM"


@dataclass(frozen=True, slots=True)
class NamedPlace:
    """An allowed bucket or host, with the path prefix of its files."""

    scheme: str
    host: str
    port: int | None
    parts: tuple[str, ...]

    def covers(self, other: "NamedPlace") -> bool:
        """Return whether `other` is this location or inside it."""
        return (self.scheme, self.host, self.port) == (
            other.scheme,
            other.host,
            other.port,
        ) and other.parts[: len(self.parts)] == self.parts


def read_places(text: str) -> tuple[str, ...]:
    """Parse the comma-separated places of a setting.

    Raises:
        InvalidSettingError: A place is neither a store nor a host.
    """
    found = tuple(word for word in (part.strip() for part in text.split(",")) if word)
    for word in found:
        try:
            _parse_location(word)
        except InvalidValueError as error:
            remedy = "Write s3://bucket/prefix or https://host, with commas between them"
            raise InvalidSettingError(_SETTING, f"cannot use {word!r} ({error})", remedy) from error
    return found


def require_named(location: str, named: Iterable[str]) -> None:
    """Raise for a location below none of the allowed places `named`.

    Raises:
        InvalidValueError: It is not allowed, or not a URL that can be fetched.
    """
    wanted = _parse_location(location)
    if not any(_parse_location(place).covers(wanted) for place in named):
        shown = f"{wanted.scheme}://{wanted.host}"
        msg = f"nothing is fetched from {shown}, which is not allowed"
        raise InvalidValueError(msg)


def resolve_peers(host: str, port: int) -> list[Peer]:
    """Return the addresses of an allowed host; reject a name that resolves to this machine.

    A name may resolve to a private address, because the user chose the name. Only `localhost` or an
    IP address may mean this machine. Link-local and metadata addresses are always rejected.

    Raises:
        InvalidValueError: An address of the host is rejected.
        OSError: The name cannot be resolved.
    """
    peers = resolve_host(host, port)
    if not _is_literal(host):
        for address, _ in peers:
            if any(found.is_loopback for found in _parse_embedded_addresses(address)):
                msg = f"{host} resolves to {address}, an address of this machine"
                raise InvalidValueError(msg)
    return peers


def require_public(peers: Iterable[Peer]) -> None:
    """Raise for addresses that are not of the open internet: of this machine, its link or a private network.

    For what a stranger names: a server behind this machine's wall must not be reached through it.

    Raises:
        InvalidValueError: One of them is such an address.
    """
    for address, _ in peers:
        for found in _parse_embedded_addresses(address):
            if not found.is_global or found.is_multicast:
                msg = f"{found} is no address of the open internet, and a stranger named it"
                raise InvalidValueError(msg)


def get_site(location: str) -> str:
    """Return scheme, host and port of a web address, in the form of an allowed place.

    Raises:
        InvalidValueError: `location` is not a web address.
    """
    place = _parse_location(location)
    if place.scheme not in _PORTS:
        msg = f"{place.scheme} is no scheme of the web"
        raise InvalidValueError(msg)
    host = f"[{place.host}]" if ":" in place.host else place.host
    return f"{place.scheme}://{host}:{place.port}"


def _parse_location(address: str) -> NamedPlace:
    scheme, _, rest = address.partition("://")
    if scheme not in SCHEMES:
        shown = scheme if scheme.isalnum() and rest else "this"
        msg = f"{shown} is no scheme that is fetched, only {', '.join(SCHEMES)}"
        raise InvalidValueError(msg)
    if not address.isprintable() or "\\" in address:
        msg = "it holds characters that no address has"
        raise InvalidValueError(msg)
    if scheme == "s3":
        # Keys are taken as they are written: `#`, `?` and `%` are letters like any other.
        bucket, _, key = rest.partition("/")
        return NamedPlace(scheme, _require_single_host(bucket), None, _split_safe_path(key))
    return _parse_web_location(address)


def _parse_web_location(address: str) -> NamedPlace:
    try:
        split = urlsplit(address)
        port = split.port or _PORTS[split.scheme]
    except ValueError as error:
        msg = f"it is no address: {error}"
        raise InvalidValueError(msg) from error
    if " " in address or split.username is not None:
        msg = "it holds a blank or the name of a user"
        raise InvalidValueError(msg)
    host = _require_single_host((split.hostname or "").rstrip("."))
    return NamedPlace(split.scheme, host, port, _split_safe_path(unquote(split.path)))


def _require_single_host(host: str) -> str:
    if not re.fullmatch(r"[\w.:-]+", host):
        msg = "it names no single bucket or host"
        raise InvalidValueError(msg)
    return host


def _split_safe_path(path: str) -> tuple[str, ...]:
    parts = tuple(part for part in path.split("/") if part)
    if {".", ".."} & set(parts):
        msg = "its path climbs"
        raise InvalidValueError(msg)
    return parts


def _is_literal(host: str) -> bool:
    return host == LOCALHOST or parse_address(host) is not None


def _parse_embedded_addresses(text: str) -> tuple[IpAddress, ...]:
    address = parse_address(text)
    return () if address is None else unwrap_addresses(address)
