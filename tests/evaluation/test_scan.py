"""Search of long clips in windows."""

import asyncio
import random
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

import pytest

from synthesise import ClipRecipe, synthesise
from unreel.asking.asker import Asker
from unreel.core.answer import Reply, Usage
from unreel.core.failure import Failure, FailureReason
from unreel.core.question import Condition
from unreel.core.settings import EnvironmentSettings
from unreel.core.span import TimeSpan
from unreel.core.trace import Category, Trace
from unreel.core.verdict import LocatedSegment, LocateVerdict
from unreel.evaluation.long_clip_review import (
    WindowSearchLimits,
    WindowSearchOpinion,
    WindowSearchResult,
    format_window_search_cost,
    format_window_search_plan,
    join_segment_pieces,
    search_clip_windows,
)
from unreel.evaluation.review import Review, ReviewQuestions, probe_clip_file, review_clip
from unreel.media.access import open_media_reader
from unreel.reviewers.contract import InputKind, ReviewRequest
from unreel.reviewers.factory import ReviewerWithPrices

MINUTE = 60_000_000


def segment(start: int, end: int, confidence: float | None = 0.9, **more: object) -> LocatedSegment:
    return LocatedSegment(Trace(span=TimeSpan(start, end), **more), confidence)


@dataclass
class Oracle:
    """Sees a fault only if a frame of it is shown."""

    faults: list[TimeSpan]
    n_frames: int = 8
    windows: list[TimeSpan] = field(default_factory=list)

    async def __call__(self, span: TimeSpan):
        self.windows.append(span)
        step = span.length_us / self.n_frames
        instants = [span.start_us + (k + 0.5) * step for k in range(self.n_frames)]
        found = []
        for fault in self.faults:
            seen = [at for at in instants if fault.start_us <= at < fault.end_us]
            if seen:
                found.append(segment(int(max(0, seen[0] - step / 2)), int(seen[-1] + step / 2)))
        return tuple(found)


def run(duration_us: int, ask, n_questions: int = 24) -> WindowSearchResult:
    return asyncio.run(
        search_clip_windows(duration_us, ask, WindowSearchLimits(n_questions=n_questions))
    )


def test_ends_of_a_fault_become_exact_with_denser_frames() -> None:
    fault = TimeSpan(100_000_000, 112_000_000)
    oracle = Oracle([fault])
    (found,) = run(10 * MINUTE, oracle).segments
    assert found.trace.span.iou(fault) > 0.9
    assert min(window.length_us for window in oracle.windows) < 10_000_000


def test_never_more_questions_than_allowed() -> None:
    rng = random.Random(1)
    for n_questions in (1, 2, 3, 5, 24):
        for _ in range(10):
            starts = [rng.randrange(9 * MINUTE) for _ in range(rng.randint(0, 6))]
            oracle = Oracle([TimeSpan(s, s + rng.randrange(10**5, 30 * 10**6)) for s in starts])
            result = run(10 * MINUTE, oracle, n_questions)
            assert len(oracle.windows) == len(result.windows) <= n_questions
            spans = [found.trace.span for found in result.segments]
            assert spans == sorted(spans)
            assert all(span.end_us <= 10 * MINUTE for span in spans)


def test_a_clean_clip_is_an_empty_list_and_uses_every_question() -> None:
    result = run(3 * MINUTE, Oracle([]), 12)
    assert (result.segments, len(result.windows), result.n_unanswered) == ((), 12, 0)


def test_lost_answers_change_nothing_that_was_seen_and_are_counted() -> None:
    oracle = Oracle([TimeSpan(60_000_000, 90_000_000)])
    calls = iter(range(1000))

    async def ask(span: TimeSpan):
        found = await oracle(span)
        return found if next(calls) < 18 else None

    result = run(5 * MINUTE, ask)
    (found,) = result.segments
    assert result.n_unanswered == 6
    assert found.trace.span.iou(TimeSpan(60_000_000, 90_000_000)) > 0.7


def test_what_lies_outside_of_a_window_was_not_seen_there() -> None:
    async def ask(span: TimeSpan):
        return (segment(0, 10 * MINUTE),) if span.start_us == 0 else ()

    for found in run(2 * MINUTE, ask, 4).segments:
        assert found.trace.span.end_us < MINUTE


