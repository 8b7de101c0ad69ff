"""Programs and services as reviewers: what they say is read, and what they try is stopped."""

import asyncio
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unreel.core.answer import Reply
from unreel.core.failure import Failure, FailureReason
from unreel.core.question import Condition
from unreel.protocols.protocol import get_protocol
from unreel.reviewers.config import ReviewerSection
from unreel.reviewers.contract import ClipInput, Reviewer, ReviewRequest, WholeClip
from unreel.reviewers.external.detector_scores import DetectorScoreInterpretation
from unreel.testing.reviewers import ReviewerKit, run, sample_clip_input

CLIP = b"\x00\x00\x00\x18ftypisom" + bytes(range(200))
SECRET = "sk-77aa-never-shown"


def shown(data: bytes = CLIP) -> ClipInput:
    return replace(sample_clip_input("one"), whole=WholeClip(data, "video/mp4"))


def sheet(n_clips: int = 1, name: str = "reality") -> ReviewRequest:
    asked = get_protocol(name)
    return ReviewRequest(
        key="k" * 64,
        instrument=asked.instrument,
        prompt="Is this real?",
        inputs=tuple(shown() for _ in range(n_clips)),
        condition=Condition(),
    )


def program(folder: Path, code: str, **keys: Any) -> Reviewer:
    """A reviewer whose program is `code`."""
    (folder / "detector.py").write_text(code)
    section = ReviewerSection(
        model="command:tested",
        command=(sys.executable, str(folder / "detector.py")),
        **{"deadline_s": 20.0, **keys},
    )
    return section.opener(key_hosts="").open().reviewer


def asked(reviewer: Reviewer, question: ReviewRequest | None = None) -> Reply | Failure:
    return run(reviewer, lambda: reviewer.answer(question or sheet()))


SCORES = "import sys, json; print(json.dumps({'score': open(sys.argv[1], 'rb').read()[-1] / 256}))"


class TestCommand(ReviewerKit):
    @pytest.fixture
    def reviewer(self, tmp_path: Path) -> Reviewer:
        return program(tmp_path, "print('{\"score\": 0.9}')")


def test_a_program_is_given_the_clip_and_its_score_becomes_the_instruments_own_words(
    tmp_path: Path,
) -> None:
    said = asked(program(tmp_path, SCORES))
    assert isinstance(said, Reply), said
    verdict = get_protocol("reality").wording
    assert said.text == verdict.phrase([0.9], Condition().prompt)
    turned = asked(program(tmp_path, SCORES, score_means="real"))
    assert isinstance(turned, Reply)
    assert turned.text == verdict.phrase([0.1], Condition().prompt)
    strict = asked(program(tmp_path, SCORES, threshold=0.8))
    assert isinstance(strict, Reply)
    assert strict.text == verdict.phrase([0.1], Condition().prompt)


HOSTILE: dict[str, tuple[str, FailureReason]] = {
    "never ends": ("import time\nwhile True: time.sleep(1)", FailureReason.OUT_OF_TIME),
    "closes its streams and stays": (
        "import os, time\nos.close(1); os.close(2)\ntime.sleep(60)",
        FailureReason.OUT_OF_TIME,
    ),
    "ignores signals": (
        "import signal, time\nfor n in (2, 15): signal.signal(n, signal.SIG_IGN)\ntime.sleep(60)",
        FailureReason.OUT_OF_TIME,
    ),
    "prints a gigabyte": (
        "import sys\nfor _ in range(1024): sys.stdout.write('x' * (1 << 20))",
        FailureReason.REPLY_TOO_LARGE,
    ),
    "exits with 3": ("raise SystemExit(3)", FailureReason.SERVER_ERROR),
    "dies": ("import os\nos.kill(os.getpid(), 11)", FailureReason.WORKER_DIED),
    "says nothing": ("", FailureReason.EMPTY_REPLY),
    "prints NaN": ("print('{\"score\": NaN}')", FailureReason.MALFORMED_REPLY),
    "prints infinity": ("print('{\"score\": 1e999}')", FailureReason.MALFORMED_REPLY),
    "prints a page": ("print('<html>0.5</html>')", FailureReason.MALFORMED_REPLY),
    "prints depth": ("print('[' * 100000)", FailureReason.MALFORMED_REPLY),
    "prints bytes": (
        "import sys\nsys.stdout.buffer.write(bytes(range(256)))",
        FailureReason.MALFORMED_REPLY,
    ),
    "scores above 1": ("print('{\"score\": 1.5}')", FailureReason.MALFORMED_REPLY),
    "contradicts itself": (
        'print(\'{"score": 0.9, "label": "real"}\')',
        FailureReason.MALFORMED_REPLY,
    ),
    "wants the network": (
        "import socket\nsocket.create_connection(('127.0.0.1', {port}))",
        FailureReason.SERVER_ERROR,
    ),
    "wants a socket file": (
        "import socket\nsocket.socket(socket.AF_UNIX)",
        FailureReason.SERVER_ERROR,
    ),
    "writes outside": ("open({outside!r}, 'w')", FailureReason.SERVER_ERROR),
    "writes into the clip": (
        "import sys\nopen(sys.argv[1], 'ab').write(b'x')",
        FailureReason.SERVER_ERROR,
    ),
    "removes the clip": ("import os, sys\nos.unlink(sys.argv[1])", FailureReason.SERVER_ERROR),
    "changes rights": ("import os\nos.chmod({here!r}, 0o777)", FailureReason.SERVER_ERROR),
    "kills its caller": ("import os\nos.kill({pid}, 9)", FailureReason.SERVER_ERROR),
    "reads its caller": ("open('/proc/{pid}/environ').read()", FailureReason.SERVER_ERROR),
    "wants namespaces": (
        "import ctypes, sys\nsys.exit(7 if ctypes.CDLL(None).unshare(0x10000000) else 0)",
        FailureReason.SERVER_ERROR,
    ),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_what_a_hostile_program_tries_ends_as_a_failure_with_its_reason(
    case: str, tmp_path: Path
) -> None:
    code, reason = HOSTILE[case]
    outside = tmp_path / "outside"
    for place, told in {
        "{port}": str(_trap_port()),
        "{outside!r}": repr(str(outside)),
        "{here!r}": repr(str(tmp_path)),
        "{pid}": str(os.getpid()),
    }.items():
        code = code.replace(place, told)
    slow = reason is FailureReason.OUT_OF_TIME
    outcome = asked(program(tmp_path, code, deadline_s=6.0 if slow else 30.0))
    assert isinstance(outcome, Failure), outcome
    assert outcome.reason is reason, outcome
    assert not outside.exists()
    assert _TRAPPED == []


_TRAPPED: list[str] = []
_TRAP: list[int] = []


def _trap_port() -> int:
    """A server of this machine that nobody may reach."""
    if not _TRAP:

        class Handler(BaseHTTPRequestHandler):
            def setup(self) -> None:
                _TRAPPED.append("connected")
                super().setup()

        http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=http.serve_forever, daemon=True).start()
        _TRAP.append(http.server_port)
    return _TRAP[0]


