"""Downloads of remote clips: only from allowed locations, with limits of size and time."""

import http.client
import socket
import ssl
import threading
import time
from collections.abc import Generator, Iterable, Mapping
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from typing import IO, Any, Self, TypeVar
from urllib.parse import SplitResult, urljoin, urlsplit

from unreel.core.address_check import Peer
from unreel.core.chunks import READ_BYTES
from unreel.core.errors import InvalidValueError, MediaError
from unreel.core.failure import FailureReason
from unreel.engine.allowed_locations import (
    get_url_origin,
    require_allowed_location,
    require_public_addresses,
    resolve_allowed_host,
)

_READABLE = 200
_REDIRECTS = 3
_FOUND = 200
_MOVED = range(300, 400)
_PORTS = {"https": 443, "http": 80}
_Socket = TypeVar("_Socket", bound=socket.socket)


@dataclass(frozen=True, slots=True, kw_only=True)
class DownloadPolicy:
    """Allowed locations, maximum size and timeout of a download."""

    named: tuple[str, ...]
    max_bytes: int
    seconds: float
    public: bool = False
    """Whether only public internet addresses may be contacted, for a location from an untrusted source."""


def download_public_file(location: str, into: IO[bytes], *, max_bytes: int, seconds: float) -> None:
    """Download a URL from an untrusted source: only from its own host, at public addresses.

    Raise `MediaError` if an address is not public, or the file is missing, too large or too slow.
    """
    try:
        named = (get_url_origin(location),)
    except InvalidValueError as error:
        url = location.partition("?")[0][:_READABLE]
        raise MediaError(FailureReason.NOT_NAMED, f"{url}: {error}") from error
    policy = DownloadPolicy(named=named, max_bytes=max_bytes, seconds=seconds, public=True)
    download_file(location, into, policy=policy, storage={})


def download_file(
    location: str, into: IO[bytes], *, policy: DownloadPolicy, storage: Mapping[str, str]
) -> None:
    """Copy the file at `location` into an open file, which the caller discards on failure.

    Raise `MediaError` if the location is not allowed, the file is missing, too large or too slow.
    """
    until_s = time.monotonic() + policy.seconds
    try:
        require_allowed_location(location, policy.named)
        is_s3 = location.startswith("s3://")
        with closing(
            _iter_s3_pieces(location, policy, storage)
            if is_s3
            else _iter_http_pieces(location, policy)
        ) as pieces:
            n_bytes = 0
            for piece in pieces:
                n_bytes += len(piece)
                if n_bytes > policy.max_bytes:
                    detail = f"more than {policy.max_bytes} bytes"
                    raise MediaError(FailureReason.TOO_LARGE, detail)
                if time.monotonic() > until_s:
                    raise TimeoutError
                into.write(piece)
        into.flush()
        if time.monotonic() > until_s:
            raise TimeoutError  # a connection that was shut down looks like the end of the file
    except (MediaError, InvalidValueError, OSError, http.client.HTTPException) as error:
        late = time.monotonic() > until_s
        raise _convert_to_download_error(error, location, late=late, policy=policy) from error


def _iter_s3_pieces(
    location: str, policy: DownloadPolicy, storage: Mapping[str, str]
) -> Generator[Any, None, None]:
    from obstore.exceptions import BaseError

    from unreel.engine.location import StorageLocation, raise_if_store_unavailable

    bucket, _, key = location.removeprefix("s3://").partition("/")
    options = {**storage, "timeout": f"{policy.seconds}s"}
    try:
        store = StorageLocation(f"s3://{bucket}", options).objects(retry_timeout_s=policy.seconds)
        result = store.get(key)
        if result.meta["size"] > policy.max_bytes:
            raise MediaError(FailureReason.TOO_LARGE, f"{result.meta['size']} bytes")
        yield from result.stream(min_chunk_size=READ_BYTES)
    except BaseError as error:
        raise_if_store_unavailable(error, location)
        raise OSError(str(error)) from error


