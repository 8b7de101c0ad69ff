"""Search of a long clip by a reviewer: one `locate` question for each window, one opinion for all."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Final

from unreel.core.answer import Reply, Usage
from unreel.core.clip import Clip
from unreel.core.failure import Failure
from unreel.core.question import Condition, Question
from unreel.core.span import MICROSECONDS, TimeSpan, convert_to_microseconds
from unreel.core.verdict import LocateVerdict, Unparsed, Verdict
from unreel.evaluation.opinion import Opinion
from unreel.evaluation.scan import LONG_US, ScanResult, SearchLimits, Segments, scan
from unreel.media.sampling import WindowSampling
from unreel.protocols.locate import LOCATE
from unreel.protocols.locate.text import UNIT, write_segments
from unreel.protocols.protocol import Mode
from unreel.reviewers.ask import ReviewDispatcher, ReviewResult
from unreel.reviewers.contract import ClipInput, InputKind
from unreel.reviewers.factory import OpenedReviewer

SCANNED: Final = LOCATE.instrument.protocol
_SHOWN: Final = 8
"""Most frames that stand for all of a search on a page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanOpinion(Opinion):
    """Opinion from a search, and its number of questions."""

    n_windows: int
    n_unanswered: int


def needs_scan(clip: Clip, settings: SearchLimits | None) -> bool:
    """Return whether the clip is long enough to be searched in windows, and that is asked for."""
    return settings is not None and convert_to_microseconds(clip.facts.video.duration_s) > LONG_US


def list_scanners(reviewers: Sequence[OpenedReviewer]) -> list[OpenedReviewer]:
    """Return the reviewers that look at frames; the others cannot look at a window."""
    return [opened for opened in reviewers if InputKind.FRAMES in opened.reviewer.wants]


async def scan_clip(
    clip: Clip,
    asked: OpenedReviewer,
    *,
    condition: Condition,
    mode: Mode,
    desk: ReviewDispatcher,
    settings: SearchLimits,
) -> ScanOpinion:
    """Search `clip` with one reviewer, and return all segments as one opinion.

    The condition of each question is `condition` with the frames of its window and without sound.
    """
    results: list[ReviewResult] = []
    prompt = condition.prompt if condition.prompt in LOCATE.prompts else Condition().prompt
    silent = replace(condition, audio="off", prompt=prompt)

    async def ask(window: TimeSpan) -> Segments | None:
        start_s, end_s = (Fraction(end, MICROSECONDS) for end in (window.start_us, window.end_us))
        sampling = str(WindowSampling(start_s, end_s, settings.n_frames))
        question = Question(
            subject=clip.id,
            instrument=LOCATE.instrument,
            condition=replace(silent, sampling=sampling),
        )
        result = await desk.ask(question, [clip], asked)
        results.append(result)
        verdict = result.read(mode)
        if not isinstance(verdict, LocateVerdict) or isinstance(verdict.segments, Unparsed):
            return None
        return verdict.segments

    found = await scan(convert_to_microseconds(clip.facts.video.duration_s), ask, settings)
    name = f"scan-{settings.n_questions}x{settings.n_frames}"
    question = Question(
        subject=clip.id,
        instrument=LOCATE.instrument,
        condition=replace(silent, sampling=name),
    )
    return _build_opinion(question, found, results, mode)


def _build_opinion(
    question: Question, found: ScanResult, results: Sequence[ReviewResult], mode: Mode
) -> ScanOpinion:
    failed = [result.outcome for result in results if isinstance(result.outcome, Failure)]
    outcome: Reply | Failure
    verdict: Verdict | None = LocateVerdict(segments=found.segments)
    if found.n_unanswered == len(found.windows):
        outcome = failed[0] if failed else results[0].outcome
        verdict = None if failed else results[0].read(mode)
    else:
        outcome = Reply(text=write_segments(found.segments), usage=_add_usage(results))
    exhibits = [result.exhibits[0] for result in results if result.exhibits]
    costs = [result.cost_usd for result in results]
    known = [cost for cost in costs if cost is not None]
    return ScanOpinion(
        reviewer=results[0].reviewer,
        question=question,
        prompt=results[0].prompt,
        exhibits=(_select_frames(exhibits, found.segments),) if exhibits else (),
        box_space=UNIT.name,
        outcome=outcome,
        cost_usd=sum(known, Decimal()) if len(known) == len(costs) else None,
        verdict=verdict,
        n_windows=len(found.windows),
        n_unanswered=found.n_unanswered,
    )


def _add_usage(results: Sequence[ReviewResult]) -> Usage | None:
    total: Usage | None = None
    for result in results:
        if result.outcome.usage is not None:
            total = result.outcome.usage if total is None else total + result.outcome.usage
    return total


def _select_frames(exhibits: Sequence[ClipInput], segments: Segments) -> ClipInput:
    """Return a few of the shown frames: those of the segments, or of the whole clip if there is none."""
    frames = {frame.index: frame for exhibit in exhibits for frame in exhibit.frames}
    spans = [segment.trace.span for segment in segments]
    inside = [
        frames[index]
        for index in sorted(frames)
        if any(
            span.start_us <= convert_to_microseconds(frames[index].at_s) < span.end_us
            for span in spans
        )
    ] or [frames[index] for index in sorted(frames)]
    n = min(_SHOWN, len(inside))
    return replace(
        exhibits[0], frames=tuple(inside[place * len(inside) // n] for place in range(n))
    )


def format_scan_plan(clip: Clip, n_reviewers: int, settings: SearchLimits) -> str:
    """Say that a clip is searched in windows, and at most how much that asks for."""
    n = settings.n_questions
    return (
        f"{clip.location} is longer than a minute: {SCANNED} searches it in windows, at most {n} questions of "
        f"{settings.n_frames} frames for each of {n_reviewers} reviewers ({n * n_reviewers} questions). "
        "--scan 0 turns that off"
    )


def format_scan_cost(opinion: ScanOpinion) -> str:
    """Say how many questions a search took, and what they cost."""
    cost = "cost unknown" if opinion.cost_usd is None else f"{opinion.cost_usd:.4f} USD"
    lost = f", {opinion.n_unanswered} without a readable answer" if opinion.n_unanswered else ""
    return f"{opinion.reviewer} searched the clip: {opinion.n_windows} questions{lost}, {cost}"
