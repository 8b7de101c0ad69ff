"""Stub of the reward service: records requests and replies from a list."""

import email.parser
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

StubReply = tuple[int, dict[str, str], Any]


def reward_of(value: float | None, reason: str = "out of time") -> dict[str, Any]:
    """Return a result of the JSON API, without its id."""
    failure = None if value is not None else {"reason": reason, "message": "no answer"}
    return {"value": value, "calibrated": False, "parts": {"realism": value}, "failure": failure}


@dataclass
class StubService:
    """Address of the stub, its requests, and its reply to each request."""

    reply: Callable[[dict[str, Any]], StubReply | None]
    url: str = ""
    requests: list[dict[str, Any]] = field(default_factory=list)
    uploads: list[dict[str, bytes]] = field(default_factory=list)
    tokens: list[str | None] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)


def reply_with(*values: Any) -> Callable[[dict[str, Any]], StubReply]:
    """Return a reply that gives each item its value, in their order."""

    def reply(request: dict[str, Any]) -> StubReply:
        made = [
            {"id": item["id"], **(reward_of(value) if not isinstance(value, dict) else value)}
            for item, value in zip(request["items"], values, strict=True)
        ]
        return 200, {}, {"formula": "reward@1", "results": made}

    return reply


@contextmanager
def serve_stub(reply: Callable[[dict[str, Any]], StubReply | None]) -> Iterator[StubService]:
    stub = StubService(reply)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            uploads: dict[str, bytes] = {}
            if self.headers["Content-Type"].startswith("multipart/"):
                head = f"Content-Type: {self.headers['Content-Type']}\r\n\r\n".encode()
                message = email.parser.BytesParser().parsebytes(head + body)
                for part in message.get_payload():
                    name = part.get_param("name", header="content-disposition")
                    uploads[name] = part.get_payload(decode=True)
                body = uploads.pop("request")
            stub.requests.append(json.loads(body))
            stub.uploads.append(uploads)
            stub.tokens.append(self.headers["Authorization"])
            stub.paths.append(self.path)
            made = stub.reply(stub.requests[-1])
            if made is None:
                return
            status, headers, content = made
            data = content if isinstance(content, bytes) else json.dumps(content).encode()
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    stub.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield stub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
