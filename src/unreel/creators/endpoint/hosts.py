"""Allowed hosts of a service and of its clips."""

import asyncio
import ipaddress
import socket
from collections.abc import Iterable

from unreel.core.failure import Failure, FailureReason
from unreel.core.server import Server, read_server


def require_host(url: str, hosts: Iterable[str]) -> Failure | None:
    """A failure where `url` lies at none of `hosts`, each a name with its port where that is not the usual one."""
    try:
        server = read_server(url.partition("?")[0].partition("#")[0])
    except ValueError:
        return Failure(FailureReason.NOT_NAMED, "the clip's address cannot be read")
    if str(server) in {host.lower() for host in hosts}:
        return None
    detail = f"the clip lies at {server}, which download_hosts does not name"
    return Failure(FailureReason.NOT_NAMED, detail)


async def refuse_link(server: Server) -> Failure | None:
    """A failure where a service stands for an address of this machine's link, where metadata is told."""
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(server.host, server.port, type=socket.SOCK_STREAM)
    except OSError:
        return None  # whoever connects says what is wrong; behind a proxy names need not be known
    for address in found:
        near = ipaddress.ip_address(str(address[4][0]).partition("%")[0])
        near = getattr(near, "ipv4_mapped", None) or near
        if near.is_link_local or near.is_multicast or near.is_unspecified:
            detail = f"{server} stands for {near}, where no service is"
            return Failure(FailureReason.NOT_NAMED, detail)
    return None
