"""Whether a server of this machine is there, and what it offers."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from unreel.core.errors import InvalidSettingError
from unreel.core.server_keys import parse_server_url
from unreel.reviewers.endpoint.servers import (
    find_model_endpoint,
    is_server_listening,
    list_server_models,
    require_server_listening,
)


@contextmanager
def serving(status: int, body: bytes) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status if self.path == "/v1/models" else 404)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Silence."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    server.server_close()


def test_a_server_tells_its_models() -> None:
    with serving(200, json.dumps({"data": [{"id": "tiny"}, {"id": "org/large"}]}).encode()) as url:
        assert list_server_models(url) == ("tiny", "org/large")
        assert is_server_listening(parse_server_url(url))


def test_a_server_that_is_gone_is_told_and_strangers_are_not_knocked_at() -> None:
    with socket.create_server(("127.0.0.1", 0)) as door:
        url = f"http://127.0.0.1:{door.getsockname()[1]}/v1"
    assert list_server_models(url) == ()
    with pytest.raises(InvalidSettingError, match="nothing listens at "):
        require_server_listening(find_model_endpoint(f"vllm/tiny@{url}", key_hosts=""))
    assert is_server_listening(parse_server_url("https://192.0.2.1/v1"))
