"""What a stranger's address may lead to: the open internet, and nothing on this side of the wall."""

import io
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from unreel.core.errors import MediaError
from unreel.core.failure import Failure, FailureReason
from unreel.engine.downloads import download_public_file

PUBLIC = "93.184.216.34"
VISITS: list[str] = []


class _Trap(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        VISITS.append(self.path)
        if self.path.startswith("/to/"):
            self.send_response(302)
            self.send_header("Location", self.path.removeprefix("/to/"))
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self.send_response(200)
        self.send_header("Content-Length", "4")
        self.end_headers()
        self.wfile.write(b"clip")

    def log_message(self, *_words: object) -> None:
        pass


@pytest.fixture
def port() -> Iterator[int]:
    VISITS.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), _Trap) as http:
        threading.Thread(target=http.serve_forever, daemon=True).start()
        yield http.server_port
        http.shutdown()


def _fetched(location: str) -> bytes | Failure:
    into = io.BytesIO()
    try:
        download_public_file(location, into, max_bytes=1000, seconds=5)
    except MediaError as error:
        return error.failure
    return into.getvalue()


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "localhost",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0177.0.0.1",
        "0.0.0.0",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[::]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
        "169.254.169.254",
        "[fe80::1]",
        "[fd00:ec2::254]",
        "10.0.0.1",
        "172.16.0.1",
        "192.168.0.1",
        "100.64.0.1",
        "224.0.0.1",
        "255.255.255.255",
    ],
)
def test_no_spelling_of_a_near_address_is_fetched(host: str, port: int) -> None:
    failure = _fetched(f"http://{host}:{port}/a.mp4")
    assert isinstance(failure, Failure)
    assert failure.reason is FailureReason.NOT_NAMED, failure
    assert VISITS == []


@pytest.mark.parametrize(
    "location",
    ["file:///etc/passwd", "ftp://example.org/a", "s3://bucket/a.mp4", "gopher://x", "", "a.mp4",
     "http://user@example.org/a", "http://exa mple.org/", "http://example.org\\@127.0.0.1/", "http://"],
)  # fmt: skip
def test_what_is_no_address_of_the_web_is_refused(location: str) -> None:
    failure = _fetched(location)
    assert isinstance(failure, Failure)
    assert failure.reason is FailureReason.NOT_NAMED, failure


@pytest.fixture
def open_internet(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines to one public address end at the server of this test; all others stay what they are."""
    real = socket.create_connection

    def connect(peer: Any, seconds: float) -> socket.socket:
        return real(("127.0.0.1", port) if peer[0] == PUBLIC else peer, seconds)

    monkeypatch.setattr("unreel.engine.downloads.socket.create_connection", connect)


@pytest.mark.usefixtures("open_internet")
def test_a_public_address_is_fetched_and_its_own_redirects_are_followed() -> None:
    assert _fetched(f"http://{PUBLIC}/a.mp4?sign=1") == b"clip"
    assert _fetched(f"http://{PUBLIC}/to//b.mp4") == b"clip"
    assert VISITS == ["/a.mp4?sign=1", "/to//b.mp4", "/b.mp4"]


@pytest.mark.usefixtures("open_internet")
@pytest.mark.parametrize(
    "target",
    ["http://127.0.0.1:{port}/", "http://169.254.169.254/latest", "http://localhost:{port}/x"],
)
def test_a_redirect_to_a_near_address_is_not_followed(target: str, port: int) -> None:
    failure = _fetched(f"http://{PUBLIC}/to/{target.format(port=port)}")
    assert isinstance(failure, Failure)
    assert failure.reason is FailureReason.NOT_NAMED
    assert len(VISITS) == 1
