"""Scores of constant answers that ignore the clip: evidence is rewarded only above them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import mean, median, stdev
from typing import Final, Generic, TypeVar

from unreel.core.box import Box
from unreel.protocols.trace.truth import TraceTruth
from unreel.training.rewards.evidence import box_closeness, onset_closeness, span_closeness

A = TypeVar("A")

LOWEST_BAR: Final = 0.1
_UNKNOWN_BAR: Final = 0.25
"""Bar if too few clips have such a ground truth."""
_FEWEST: Final = 3
_MOST_TRIED: Final = 100
_MOST_CLIPS: Final = 1000
_SIDES: Final = (1.0, 0.7, 0.5, 0.3)
"""Of centred boxes."""
_PARTS: Final = (0.0, 0.25, 0.5, 0.75)
"""Of a clip's length."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConstantScores:
    """Closeness at which evidence earns as much as none."""

    box: float
    onset: float
    span: float


@dataclass(frozen=True, slots=True)
class _ConstantOnset:
    """An onset that is named for every clip: a fixed instant, and a fixed part of the clip's length."""

    at_us: int = 0
    part: float = 0.0

    def of(self, truth: TraceTruth) -> int:
        return self.at_us + round(self.part * truth.duration_us)


@dataclass(frozen=True, slots=True)
class _ConstantAnswer(Generic[A]):
    """A constant answer, and the clip that it was taken from, which it is not tried on."""

    answer: A
    taken_from: int | None = None


def constant_bars(
    questions: Sequence[Sequence[TraceTruth]], *, onset_within: float
) -> ConstantScores:
    """Return the scores of the best constant box and onset on the clips with a trace, plus a standard error.

    Each of `questions` is the truths of one clip; the nearest of them counts.
    """
    traced = [[truth for truth in truths if truth.trace] for truths in questions]
    clips = _sample_evenly([truths for truths in traced if truths], _MOST_CLIPS)

    def onset(moment: _ConstantOnset, truth: TraceTruth) -> float | None:
        return onset_closeness(moment.of(truth), truth, within=onset_within)

    def span(moment: _ConstantOnset, truth: TraceTruth) -> float | None:
        return span_closeness(moment.of(truth), truth)

    moments = list(_iter_constant_onsets(clips))
    return ConstantScores(
        box=_compute_best_closeness(list(_iter_constant_boxes(clips)), clips, box_closeness),
        onset=_compute_best_closeness(moments, clips, onset),
        span=_compute_best_closeness(moments, clips, span),
    )


def _iter_constant_boxes(clips: Sequence[Sequence[TraceTruth]]) -> Iterator[_ConstantAnswer[Box]]:
    for side in _SIDES:
        edge = (1 - side) / 2
        yield _ConstantAnswer(Box(edge, edge, 1 - edge, 1 - edge))
    own = [(i, truth.box) for i, truths in enumerate(clips) for truth in truths if truth.box]
    if own:
        sides = zip(*((b.x0, b.y0, b.x1, b.y1) for _, b in own), strict=True)
        x0, y0, x1, y1 = (median(side) for side in sides)
        if x0 < x1 and y0 < y1:
            yield _ConstantAnswer(Box(x0, y0, x1, y1))
    for i, box in _sample_evenly(own, _MOST_TRIED):
        yield _ConstantAnswer(box, i)


def _iter_constant_onsets(
    clips: Sequence[Sequence[TraceTruth]],
) -> Iterator[_ConstantAnswer[_ConstantOnset]]:
    for part in _PARTS:
        yield _ConstantAnswer(_ConstantOnset(part=part))
    for i, truths in _sample_evenly(list(enumerate(clips)), _MOST_TRIED // 2):
        start_us = truths[0].start_us or 0
        yield _ConstantAnswer(_ConstantOnset(start_us), i)
        yield _ConstantAnswer(_ConstantOnset(part=start_us / truths[0].duration_us), i)


def _compute_best_closeness(
    guesses: Sequence[_ConstantAnswer[A]],
    clips: Sequence[Sequence[TraceTruth]],
    closeness: Callable[[A, TraceTruth], float | None],
) -> float:
    best = None
    for guess in guesses:
        others = (truths for i, truths in enumerate(clips) if i != guess.taken_from)
        met = [
            max(near)
            for truths in others
            if (near := [c for t in truths if (c := closeness(guess.answer, t)) is not None])
        ]
        if len(met) >= _FEWEST:
            best = max(best or 0.0, mean(met) + stdev(met) / len(met) ** 0.5)
    return _UNKNOWN_BAR if best is None else min(1.0, max(LOWEST_BAR, best))


def _sample_evenly(values: Sequence[A], most: int) -> Sequence[A]:
    """Return at most that number of items, evenly spaced."""
    return values if len(values) <= most else [values[len(values) * i // most] for i in range(most)]
