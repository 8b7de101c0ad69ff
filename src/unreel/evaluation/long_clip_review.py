"""Review of a long clip: one `locate` question for each window, and one opinion from all answers."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction

from unreel.asking.answer_store import QuestionResult
from unreel.asking.asker import Asker
from unreel.core.answer import Reply, Usage
from unreel.core.clip import Clip
from unreel.core.failure import Failure
from unreel.core.question import Condition, Question
from unreel.core.span import MICROSECONDS, TimeSpan, convert_to_microseconds
from unreel.core.trace import Trace
from unreel.core.verdict import LocatedSegment, LocateVerdict, Unparsed, Verdict
from unreel.evaluation.opinion import Opinion
from unreel.media.sampling import WindowSampling
from unreel.protocols.locate import LOCATE
from unreel.protocols.locate.verdict_texts import UNIT, format_segments_json
from unreel.protocols.protocol import Mode
from unreel.reviewers.contract import ClipInput, InputKind
from unreel.reviewers.factory import ReviewerWithPrices

Segments = tuple[LocatedSegment, ...]
AskWindow = Callable[[TimeSpan], Awaitable[Segments | None]]
"""Async function that asks about one window; it returns `None` without a readable answer."""

LONG_US = 60_000_000
"""Length in microseconds above which a clip is searched in windows."""
SUPPRESSED = 0.5
"""Threshold of tIoU: of two segments that overlap at least that much, only the more confident one is kept."""
_FINEST_US = 100_000
_FINE_PART = 8
"""Divisor of a segment's length: the ends are precise enough if the distance of frames is at most the result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowSearchLimits:
    """Limits of the search of a clip in windows: questions, frames per question, and overlap."""

    n_questions: int = 24
    n_frames: int = 8
    """Number of frames per question."""
    overlap: float = 0.05
    """Fraction of a window that overlaps with the next one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowSearchResult:
    """Result of a search in windows: segments by their start, and the windows in the order of asking."""

    segments: Segments
    windows: tuple[TimeSpan, ...]
    n_unanswered: int


def plan_search_windows(duration_us: int, n: int, overlap: float) -> tuple[TimeSpan, ...]:
    """Return `n` equal windows that cover the clip and overlap by the fraction `overlap`."""
    length = duration_us / ((n - 1) * (1 - overlap) + 1)
    starts = (round(i * length * (1 - overlap)) for i in range(n))
    return tuple(
        TimeSpan(start, min(duration_us, max(start + 1, round(start + length)))) for start in starts
    )


async def search_clip_windows(
    duration_us: int, ask: AskWindow, limits: WindowSearchLimits
) -> WindowSearchResult:
    """Search windows with up to `limits.n_questions` of `ask`: segments, `None` if unreadable."""
    search = _WindowSearch(duration_us, ask, limits)
    segments: list[LocatedSegment] = []
    while search.n_left:
        candidates = await search.sweep(-(-3 * search.n_left // 4))
        new = [
            candidate
            for candidate in candidates
            if not any(candidate.trace.span.overlap_us(old.trace.span) for old in segments)
        ]
        segments += await search.refine(new)
    segments = suppress_overlapping_segments(segments)
    return WindowSearchResult(
        segments=tuple(sorted(segments, key=lambda segment: segment.trace.span)),
        windows=tuple(search.windows),
        n_unanswered=search.n_unanswered,
    )


class _WindowSearch:
    """State of one search of a clip in windows: the windows that were asked about so far."""

    def __init__(self, duration_us: int, ask: AskWindow, limits: WindowSearchLimits) -> None:
        self._duration_us, self._ask, self._settings = duration_us, ask, limits
        self._spacing_us = duration_us
        self.windows: list[TimeSpan] = []
        self.n_unanswered = 0

    @property
    def n_left(self) -> int:
        """Return the number of questions that the search may still ask."""
        return self._settings.n_questions - len(self.windows)

    async def sweep(self, n: int) -> list[LocatedSegment]:
        """Ask about windows over the whole clip; return the suspicious segments, joined at window borders."""
        windows = plan_search_windows(self._duration_us, n, self._settings.overlap)
        self._spacing_us = windows[0].length_us // self._settings.n_frames
        answers = await self._ask_all(windows)
        pieces = [(i, s) for i, segments in enumerate(answers) for s in segments or ()]
        return join_segment_pieces(pieces, gap_us=self._spacing_us)

    async def refine(self, candidates: Sequence[LocatedSegment]) -> list[LocatedSegment]:
        """Ask about segment ends with denser frames, surest segments first; return corrected segments."""
        segments = list(candidates)
        while self.n_left and any(map(self._is_coarse, segments)):
            segments.sort(key=_get_confidence, reverse=True)
            looks: list[tuple[LocatedSegment, tuple[TimeSpan, ...]]] = []
            n_planned = 0
            for segment in segments:
                n_left = self.n_left - n_planned if self._is_coarse(segment) else 0
                windows = self._plan_look(segment.trace.span, n_left)
                n_planned += len(windows)
                looks.append((segment, windows))
            answers = iter(await self._ask_all([w for _, windows in looks for w in windows]))
            dense_us = max((w.length_us for _, windows in looks for w in windows), default=0)
            gap_us = dense_us // self._settings.n_frames
            segments = [
                refined
                for segment, windows in looks
                for refined in _correct_segment(
                    segment, [(w, next(answers)) for w in windows], gap_us
                )
            ]
            self._spacing_us = gap_us
        return segments

    def _is_coarse(self, segment: LocatedSegment) -> bool:
        return self._spacing_us > max(_FINEST_US, segment.trace.span.length_us // _FINE_PART)

    def _plan_look(self, span: TimeSpan, n_left: int) -> tuple[TimeSpan, ...]:
        """Return windows around both ends of a span, or one around a short span; empty without questions."""
        margin = self._spacing_us
        if n_left <= 0:
            return ()
        if span.length_us <= 2 * margin or n_left == 1:
            return (self._clip(span.start_us - margin, span.end_us + margin),)
        ends = (span.start_us, span.end_us)
        return tuple(self._clip(end - margin, end + margin) for end in ends)

    def _clip(self, start_us: int, end_us: int) -> TimeSpan:
        return TimeSpan(max(0, start_us), min(self._duration_us, end_us))

    async def _ask_all(self, spans: Sequence[TimeSpan]) -> list[Segments | None]:
        self.windows += spans
        answers = await asyncio.gather(*map(self._ask, spans))
        self.n_unanswered += sum(answer is None for answer in answers)
        # Only the parts of segments inside a window, because the reviewer saw only this window.
        return [
            None
            if answer is None
            else tuple(
                _cut_segment_to_window(segment, window)
                for segment in answer
                if segment.trace.span.overlap_us(window)
            )
            for window, answer in zip(spans, answers, strict=True)
        ]


def _get_confidence(segment: LocatedSegment) -> float:
    return 0.0 if segment.confidence is None else segment.confidence


def _cut_segment_to_window(segment: LocatedSegment, window: TimeSpan) -> LocatedSegment:
    span = segment.trace.span
    inside = TimeSpan(max(span.start_us, window.start_us), min(span.end_us, window.end_us))
    track = tuple(m for m in segment.trace.track if inside.start_us <= m.at_us < inside.end_us)
    return replace(segment, trace=replace(segment.trace, span=inside, track=track))


def _correct_segment(
    segment: LocatedSegment, looks: Sequence[tuple[TimeSpan, Segments | None]], gap_us: int
) -> list[LocatedSegment]:
    """Replace a segment inside windows by their answers; empty if these have no segment at all."""
    if looks and all(answer == () for _, answer in looks):
        return []
    remaining = [segment]
    pieces: list[tuple[int, LocatedSegment]] = []
    for i, (window, answer) in enumerate(looks, start=1):
        if answer is None:
            continue
        outside = []
        for part in remaining:
            span = part.trace.span
            if span.start_us < window.start_us:
                left = TimeSpan(span.start_us, min(span.end_us, window.start_us))
                outside.append(_cut_segment_to_window(part, left))
            if window.end_us < span.end_us:
                right = TimeSpan(max(span.start_us, window.end_us), span.end_us)
                outside.append(_cut_segment_to_window(part, right))
        remaining = outside
        pieces += [(i, piece) for piece in answer]
    return join_segment_pieces([*((0, part) for part in remaining), *pieces], gap_us=gap_us)


def join_segment_pieces(
    pieces: Sequence[tuple[int, LocatedSegment]], *, gap_us: int
) -> list[LocatedSegment]:
    """Join segments at most `gap_us` apart; `pieces` are pairs of window number and segment."""
    joined: list[tuple[int, LocatedSegment]] = []
    for window, piece in sorted(pieces, key=lambda pair: pair[1].trace.span):
        if joined:
            before, last = joined[-1]
            if window != before and piece.trace.span.start_us - last.trace.span.end_us <= gap_us:
                surer = max(last, piece, key=_get_confidence)
                first, second = last.trace, piece.trace
                track = {mark.at_us: mark for mark in (*second.track, *first.track)}
                trace = Trace(
                    span=TimeSpan(first.span.start_us, max(first.span.end_us, second.span.end_us)),
                    track=tuple(track[at_us] for at_us in sorted(track)),
                    categories=first.categories | second.categories,
                    explanation=surer.trace.explanation or first.explanation or second.explanation,
                )
                joined[-1] = (window, LocatedSegment(trace, surer.confidence))
                continue
        joined.append((window, piece))
    return [segment for _, segment in joined]


def suppress_overlapping_segments(segments: Iterable[LocatedSegment]) -> list[LocatedSegment]:
    """Remove segments that overlap one of higher confidence by at least `SUPPRESSED` (temporal NMS)."""
    selected: list[LocatedSegment] = []
    for segment in sorted(segments, key=_get_confidence, reverse=True):
        if all(segment.trace.span.iou(stronger.trace.span) < SUPPRESSED for stronger in selected):
            selected.append(segment)
    return selected


SCANNED = LOCATE.instrument.protocol
_SHOWN = 8
"""Maximum number of frames that represent a whole search on a page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowSearchOpinion(Opinion):
    """Opinion from the search of a clip in windows, with the numbers of asked and unanswered windows."""

    n_windows: int
    n_unanswered: int


