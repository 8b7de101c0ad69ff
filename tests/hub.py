"""A Hugging Face hub on loopback, as far as `huggingface_hub` asks one for files of data sets and models."""

import hashlib
import json
import threading
import time
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

LFS_BYTES = 1000  # from this size on a file has a SHA-256, below the hash of a git blob
SHA, TOKEN = "5" * 40, "hf_right"
KINDS = ("api", "datasets", "models")


@dataclass
class Hub:
    """Repositories, how they are served, and the bytes by path."""

    repositories: Mapping[str, Mapping[str, bytes]]
    shas: Mapping[str, str] = field(default_factory=dict)  # by repository; otherwise SHA
    gated: frozenset[str] = frozenset()
    bytes_per_s: float = 0
    ignores_range: bool = False
    mishaps: dict[str, deque[str]] = field(default_factory=dict)  # a status, truncated or wrong
    sent: Counter[str] = field(default_factory=Counter)
    url: str = ""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub: Hub

    def do_GET(self) -> None:
        hub, parts = self.hub, unquote(urlsplit(self.path).path).strip("/").split("/")
        is_api, parts = parts[0] == "api", [part for part in parts if part not in KINDS]
        repository, rest, path = "/".join(parts[:2]), parts[2:], "/".join(parts[4:])
        files, sha = hub.repositories.get(repository), hub.shas.get(repository, SHA)
        is_right = self.headers.get("Authorization") == f"Bearer {TOKEN}"
        if files is None:
            self.answer(404, {"X-Error-Code": "RepoNotFound"})
        elif len(rest) > 1 and rest[1] not in {"main", sha}:
            self.answer(404, {"X-Error-Code": "RevisionNotFound"})
        elif is_api and rest[:1] == ["tree"]:
            self.answer(200, {}, json.dumps([_describe(*file) for file in sorted(files.items())]))
        elif is_api and rest[:1] == ["commits"]:
            about = {"title": "", "message": "", "authors": [], "date": "2026-01-01T00:00:00.000Z"}
            self.answer(200, {}, json.dumps([{"id": sha, **about}]))
        elif is_api:
            about = {"gated": repository in hub.gated, "cardData": {"license": "mit"}}
            self.answer(
                200, {}, json.dumps({"id": repository, "sha": sha, "siblings": [], **about})
            )
        elif repository in hub.gated and not is_right:
            self.answer(401, {"X-Error-Code": "GatedRepo"})
        elif path not in files:
            self.answer(404, {"X-Error-Code": "EntryNotFound"})
        else:
            mishap = hub.mishaps[path].popleft() if hub.mishaps.get(path) else ""
            data = files[path][::-1] if mishap == "wrong" else files[path]
            range_ = "bytes=0-" if hub.ignores_range else self.headers.get("Range", "bytes=0-")
            start = int(range_[6:].partition("-")[0])
            n_sent = (len(data) - start) // (2 if mishap == "truncated" else 1)
            if mishap.isdecimal():
                self.answer(int(mishap), {"Retry-After": "0"})
            else:
                length = {"Content-Length": str(len(data) - start)}
                self.answer(206 if start else 200, length, data[start : start + n_sent], path)
            self.close_connection = mishap == "truncated"

    def answer(
        self, status: int, headers: Mapping[str, str], body: str | bytes = "{}", path: str = ""
    ) -> None:
        data = body.encode() if isinstance(body, str) else body
        self.send_response(status)
        for name, value in ({"Content-Length": str(len(data))} | dict(headers)).items():
            self.send_header(name, value)
        with suppress(OSError):  # the client was killed
            self.end_headers()
            for at in range(0, len(data), 1 << 14):
                self.wfile.write(data[at : at + (1 << 14)])
                self.hub.sent[path] += len(data[at : at + (1 << 14)])
                time.sleep((1 << 14) / self.hub.bytes_per_s if self.hub.bytes_per_s else 0)

    def log_message(self, *_: object) -> None:
        """Silence."""


def _describe(path: str, data: bytes) -> dict[str, object]:
    blob = hashlib.sha1(f"blob {len(data)}\0".encode() + data).hexdigest()
    lfs = {"oid": hashlib.sha256(data).hexdigest(), "size": len(data), "pointerSize": 130}
    entry: dict[str, object] = {"type": "file", "path": path, "size": len(data), "oid": blob}
    return entry | ({"lfs": lfs} if len(data) >= LFS_BYTES else {})


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
