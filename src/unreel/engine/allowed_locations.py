"""Check of remote locations: files are fetched only from locations that the user allowed."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from urllib.parse import unquote, urlsplit

from unreel.core.address_check import (
    IpAddress,
    Peer,
    parse_ip_address,
    resolve_host,
    unwrap_ipv6_address,
)
from unreel.core.errors import InvalidSettingError, InvalidValueError

SCHEMES = ("s3", "https", "http")
LOCALHOST = "localhost"
_PORTS = {"https": 443, "http": 80}
_SETTING = "UNREEL_FETCH_FROM"


@dataclass(frozen=True, slots=True)
class AllowedLocation:
    """An S3 bucket or web host from which files may be fetched, with the path prefix of the files."""

    scheme: str
    host: str
    port: int | None
    parts: tuple[str, ...]

    def covers(self, other: "AllowedLocation") -> bool:
        """Return whether `other` is this location or inside it."""
        is_same_host = replace(self, parts=()) == replace(other, parts=())
        return is_same_host and other.parts[: len(self.parts)] == self.parts


def parse_allowed_locations(text: str) -> tuple[str, ...]:
    """Parse the comma-separated allowed locations of the setting `UNREEL_FETCH_FROM`.

    Raise `InvalidSettingError` if a location is neither an S3 bucket nor a web host.
    """
    names = tuple(name for name in (part.strip() for part in text.split(",")) if name)
    for name in names:
        try:
            _parse_remote_location(name)
        except InvalidValueError as error:
            raise InvalidSettingError(
                _SETTING,
                f"cannot use {name!r} ({error})",
                "Write s3://bucket/prefix or https://host, with commas between them",
            ) from error
    return names


def require_allowed_location(location: str, named: Iterable[str]) -> None:
    """Raise `InvalidValueError` if `location` is in none of the locations `named`, or unusable."""
    target = _parse_remote_location(location)
    if not any(_parse_remote_location(text).covers(target) for text in named):
        raise InvalidValueError(
            f"nothing is fetched from {target.scheme}://{target.host}, which is not allowed"
        )


def resolve_allowed_host(host: str, port: int) -> list[Peer]:
    """Return the addresses of an allowed host; reject a name that resolves to this machine.

    A name may resolve to a private address, because the user chose the name. Only `localhost` or an
    IP address may mean this machine. Link-local and metadata addresses are always rejected. Raise
    `InvalidValueError` if an address of the host is rejected, or `OSError` if the name cannot be
    resolved.
    """
    peers = resolve_host(host, port)
    if not (host == LOCALHOST or parse_ip_address(host) is not None):
        for address, _ in peers:
            if any(ip.is_loopback for ip in _parse_embedded_addresses(address)):
                raise InvalidValueError(f"{host} resolves to {address}, an address of this machine")
    return peers


def require_public_addresses(peers: Iterable[Peer]) -> None:
    """Raise if one of the network addresses `peers` is not public.

    Loopback, link-local and private addresses are not public. The check protects internal servers
    from URLs that come from an untrusted source. Raise `InvalidValueError` if one of the addresses
    is not public.
    """
    for address, _ in peers:
        for ip in _parse_embedded_addresses(address):
            if not ip.is_global or ip.is_multicast:
                raise InvalidValueError(
                    f"{ip} is not a public internet address, and its source is untrusted"
                )


def get_url_origin(location: str) -> str:
    """Return scheme, host and port of an HTTP(S) URL; raise `InvalidValueError` for another text."""
    url = _parse_remote_location(location)
    if url.scheme not in _PORTS:
        raise InvalidValueError(f"{url.scheme} is not a web scheme")
    host = f"[{url.host}]" if ":" in url.host else url.host
    return f"{url.scheme}://{host}:{url.port}"


def _parse_remote_location(address: str) -> AllowedLocation:
    scheme, _, rest = address.partition("://")
    if scheme not in SCHEMES:
        label = scheme if scheme.isalnum() and rest else "this"
        raise InvalidValueError(f"{label} is not an allowed scheme, only {', '.join(SCHEMES)}")
    if not address.isprintable() or "\\" in address:
        raise InvalidValueError("the address contains characters that are not allowed")
    if scheme == "s3":
        # Keys are taken literally: `#`, `?` and `%` are ordinary characters.
        bucket, _, key = rest.partition("/")
        return AllowedLocation(scheme, _require_single_host(bucket), None, _split_safe_path(key))
    try:
        split = urlsplit(address)
        port = split.port or _PORTS[split.scheme]
    except ValueError as error:
        raise InvalidValueError(f"the address is invalid: {error}") from error
    if " " in address or split.username is not None:
        raise InvalidValueError("the address contains a space or a user name")
    host = _require_single_host((split.hostname or "").rstrip("."))
    return AllowedLocation(split.scheme, host, port, _split_safe_path(unquote(split.path)))


def _require_single_host(host: str) -> str:
    if not re.fullmatch(r"[\w.:-]+", host):
        raise InvalidValueError("the address does not name one bucket or host")
    return host


def _split_safe_path(path: str) -> tuple[str, ...]:
    parts = tuple(part for part in path.split("/") if part)
    if {".", ".."} & set(parts):
        raise InvalidValueError("the path contains . or ..")
    return parts


def _parse_embedded_addresses(text: str) -> tuple[IpAddress, ...]:
    address = parse_ip_address(text)
    return () if address is None else unwrap_ipv6_address(address)