def needs_window_search(clip: Clip, limits: WindowSearchLimits | None) -> bool:
    """Return whether the clip is long enough for a search in windows, and `limits` request one."""
    return limits is not None and convert_to_microseconds(clip.facts.video.duration_s) > LONG_US


def select_frame_reviewers(reviewers: Sequence[ReviewerWithPrices]) -> list[ReviewerWithPrices]:
    """Return the reviewers that take frames as input; others cannot be asked about a window."""
    return [opened for opened in reviewers if InputKind.FRAMES in opened.reviewer.wants]


async def search_clip_with_reviewer(
    clip: Clip,
    reviewer: ReviewerWithPrices,
    *,
    condition: Condition,
    mode: Mode,
    asker: Asker,
    limits: WindowSearchLimits,
) -> WindowSearchOpinion:
    """Search `clip` in windows; return one opinion. Questions use the window's frames, no sound."""
    results: list[QuestionResult] = []
    prompt = condition.prompt if condition.prompt in LOCATE.prompts else Condition().prompt
    silent = replace(condition, audio="off", prompt=prompt)

    def build_question(sampling: str) -> Question:
        return Question(
            subject=clip.id,
            instrument=LOCATE.instrument,
            condition=replace(silent, sampling=sampling),
        )

    async def ask(span: TimeSpan) -> Segments | None:
        start_s, end_s = (Fraction(end, MICROSECONDS) for end in (span.start_us, span.end_us))
        sampling = str(WindowSampling(start_s, end_s, limits.n_frames))
        result = await asker.ask(build_question(sampling), [clip], reviewer)
        results.append(result)
        verdict = result.read(mode)
        if not isinstance(verdict, LocateVerdict) or isinstance(verdict.segments, Unparsed):
            return None
        return verdict.segments

    search = await search_clip_windows(
        convert_to_microseconds(clip.facts.video.duration_s), ask, limits
    )
    name = f"scan-{limits.n_questions}x{limits.n_frames}"
    return _build_search_opinion(build_question(name), search, results, mode)


