"""A season with a service that makes clips, a program and a service that judge: all that is not ours."""

import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

pytest.importorskip("lance", reason="needs the extra eval: pip install 'unreel[eval]'")

from arena.seasons import Stadium, write_benchmark
from creators import fault_server
from creators.fault_server import FaultService
from synthesise import ClipRecipe, synthesise
from unreel.api.contacts import describe_creator_services, describe_external_reviewers
from unreel.arena.answers.answer_table import ANSWERED_GENERATED, ANSWERED_REAL, NOBODY
from unreel.arena.answers.season_answers import read_season_answers
from unreel.core.failure import FailureReason
from unreel.core.settings import EnvironmentSettings
from unreel.creators.config import CreatorRecipeSection
from unreel.reviewers.config import ReviewerSection
from unreel.reviewers.external.program_sandbox import find_program_sandbox_problem

N_SCENES = 2
DETECTOR = """
import json, sys
data = open(sys.argv[1], "rb").read()
print(json.dumps({"score": 0.9 if len(data) > int(sys.argv[2].removeprefix("--above=")) else 0.2}))
"""


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultService]:
    clip = synthesise(ClipRecipe(n_frames=40, seed=9))
    monkeypatch.setattr(fault_server, "CLIP", clip)
    with FaultService() as service:
        yield service


@pytest.fixture
def judge() -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.send_header("Content-Length", "16")
            self.end_headers()
            self.wfile.write(b'{"label":"real"}')

        def log_message(self, *_words: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        threading.Thread(target=http.serve_forever, args=(0.05,), daemon=True).start()
        yield f"http://127.0.0.1:{http.server_port}/judge"
        http.shutdown()


def _service(service: FaultService, fault: str) -> dict[str, object]:
    return {
        "name": fault,
        "kind": "endpoint",
        "url": service.url(fault),
        "model": fault,
        "deadline_s": 10,
        "attempt_s": 5,
        "poll_s": 0.05,
        "sizes": [],
        "seconds": [],
        "usd_per_clip": "0.5",
    }


def test_services_and_programs_play_a_season_and_every_fault_is_told(
    service: FaultService, judge: str, tmp_path: Path
) -> None:
    write_benchmark(tmp_path / "bench", n_scenes=N_SCENES)
    (tmp_path / "detector.py").write_text(DETECTOR)
    faults = ("failed", "wrong-codec", "to-loopback", "announced", "html")
    reviewers = [
        {"model": "command:size", "title": "program",
         "command": [sys.executable, "detector.py", "{clip}", "--above=10"]},
        {"model": "http:judge", "title": "service", "url": judge, "show": "clip"},
    ]  # fmt: skip
    creators = [_service(service, name) for name in ("good", *faults)]
    stadium = Stadium(tmp_path, creators=creators, reviewers=reviewers, head={"floors": False})
    stadium.play()
    rows = list(stadium.folder.made.rows())
    assert len(rows) == N_SCENES * (1 + len(faults))
    ended = {row["creator"]: row["failure_reason"] for row in rows}
    assert ended["good"] is None
    assert ended["failed"] == FailureReason.REFUSED.value
    assert ended["to-loopback"] == FailureReason.NOT_NAMED.value
    assert ended["announced"] == FailureReason.TOO_LARGE.value
    assert ended["html"] == FailureReason.MALFORMED_REPLY.value
    assert ended["wrong-codec"] is not None
    assert service.trapped == []
    assert service.books["good"].posts == N_SCENES
    # No reviewer is asked while a creator has no usable clip.
    stadium = Stadium(tmp_path, creators=creators[:1], reviewers=reviewers, head={"floors": False})
    stadium.play()
    found = read_season_answers(stadium.folder)
    assert set(found.reviewers) == {"program", "service"}
    said: dict[str, set[int]] = {name: set() for name in found.reviewers}
    for who, what in zip(found.reviewer, found.answer_codes, strict=True):
        said[found.reviewers[who]].add(int(what))
    assert said == {"program": {ANSWERED_GENERATED}, "service": {ANSWERED_REAL}}
    assert (found.clips.creator != NOBODY).sum() == N_SCENES
    stadium.play()
    assert service.books["good"].posts == N_SCENES
    # Both scenes were made as the same bytes, which nobody is asked about twice.
    assert stadium.answers() == {"program": 3, "service": 3}


@pytest.mark.skipif(
    bool(find_program_sandbox_problem()[0]), reason=find_program_sandbox_problem()[0]
)
def test_whom_a_season_runs_and_asks_is_told_before() -> None:
    url = "https://video.example.org/v1"
    settings = EnvironmentSettings(key_hosts="video.example.org=VIDEO_KEY")
    creators = [
        CreatorRecipeSection.model_validate({"name": "Ours", "kind": "endpoint", "url": url}),
        CreatorRecipeSection.model_validate({"name": "Sora", "kind": "endpoint"}),
        CreatorRecipeSection.model_validate({"name": "Held", "kind": "frozen"}),
    ]
    reviewers = [
        ReviewerSection(model="command:x", command=("/bin/sh", "a b.py"), gpus=1),
        ReviewerSection(model="http:y", url=url),
        ReviewerSection(model="coin"),
    ]
    services = describe_creator_services(creators, settings)
    assert [*services, *describe_external_reviewers(reviewers, settings)] == [
        "requests clips from video.example.org as Ours, with VIDEO_KEY",
        "requests clips from api.openai.com as Sora, with OPENAI_API_KEY",
        "runs /bin/sh 'a b.py' as command:x, confined",
        "can read /usr, the clip and use the graphics cards",
        "asks video.example.org as http:y, with VIDEO_KEY",
    ]
