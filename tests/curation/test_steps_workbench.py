"""The workbench: what it asks again, and what it does not."""

import pickle
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from pydantic import TypeAdapter

from unreel.core.clip import ClipId
from unreel.core.content_ids import compute_clip_id
from unreel.core.failure import Failure, FailureReason
from unreel.curation.step_execution import (
    CurationContext,
    CurationStepRequest,
    VersionedCurationStep,
)


@dataclass(frozen=True)
class Seen:
    seen: bool


class Colour(StrEnum):
    RED = "red"


@dataclass(frozen=True)
class Coloured:
    colour: Colour


@dataclass(frozen=True)
class Ranked:
    rank: int


STEP = VersionedCurationStep(name="tried", version=1, finds=TypeAdapter(Seen))


def subjects(tmp_path: Path) -> list[CurationStepRequest]:
    file = tmp_path / "a"
    file.write_text("a")
    return [CurationStepRequest(clip=compute_clip_id(file), name="a", location=str(file))]


class Looker:
    """Fails with `reason` as long as `times` are left; local steps run in this process."""

    def __init__(self, reason: FailureReason, times: int) -> None:
        self.reason, self.left, self.asked = reason, times, 0

    def __call__(self, _reader, _file, _given):
        self.asked += 1
        self.left -= 1
        return Failure(self.reason, "no") if self.left >= 0 else Seen(seen=True)


def bench_of(curation):
    return curation({"path": "nowhere", "label": "real"}).context


def test_a_failure_of_the_hour_is_tried_again_at_once(tmp_path, curation) -> None:
    look = Looker(FailureReason.OUT_OF_TIME, 2)
    assert list(bench_of(curation).ask(STEP, subjects(tmp_path), look)) == [Seen(seen=True)]
    assert look.asked == 3


def test_a_failure_of_the_clip_is_kept(tmp_path, curation) -> None:
    look = Looker(FailureReason.UNDECODABLE, 99)
    bench = bench_of(curation)
    for _ in range(2):
        (found,) = bench.ask(STEP, subjects(tmp_path), look)
        assert found.reason is FailureReason.UNDECODABLE
    assert look.asked == 1


def test_a_set_is_decided_once_whatever_its_order_and_anew_with_another_member(
    tmp_path, curation
) -> None:
    members = [
        CurationStepRequest(clip=ClipId(name * 64), name=name, location="", given={"n": n})
        for n, name in enumerate("cab")
    ]
    decided: list[list[str]] = []

    def decide():
        decided.append(sorted(subject.clip for subject in asked))
        return lambda place: Ranked(rank=decided[-1].index(asked[place].clip))

    step = VersionedCurationStep(name="ranked", version=1, finds=TypeAdapter(Ranked))
    bench = bench_of(curation)
    asked = members
    first = list(bench.run_cached(step, asked, decide))
    asked = members[::-1]
    assert first == list(bench.run_cached(step, asked, decide))[::-1]
    assert len(decided) == 1
    asked = members[:2]
    bench.run_cached(step, asked, decide)
    assert decided[1:] == [["a" * 64, "c" * 64]]


def see_red(_reader, _file, _given) -> Coloured:
    return Coloured(colour=Colour.RED)


def test_a_step_travels_to_other_processes_whatever_it_finds(tmp_path, curation) -> None:
    bench, asked = bench_of(curation), subjects(tmp_path)
    sent = []

    class Elsewhere(CurationContext):
        def ask_stage(self, step, subjects, stage):
            sent.append(pickle.loads(pickle.dumps(stage)))
            return super().ask_stage(step, subjects, sent[-1])

    away = Elsewhere(place=bench.place, access=bench.access, ledgers=bench.ledgers)
    step = VersionedCurationStep(name="coloured", version=1, finds=TypeAdapter(Coloured))
    assert list(away.ask(step, asked, see_red)) == [Coloured(colour=Colour.RED)]
    assert len(sent) == 1
