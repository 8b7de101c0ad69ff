"""Stories in a curation: asked once through a server, kept, and used to sample evenly."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from email.message import Message

import pytest

from chat import Reply, refuses, says, serve_chat
from unreel.benchmarks.loader import open_benchmark
from unreel.curation.curation_run import run_curation

STORIES = (
    "A red ball bounces across the floor of an empty room, and its thuds echo from the walls.",
    "A cook chops carrots on a wooden board, then stirs a soup, and finally tastes it with a spoon.",
)


@dataclass
class Teller:
    """A chat server on loopback: its story follows from the frames; `status` may refuse."""

    status: int = 200
    asked: list[str] = field(default_factory=list)
    port: int = 0

    @property
    def model(self) -> str:
        return f"compatible/teller@http://127.0.0.1:{self.port}/v1"


@pytest.fixture
def teller() -> Iterator[Teller]:
    state = Teller()

    def reply(body: bytes, _: Message) -> Reply:
        mark = hashlib.sha256(body).hexdigest()
        state.asked.append(mark)
        return (
            says(STORIES[int(mark, 16) % 2]) if state.status == 200 else refuses(state.status, "no")
        )

    with serve_chat(reply) as state.port:
        yield state


def test_real_clips_are_described_once_and_sorted_into_easy_and_hard(
    footage, curation, teller
) -> None:
    job = curation({"path": str(footage)}, describe={"model": teller.model})
    run_curation(job)
    assert len(teller.asked) == 5
    entries = list(open_benchmark(job.context.place.path / "benchmark"))
    real = [entry for entry in entries if entry.label == "real"]
    assert {entry.prompt for entry in real} <= set(STORIES)
    assert {entry.difficulty for entry in real} <= {"easy", "hard"}
    assert {entry.prompt for entry in entries if entry.label == "generated"} == {""}
    run_curation(job)
    assert len(teller.asked) == 5


def test_the_same_number_is_kept_of_each_group_of_stories(footage, curation, teller) -> None:
    pytest.importorskip("sentence_transformers", reason="needs the extra `sts`")
    pytest.importorskip("sklearn", reason="needs the extra `run_curation`")
    job = curation({"path": str(footage)}, describe={"model": teller.model}, cluster={})
    state = run_curation(job)
    groups = [piece.notes["cluster"] for piece in state.segments if "cluster" in piece.notes]
    counts = {groups.count(group) for group in groups}
    assert len(counts) == 1
    assert len(groups) + state.reasons.get("cluster: not-drawn", 0) == 5
