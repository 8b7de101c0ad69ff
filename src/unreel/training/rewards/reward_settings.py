"""Settings of the reward: closeness of evidence, scores of constant answers, weights of the parts."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import mean, median, stdev
from typing import Annotated, Any, TypeVar

from pydantic import Field

from unreel.core.box import Box
from unreel.core.clip import Generated, Real
from unreel.core.judgement import Label
from unreel.core.span import TimeSpan
from unreel.core.verdict import TraceVerdict, Unparsed, UnparsedReason
from unreel.protocols.trace.ground_truth import TraceTruth
from unreel.recipes.validation import RecipeSection
from unreel.training.recipe import AnswerRewardSection, Share


def compute_box_closeness(box: Box | Unparsed, truth: TraceTruth) -> float | None:
    """Return the IoU with the true box at the trace's start; `None` if unparsed or without true box."""
    if isinstance(box, Unparsed) or truth.box is None:
        return None
    return truth.box.iou(box)


def compute_onset_closeness(
    answer_us: int | Unparsed, truth: TraceTruth, *, within: float
) -> float | None:
    """Return how close the answer's onset is: 1 at the true onset, 0 from `within` clip lengths on.

    In between it decreases linearly. The result is `None` if the onset of the answer is unparsed or
    the truth has no onset.
    """
    if isinstance(answer_us, Unparsed) or truth.start_us is None:
        return None
    return max(0.0, 1 - abs(answer_us - truth.start_us) / (within * truth.duration_us))


def compute_span_closeness(answer_us: int | Unparsed, truth: TraceTruth) -> float | None:
    """Return the IoU in time of the true span and the span from the answer's onset to the true end.

    Answers contain no end, so the true one is used. The result is `None` if the onset of the answer
    is unparsed or the truth has no trace.
    """
    if isinstance(answer_us, Unparsed) or truth.trace is None:
        return None
    span = truth.trace.span
    if answer_us >= span.end_us:
        return 0.0
    answer = TimeSpan(answer_us, span.end_us)
    return answer.overlap_us(span) / max(answer.length_us, span.length_us)


def has_malformed_evidence(verdict: TraceVerdict) -> bool:
    """Return whether the box or the onset of the verdict is malformed; a missing one is not."""
    return any(is_malformed_answer_part(part) for part in (verdict.box, verdict.start_us))


def is_malformed_answer_part(part: object) -> bool:
    """Return whether a part of a verdict is present in the answer but could not be parsed."""
    return isinstance(part, Unparsed) and part.reason is not UnparsedReason.MISSING


A = TypeVar("A")

LOWEST_BAR = 0.1
_UNKNOWN_BAR = 0.25
"""Bar if too few clips have such a ground truth."""
_FEWEST = 3
_MAX_CANDIDATES = 100
_MAX_CLIPS = 1000
_BOX_SCALES = (1.0, 0.7, 0.5, 0.3)
"""Side lengths of the centred boxes that are tried as constant answers, as fractions of the frame."""
_PARTS = (0.0, 0.25, 0.5, 0.75)
"""Onsets that are tried as constant answers, as fractions of the clip's length."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConstantAnswerScores:
    """Closeness of the best constant answers, at which evidence leaves the reward unchanged."""

    box: float
    onset: float
    span: float


@dataclass(frozen=True, slots=True)
class _ConstantOnset:
    """A constant onset for every clip: a fixed time plus a fixed fraction of the clip's length."""

    at_us: int = 0
    part: float = 0.0

    def of(self, truth: TraceTruth) -> int:
        return self.at_us + round(self.part * truth.duration_us)


