"""Calls to a server that is away, refuses, floods or redirects: told in words, tried again where safe."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from unreel.annotation.studio import client as calls
from unreel.annotation.studio.client import (
    LabelStudioClient,
    LabelStudioConnection,
    iter_studio_project_tasks,
)
from unreel.core.errors import InvalidSettingError, KeyRejectedError, MachineError

Answer = tuple[int, object]


class Scripted(ThreadingHTTPServer):
    """Answers each path by its list, the last of it again and again, and notes what was asked."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers: dict[str, list[Answer]] = {}
        self.asked: list[tuple[str, str, str]] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: Scripted

    def _answer(self) -> None:
        path = self.path.partition("?")[0]
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        asked = (self.command, path, self.headers.get("Authorization", ""))
        self.server.asked.append(asked)
        script = self.server.answers[path]
        status, body = script.pop(0) if len(script) > 1 else script[0]
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = do_DELETE = do_PATCH = _answer  # noqa: N815  http.server's names

    def log_message(self, *_words: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Scripted]:
    with Scripted() as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def open_client(server: Scripted, token: str = "t" * 40) -> LabelStudioClient:
    connection = LabelStudioConnection(address=server.address, token=token)
    return LabelStudioClient(connection, sleep=lambda _seconds: None)


def test_reading_is_tried_again_while_the_server_is_away(server: Scripted) -> None:
    server.answers["/x"] = [(503, {}), (500, {}), (200, {"a": 1})]
    with open_client(server) as client:
        assert client.get("/x") == {"a": 1}
    assert len(server.asked) == 3


def test_writing_is_sent_once(server: Scripted) -> None:
    server.answers["/x"] = [(503, {}), (200, {})]
    with open_client(server) as client, pytest.raises(MachineError, match="503"):
        client.post("/x", {})
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    ("status", "kind", "words"),
    [
        (401, KeyRejectedError, "Account & Settings"),
        (403, KeyRejectedError, "Account & Settings"),
        (404, MachineError, "deleted there"),
        (413, MachineError, "64 MB"),
        (302, MachineError, "redirects are not followed"),
        (500, MachineError, "database runs"),
        (400, MachineError, "too short"),
    ],
)
def test_what_is_refused_is_told_with_what_to_do(
    server: Scripted, status: int, kind: type[MachineError], words: str
) -> None:
    server.answers["/x"] = [(status, {"detail": "too short"})]
    with open_client(server) as client, pytest.raises(kind, match=words) as caught:
        client.get("/x")
    assert "t" * 40 not in str(caught.value)


def test_a_page_that_is_too_much_is_read_in_parts_and_one_task_alone_is_told_by_its_number(
    server: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "CAP_BYTES", 1 << 10)
    flood = (200, b" " * (1 << 12))
    alone: Answer = (200, {"tasks": [{"id": 7}]})
    rest: Answer = (200, {"tasks": []})
    # 500, 62, 7 and 1 task at a time
    server.answers["/api/tasks/"] = [flood, flood, flood, flood, alone, rest]
    with open_client(server) as client:
        assert list(iter_studio_project_tasks(client, 1, fields=("data",))) == [{"id": 7}]


def test_a_personal_token_asks_for_a_short_lived_one_and_again_when_it_ran_out(
    server: Scripted,
) -> None:
    server.answers["/api/token/refresh"] = [(200, {"access": "one"}), (200, {"access": "two"})]
    server.answers["/x"] = [(200, {}), (401, {}), (200, {})]
    with open_client(server, token="a.b.c") as client:
        client.get("/x")
        client.get("/x")
    told = [authorisation for _, path, authorisation in server.asked if path == "/x"]
    assert told == ["Bearer one", "Bearer one", "Bearer two"]


def test_no_answer_at_all_is_told_without_the_token() -> None:
    connection = LabelStudioConnection(address="http://127.0.0.1:9", token="s3cret")
    with (
        LabelStudioClient(connection, sleep=lambda _seconds: None) as client,
        pytest.raises(MachineError, match="does not answer") as caught,
    ):
        client.get("/x")
    assert "s3cret" not in str(caught.value)


def test_a_token_does_not_travel_in_clear_unless_it_may() -> None:
    connection = LabelStudioConnection(address="http://labels.example.org", token="t")
    with pytest.raises(InvalidSettingError, match="in clear"):
        LabelStudioClient(connection)
    LabelStudioClient(connection, in_clear=True).close()
    LabelStudioClient(
        LabelStudioConnection(address="https://labels.example.org", token="t")
    ).close()
    with pytest.raises(InvalidSettingError, match="must be a plain address"):
        LabelStudioClient(
            LabelStudioConnection(address="https://user:pw@labels.example.org", token="t")
        )
