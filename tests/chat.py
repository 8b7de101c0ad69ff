"""A model on loopback, for tests that ask one."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Reply = tuple[int, Mapping[str, Any]]
"""A status, and the document that goes with it."""


def says(
    text: str, *, prompt_tokens: int = 100, completion_tokens: int = 10, model: object = "tiny"
) -> Reply:
    """An answer as chat servers give it."""
    message = {"role": "assistant", "content": text}
    return 200, {
        "id": "1",
        "object": "chat.completion",
        "created": 1,
        "model": model,
        "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
        "usage": {
            "prompt_tokens": prompt_tokens,
            "completion_tokens": completion_tokens,
            "total_tokens": prompt_tokens + completion_tokens,
        },
    }


def refuses(status: int, words: str) -> Reply:
    """A refusal as chat servers give it."""
    return status, {"error": {"message": words}}


@contextmanager
def serve_chat(reply: Callable[[bytes, Message], Reply]) -> Iterator[int]:
    """The port of a server that answers each question, its body and its headers, by `reply`."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            status, document = reply(body, self.headers)
            data = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            """Silence."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
