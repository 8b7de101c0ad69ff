"""Addresses to which unreel never connects, in every spelling."""

import socket
from ipaddress import ip_address
from typing import Any

import pytest

from unreel.core.address_check import (
    RefusedAddressError,
    is_forbidden_address,
    require_allowed_addresses,
    resolve_host,
    unwrap_ipv6_address,
)

REFUSED = (
    "169.254.169.254", "169.254.0.1", "fe80::1", "100.100.100.200", "168.63.129.16", "192.0.0.192", "fd00:ec2::254",
    "fd20:ce::254", "0.0.0.0", "::", "224.0.0.1", "ff02::1", "255.255.255.255",
    "::ffff:169.254.169.254", "::169.254.169.254", "2002:a9fe:a9fe::1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::a9fe:a9fe",
    "64:ff9b:1:a9fe:a9:fe00::", "fd12::5efe:a9fe:a9fe", "2001:0:a9fe:a9fe::1",
)  # fmt: skip
ALLOWED = (
    "127.0.0.1", "::1", "::ffff:127.0.0.1", "10.0.0.1", "172.16.0.1", "192.168.1.5", "100.64.0.1", "fd12::1", "8.8.8.8",
    "2606:4700::1111", "64:ff9b::808:808",
)  # fmt: skip


@pytest.mark.parametrize("address", REFUSED)
def test_link_local_metadata_and_group_addresses_are_refused_in_every_form(address: str) -> None:
    assert is_forbidden_address(ip_address(address))


@pytest.mark.parametrize("address", ALLOWED)
def test_loopback_private_and_public_addresses_are_allowed(address: str) -> None:
    assert not is_forbidden_address(ip_address(address))


def test_an_address_that_carries_none_is_its_own_innermost_one() -> None:
    for text in ("::1", "10.0.0.1", "2606:4700::1111"):
        assert unwrap_ipv6_address(ip_address(text)) == (ip_address(text),)


@pytest.mark.parametrize(
    "text", ["2852039166", "0xa9fea9fe", "0251.0376.0251.0376", "169.16689662"]
)
def test_a_refused_address_written_as_a_number_is_refused_without_resolving_it(text: str) -> None:
    with pytest.raises(RefusedAddressError, match="never connects"):
        require_allowed_addresses(text, [text])
    require_allowed_addresses("example.org", ["example.org"])


def test_one_refused_address_among_several_refuses_the_host(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def resolve(*_: Any, **__: Any) -> list[Any]:
        return [(socket.AF_INET, 1, 6, "", (each, 80)) for each in ("8.8.8.8", "169.254.169.254")]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    with pytest.raises(RefusedAddressError, match=r"clips\.example resolves to 169\.254"):
        resolve_host("clips.example", 80)
