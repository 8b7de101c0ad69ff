"""Replies of a Label Studio: recorded from a real server, then served again without it.

The replies to reads are recorded. A resumed push or pull must send nothing else, so every other request is
counted.
"""

import http.client
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, urlencode, urlsplit


@dataclass
class StudioReplies:
    """Recorded replies by path and sorted query, and the requests that had none."""

    recorded: dict[str, str] = field(default_factory=dict)
    writes: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    address: str = ""


@contextmanager
def serve_replies(replies: StudioReplies, *, source: str = "") -> Iterator[StudioReplies]:
    """Serve `replies` on a free port of loopback; with the address of a `source`, record them there."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            key = _normalise(self.path)
            if source:
                status, body = _forward(source, self)
                replies.recorded[key] = body.decode()
            elif key in replies.recorded:
                status, body = 200, replies.recorded[key].encode()
            else:
                replies.unknown.append(key)
                status, body = 404, b"{}"
            self._reply(status, body)

        def _write(self) -> None:
            replies.writes.append(f"{self.command} {self.path}")
            self._reply(*(_forward(source, self) if source else (500, b"{}")))

        def __getattr__(self, name: str) -> object:
            if name.startswith("do_"):
                return self._write
            raise AttributeError(name)

        def _reply(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    replies.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield replies
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _normalise(path: str) -> str:
    parts = urlsplit(path)
    return f"{parts.path}?{urlencode(sorted(parse_qsl(parts.query)))}"


def _forward(source: str, request: BaseHTTPRequestHandler) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(urlsplit(source).netloc, timeout=120)
    body = request.rfile.read(int(request.headers.get("content-length", 0)))
    names = ("authorization", "content-type", "accept")
    headers = {name: request.headers[name] for name in names if name in request.headers}
    connection.request(request.command, request.path, body or None, headers)
    reply = connection.getresponse()
    return reply.status, reply.read()
