"""Whether a server of this machine is there, and what it offers."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from unreel.core.errors import InvalidSettingError
from unreel.core.server_keys import parse_server_url
from unreel.reviewers.endpoint.model_address import PROVIDERS
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


def test_every_provider_stands_on_the_page_of_settings() -> None:
    page = Path(__file__).parents[2] / "docs" / "reference" / "settings.md"
    lines = page.read_text(encoding="utf-8").splitlines()
    for name, provider in PROVIDERS.items():
        (line,) = (line for line in lines if line.startswith(f"| `{name}/NAME` |"))
        assert f"`{provider.base_url or name + '/NAME@URL'}`" in line
        assert f"`{provider.key_variable}`" in line if provider.key_variable else "none" in line


def test_a_server_tells_its_models() -> None:
    with serving(200, json.dumps({"data": [{"id": "tiny"}, {"id": "org/large"}]}).encode()) as url:
        assert list_server_models(url) == ("tiny", "org/large")
        assert is_server_listening(parse_server_url(url))


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (401, b'{"data": [{"id": "secret"}]}'),
        (200, b"<html>"),
        (200, b"[]"),
        (200, b'{"data": 5}'),
        (200, b'{"data": [{}]}'),
    ],
)
def test_what_is_no_list_of_models_is_none(status: int, body: bytes) -> None:
    with serving(status, body) as url:
        assert list_server_models(url) == ()


def test_a_server_that_is_gone_is_told_and_strangers_are_not_knocked_at() -> None:
    with socket.create_server(("127.0.0.1", 0)) as door:
        url = f"http://127.0.0.1:{door.getsockname()[1]}/v1"
    assert list_server_models(url) == ()
    with pytest.raises(InvalidSettingError, match="nothing listens at "):
        require_server_listening(find_model_endpoint(f"vllm/tiny@{url}", key_hosts=""))
    assert is_server_listening(parse_server_url("https://192.0.2.1/v1"))
