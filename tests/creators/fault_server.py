"""A service that makes clips, with the faults of a real one; it listens on loopback only.

The address says what happens: `/FAULT/v1/videos` plays FAULT. Beside it stands a trap, a second server of
this machine that no clip may be fetched from: it counts who comes.
"""

import json
import threading
import time
from collections import Counter, defaultdict
from contextlib import suppress
from dataclasses import dataclass, field
from email.parser import BytesParser
from email.policy import HTTP
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

CLIP = b"\x00\x00\x00\x18ftypisom" + bytes(5000)
METADATA = "http://169.254.169.254/latest/meta-data/"
TEN_GB = 10 << 30
EARLY = 2
"""Requests that a passing fault lasts for."""
FAULTS = (
    *(
        "good",
        "429",
        "500s",
        "submit-lost",
        "huge-json",
        "bad-json",
        "no-id",
        "evil-id",
        "rejected",
    ),
    *("key-rejected", "forbidden", "lost", "failed", "stuck", "poll-500", "poll-html", "poll-huge"),
    *("half", "half-once", "announced", "flood", "drip", "html", "json-clip", "empty", "gzip"),
    *("to-loopback", "to-metadata", "to-itself", "wrong-codec", "duplicate"),
)


@dataclass
class Book:
    """What happened under one fault."""

    posts: int = 0
    jobs: dict[str, str] = field(default_factory=dict)
    """Paid for: one job for each idempotency key."""
    polls: Counter[str] = field(default_factory=Counter)
    downloads: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    form: dict[str, bytes] = field(default_factory=dict)


class FaultService:
    """The service and its trap. Use it as a context; `hold` keeps jobs from ending while it is set."""

    def __init__(self) -> None:
        self.books: dict[str, Book] = defaultdict(Book)
        self.trapped: list[str] = []
        self.hold = threading.Event()
        self.lock = threading.Lock()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._trap = ThreadingHTTPServer(("127.0.0.1", 0), _trap(self))
        for server in (self._http, self._trap):
            server.daemon_threads = True

    def __enter__(self) -> Self:
        for server in (self._http, self._trap):
            threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for server in (self._http, self._trap):
            server.shutdown()
            server.server_close()

    @property
    def trap_port(self) -> int:
        return self._trap.server_port

    def url(self, fault: str) -> str:
        return f"http://127.0.0.1:{self._http.server_port}/{fault}/v1"


def _trap(service: FaultService) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            service.trapped.append(self.path)
            self.send_response(200)
            self.send_header("Content-Length", str(len(CLIP)))
            self.end_headers()
            self.wfile.write(CLIP)

        do_POST = do_HEAD = do_GET  # noqa: N815  the names that http.server looks for

        def log_message(self, *_words: object) -> None:
            pass

    return Handler


def _handler(service: FaultService) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            fault = self.path.split("/")[1]
            with service.lock:
                book = service.books[fault]
                book.posts += 1
                book.headers = {k.lower(): v for k, v in self.headers.items()}
                book.form = _read_form(self.headers["Content-Type"], body)
                number = book.posts
            with suppress(OSError):
                _submit(self, service, fault, number)

        def do_GET(self) -> None:
            fault = self.path.split("/")[1]
            with suppress(OSError):
                if self.path.endswith("/content"):
                    service.books[fault].downloads += 1
                    _download(self, service, fault)
                else:
                    _poll(self, service, fault)

        def log_message(self, *_words: object) -> None:
            pass

    return Handler


def _read_form(kind: str, body: bytes) -> dict[str, bytes]:
    """Return the content of each field of a multipart form."""
    message = BytesParser(policy=HTTP).parsebytes(
        b"Content-Type: " + kind.encode() + b"\r\n\r\n" + body
    )
    return {
        str(part.get_param("name", header="content-disposition")): part.get_payload(decode=True)
        for part in message.iter_parts()
    }


def _reply(handler: BaseHTTPRequestHandler, status: int, body: Any, **headers: str) -> None:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    handler.send_response(status)
    kind = headers.pop("kind", "application/json")
    handler.send_header("Content-Type", kind)
    handler.send_header("Content-Length", str(len(data)))
    for name, value in headers.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    handler.wfile.write(data)


