"""One `unreel eval`, started as a person would, over a few clips and before a server that can wait."""

import hashlib
import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from unreel.asking.answer_table import ANSWERS
from unreel.engine.clip_facts import CLIPS
from unreel.engine.location import StorageLocation
from unreel.engine.table import LanceTable

ENDS_WITHIN_S = 120
_CODE = "from unreel.cli.main import main; main()"
_POLL_S = 0.02


AT_ONCE = 4
"""Questions under way at a time."""


def say_label(question: bytes) -> str:
    """The answer to a question, from its frames alone."""
    return f"<answer>{hashlib.sha256(question).digest()[0] % 2}</answer>"


@dataclass
class Chat:
    """A chat server on loopback: answers from the frames alone, and the first `lets` at once.

    Whoever asks after them waits for `release`.
    """

    port: int = 0
    lets: int = sys.maxsize
    n_written: int = 10
    """Tokens of each answer, as the server counts them."""
    delay_s: float = 0
    say: Callable[[bytes], str] = say_label
    asked: list[str] = field(default_factory=list)
    released: threading.Event = field(default_factory=threading.Event)
    guard: threading.Lock = field(default_factory=threading.Lock)

    @property
    def model(self) -> str:
        return f"compatible/tiny@http://127.0.0.1:{self.port}/v1"

    def answer_only(self, n: int) -> None:
        self.released.clear()
        self.lets = len(self.asked) + n

    def release(self) -> None:
        self.lets = sys.maxsize
        self.released.set()

    def note(self, key: str) -> None:
        with self.guard:
            self.asked.append(key)
            waits = len(self.asked) > self.lets
        if waits:
            self.released.wait(ENDS_WITHIN_S)


@contextmanager
def chat_server() -> Iterator[Chat]:
    """A chat server for as long as the block lasts."""
    chat = Chat()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            chat.note(self.headers["idempotency-key"])
            time.sleep(chat.delay_s)
            message = {"role": "assistant", "content": chat.say(body)}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            usage = {"prompt_tokens": 100, "completion_tokens": chat.n_written}
            reply = {"id": "1", "object": "chat.completion", "choices": [choice], "usage": usage}
            data = json.dumps(reply).encode()
            try:
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)
            except OSError:
                self.close_connection = True  # the asker was ended

        def log_message(self, *_: object) -> None:
            """Silence."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as httpd:
        chat.port = httpd.server_port
        httpd.daemon_threads = True
        thread = threading.Thread(target=httpd.serve_forever, daemon=True)
        thread.start()
        try:
            yield chat
        finally:
            chat.release()
            httpd.shutdown()
            thread.join()


@dataclass(frozen=True)
class Ended:
    """How a command ended, and what it said."""

    status: int
    stdout: str
    stderr: str

    @property
    def scores(self) -> Any:
        return json.loads(self.stdout)["scores"]

    @property
    def answers(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.stdout)["outcome"]["answers"]
        return found


@dataclass(frozen=True, kw_only=True)
class Trial:
    """A run of `benchmark` kept at `place`, asked of `chat`."""

    benchmark: Path
    place: StorageLocation
    chat: Chat
    folder: Path
    """Where commands are started, and keep what they say."""
    begun: "list[subprocess.Popen[bytes]]"
    """All commands that were started: who tests ends them."""
    environment: Mapping[str, str] = field(default_factory=dict)
    options: tuple[str, ...] = ()
    first: str = ""
    """Python that the command runs before all else."""

    @property
    def command(self) -> list[str]:
        asked = ["eval", str(self.benchmark), "--protocol", "reality", "--model", self.chat.model]
        how = [
            "--nframe",
            "2",
            "--max-connections",
            str(AT_ONCE),
            "--out",
            self.place.uri,
            "--json",
        ]
        return [sys.executable, "-c", self.first + _CODE, *asked, *how, *self.options]

    def start(self, **how: Any) -> "Started":
        """The command, at work."""
        out, err = self.folder / "stdout", self.folder / "stderr"
        environment = os.environ | dict(self.environment)  # noqa: TID251  handed on to a child
        with out.open("w") as stdout, err.open("w") as stderr:
            process = subprocess.Popen(
                how.pop("command", self.command),
                stdout=stdout,
                stderr=stderr,
                cwd=self.folder,
                env=environment,
                **how,
            )
        self.begun.append(process)
        return Started(process, out, err)

    def run(self, **how: Any) -> Ended:
        """The command, to its end."""
        return self.start(**how).end()

    def start_and_stand(self, n: int = 6, **how: Any) -> "Started":
        """The command, with `n` answers committed and the next ones not given yet."""
        started = self.start_and_ask(n, **how)
        wait_until(lambda: self.committed() >= n, started)
        return started

    def start_and_ask(self, n: int = 6, **how: Any) -> "Started":
        """The command, with `n` answers given to it and the next ones waited for."""
        self.chat.answer_only(n)
        due = self.chat.lets + AT_ONCE  # all are waited for, so what was answered has come back
        started = self.start(**how)
        wait_until(lambda: len(self.chat.asked) >= due, started)
        return started

    def committed(self) -> int:
        return self.table("answers").count()

    def table(self, name: str) -> LanceTable:
        return LanceTable(self.place / f"{name}.lance", {"answers": ANSWERS, "clips": CLIPS}[name])

    def rows(self, name: str = "answers") -> dict[str, dict[str, Any]]:
        """All rows by key; a doubled key is an error."""
        table = self.table(name)
        found = list(table.rows()) if table.exists() else []
        keys = Counter(row["key"] for row in found)
        assert not [key for key, n in keys.items() if n > 1]
        return {row["key"]: row for row in found}

    def texts(self) -> dict[str, str]:
        """The answers by key."""
        return {key: row["text"] for key, row in self.rows().items() if row["text"] is not None}


@dataclass(frozen=True)
class Started:
    """A command at work."""

    process: "subprocess.Popen[bytes]"
    out: Path
    err: Path

    def end(self, *, within_s: float = ENDS_WITHIN_S) -> Ended:
        """Wait for its end."""
        try:
            status = self.process.wait(within_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            msg = f"it did not end within {within_s:g} s, but said: {self.said}"
            raise AssertionError(msg) from None
        ended = Ended(status, self.out.read_text(), self.said)
        assert "Traceback" not in ended.stderr, ended.stderr
        return ended

    @property
    def said(self) -> str:
        return self.err.read_text(errors="replace")


def wait_until(true: Callable[[], bool], started: Started | None = None) -> None:
    """Wait until something is true; an end of the command before that is an error."""
    until_s = time.monotonic() + ENDS_WITHIN_S
    while not true():
        if started is not None and started.process.poll() is not None:
            msg = f"it ended with {started.process.returncode}: {started.said}"
            raise AssertionError(msg)
        if time.monotonic() > until_s:
            msg = f"waited in vain; it said: {'' if started is None else started.said}"
            raise AssertionError(msg)
        time.sleep(_POLL_S)


def require_kept(before: Mapping[str, str], after: Mapping[str, str]) -> None:
    """What was committed is still there, word for word."""
    assert {key: after.get(key) for key in before} == before
