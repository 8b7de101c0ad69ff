"""Requests go to the address that was checked, whatever a second resolution says."""

import asyncio
import socket
import ssl
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest

from certificates import write_certificate
from unreel.core import address_check
from unreel.core.failure import Failure, FailureReason
from unreel.core.server_keys import parse_server_url
from unreel.core.settings import EnvironmentSettings
from unreel.creators.config import CreatorRecipeSection
from unreel.creators.contract import ClipBrief, CreatorInput
from unreel.network.http_client import HttpReply, find_proxy
from unreel.reviewers.endpoint.model_address import ModelAddress
from unreel.reviewers.endpoint.transport import HttpTransport

HONEST, CANARY = "127.0.0.1", "127.0.0.2"
NAME = "judge.example"
_BODY = b'{"id": "1", "status": "completed"}'
_REPLY = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s" % (
    len(_BODY),
    _BODY,
)


@contextmanager
def _listening(address: str, port: int = 0, tls: ssl.SSLContext | None = None) -> Iterator[Any]:
    """Yield the port and the requests of a server at `address` that answers all of them."""
    seen: list[bytes] = []
    with socket.create_server((address, port)) as listener:

        def serve() -> None:
            with suppress(OSError):
                while True:
                    visitor, _ = listener.accept()
                    with visitor, suppress(OSError):
                        line = (
                            visitor if tls is None else tls.wrap_socket(visitor, server_side=True)
                        )
                        seen.append(line.recv(65536))
                        line.sendall(_REPLY)
                        line.settimeout(5)
                        while line.recv(
                            65536
                        ):  # closing over unread bytes would reset the connection
                            pass
                        line.close()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listener.getsockname()[1], seen
        listener.shutdown(socket.SHUT_RDWR)
    thread.join(timeout=10)


@pytest.fixture
def canary(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[int, list[bytes], list[bytes]]]:
    """An honest server, and at the same port of another address one that counts as a metadata service."""
    monkeypatch.setattr(address_check, "_METADATA", frozenset({ip_address(CANARY)}))
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    with _listening(HONEST) as (port, honest), _listening(CANARY, port) as (_, trapped):
        yield port, honest, trapped


def _resolve_to(monkeypatch: pytest.MonkeyPatch, answers: Sequence[str]) -> list[str]:
    """Let NAME stand for each of `answers` in turn, then for the last one; return the resolutions."""
    asked: list[str] = []
    real = socket.getaddrinfo

    def resolve(host: Any, port: Any, *args: Any, **kwargs: Any) -> Any:
        if host not in {NAME, NAME.encode()}:
            return real(host, port, *args, **kwargs)
        address = answers[min(len(asked), len(answers) - 1)]
        asked.append(address)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, int(port)))]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    return asked


def _ask_reviewer(url: str) -> HttpReply | Failure:
    async def ask() -> HttpReply | Failure:
        address = ModelAddress(provider="http", model="m", base_url=url)
        transport = HttpTransport(address, api_key=None, max_connections=2, cap_bytes=1000)
        try:
            return await transport.send(b"{}", key="k")
        finally:
            await transport.close()

    return asyncio.run(ask())


class Context:
    """Context of a creator whose notes are lost with it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def recall(self, _what: str) -> None:
        return None

    def note(self, what: str, text: str) -> None:
        pass


def _ask_creator(url: str, folder: Path) -> Any:
    """Let a service make a clip: a submission, a poll and a download, whose content is no clip."""
    keys = {"name": "x", "kind": "endpoint", "url": url, "deadline_s": 2.0, "attempt_s": 1.0}
    brief = ClipBrief(
        id="b",
        setting=CreatorInput.TEXT,
        text="A ball.",
        width=64,
        height=64,
        duration_us=1_000_000,
        seed=0,
    )

    async def ask() -> Any:
        creator = CreatorRecipeSection(**keys).opener(settings=EnvironmentSettings()).open()
        try:
            return await creator.make(brief, Context(folder))  # type: ignore[arg-type]
        finally:
            await creator.close()

    return asyncio.run(ask())


def test_a_second_resolution_does_not_lead_a_question_elsewhere(
    canary: tuple[int, list[bytes], list[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    port, honest, trapped = canary
    asked = _resolve_to(monkeypatch, [HONEST, CANARY])
    assert isinstance(_ask_reviewer(f"http://{NAME}:{port}/v1"), HttpReply)
    assert trapped == []
    assert len(asked) == 1
    assert f"Host: {NAME}:{port}".encode() in honest[0]


def test_a_second_resolution_does_not_lead_an_order_or_a_download_elsewhere(
    canary: tuple[int, list[bytes], list[bytes]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    port, honest, trapped = canary
    _resolve_to(monkeypatch, [HONEST, CANARY])
    _ask_creator(f"http://{NAME}:{port}", tmp_path)
    assert len(honest) == 3
    assert trapped == []


def test_a_name_that_stands_for_a_metadata_service_is_never_connected_to(
    canary: tuple[int, list[bytes], list[bytes]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    port, _, trapped = canary
    _resolve_to(monkeypatch, [CANARY])
    for host in (NAME, CANARY, f"[::ffff:{CANARY}]", f"[64:ff9b::{CANARY}]"):
        url = f"http://{host}:{port}/v1"
        for outcome in (_ask_reviewer(url), _ask_creator(url, tmp_path)):
            assert isinstance(outcome, Failure), url
            assert outcome.reason is FailureReason.NOT_NAMED, url
    assert trapped == []


@pytest.mark.parametrize("certified", [NAME, "other.example"])
def test_the_certificate_is_checked_against_the_name_and_not_the_address(
    certified: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write_certificate(tmp_path, certified)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(file)
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    _resolve_to(monkeypatch, [HONEST])
    with _listening(HONEST, tls=tls) as (port, seen):
        outcome = _ask_reviewer(f"https://{NAME}:{port}/v1")
    assert isinstance(outcome, HttpReply) == (certified == NAME), outcome
    assert len(seen) == (certified == NAME)


@pytest.mark.parametrize(
    ("environment", "host", "proxied"),
    [
        ({}, "a.example", False),
        ({"http_proxy": "http://p:1"}, "a.example", True),
        ({"all_proxy": "p:1"}, "a.example", True),
        ({"http_proxy": "http://p:1"}, "127.0.0.1", False),
        ({"http_proxy": "http://p:1", "no_proxy": "a.example"}, "a.example", False),
        ({"http_proxy": "http://p:1", "no_proxy": "example"}, "a.example", False),
    ],
)
def test_the_proxy_of_the_environment_is_used_but_never_towards_this_machine(
    environment: dict[str, str], host: str, *, proxied: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name.upper(), raising=False)
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert (find_proxy(parse_server_url(f"http://{host}/v1")) is not None) == proxied


def test_a_proxy_is_never_handed_a_refused_address(monkeypatch: pytest.MonkeyPatch) -> None:
    with _listening(HONEST) as (port, seen):
        monkeypatch.setenv("http_proxy", f"http://{HONEST}:{port}")
        monkeypatch.delenv("no_proxy", raising=False)
        monkeypatch.delenv("NO_PROXY", raising=False)
        for host in ("169.254.169.254", "[fe80::1]", "2852039166", "[::ffff:a9fe:a9fe]"):
            outcome = _ask_reviewer(f"http://{host}/v1")
            assert isinstance(outcome, Failure)
            assert outcome.reason is FailureReason.NOT_NAMED, host
    assert seen == []