FORKS = """
import os, sys, time
for _ in range(20):
    if os.fork() == 0:
        os.setsid()
        os.dup2(os.open(os.devnull, os.O_RDWR), 1)
        os.dup2(1, 2)
        os.execvp("sleep", ["sleep", "{mark}"])
print('{"score": 0.25}')
"""


def _living(mark: str) -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if words[:2] == [b"sleep", mark.encode()]:
            found.append(path.parent.name)
    return found


def test_what_a_program_started_ends_with_it(tmp_path: Path) -> None:
    mark = f"{1000 + os.getpid()}.25"
    said = asked(program(tmp_path, FORKS.replace("{mark}", mark)))
    assert isinstance(said, Reply), said
    _wait_until(lambda: not _living(mark))


def test_a_program_that_forks_without_end_is_stopped(tmp_path: Path) -> None:
    mark = f"{1000 + os.getpid()}.5"
    code = (
        "import os, sys\nn = 0\ntry:\n    while n < 3000:\n        n += 1\n"
        f"        if os.fork() == 0: os.execvp('sleep', ['sleep', '{mark}'])\n"
        "except OSError: pass\nprint('{\"score\": %f}' % (n / 10000))\n"
    )
    asked(program(tmp_path, code, deadline_s=30.0))
    assert _living(mark) == []


def test_a_question_that_is_called_off_ends_its_program(tmp_path: Path) -> None:
    mark = f"{1000 + os.getpid()}.75"
    reviewer = program(tmp_path, f"import os\nos.execvp('sleep', ['sleep', '{mark}'])")

    async def call_off() -> None:
        question = asyncio.create_task(reviewer.answer(sheet()))
        until_s = time.monotonic() + 20
        while not _living(mark) and time.monotonic() < until_s:
            await asyncio.sleep(0.05)
        question.cancel()
        with pytest.raises(asyncio.CancelledError):
            await question

    run(reviewer, call_off)
    _wait_until(lambda: not _living(mark))


KILLED = """
import sys
from pathlib import Path
from reviewers.test_outside import asked, program
asked(program(Path(sys.argv[1]), sys.argv[2]))
"""


def test_a_killed_caller_leaves_no_program_behind(tmp_path: Path) -> None:
    mark = f"{1000 + os.getpid()}.125"
    code = f"import os\nos.execvp('sleep', ['sleep', '{mark}'])"
    tests = str(Path(__file__).parents[1])
    caller = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path), code],
        env=os.environ | {"PYTHONPATH": tests},  # noqa: TID251  the tests' own environment
    )
    _wait_until(lambda: bool(_living(mark)))
    caller.kill()
    caller.wait()
    _wait_until(lambda: not _living(mark))


def _wait_until(holds: Callable[[], bool]) -> None:
    until_s = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < until_s
        time.sleep(0.05)