def test_pieces_of_different_windows_join_and_those_of_one_window_do_not() -> None:
    pieces = [(0, segment(0, 10, 0.3, explanation="a")), (1, segment(11, 20, 0.8, explanation="b"))]
    (joined,) = join_segment_pieces(pieces, gap_us=1)
    assert (joined.trace.span, joined.confidence) == (TimeSpan(0, 20), 0.8)
    assert joined.trace.explanation == "b"
    assert len(join_segment_pieces([(0, pieces[0][1]), (0, pieces[1][1])], gap_us=1)) == 2
    assert len(join_segment_pieces(pieces, gap_us=0)) == 2


@dataclass
class WindowReviewer:
    """Reviewer that sees a fault from 30 to 40 seconds if a frame of it is shown."""

    name: str = "windows"
    wants: frozenset[InputKind] = frozenset({InputKind.FRAMES})
    answer_text: str | Failure = ""
    requests: list[ReviewRequest] = field(default_factory=list)

    def box_space(self, exhibit) -> str:
        return "unit"

    async def answer(self, request: ReviewRequest) -> Reply | Failure:
        self.requests.append(request)
        if isinstance(self.answer_text, Failure):
            return self.answer_text
        times = [float(frame.at_s) for frame in request.inputs[0].frames]
        step = times[1] - times[0] if len(times) > 1 else 1
        seen = [at for at in times if 30 <= at < 40]
        text = "[]"
        if seen:
            start, end = max(0, seen[0] - step / 2), seen[-1] + step / 2
            text = f'[{{"start": {start}, "end": {end}, "category": "other", "confidence": 0.8}}]'
        usage = Usage(input_tokens=100, output_tokens=10)
        return Reply(text=self.answer_text or text, usage=usage)

    async def aclose(self) -> None:
        """Do nothing."""


@pytest.fixture(scope="module")
def long_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("clips") / "long.mp4"
    path.write_bytes(synthesise(ClipRecipe(n_frames=140, rate=Fraction(2))))
    return path


def review(file: Path, reviewer: WindowReviewer, *, n_questions: int = 12, **asked) -> Review:
    inquiry = ReviewQuestions(
        condition=Condition(), scan=WindowSearchLimits(n_questions=n_questions), **asked
    )

    async def go(reader) -> Review:
        clip = probe_clip_file(file, reader)
        assert not isinstance(clip, Failure)
        opened = [ReviewerWithPrices(reviewer)]
        return await review_clip(clip, opened, inquiry=inquiry, asker=Asker(reader))

    with open_media_reader(EnvironmentSettings(), trusted=True) as reader:
        return asyncio.run(go(reader))


def test_a_clip_of_more_than_a_minute_is_searched_and_the_answers_are_one(long_file: Path) -> None:
    reviewer = WindowReviewer()
    found = review(long_file, reviewer, protocols=("reality",))
    (_, opinion) = found.opinions
    assert isinstance(opinion, WindowSearchOpinion)
    assert isinstance(opinion.verdict, LocateVerdict)
    (located,) = opinion.verdict.segments
    assert located.trace.span.iou(TimeSpan(30_000_000, 40_000_000)) > 0.8
    assert located.trace.categories == {Category.OTHER}
    asked = [sheet for sheet in reviewer.requests if sheet.instrument.protocol == "locate"]
    plans = [sheet.condition.sampling for sheet in asked]
    assert len(plans) == opinion.n_windows == 12
    assert all(plan.startswith("window-") for plan in plans)
    assert opinion.outcome.usage == Usage(input_tokens=1200, output_tokens=120)
    assert opinion.read("strict") == opinion.verdict
    assert 1 <= len(opinion.inputs[0].frames) <= 8
    assert opinion.headline == "generated"
    assert "windows searched the clip: 12 questions, cost unknown" in format_window_search_cost(
        opinion
    )
    said = format_window_search_plan(found.clip, 1, WindowSearchLimits(n_questions=12))
    assert "at most 12 questions of 8 frames for each of 1 reviewers (12 questions)" in said


def test_failures_of_every_window_are_one_failure(long_file: Path) -> None:
    failure = Failure(FailureReason.SERVER_ERROR, "down")
    found = review(long_file, WindowReviewer(answer_text=failure), protocols=("locate",))
    (opinion,) = found.opinions
    assert opinion.outcome == failure
    assert opinion.verdict is None
    assert not found.is_complete


def test_answers_that_cannot_be_read_are_no_clean_clip(long_file: Path) -> None:
    found = review(long_file, WindowReviewer(answer_text="zq"), protocols=("locate",))
    (opinion,) = found.opinions
    assert not opinion.is_readable
    assert "could not be read" in (opinion.problem or "")