def score_constant_answers(
    questions: Sequence[Sequence[TraceTruth]], *, onset_within: float
) -> ConstantAnswerScores:
    """Return the best constant box's and onset's scores plus a standard error, by each clip's nearest truth."""
    traced = [[truth for truth in truths if truth.trace] for truths in questions]
    clips = _sample_evenly([truths for truths in traced if truths], _MAX_CLIPS)

    def onset(moment: _ConstantOnset, truth: TraceTruth) -> float | None:
        return compute_onset_closeness(moment.of(truth), truth, within=onset_within)

    def span(onset: _ConstantOnset, truth: TraceTruth) -> float | None:
        return compute_span_closeness(onset.of(truth), truth)

    edges = [(1 - side) / 2 for side in _BOX_SCALES]
    # Each constant answer with the index of the clip that it was taken from, which it is not scored on.
    boxes: list[tuple[Box, int | None]] = [
        (Box(edge, edge, 1 - edge, 1 - edge), None) for edge in edges
    ]
    known = [(i, truth.box) for i, truths in enumerate(clips) for truth in truths if truth.box]
    if known:
        columns = zip(*((box.x0, box.y0, box.x1, box.y1) for _, box in known), strict=True)
        x0, y0, x1, y1 = map(median, columns)
        if x0 < x1 and y0 < y1:
            boxes.append((Box(x0, y0, x1, y1), None))
    boxes += [(box, i) for i, box in _sample_evenly(known, _MAX_CANDIDATES)]
    moments: list[tuple[_ConstantOnset, int | None]] = [
        (_ConstantOnset(part=part), None) for part in _PARTS
    ]
    for i, truths in _sample_evenly(list(enumerate(clips)), _MAX_CANDIDATES // 2):
        start_us = truths[0].start_us or 0
        moments.append((_ConstantOnset(start_us), i))
        part = start_us / truths[0].duration_us
        moments.append((_ConstantOnset(part=part), i))
    return ConstantAnswerScores(
        box=_compute_best_closeness(boxes, clips, compute_box_closeness),
        onset=_compute_best_closeness(moments, clips, onset),
        span=_compute_best_closeness(moments, clips, span),
    )


def _compute_best_closeness(
    answers: Sequence[tuple[A, int | None]],
    clips: Sequence[Sequence[TraceTruth]],
    closeness: Callable[[A, TraceTruth], float | None],
) -> float:
    best = None
    for answer, taken_from in answers:
        others = (truths for i, truths in enumerate(clips) if i != taken_from)
        highs = [
            max(values)
            for truths in others
            if (values := [c for t in truths if (c := closeness(answer, t)) is not None])
        ]
        if len(highs) >= _FEWEST:
            best = max(best or 0.0, mean(highs) + stdev(highs) / len(highs) ** 0.5)
    return _UNKNOWN_BAR if best is None else min(1.0, max(LOWEST_BAR, best))


def _sample_evenly(values: Sequence[A], limit: int) -> Sequence[A]:
    """Return at most `limit` of the values, evenly spaced."""
    return (
        values if len(values) <= limit else [values[len(values) * i // limit] for i in range(limit)]
    )


Bar = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]

_SHARED = ("label", "box", "onset", "span", "format", "false_alarm", "onset_within")


class AnswerRewardSettings(RecipeSection):
    """All settings of an answer's reward except the ground truth; stored as JSON with every truth."""

    label: Share
    box: Share
    onset: Share
    span: Share
    format: Share
    false_alarm: Annotated[float, Field(ge=1, le=100)]
    onset_within: Annotated[float, Field(gt=0, le=1)]
    box_bar: Bar
    """IoU at which a box leaves the reward unchanged: a higher IoU raises it, a lower one reduces it."""
    onset_bar: Bar
    span_bar: Bar
    real_scale: Share = 1.0
    """Factor of all rewards on real clips: below 1 if real clips are the majority."""
    generated_scale: Share = 1.0


def compute_answer_reward_settings(
    section: AnswerRewardSection, questions: Sequence[Sequence[Any]]
) -> AnswerRewardSettings:
    """Compute the reward settings from the recipe section `[reward]` and the truths of the questions.

    Without `bar` in the section, the bars are the closeness that the best constant answer reaches on
    these questions. The scales give both labels equal weight. So no answer that ignores the clip has a
    higher reward than another such answer.
    """
    if section.bar is not None:
        bars = ConstantAnswerScores(box=section.bar, onset=section.bar, span=section.bar)
    else:
        traced = [[t for t in truths if isinstance(t, TraceTruth)] for truths in questions]
        bars = score_constant_answers(traced, onset_within=section.onset_within)
    n_real = n_generated = 0
    for truth in (truths[0] for truths in questions if truths):
        label = truth.label if isinstance(truth, TraceTruth) else None
        n_real += label is Label.REAL or isinstance(truth, Real)
        n_generated += label is Label.GENERATED or isinstance(truth, Generated)
    fewest = min(n_real, n_generated)
    real_scale, generated_scale = (fewest / n_real, fewest / n_generated) if fewest else (1.0, 1.0)
    return AnswerRewardSettings(
        **{name: getattr(section, name) for name in _SHARED},
        box_bar=bars.box,
        onset_bar=bars.onset,
        span_bar=bars.span,
        real_scale=real_scale,
        generated_scale=generated_scale,
    )