def test_keys_of_the_environment_are_not_shown_to_a_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    code = "import os, sys\nsys.exit(f'told: {sorted(os.environ.items())}')"
    outcome = asked(program(tmp_path, code))
    assert isinstance(outcome, Failure)
    assert "told:" in caplog.text
    assert SECRET not in caplog.text


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"model": "command:x"}, "needs it"),
        ({"model": "http:x"}, "needs it"),
        ({"model": "coin", "command": ("a",)}, "command:NAME"),
        ({"model": "coin", "url": "http://127.0.0.1/"}, "http:NAME"),
        ({"model": "command:../x", "command": ("a",)}, "not a valid name"),
        ({"model": "http:x", "url": "http://u:p@127.0.0.1/"}, "plain letters"),
        ({"model": "http:x", "url": "file:///etc/passwd"}, "plain letters"),
        ({"model": "command:x", "command": ("a",), "threshold": 1.0}, "less than 1"),
    ],
)
def test_what_a_recipe_gets_wrong_is_said(keys: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        ReviewerSection(**keys)


class _Service:
    """A service of this machine that plays the answer it is told to."""

    def __init__(self) -> None:
        self.replies: list[tuple[int, bytes]] = []
        self.bodies: list[bytes] = []
        self.keys: list[str | None] = []
        self.url = ""

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        self.bodies.append(handler.rfile.read(int(handler.headers["Content-Length"])))
        self.keys.append(handler.headers.get("Authorization"))
        status, body = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        handler.send_response(status)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)


@pytest.fixture
def service() -> Iterator[_Service]:
    played = _Service()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            played.answer(self)

        def log_message(self, *_words: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        played.url = f"http://127.0.0.1:{http.server_port}/v1/score"
        played.replies = [(200, b'{"score": 0.75}')]
        threading.Thread(target=http.serve_forever, args=(0.05,), daemon=True).start()
        yield played
        http.shutdown()


def visitor(url: str, key_hosts: str = "", **keys: Any) -> Reviewer:
    given = {"model": "http:tested", "url": url, "deadline_s": 2.0, "show": "clip", **keys}
    return ReviewerSection(**given).opener(key_hosts=key_hosts).open().reviewer


class TestHttp(ReviewerKit):
    @pytest.fixture
    def reviewer(self, service: _Service) -> Reviewer:
        return visitor(service.url, show="frames")


def test_a_service_is_posted_the_clip_or_its_frames(service: _Service) -> None:
    said = asked(visitor(service.url))
    assert isinstance(said, Reply)
    assert said.text == get_protocol("reality").wording.phrase([0.75], Condition().prompt)
    assert service.bodies == [CLIP]
    asked(visitor(service.url, show="frames"))
    frames = json.loads(service.bodies[1])["frames"]
    assert [frame["at_us"] for frame in frames] == [0, 40_000, 80_000, 120_000]


@pytest.mark.parametrize(
    ("replies", "reason"),
    [
        ([(503, b"busy"), (200, b'{"label": "real"}')], None),
        ([(200, b"<html>"), (200, b'{"score": 0}')], None),
        ([(500, b"oops")], FailureReason.SERVER_ERROR),
        ([(400, b'{"error": "no clip"}')], FailureReason.REQUEST_REJECTED),
        ([(200, b'{"score": NaN}')], FailureReason.MALFORMED_REPLY),
        ([(200, b'{"verdict": "real"}')], FailureReason.MALFORMED_REPLY),
        ([(200, b'{"score": "' + b"9" * 100_000 + b'"}')], FailureReason.REPLY_TOO_LARGE),
        ([(302, b"")], FailureReason.REQUEST_REJECTED),
    ],
)
def test_a_service_that_stumbles_is_asked_again_and_one_that_fails_is_a_failure(
    service: _Service, replies: list[tuple[int, bytes]], reason: FailureReason | None
) -> None:
    service.replies = replies
    outcome = asked(visitor(service.url))
    if reason is None:
        assert isinstance(outcome, Reply), outcome
    else:
        assert isinstance(outcome, Failure)
        assert outcome.reason is reason, outcome


def test_a_key_goes_to_a_named_service_alone(
    service: _Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DETECTOR_KEY", SECRET)
    host = service.url.removeprefix("http://").partition("/")[0]
    asked(visitor(service.url))
    asked(visitor(service.url, f"{host}=DETECTOR_KEY"))
    assert service.keys == [None, f"Bearer {SECRET}"]
    with pytest.raises(ValueError, match="in clear"):
        visitor("http://detector.example.org/", "detector.example.org=DETECTOR_KEY")


@given(score=st.floats(0, 1), threshold=st.floats(0.01, 0.99))
def test_a_belief_falls_on_the_side_of_the_threshold_and_turns_with_its_meaning(
    score: float, threshold: float
) -> None:
    means = DetectorScoreInterpretation(threshold=threshold).believe({"score": score})
    turned = DetectorScoreInterpretation(score_means="real", threshold=threshold).believe(
        {"score": score}
    )
    assert isinstance(means, float)
    assert isinstance(turned, float)
    assert (means > 0.5) is (score >= threshold)
    assert 0 <= means <= 1
    assert turned == 1 - means