def _submit(
    handler: BaseHTTPRequestHandler, service: FaultService, fault: str, number: int
) -> None:
    sent = handler.headers.get("Authorization", "")
    refusals: dict[str, tuple[int, Any]] = {
        "rejected": (400, {"error": {"message": "a prompt is too long"}}),
        "forbidden": (403, {"error": {"message": "this prompt is not allowed"}}),
        "key-rejected": (401, {"error": {"message": f"wrong key: {sent}"}}),
    }
    if number <= EARLY:
        refusals["429"] = (429, {"error": {"message": "slow down"}})
        refusals["500s"] = (500, b"oops")
    if fault in refusals:
        _reply(handler, *refusals[fault], Retry_After="0.1")
        return
    key = handler.headers["Idempotency-Key"]
    with service.lock:
        jobs = service.books[fault].jobs
        job = jobs.setdefault(key, f"job-{len(jobs)}-{key[:8]}")
    if fault == "submit-lost" and number == 1:
        handler.close_connection = True
        return
    strange: dict[str, Any] = {
        "huge-json": b'{"id": "' + b"x" * (3 << 20) + b'"}',
        "bad-json": b'{"id": ',
        "no-id": {},
        "evil-id": {"id": "../../../admin"},
    }
    _reply(handler, 202, strange.get(fault, {"id": job}))


def _poll(handler: BaseHTTPRequestHandler, service: FaultService, fault: str) -> None:
    job = handler.path.rpartition("/")[2]
    with service.lock:
        service.books[fault].polls[job] += 1
        n_polls = service.books[fault].polls[job]
    running = fault == "stuck" or service.hold.is_set() or n_polls < EARLY
    done = {"status": "completed", "model": "v9"}
    status, body = {
        "lost": (404, {"error": "no such job"}),
        "poll-html": (200, b"<html>gateway</html>"),
        "poll-huge": (200, b'{"status": "' + b"x" * (3 << 20) + b'"}'),
        "failed": (200, {"status": "failed", "error": {"message": "unsafe\x1b[31m"}}),
    }.get(fault, (200, {"status": "in_progress"} if running else done))
    if job not in service.books[fault].jobs.values():
        status, body = 404, {"error": "no such job"}
    if fault == "poll-500" and n_polls <= EARLY:
        status, body = 503, b"busy"
    _reply(handler, status, body)


def _download(handler: BaseHTTPRequestHandler, service: FaultService, fault: str) -> None:
    first = service.books[fault].downloads == 1
    targets = {
        "to-loopback": f"http://127.0.0.1:{service.trap_port}/clip.mp4",
        "to-metadata": METADATA,
        "to-itself": handler.path,
    }
    whole: dict[str, tuple[bytes, dict[str, str]]] = {
        "html": (b"<html>expired</html>", {"kind": "text/html"}),
        "json-clip": (b'{"error": "expired"}', {}),
        "empty": (b"", {}),
        "gzip": (CLIP, {"Content_Encoding": "gzip"}),
        "wrong-codec": (b"RIFF\x00\x00\x00\x00AVI LIST" + CLIP, {}),
    }
    if fault in targets:
        _reply(handler, 302, b"", Location=targets[fault])
    elif fault == "flood":
        _pour(handler, (bytes(1 << 20) for _ in range(10_240)))
    elif fault == "drip":
        _pour(handler, (b"x" for _ in range(300)), pause_s=0.1)
    elif fault == "announced":
        _pour(handler, [CLIP], size=TEN_GB)
    elif fault == "half" or (fault == "half-once" and first):
        _pour(handler, [CLIP], size=2 * len(CLIP))
    else:
        body, headers = whole.get(fault, (CLIP, {}))
        _reply(handler, 200, body, **{"kind": "video/mp4", **headers})


def _pour(
    handler: BaseHTTPRequestHandler, pieces: Any, *, size: int | None = None, pause_s: float = 0
) -> None:
    """Send pieces until the other side has had enough; the connection ends with them."""
    handler.send_response(200)
    handler.send_header("Content-Type", "video/mp4")
    if size is not None:
        handler.send_header("Content-Length", str(size))
    handler.send_header("Connection", "close")
    handler.end_headers()
    handler.close_connection = True
    for piece in pieces:
        handler.wfile.write(piece)
        handler.wfile.flush()
        time.sleep(pause_s)
