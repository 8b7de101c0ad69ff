"""Hosts that a service's clips may come from."""

from collections.abc import Iterable

from unreel.core.failure import Failure, FailureReason
from unreel.core.server import read_server


def require_host(url: str, hosts: Iterable[str]) -> Failure | None:
    """Return a failure if `url` is at none of `hosts`, each a name with its port unless that is the default."""
    try:
        server = read_server(url.partition("?")[0].partition("#")[0])
    except ValueError:
        return Failure(FailureReason.NOT_NAMED, "the clip's address cannot be read")
    if str(server) in {host.lower() for host in hosts}:
        return None
    detail = f"the clip is at {server}, which download_hosts does not name"
    return Failure(FailureReason.NOT_NAMED, detail)
