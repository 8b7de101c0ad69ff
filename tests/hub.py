"""A Hugging Face hub on loopback, as far as `huggingface_hub` asks one for files of data sets and models."""

import hashlib
import json
import threading
import time
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

LFS_BYTES = 1000
"""Files of at least this size have a SHA-256; smaller ones the hash of a git blob."""


@dataclass
class Hub:
    """Repositories, how they are served, and what was sent."""

    repositories: Mapping[str, Mapping[str, bytes]]
    sha: str = "5" * 40
    date: str = "2026-01-01T00:00:00.000Z"
    gated: frozenset[str] = frozenset()
    token: str = "hf_right"
    bytes_per_s: float = 0
    ignores_range: bool = False
    mishaps: dict[str, deque[str]] = field(default_factory=dict)
    """What befalls the next requests for a path: `429`, `503`, `truncated`, `wrong`."""
    sent: Counter[str] = field(default_factory=Counter)
    """Bytes by path."""
    requests: list[tuple[str, str]] = field(default_factory=list)
    """Path and header `Range` of each request."""
    url: str = ""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub: Hub

    def do_GET(self) -> None:
        hub, parts = self.hub, unquote(urlsplit(self.path).path).strip("/").split("/")
        hub.requests.append((self.path, self.headers.get("Range", "")))
        is_api = parts[0] == "api"
        parts = [part for part in parts if part not in {"api", "datasets", "models"}]
        repository, rest = "/".join(parts[:2]), parts[2:]
        files = hub.repositories.get(repository)
        if files is None:
            self.answer(404, b"{}", {"X-Error-Code": "RepoNotFound"})
        elif len(rest) > 1 and rest[1] not in {"main", hub.sha}:
            self.answer(404, b"{}", {"X-Error-Code": "RevisionNotFound"})
        elif is_api and rest[:1] == ["tree"]:
            self.document([self.describe(path, data) for path, data in sorted(files.items())])
        elif is_api:  # of a list of commits only the first is needed
            info = {"id": repository, "sha": hub.sha, "gated": repository in hub.gated and "manual"}
            commit = {"id": hub.sha, "title": "", "message": "", "authors": [], "date": hub.date}
            info |= {"cardData": {"license": "mit"}, "siblings": []}
            self.document([commit] if rest[:1] == ["commits"] else info)
        elif repository in hub.gated and self.headers.get("Authorization") != f"Bearer {hub.token}":
            self.answer(401, b"{}", {"X-Error-Code": "GatedRepo"})
        elif (data := files.get("/".join(rest[2:]))) is None:
            self.answer(404, b"{}", {"X-Error-Code": "EntryNotFound"})
        else:
            self.send_file("/".join(rest[2:]), data)

    def describe(self, path: str, data: bytes) -> dict[str, object]:
        blob = hashlib.sha1(f"blob {len(data)}\0".encode() + data).hexdigest()
        entry: dict[str, object] = {"type": "file", "path": path, "size": len(data), "oid": blob}
        lfs = {"oid": hashlib.sha256(data).hexdigest(), "size": len(data), "pointerSize": 130}
        return entry | ({"lfs": lfs} if len(data) >= LFS_BYTES else {})

    def send_file(self, path: str, data: bytes) -> None:
        mishaps = self.hub.mishaps.get(path)
        mishap = mishaps.popleft() if mishaps else ""
        if mishap.isdecimal():
            self.answer(int(mishap), b"", {"Retry-After": "0"})
            return
        data = data[::-1] if mishap == "wrong" else data
        start = int(self.headers.get("Range", "bytes=0-")[6:].partition("-")[0])
        start = 0 if self.hub.ignores_range else start
        status = 206 if start else 200
        n_sent = (len(data) - start) // 2 if mishap == "truncated" else len(data) - start
        self.answer(status, data[start : start + n_sent], {}, len(data) - start, path)
        self.close_connection = mishap == "truncated"

    def document(self, value: object) -> None:
        self.answer(200, json.dumps(value).encode(), {"Content-Type": "application/json"})

    def answer(
        self, status: int, body: bytes, headers: dict[str, str], length: int = -1, path: str = ""
    ) -> None:
        self.send_response(status)
        for name, value in ({"Content-Length": str(max(length, len(body)))} | headers).items():
            self.send_header(name, value)
        self.end_headers()
        for at in range(0, len(body), 1 << 14):
            piece = body[at : at + (1 << 14)]
            self.wfile.write(piece)
            self.hub.sent[path] += len(piece)
            if path and self.hub.bytes_per_s:
                time.sleep(len(piece) / self.hub.bytes_per_s)

    def handle_one_request(self) -> None:
        try:
            super().handle_one_request()
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def serve_hub(hub: Hub) -> Iterator[Hub]:
    """Serve `hub` at `hub.url` for as long as the block lasts."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"hub": hub}))
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    hub.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
