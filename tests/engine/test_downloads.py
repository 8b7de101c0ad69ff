"""Clips elsewhere: fetched from named places only, with an end to size and time."""

import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("obstore", reason="needs the extra eval: pip install 'unreel[eval]'")

from certificates import write_certificate
from pace import slowness
from unreel.core.errors import MediaError
from unreel.core.failure import FailureReason
from unreel.core.settings import read_environment_settings
from unreel.engine.downloads import DownloadPolicy
from unreel.engine.downloads import download_file as fetch_into
from unreel.engine.storage_access import ClipAccessSettings, provide_local_clip_file

MB = 1 << 20
Answer = Callable[[BaseHTTPRequestHandler], None]


@dataclass
class Server:
    """A server of this machine that remembers who came."""

    url: str
    answers: dict[str, Answer] = field(default_factory=dict)
    visits: list[str] = field(default_factory=list)
    credentials: list[str] = field(default_factory=list)

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        self.visits.append(handler.path)
        self.credentials += filter(None, [handler.headers.get("Authorization")])
        with suppress(OSError):
            self.answers.get(handler.path.partition("?")[0], _absent)(handler)


def _absent(handler: BaseHTTPRequestHandler) -> None:
    handler.send_error(404)


def _body(data: bytes) -> Answer:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(data)))
        handler.send_header("ETag", '"one"')
        handler.send_header("Last-Modified", "Sun, 15 Nov 2026 12:00:00 GMT")
        handler.end_headers()
        handler.wfile.write(data)

    return answer


def _redirect(target: str) -> Answer:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(302)
        handler.send_header("Location", target)
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    return answer


def _flood(handler: BaseHTTPRequestHandler) -> None:
    """Ten gigabytes, and no word of how much it is."""
    handler.send_response(200)
    handler.end_headers()
    for _ in range(10_240):
        handler.wfile.write(bytes(MB))


