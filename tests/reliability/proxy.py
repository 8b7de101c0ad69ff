"""A proxy on loopback before an S3 server: it can be slow, refuse, cut replies, or hang up."""

import itertools
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import StrEnum

_SECONDS = 60
_PIECE = 65536


class Fault(StrEnum):
    """What may happen to a request."""

    NONE = "none"
    BUSY = "busy"
    """It is answered with 503 and never reaches the server."""
    HALF = "half"
    """The server does it, and half of its reply arrives."""
    LOST = "lost"
    """The server does it, and nothing of its reply arrives."""
    SLOW = "slow"
    """It takes longer."""
    STUCK = "stuck"
    """It is not answered as long as this lasts."""


Choose = Callable[[str, str], Fault]
"""The fault of a request, from its method and path."""

_BUSY_WORDS = b"<Error><Code>SlowDown</Code><Message>not now</Message></Error>"
_BUSY = b"HTTP/1.1 503 Slow Down\r\nContent-Length: %d\r\n\r\n" % len(_BUSY_WORDS) + _BUSY_WORDS


@dataclass
class Proxy:
    """Where it listens, what it does now, and how often it did so."""

    upstream: int
    port: int = 0
    choose: Choose = lambda _method, _path: Fault.NONE
    done: dict[Fault, int] = field(default_factory=dict)

    def sound(self) -> None:
        self.choose = lambda _method, _path: Fault.NONE

    def always(self, fault: Fault, *, only: str = "", method: str = "") -> None:
        """Do `fault` to every request whose path holds `only`."""
        self.choose = lambda verb, path: (
            fault if only in path and verb.startswith(method) else Fault.NONE
        )

    def once(self, fault: Fault, *, only: str = "", method: str = "", times: int = 1) -> None:
        """Do `fault` to the first such requests alone."""
        left = [times]
        guard = threading.Lock()

        def choose(verb: str, path: str) -> Fault:
            with guard:
                if left[0] and only in path and verb.startswith(method):
                    left[0] -= 1
                    return fault
            return Fault.NONE

        self.choose = choose

    def every(self, n: int, *faults: Fault) -> None:
        """Do one of `faults`, in turn, to each n-th request."""
        turn = itertools.cycle(faults)
        count = itertools.count(1)
        guard = threading.Lock()

        def choose(_verb: str, _path: str) -> Fault:
            with guard:
                return Fault.NONE if next(count) % n else next(turn)

        self.choose = choose


@contextmanager
def faulty_proxy(upstream: int) -> Iterator[Proxy]:
    """A proxy before `upstream`, for as long as the block lasts."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        proxy = Proxy(upstream, listener.getsockname()[1])
        threading.Thread(target=_accept, args=(listener, proxy), daemon=True).start()
        yield proxy
        proxy.sound()


def _accept(listener: socket.socket, proxy: Proxy) -> None:
    with suppress(OSError):  # closed at the end
        while True:
            client, _ = listener.accept()
            threading.Thread(target=_serve, args=(client, proxy), daemon=True).start()


def _serve(client: socket.socket, proxy: Proxy) -> None:
    client.settimeout(_SECONDS)
    with client, suppress(OSError):
        while request := _read_message(client):
            method, path, *_ = request.split(b" ", 2)
            if not _answer(
                client, request, proxy, fault=proxy.choose(method.decode(), path.decode())
            ):
                return


def _answer(client: socket.socket, request: bytes, proxy: Proxy, *, fault: Fault) -> bool:
    """Whether the connection may be used again."""
    proxy.done[fault] = proxy.done.get(fault, 0) + 1
    if fault is Fault.BUSY:
        client.sendall(_BUSY)
        return True
    if fault is Fault.SLOW:
        time.sleep(0.3)
    if fault is Fault.STUCK:
        asked = proxy.choose
        while proxy.choose is asked:
            time.sleep(0.05)
        return False
    reply = _ask(proxy.upstream, request)
    if not reply or fault is Fault.LOST:
        return False
    if fault is Fault.HALF:
        client.sendall(reply[: len(reply) // 2])
        return False
    client.sendall(reply)
    return True


def _ask(port: int, request: bytes) -> bytes:
    """The server's whole reply; nothing where it is away."""
    try:
        with socket.create_connection(("127.0.0.1", port), _SECONDS) as server:
            server.sendall(request)
            return _read_message(server, no_body=request.startswith(b"HEAD "))
    except OSError:
        return b""


def _read_message(stream: socket.socket, *, no_body: bool = False) -> bytes:
    """A head and its body, as they came; nothing at the end of the stream."""
    data = b""
    while not _is_whole(data, no_body=no_body):
        piece = stream.recv(_PIECE)
        if not piece:
            return b""
        data += piece
    return data


def _is_whole(data: bytes, *, no_body: bool) -> bool:
    head, end, body = data.partition(b"\r\n\r\n")
    if not end or no_body:
        return bool(end)
    lines = [line.partition(b":") for line in head.lower().split(b"\r\n")[1:]]
    fields = {name: value.strip() for name, _, value in lines}
    if fields.get(b"transfer-encoding") == b"chunked":
        return body.endswith(b"0\r\n\r\n")
    return len(body) >= int(fields.get(b"content-length", b"0"))
