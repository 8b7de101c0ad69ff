"""Review of a long clip: one `locate` question for each window, and one opinion from all answers."""

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
from unreel.evaluation.window_search import (
    LONG_US,
    Segments,
    WindowSearchLimits,
    WindowSearchResult,
    search_clip_windows,
)
from unreel.media.sampling import WindowSampling
from unreel.protocols.locate import LOCATE
from unreel.protocols.locate.verdict_texts import UNIT, format_segments_json
from unreel.protocols.protocol import Mode
from unreel.reviewers.ask import AskedQuestionResult, ReviewDispatcher
from unreel.reviewers.contract import ClipInput, InputKind
from unreel.reviewers.factory import ReviewerWithPrices

SCANNED: Final = LOCATE.instrument.protocol
_SHOWN: Final = 8
"""Maximum number of frames that represent a whole search on a page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowSearchOpinion(Opinion):
    """Opinion from the search of a clip in windows, with the numbers of asked and unanswered windows."""

    n_windows: int
    n_unanswered: int


def needs_window_search(clip: Clip, settings: WindowSearchLimits | None) -> bool:
    """Return whether the clip is long enough for a search in windows, and `settings` request one."""
    return settings is not None and convert_to_microseconds(clip.facts.video.duration_s) > LONG_US


def select_frame_reviewers(reviewers: Sequence[ReviewerWithPrices]) -> list[ReviewerWithPrices]:
    """Return the reviewers that take frames as input; others cannot be asked about a window."""
    return [opened for opened in reviewers if InputKind.FRAMES in opened.reviewer.wants]


async def search_clip_with_reviewer(
    clip: Clip,
    reviewer: ReviewerWithPrices,
    *,
    condition: Condition,
    mode: Mode,
    desk: ReviewDispatcher,
    settings: WindowSearchLimits,
) -> WindowSearchOpinion:
    """Search `clip` in windows; return one opinion. Questions use the window's frames, no sound."""
    results: list[AskedQuestionResult] = []
    prompt = condition.prompt if condition.prompt in LOCATE.prompts else Condition().prompt
    silent = replace(condition, audio="off", prompt=prompt)

    def build_question(sampling: str) -> Question:
        return Question(
            subject=clip.id,
            instrument=LOCATE.instrument,
            condition=replace(silent, sampling=sampling),
        )

    async def ask(window: TimeSpan) -> Segments | None:
        start_s, end_s = (Fraction(end, MICROSECONDS) for end in (window.start_us, window.end_us))
        sampling = str(WindowSampling(start_s, end_s, settings.n_frames))
        result = await desk.ask(build_question(sampling), [clip], reviewer)
        results.append(result)
        verdict = result.read(mode)
        if not isinstance(verdict, LocateVerdict) or isinstance(verdict.segments, Unparsed):
            return None
        return verdict.segments

    search = await search_clip_windows(
        convert_to_microseconds(clip.facts.video.duration_s), ask, settings
    )
    name = f"scan-{settings.n_questions}x{settings.n_frames}"
    return _build_search_opinion(build_question(name), search, results, mode)


def _build_search_opinion(
    question: Question,
    search: WindowSearchResult,
    results: Sequence[AskedQuestionResult],
    mode: Mode,
) -> WindowSearchOpinion:
    failed = [result.outcome for result in results if isinstance(result.outcome, Failure)]
    outcome: Reply | Failure
    verdict: Verdict | None = LocateVerdict(segments=search.segments)
    if search.n_unanswered == len(search.windows):
        outcome = failed[0] if failed else results[0].outcome
        verdict = None if failed else results[0].read(mode)
    else:
        outcome = Reply(text=format_segments_json(search.segments), usage=_sum_token_usage(results))
    exhibits = [result.exhibits[0] for result in results if result.exhibits]
    costs = [result.cost_usd for result in results]
    known = [cost for cost in costs if cost is not None]
    return WindowSearchOpinion(
        reviewer=results[0].reviewer,
        question=question,
        prompt=results[0].prompt,
        exhibits=(_select_representative_frames(exhibits, search.segments),) if exhibits else (),
        box_space=UNIT.name,
        outcome=outcome,
        cost_usd=sum(known, Decimal()) if len(known) == len(costs) else None,
        verdict=verdict,
        n_windows=len(search.windows),
        n_unanswered=search.n_unanswered,
    )


def _sum_token_usage(results: Sequence[AskedQuestionResult]) -> Usage | None:
    total: Usage | None = None
    for result in results:
        if result.outcome.usage is not None:
            total = result.outcome.usage if total is None else total + result.outcome.usage
    return total


def _select_representative_frames(exhibits: Sequence[ClipInput], segments: Segments) -> ClipInput:
    """Select up to 8 of the shown frames for a page: inside the segments, or from all if none is."""
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
    return replace(exhibits[0], frames=tuple(inside[i * len(inside) // n] for i in range(n)))


def format_window_search_plan(clip: Clip, n_reviewers: int, settings: WindowSearchLimits) -> str:
    """Return a message that a long clip is searched in windows, with the maximum number of questions."""
    n = settings.n_questions
    return (
        f"{clip.location} is longer than a minute: {SCANNED} searches it in windows, at most {n} questions of "
        f"{settings.n_frames} frames for each of {n_reviewers} reviewers ({n * n_reviewers} questions). "
        "--scan 0 turns that off"
    )


def format_window_search_cost(opinion: WindowSearchOpinion) -> str:
    """Return a message with the number of questions of a search in windows, and their cost."""
    cost = "cost unknown" if opinion.cost_usd is None else f"{opinion.cost_usd:.4f} USD"
    lost = f", {opinion.n_unanswered} without a readable answer" if opinion.n_unanswered else ""
    return f"{opinion.reviewer} searched the clip: {opinion.n_windows} questions{lost}, {cost}"
