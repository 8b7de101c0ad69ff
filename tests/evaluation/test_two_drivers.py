"""Two drivers of one run: the second is told who holds it, and what a dead one left is taken over."""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("lance", reason="needs the extra eval: pip install 'unreel[eval]'")

from unreel.engine.location import StorageLocation
from unreel.engine.writer_lock import build_writer_lock

BEATS_SOON = (
    "from unreel.engine.writer_lock import build_writer_lock; build_writer_lock.__kwdefaults__['lease_s'] = 4; "
    "from unreel.cli.main import main; main()"
)
SAID = json.dumps(
    {
        "id": "1",
        "object": "chat.completion",
        "created": 1,
        "model": "tiny",
        "choices": [
            {
                "index": 0,
                "finish_reason": "stop",
                "message": {"role": "assistant", "content": "<answer>0</answer>"},
            }
        ],
    }
).encode()


class Holding(ThreadingHTTPServer):
    """A chat server that answers nobody until it may."""

    def __init__(self) -> None:
        self.asked = 0
        self.may_answer = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["content-length"]))
                outer.asked += 1
                outer.may_answer.wait(120)
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(SAID)))
                self.end_headers()
                self.wfile.write(SAID)

            def log_message(self, *_: object) -> None:
                """Silence."""

        super().__init__(("127.0.0.1", 0), Handler)


@pytest.fixture
def holding() -> Iterator[Holding]:
    server = Holding()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.may_answer.set()
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def store(s3: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A prefix of a bucket that the environment opens."""
    monkeypatch.setenv("UNREEL_S3_ENDPOINT", s3.options["aws_endpoint"])
    monkeypatch.setenv("UNREEL_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", s3.options["aws_access_key_id"])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", s3.options["aws_secret_access_key"])
    return s3 / tmp_path.name


@pytest.fixture(params=["folder", "store"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> StorageLocation:
    if request.param == "folder":
        return StorageLocation(str(tmp_path / "run"))
    return request.getfixturevalue("store") / "run"  # type: ignore[no-any-return]


def test_the_second_driver_is_told_who_holds_the_run_and_the_first_is_unharmed(
    place: StorageLocation, holding: Holding, clips: Path, typed: Callable[..., Any]
) -> None:
    model = f"compatible/tiny@http://127.0.0.1:{holding.server_port}/v1"
    asked = ["eval", str(clips), "--protocol", "reality", "--model", model, "--out", place.uri]
    command = [sys.executable, "-c", BEATS_SOON, *asked, "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as first:
        until_s = time.monotonic() + 120
        while not holding.asked and time.monotonic() < until_s and first.poll() is None:
            time.sleep(0.05)
        recipe = bytes(place.objects().get("recipe.json").bytes())
        second = typed(*asked, "--limit", 1)
        assert second.status == 2, second
        assert f"pid {first.pid} of " in second.err
        assert "Wait for it to end" in second.err
        restored = typed("runs", "restore", place.uri)
        assert restored.status == 2
        assert f"pid {first.pid}" in restored.err
        assert bytes(place.objects().get("recipe.json").bytes()) == recipe
        holding.may_answer.set()
        out, err = first.communicate(timeout=120)
    assert first.returncode == 0, err
    assert json.loads(out)["outcome"]["answers"]["done"] == 8
    assert holding.asked == 8
    assert typed("runs", "check", place.uri).status == 0


def test_what_a_driver_of_a_dead_machine_left_in_a_folder_is_taken_over(
    clips: Path, typed: Callable[..., Any], tmp_path: Path
) -> None:
    run = tmp_path / "run"
    run.mkdir()
    for name in ("run.lock", "clips.lance.lock", "answers.lance.lock"):
        (run / name).write_text("pid 4194303 of a-machine-that-burnt", encoding="utf-8")
    done = typed(
        "eval", clips, "--protocol", "reality", "--model", "coin", "--trusted", "--out", run
    )
    assert done.status == 0, done
    assert typed("runs", "check", run).status == 0


@pytest.mark.parametrize(
    "left",
    [
        b'{"owner": "x", "host": "burnt", "boot": "x", "pid": 7}',
        pytest.param(b"{torn", marks=pytest.mark.slow),
        pytest.param(b"", marks=pytest.mark.slow),
    ],
)
def test_what_a_driver_of_a_dead_machine_left_in_a_store_is_taken_over_after_the_lease(
    left: bytes, store: Any, clips: Path, typed: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(build_writer_lock.__kwdefaults__, "lease_s", 0.5)
    for name in ("run.lock", "clips.lance.lock", "answers.lance.lock"):
        store.objects().put(f"run/{name}", left)
    place = store / "run"
    done = typed(
        "eval", clips, "--protocol", "reality", "--model", "coin", "--trusted", "--out", place.uri
    )
    assert done.status == 0, done
    assert typed("runs", "check", place.uri).status == 0
