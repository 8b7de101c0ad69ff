"""From judged clips to the scorecard of `reality`."""

from collections.abc import Iterator, Sequence

import numpy as np

from unreel.core.estimate import Coverage, Metric, Scorecard, Unmeasured
from unreel.core.judgement import Label
from unreel.protocols.detection import CALLS, ScoredClips, count_calls, measure_f1, measure_scores
from unreel.protocols.figures import ALL_CLIPS
from unreel.protocols.groups import add_part_figures
from unreel.protocols.measure import WeightedMean, mean_percent, sum_percent
from unreel.protocols.reality.clip_columns import AskedClips, RealityRow, count_rows
from unreel.protocols.reality.figures import FIGURES, INSTRUMENT
from unreel.stats.detection import ProbabilityCalibration, calibrate
from unreel.stats.sample import Array


@add_part_figures(FIGURES)
def score(rows: Sequence[RealityRow], *, seed: int) -> Scorecard:
    """Compute the accuracy in percent, for each creator with all real clips, and the mean over creators.

    - `pooled: X` is the fraction of right answers among the real clips and the clips of creator X;
      `balanced: X` is the mean of the fractions on real clips and on X's clips. `pooled` and
      `balanced` are the means over creators with equal weights; they are unmeasured while
      one creator's metric is.
    - A creator with settings has a metric for each, `X/SETTING`, besides the one over all its
      clips; the
      means over creators count each creator once.
    - These count valid answers only. `-all-clips` counts every clip: a clip whose
      answer is unreadable, or whose question failed, counts as wrong.
    - `caught: X` is the fraction of the valid answers on X's clips that are generated; low is good
      for X.
      `real-accuracy` and `fake-accuracy` are the fractions of right ones among valid answers.
    - `answered-real` is the fraction of all valid answers that are real.
    - `accuracy` is the fraction of right answers over all clips; `f1` is that of the label
      `generated`, in which
      `-all-clips` counts a generated clip without that answer as missed. `confusion` counts
      answers.
    - If a confidence was requested, `auc`, `tpr-at-fpr-`, `brier` and `ece` use the probability of
      being generated from label and confidence; an answer without one of them is excluded.
    """
    count = count_rows(rows)
    asks = count.asked
    answered = asks.only(asks.answered)
    valid = asks.only(asks.valid)
    return Scorecard(
        instrument=INSTRUMENT,
        n_questions=len(rows),
        n_answered=len(answered.said),
        metrics=(
            *_iter_accuracy_metrics("", asked=answered, counted=valid, seed=seed),
            *_iter_accuracy_metrics(ALL_CLIPS, asked=asks, counted=asks, seed=seed),
            *_iter_share_metrics(answered, seed=seed),
            *_iter_label_metrics("", asked=answered, counted=valid, seed=seed),
            *_iter_label_metrics(ALL_CLIPS, asked=asks, counted=asks, seed=seed),
            *_iter_confidence_metrics(answered, seed=seed),
        ),
        failures=dict(sorted(count.failures.items())),
        unparsed=dict(sorted(count.unparsed.items())),
        confusion=count_calls(answered.calls),
    )


def _iter_label_metrics(
    suffix: str, *, asked: AskedClips, counted: AskedClips, seed: int
) -> Iterator[Metric]:
    right = mean_percent(counted.right, clips=counted.ties, seed=seed)
    yield Metric(name="accuracy" + suffix, value=right, coverage=asked.coverage)
    value = measure_f1(counted.calls, seed=seed)
    yield Metric(name="f1" + suffix, value=value, coverage=asked.coverage)


def _iter_confidence_metrics(answered: AskedClips, *, seed: int) -> Iterator[Metric]:
    told = answered.only(answered.told)
    coverage = Coverage(parsed=len(told.said), asked=int(answered.believed.sum()))
    why = "no confidence could be read" if coverage.asked else "no confidence was asked for"
    scored = ScoredClips(told.ties, told.generated, told.belief)
    yield from measure_scores(scored, coverage=coverage, why_none=why, seed=seed)
    kept: ProbabilityCalibration | None = None
    if coverage.parsed:
        kept = calibrate(told.generated, told.belief, seed=seed, clusters=told.ties)
    yield Metric(name="brier", value=kept.brier if kept else Unmeasured(why), coverage=coverage)
    yield Metric(name="ece", value=kept.ece if kept else Unmeasured(why), coverage=coverage)


def _iter_accuracy_metrics(
    suffix: str, *, asked: AskedClips, counted: AskedClips, seed: int
) -> Iterator[Metric]:
    creators, makers, right = asked.creators, asked.makers, counted.right
    for figure, parts_of in (("pooled", _build_pooled_means), ("balanced", _build_balanced_means)):
        parts = {name: parts_of(counted, name, right) for name in makers}
        average = [
            WeightedMean(part.name, part.factor / len(creators), part.values, part.held, creator)
            for creator in creators
            for part in parts[creator]
        ]
        value = sum_percent(average, clips=counted.ties, seed=seed)
        yield Metric(name=figure + suffix, value=value, coverage=asked.coverage)
        for name, against in parts.items():
            value = sum_percent(against, clips=counted.ties, seed=seed)
            coverage = asked.only(asked.made_by(None) | asked.made_by(name)).coverage
            yield Metric(name=f"{figure}{suffix}: {name}", value=value, coverage=coverage)


def _build_pooled_means(counted: AskedClips, maker: str, right: Array) -> list[WeightedMean]:
    sides = _build_balanced_means(counted, maker, right)
    if any(side.is_empty for side in sides):
        return sides  # unmeasured, and its name says why
    return [WeightedMean(maker, 1, right, np.logical_or(*(side.held for side in sides)))]


def _build_balanced_means(counted: AskedClips, maker: str, right: Array) -> list[WeightedMean]:
    return [
        WeightedMean("real clips", 1 / 2, right, counted.made_by(None)),
        WeightedMean(f"clips of {maker}", 1 / 2, right, counted.made_by(maker)),
    ]


def _iter_share_metrics(answered: AskedClips, *, seed: int) -> Iterator[Metric]:
    yield _measure_label_share("answered-real", Label.REAL, answered, seed=seed)
    yield _measure_label_share(
        "real-accuracy", Label.REAL, answered.only(answered.made_by(None)), seed=seed
    )
    yield _measure_label_share(
        "fake-accuracy", Label.GENERATED, answered.only(answered.generated), seed=seed
    )
    for name in answered.makers:
        own = answered.only(answered.made_by(name))
        yield _measure_label_share(f"caught: {name}", Label.GENERATED, own, seed=seed)


def _measure_label_share(name: str, label: Label, asked: AskedClips, *, seed: int) -> Metric:
    valid = asked.only(asked.valid)
    value = mean_percent(valid.said == CALLS[label], clips=valid.ties, seed=seed)
    return Metric(name=name, value=value, coverage=asked.coverage)