def _build_search_opinion(
    question: Question, search: WindowSearchResult, results: Sequence[QuestionResult], mode: Mode
) -> WindowSearchOpinion:
    failed = [result.outcome for result in results if isinstance(result.outcome, Failure)]
    outcome: Reply | Failure
    verdict: Verdict | None = LocateVerdict(segments=search.segments)
    if search.n_unanswered == len(search.windows):
        outcome = failed[0] if failed else results[0].outcome
        verdict = None if failed else results[0].read(mode)
    else:
        total: Usage | None = None
        for result in results:
            if result.outcome.usage is not None:
                total = result.outcome.usage if total is None else total + result.outcome.usage
        outcome = Reply(text=format_segments_json(search.segments), usage=total)
    inputs = [result.inputs[0] for result in results if result.inputs]
    costs = [result.cost_usd for result in results]
    known = [cost for cost in costs if cost is not None]
    return WindowSearchOpinion(
        reviewer=results[0].reviewer,
        question=question,
        prompt=results[0].prompt,
        inputs=(_select_representative_frames(inputs, search.segments),) if inputs else (),
        box_space=UNIT.name,
        outcome=outcome,
        cost_usd=sum(known, Decimal()) if len(known) == len(costs) else None,
        verdict=verdict,
        n_windows=len(search.windows),
        n_unanswered=search.n_unanswered,
    )


def _select_representative_frames(inputs: Sequence[ClipInput], segments: Segments) -> ClipInput:
    """Select up to 8 of the shown frames for a page: inside the segments, or from all if none is."""
    frames = {frame.index: frame for clip_input in inputs for frame in clip_input.frames}
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
    return replace(inputs[0], frames=tuple(inside[i * len(inside) // n] for i in range(n)))


def format_window_search_plan(clip: Clip, n_reviewers: int, limits: WindowSearchLimits) -> str:
    """Return a message that a long clip is searched in windows, with the maximum number of questions."""
    n = limits.n_questions
    return (
        f"{clip.location} is longer than a minute: {SCANNED} searches it in windows, at most {n} questions of "
        f"{limits.n_frames} frames for each of {n_reviewers} reviewers ({n * n_reviewers} questions). "
        "--scan 0 turns that off"
    )


def format_window_search_cost(opinion: WindowSearchOpinion) -> str:
    """Return a message with the number of questions of a search in windows, and their cost."""
    cost = "cost unknown" if opinion.cost_usd is None else f"{opinion.cost_usd:.4f} USD"
    lost = f", {opinion.n_unanswered} without a readable answer" if opinion.n_unanswered else ""
    return f"{opinion.reviewer} searched the clip: {opinion.n_windows} questions{lost}, {cost}"