def _drip(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    for _ in range(1000):
        handler.wfile.write(b"x")
        handler.wfile.flush()
        time.sleep(0.05)


def _drip_headers(handler: BaseHTTPRequestHandler) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\n")
    for _ in range(1000):
        handler.wfile.write(b"X")
        handler.wfile.flush()
        time.sleep(0.05)


def _claims_ten_gigabytes(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", str(10 << 30))
    handler.end_headers()


def _ends_early(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b"half")
    handler.close_connection = True


@pytest.fixture
def start() -> Iterator[Callable[[], Server]]:
    running: list[ThreadingHTTPServer] = []

    def begin() -> Server:
        server = Server("")

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                server.answer(self)

            do_PUT = do_POST = do_HEAD = do_GET  # noqa: N815  the names that http.server looks for

            def log_message(self, *_words: object) -> None:
                pass

        http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.url = f"http://127.0.0.1:{http.server_port}"
        threading.Thread(target=http.serve_forever, daemon=True).start()
        running.append(http)
        return server

    yield begin
    for http in running:
        http.shutdown()
        http.server_close()


@pytest.fixture
def server(start: Callable[[], Server]) -> Server:
    return start()


def _policy(*named: str, max_bytes: int = 8 * MB, seconds: float = 10) -> DownloadPolicy:
    return DownloadPolicy(named=named, max_bytes=max_bytes, seconds=seconds)


def fetch(location: str, copy: Path, *, policy: DownloadPolicy, storage: dict[str, str]) -> None:
    with copy.open("wb") as file:
        fetch_into(location, file, policy=policy, storage=storage)


def _refused(location: str, tmp_path: Path, policy: DownloadPolicy, **storage: str) -> Any:
    with pytest.raises(MediaError) as caught:
        fetch(location, tmp_path / "copy", policy=policy, storage=storage)
    assert (tmp_path / "copy").stat().st_size <= policy.max_bytes
    return caught.value.failure


def test_a_clip_of_a_named_host_is_fetched(server: Server, tmp_path: Path) -> None:
    server.answers["/clips/a.mp4"] = _body(b"clip")
    policy = _policy(f"{server.url}/clips")
    fetch(f"{server.url}/clips/a.mp4?sign=1", tmp_path / "copy", policy=policy, storage={})
    assert (tmp_path / "copy").read_bytes() == b"clip"
    assert server.visits == ["/clips/a.mp4?sign=1"]


def test_nothing_is_asked_of_a_host_that_nobody_named(server: Server, tmp_path: Path) -> None:
    elsewhere = server.url.replace("127.0.0.1", "localhost")
    named = ("https://example.org", "s3://bucket", f"{server.url}/clips", elsewhere)
    for location in (
        f"{server.url}/a.mp4",
        f"{server.url}/clips/../a.mp4",
        f"{server.url}/clips/%2e%2e/a.mp4",
        f"{server.url}/clipsier/a.mp4",
        f"http://example.org@{server.url.removeprefix('http://')}/clips/a.mp4",
        server.url.replace("127.0.0.1", "127.1") + "/clips/a.mp4",
        server.url.replace("127.0.0.1", "[::ffff:127.0.0.1]") + "/clips/a.mp4",
        server.url.replace("http", "https", 1) + "/clips/a.mp4",
        "http://169.254.169.254/latest/meta-data/",
        "http://[fd00:ec2::254]/latest/meta-data/",
        "s3://another/a.mp4",
        "s3://bucket-two/a.mp4",
    ):
        failure = _refused(location, tmp_path, _policy(*named))
        assert failure.reason is FailureReason.NOT_NAMED, location
        assert "UNREEL_FETCH_FROM" in str(failure)
    assert server.visits == []


@pytest.mark.parametrize(
    "location",
    [
        "file:///etc/hostname",
        "ftp://127.0.0.1/a",
        "gs://bucket/a",
        "az://box/a",
        "hf://a/b",
        "memory:///a",
        "data://,x",
    ],
)
def test_other_schemes_are_refused_with_words(location: str, tmp_path: Path) -> None:
    failure = _refused(location, tmp_path, _policy("s3://bucket", "https://example.org"))
    assert "only s3, https, http" in failure.detail


def test_a_name_that_stands_for_this_machine_or_its_link_is_refused(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = int(server.url.rpartition(":")[2])
    for address in ("127.0.0.1", "169.254.169.254", "0.0.0.0", "::1", "fe80::1"):
        found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_a, _f=found, **_k: _f)
        location = f"http://clips.example:{port}/a.mp4"
        failure = _refused(location, tmp_path, _policy("http://clips.example:" + str(port)))
        assert address in failure.detail
    assert server.visits == []


def test_a_redirect_to_another_host_is_not_followed(
    start: Callable[[], Server], tmp_path: Path
) -> None:
    named, other = start(), start()
    named.answers["/a"] = _redirect(f"{other.url}/secret")
    named.answers["/b"] = _redirect("file:///etc/hostname")
    named.answers["/c"] = _redirect(f"{named.url}/secret")
    named.answers["/d"] = _redirect("http://169.254.169.254/")
    for path in ("/a", "/b", "/c", "/d"):
        # Both are named: even so, one host does not decide what is asked of another.
        policy = _policy(f"{named.url}{path}", other.url)
        assert _refused(named.url + path, tmp_path, policy).reason is FailureReason.NOT_NAMED
    assert other.visits == []
    assert named.visits == ["/a", "/b", "/c", "/d"]


def test_a_redirect_within_the_named_place_is_followed_a_few_times(
    server: Server, tmp_path: Path
) -> None:
    server.answers["/a"] = _redirect("/b")
    server.answers["/b"] = _body(b"clip")
    server.answers["/loop"] = _redirect("/loop")
    fetch(f"{server.url}/a", tmp_path / "copy", policy=_policy(server.url), storage={})
    assert (tmp_path / "copy").read_bytes() == b"clip"
    assert "status 302" in _refused(f"{server.url}/loop", tmp_path, _policy(server.url)).detail
    assert server.visits.count("/loop") == 4


@pytest.mark.parametrize("answer", [_flood, _claims_ten_gigabytes])
def test_ten_gigabytes_end_at_the_cap(answer: Answer, server: Server, tmp_path: Path) -> None:
    server.answers["/a"] = answer
    failure = _refused(f"{server.url}/a", tmp_path, _policy(server.url))
    assert failure.reason is FailureReason.TOO_LARGE
    assert "UNREEL_FETCH_MB" in str(failure)


@pytest.mark.parametrize("answer", [_drip, _drip_headers])
def test_a_server_that_drips_is_left(answer: Answer, server: Server, tmp_path: Path) -> None:
    server.answers["/a"] = answer
    began_s = time.monotonic()
    failure = _refused(f"{server.url}/a", tmp_path, _policy(server.url, seconds=0.5))
    assert failure.reason is FailureReason.OUT_OF_TIME
    assert time.monotonic() - began_s < 20 * slowness()


def test_a_body_that_ends_early_is_no_clip(server: Server, tmp_path: Path) -> None:
    server.answers["/a"] = _ends_early
    assert "too early" in _refused(f"{server.url}/a", tmp_path, _policy(server.url)).detail


def test_a_store_is_held_to_the_same_caps(server: Server, tmp_path: Path) -> None:
    server.answers["/bucket/clips/large"] = _body(bytes(MB))
    server.answers["/bucket/clips/slow"] = _drip
    storage = {"aws_endpoint": server.url, "allow_http": "true"}
    large = _policy("s3://bucket/clips", max_bytes=MB - 1)
    failure = _refused("s3://bucket/clips/large", tmp_path, large, **storage)
    assert failure.reason is FailureReason.TOO_LARGE
    began_s = time.monotonic()
    slow = _policy("s3://bucket/clips", seconds=1)
    _refused("s3://bucket/clips/slow", tmp_path, slow, **storage)
    assert time.monotonic() - began_s < 30 * slowness()
    policy = _policy("s3://bucket/clips")
    fetch("s3://bucket/clips/large", tmp_path / "copy", policy=policy, storage=storage)
    assert (tmp_path / "copy").stat().st_size == MB
    assert server.credentials == []


CLIENTS = """
import sys
from unreel.core.settings import read_environment_settings, read_storage_options
from unreel.asking.answer_table import ANSWERS
from unreel.engine.location import StorageLocation
from unreel.engine.table import LanceTable
place = StorageLocation("s3://bucket/run", read_storage_options(read_environment_settings()))
for ask in (
    lambda: place.objects(retry_timeout_s=1).get("x"),
    lambda: LanceTable(place / "answers.lance", ANSWERS).exists(),
):
    try:
        print(ask())
    except Exception as error:
        print(type(error).__name__)
"""


@pytest.mark.parametrize(
    ("given", "asks"),
    [
        ({}, False),
        ({"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s"}, False),
        ({"UNREEL_S3_ROLE": "1"}, True),
    ],
)
def test_the_machines_role_is_looked_for_only_on_demand(
    start: Callable[[], Server], given: dict[str, str], *, asks: bool
) -> None:
    """The third row is the control: there the metadata service is asked, so the listener hears."""
    store, metadata = start(), start()
    environment = {
        "PATH": "",
        "UNREEL_S3_ENDPOINT": store.url,
        "AWS_EC2_METADATA_SERVICE_ENDPOINT": metadata.url,
        "AWS_METADATA_ENDPOINT": metadata.url,
        "AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{metadata.url}/role",
        "HOME": "/nowhere",
    }
    told = subprocess.run(
        [sys.executable, "-c", CLIENTS],
        env=environment | given,
        check=True,
        capture_output=True,
        text=True,
        timeout=120,
    ).stdout
    assert bool(metadata.visits) is asks, (metadata.visits, told)
    if not asks:
        assert store.visits
        assert bool(store.credentials) is bool(given)


def test_what_a_person_names_is_read_from_the_setting(server: Server) -> None:
    server.answers["/a.mp4"] = _body(b"clip")
    settings = read_environment_settings({"UNREEL_FETCH_FROM": f"s3://bucket/clips, {server.url}"})
    access = ClipAccessSettings(settings=settings)
    with provide_local_clip_file(f"{server.url}/a.mp4", access) as copy:
        assert copy.read_bytes() == b"clip"
    assert not copy.exists()
    silent = replace(access, settings=read_environment_settings({}))
    with (
        pytest.raises(MediaError, match="which is not allowed"),
        provide_local_clip_file(f"{server.url}/a.mp4", silent),
    ):
        pass


def test_a_host_with_tls_must_show_who_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate = write_certificate(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            _body(b"clip")(self)

        def log_message(self, *_words: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        http.socket = context.wrap_socket(http.socket, server_side=True)
        http.handle_error = lambda *_: None  # type: ignore[method-assign]
        threading.Thread(target=http.serve_forever, daemon=True).start()
        location = f"https://127.0.0.1:{http.server_port}/a.mp4"
        policy = _policy(location)
        assert "CERTIFICATE_VERIFY_FAILED" in _refused(location, tmp_path, policy).detail
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        fetch(location, tmp_path / "copy", policy=policy, storage={})
        http.shutdown()
    assert (tmp_path / "copy").read_bytes() == b"clip"
