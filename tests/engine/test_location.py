"""Tables on a real S3 server, and a store that breaks its promise is refused."""

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from unreel.asking.answer_table import ANSWERS
from unreel.core.errors import UnreadableSourceError
from unreel.engine.location import StorageLocation, require_conditional_puts
from unreel.engine.run import run_pending_questions
from unreel.engine.stage import Row, Stage, WorkerResources
from unreel.engine.table import LanceTable
from unreel.engine.writer_lock import build_writer_lock


class Yes(Stage):
    resources = WorkerResources(cpus=0, in_flight=4)

    async def __call__(self, row: Row) -> Row:
        return row | {"text": "yes"}


class Careless(BaseHTTPRequestHandler):
    """A store that takes every put, whatever its conditions say."""

    def do_PUT(self) -> None:
        asked = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        key = re.search(rb"<Key>.*?</Key>", asked) if self.command == "POST" else None
        body = b"<DeleteResult><Deleted>%b</Deleted></DeleteResult>" % key[0] if key else b""
        self.send_response(200)
        self.send_header("ETag", '"always-the-same"')
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_DELETE = do_PUT  # noqa: N815  the names that http.server looks for

    def log_message(self, *_words: object) -> None:
        pass


@pytest.fixture
def careless() -> Iterator[StorageLocation]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Careless) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        options = {
            "aws_endpoint": f"http://127.0.0.1:{server.server_port}",
            "aws_access_key_id": "k",
            "aws_secret_access_key": "s",
            "aws_region": "us-east-1",
            "allow_http": "true",
        }
        yield StorageLocation("s3://bucket/answers", options)
        server.shutdown()


def test_a_store_that_ignores_conditions_is_refused_before_anything_is_asked(
    careless: StorageLocation, tmp_path: Path
) -> None:
    with pytest.raises(UnreadableSourceError, match="does not enforce conditional puts"):
        run_pending_questions(
            [{"key": "a"}], [Yes()], table=LanceTable(careless, ANSWERS), ledger=tmp_path / "ledger"
        )


def test_a_real_store_passes_the_preflight(s3: StorageLocation) -> None:
    require_conditional_puts(s3 / "preflight")


def test_a_store_that_is_not_there_says_what_to_check(s3: StorageLocation) -> None:
    wrong = StorageLocation(s3.uri, {**s3.options, "aws_secret_access_key": "wrong"})
    with pytest.raises(UnreadableSourceError, match="Check its address, bucket, keys"):
        require_conditional_puts(wrong)


def test_a_run_writes_its_table_to_a_store_and_resumes_there(
    s3: StorageLocation, tmp_path: Path
) -> None:
    table = LanceTable(s3 / "runs" / "one.lance", ANSWERS)
    questions = [{"key": str(number)} for number in range(50)]
    first = run_pending_questions(questions[:30], [Yes()], table=table, ledger=tmp_path / "ledger")
    second = run_pending_questions(questions, [Yes()], table=table, ledger=tmp_path / "ledger")
    assert (first.done, second.already, second.done) == (30, 30, 20)
    assert {row["key"] for row in table.rows()} == {row["key"] for row in questions}


def test_a_lease_is_refused_while_its_holder_moves(s3: StorageLocation) -> None:
    place = s3 / "held.lance"
    with (
        build_writer_lock(place, lease_s=2),
        pytest.raises(UnreadableSourceError, match="another run writes it"),
        build_writer_lock(place, lease_s=4),
    ):
        pass


def test_a_lease_that_nobody_renews_is_taken_over(s3: StorageLocation) -> None:
    place = s3 / "stale.lance"
    dead = {"owner": "x", "host": "elsewhere", "boot": "x", "pid": 1, "beat": 1}
    s3.objects().put("stale.lance.lock", json.dumps(dead).encode())
    with build_writer_lock(place, lease_s=0.5) as lock:
        lock.verify()


def test_the_lease_of_a_killed_process_is_taken_over_before_its_parent_buried_it(
    s3: StorageLocation,
) -> None:
    place = s3 / "unburied.lance"
    code = (
        "import json, sys; from unreel.engine.writer_lock import build_writer_lock; "
        "from unreel.engine.location import StorageLocation; "
        "place = StorageLocation(sys.argv[1], json.loads(sys.argv[2])); "
        "build_writer_lock(place).__enter__(); print('held', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", code, place.uri, json.dumps(dict(place.options))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        holder.kill()
        os.waitid(os.P_PID, holder.pid, os.WEXITED | os.WNOWAIT)  # dead, and not buried
        with build_writer_lock(place, lease_s=3600) as lock:
            lock.verify()


def test_a_lease_is_still_held_when_the_reply_to_its_renewal_is_lost(s3: StorageLocation) -> None:
    with build_writer_lock(s3 / "lost-reply.lance") as lock:
        tag = lock._tag  # type: ignore[attr-defined]
        lock.verify()
        lock._tag = tag  # type: ignore[attr-defined]  # as if the store had not told the new one
        lock.verify()