def _iter_http_pieces(location: str, policy: DownloadPolicy) -> Generator[bytes, None, None]:
    with _CancellableConnection(policy) as line:
        reply = line.ask(urlsplit(location))
        for _ in range(_REDIRECTS):
            if reply.status not in _MOVED:
                break
            moved = urljoin(location, (reply.getheader("Location") or ""))
            old, new = urlsplit(location), urlsplit(moved)
            if (old.scheme, old.netloc) != (new.scheme, new.netloc):
                raise InvalidValueError(
                    "the server redirects to another host, which is not followed"
                )
            require_allowed_location(moved, policy.named)
            location = moved
            reply = line.ask(urlsplit(location))
        if reply.status != _FOUND:
            raise OSError(f"the server answers with status {reply.status}")
        if (reply.length or 0) > policy.max_bytes:
            raise MediaError(FailureReason.TOO_LARGE, f"{reply.length} bytes")
        while piece := reply.read1(READ_BYTES):
            yield piece
        if reply.length:
            raise OSError(f"the connection ended {reply.length} bytes too early")


class _CancellableConnection:
    """Successive HTTP connections of one download, which a timer shuts down."""

    def __init__(self, policy: DownloadPolicy) -> None:
        self._until_s = time.monotonic() + policy.seconds
        self._public = policy.public
        self._socket: socket.socket | None = None
        self._open = ExitStack()
        self._timer = threading.Timer(policy.seconds, self._shut_down)
        self._timer.daemon = True

    def __enter__(self) -> Self:
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        self._open.close()

    @property
    def left_s(self) -> float:
        """Return the remaining seconds of the download, at least 0.1."""
        return max(0.1, self._until_s - time.monotonic())

    def ask(self, address: SplitResult) -> http.client.HTTPResponse:
        """Send a GET request to the checked IP address: the host name is not resolved a second time."""
        host, port = str(address.hostname), address.port or _PORTS[address.scheme]
        peers = resolve_allowed_host(host, port)
        if self._public:
            require_public_addresses(peers)
        sock = self._hold(_connect_first_reachable(peers, self.left_s))
        if address.scheme == "https":
            context = ssl.create_default_context()
            sock = self._hold(
                context.wrap_socket(sock, server_hostname=host, do_handshake_on_connect=False)
            )
            sock.do_handshake()
        connection = http.client.HTTPConnection(host, port)
        connection.sock = sock
        target = (address.path or "/") + (f"?{address.query}" if address.query else "")
        connection.request("GET", target, headers={"Accept-Encoding": "identity"})
        return self._open.enter_context(connection.getresponse())

    def _shut_down(self) -> None:
        # A read in any thread then ends, even from a slowly sending server.
        if self._socket is not None:
            with suppress(OSError):
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    def _hold(self, sock: _Socket) -> _Socket:
        self._open.enter_context(sock)
        sock.settimeout(self.left_s)
        self._socket = sock
        return sock


def _connect_first_reachable(peers: Iterable[Peer], seconds: float) -> socket.socket:
    lost: OSError | None = None
    for peer in peers:
        try:
            return socket.create_connection(peer, seconds)
        except OSError as error:
            lost = error
    raise lost or OSError("the host has no address")


def _convert_to_download_error(
    error: Exception, location: str, *, late: bool, policy: DownloadPolicy
) -> MediaError:
    url = location.partition("?")[0]  # the query may contain a signature
    if isinstance(error, MediaError):
        failure = error.failure
        return MediaError(failure.reason, f"{url}: {failure.detail}")
    if isinstance(error, InvalidValueError):
        return MediaError(FailureReason.NOT_NAMED, f"{url}: {error}")
    if late or isinstance(error, TimeoutError):
        detail = f"{url} took longer than {policy.seconds:g} s"
        return MediaError(FailureReason.OUT_OF_TIME, detail)
    return MediaError(FailureReason.NOT_A_FILE, f"cannot fetch {url}: {error}")
