"""One request as it travels: what a server sees of us, and what we call its ways to hang up."""

import asyncio
import hashlib
import os
import resource
import socket
import ssl
import threading
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from certificates import write_certificate
from unreel.core.errors import MachineError
from unreel.core.failure import Failure, FailureReason
from unreel.network.http_client import REPLY_BYTES, HttpReply
from unreel.reviewers.endpoint.model_address import parse_model_address
from unreel.reviewers.endpoint.transport import HttpTransport

BODY = b'{"model": "tiny", "messages": []}'
NO_RECORD = b"\x17\x03\x03\x00\x20" + bytes(32)
"""Framed as TLS, and garbled."""


def send(model: str, *, times: int = 1, **options: Any) -> list[HttpReply | Failure]:
    """What comes of a request that is sent several times over one transport."""

    async def work() -> list[HttpReply | Failure]:
        transport = HttpTransport(
            parse_model_address(model),
            **{"api_key": None, "max_connections": 1, "cap_bytes": REPLY_BYTES, **options},
        )
        try:
            return [await transport.send(BODY, key="question") for _ in range(times)]
        finally:
            await transport.close()

    return asyncio.run(work())


def test_a_server_sees_what_it_needs_and_nothing_of_this_machine(fault_run: Any) -> None:
    run = fault_run("500", 0)
    assert isinstance(send(run.model, api_key="sk-given")[0], HttpReply)
    seen = run.stats()
    assert seen["headers"] == {
        "accept": "application/json",
        "accept-encoding": "identity",
        "authorization": "Bearer sk-given",
        "connection": "keep-alive",
        "content-length": str(len(BODY)),
        "content-type": "application/json",
        "host": f"127.0.0.1:{run.port}",
        "idempotency-key": "question",
        "user-agent": f"unreel/{version('unreel')}",
    }
    assert seen["bodies"] == {"question": [hashlib.sha256(BODY).hexdigest()]}


@pytest.mark.parametrize("fault", ["huge", "declared-huge", "gzip"])
def test_a_body_that_is_refused_ends_its_connection_and_not_the_next(
    fault: str, fault_run: Any
) -> None:
    run = fault_run(fault, 100)
    refused = send(run.model, times=3)
    assert run.stats()["n_requests"] == 3
    assert {one.reason for one in refused if isinstance(one, Failure)} == {
        FailureReason.MALFORMED_REPLY if fault == "gzip" else FailureReason.REPLY_TOO_LARGE
    }


@pytest.fixture
def garbling(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A model behind a server that greets with TLS, begins a reply and goes on with no record of it."""
    certificate = write_certificate(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            visitor, _ = listener.accept()
            with context.wrap_socket(visitor, server_side=True) as secure:
                secure.recv(65536)
                secure.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{")
                with socket.socket(fileno=secure.detach()) as plain:
                    plain.sendall(NO_RECORD)
                    plain.recv(65536)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"vllm/tiny@https://127.0.0.1:{listener.getsockname()[1]}/v1"
    thread.join(timeout=10)


def test_a_broken_record_of_tls_is_a_lost_connection(garbling: str) -> None:
    failure = Failure(FailureReason.CONNECTION_LOST, "the connection failed (SSLError)")
    assert send(garbling) == [failure]


def test_a_key_that_no_header_can_carry_is_not_repeated(fault_run: Any) -> None:
    run = fault_run("500", 0)
    for key, kind in (("sk-caf\u00e9", "UnicodeEncodeError"), ("sk\r\nX: y", "LocalProtocolError")):
        lost = Failure(FailureReason.CONNECTION_LOST, f"the connection failed ({kind})")
        assert send(run.model, api_key=key) == [lost]
    assert run.stats()["n_requests"] == 0


def test_a_machine_without_open_files_left_is_not_the_servers_fault(fault_run: Any) -> None:
    model = fault_run("500", 0).model
    send(model)  # what a first request loads needs files of its own
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)

    async def work() -> None:
        transport = HttpTransport(
            parse_model_address(model), api_key=None, max_connections=1, cap_bytes=REPLY_BYTES
        )
        free = os.dup(0)
        os.close(free)
        resource.setrlimit(resource.RLIMIT_NOFILE, (free, limits[1]))
        try:
            await transport.send(BODY, key="question")
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
            await transport.close()

    with pytest.raises(MachineError, match="Allow more open files"):
        asyncio.run(work())
