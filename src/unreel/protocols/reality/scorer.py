"""Scorecard of the protocol `reality`, computed from columns without an object per clip."""

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from unreel.core.clip import (
    Origin,
    get_first_creator,
    get_first_creator_setting,
    list_creator_names,
)
from unreel.core.estimate import Coverage, Metric, Scorecard, Unmeasured
from unreel.core.failure import Failure
from unreel.core.judgement import Label
from unreel.core.verdict import RealityVerdict, Unparsed
from unreel.protocols.group_metrics import add_benchmark_part_metrics
from unreel.protocols.metric_definitions import ALL_CLIPS
from unreel.protocols.metric_estimates import (
    CALLS,
    AnswerCodes,
    LabelPredictions,
    WeightedMean,
    count_confusion_matrix,
    iter_detection_metrics,
    measure_label_f1,
    measure_mean_percent,
    measure_weighted_sum_percent,
)
from unreel.protocols.protocol import ScoredQuestion
from unreel.protocols.reality.metrics import INSTRUMENT, METRICS
from unreel.stats.clusters import ClusterIdBuilder
from unreel.stats.detection_metrics import CalibrationMetrics, measure_probability_calibration
from unreel.stats.row_sample import Array, BoolArray, ClusterIds

RealityRow = ScoredQuestion[Origin, RealityVerdict]
_NOT_REQUESTED, _UNTOLD = -2.0, -1.0
"""Values instead of a probability that was not requested, or that could not be read."""
_MAX_OUTCOMES = 4096
"""Maximum number of cached outcomes; most answers are equal to one of a few."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClipAnswerColumns:
    """Answers about clips as columns: clusters, creators, answered labels and probabilities."""

    ties: ClusterIds
    """Bootstrap clusters of the clips: the source, or the clip itself if unknown, and the creator."""
    kinds: tuple[tuple[str, ...], ...]
    """Distinct tuples of creator names, without and with the setting if known; empty for real clips."""
    kind: npt.NDArray[np.int32]
    """Index into `kinds` of each clip."""
    answer_codes: AnswerCodes
    """Answered labels as codes of `CALLS`."""
    answered: BoolArray
    """Whether the question was answered, readably or not."""
    p_generated: Array
    """Probability of being generated, from each answer."""

    def only(self, chosen: BoolArray) -> "ClipAnswerColumns":
        """Return the rows of the clips in the mask `chosen`; the same object if all clips are chosen."""
        if chosen.all():
            return self
        return replace(
            self,
            ties=self.ties.only(chosen),
            kind=self.kind[chosen],
            answer_codes=self.answer_codes[chosen],
            answered=self.answered[chosen],
            p_generated=self.p_generated[chosen],
        )

    @property
    def creator_names(self) -> list[str]:
        """Return the names of all creators, and of creators with setting, sorted."""
        return sorted({creator for creators in self.kinds for creator in creators})

    @property
    def creators(self) -> list[str]:
        """Return the names of all creators, without settings, sorted."""
        return sorted({creator_names[0] for creator_names in self.kinds if creator_names})

    def made_by(self, creator_name: str | None) -> BoolArray:
        """Return a mask of the clips of the creator `creator_name`; of the real clips if it is `None`."""
        matches = [
            creator_name in creators if creator_name else not creators for creators in self.kinds
        ]
        chosen: BoolArray = np.array(matches, np.bool_)[self.kind]
        return chosen

    @property
    def generated(self) -> BoolArray:
        """Return a mask of the generated clips."""
        return ~self.made_by(None)

    @property
    def valid(self) -> BoolArray:
        """Return a mask of the clips whose answer has a readable label."""
        valid: BoolArray = self.answer_codes != CALLS[None]
        return valid

    @property
    def right(self) -> Array:
        """Return 1 for each correct answer and 0 for each wrong or missing answer."""
        right: Array = (self.answer_codes == self.generated).astype(np.float64)
        return right

    @property
    def calls(self) -> LabelPredictions:
        """Return the true label and the answered label of each clip."""
        return LabelPredictions(self.ties, self.generated, self.answer_codes)

    @property
    def coverage(self) -> Coverage:
        """Return the number of clips with a readable label in the answer, and the number of all clips."""
        return Coverage(parsed=int(self.valid.sum()), asked=len(self.answer_codes))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RealityScorecardData:
    """Data of a `reality` scorecard: clips as columns, and counts of failures and unreadable parts."""

    columns: ClipAnswerColumns
    failures: Counter[str]
    """Number of rows without an answer, by reason."""
    unparsed: Counter[str]
    """Number of parts that could not be read, by `part: reason`."""


def build_reality_columns(rows: Iterable[RealityRow]) -> RealityScorecardData:
    """Build scorecard columns from `rows` in one pass; count failures and unreadable parts."""
    tying, kinds = ClusterIdBuilder(), dict[tuple[str, ...], int]()
    kind, calls, answered, posterior = array("i"), array("b"), bytearray(), array("d")
    failures, unparsed = Counter[str](), Counter[str]()
    origins: dict[Origin, tuple[str, int]] = {}
    outcomes: dict[Any, tuple[int, float, tuple[str, ...]]] = {}
    for row in rows:
        truth, outcome = row.truth, row.outcome
        if truth not in origins:
            creators = list_creator_names(
                get_first_creator(truth), get_first_creator_setting(truth)
            )
            origins[truth] = get_first_creator(truth), kinds.setdefault(creators, len(kinds))
        creator, number = origins[truth]
        tying.add(row.cluster.scene, row.creator or creator)
        kind.append(number)
        answered.append(not isinstance(outcome, Failure))
        if isinstance(outcome, Failure):
            failures[outcome.reason.value] += 1
            calls.append(CALLS[None])
            posterior.append(_NOT_REQUESTED)
            continue
        if outcome not in outcomes:
            if len(outcomes) >= _MAX_OUTCOMES:
                outcomes.clear()
            label = outcome.label if isinstance(outcome.label, Label) else None
            p = _NOT_REQUESTED
            if outcome.confidence is not None:
                p = _UNTOLD if outcome.p_generated is None else outcome.p_generated
            parts = {"label": outcome.label, "confidence": outcome.confidence}
            unread = tuple(
                f"{name}: {part.reason.value}"
                for name, part in parts.items()
                if isinstance(part, Unparsed)
            )
            outcomes[outcome] = CALLS[label], p, unread
        call, p, unread = outcomes[outcome]
        if unread:
            unparsed.update(unread)
        calls.append(call)
        posterior.append(p)
    p_generated: Array = np.frombuffer(posterior, np.float64)
    if (p_generated == _NOT_REQUESTED).all():  # no memory per clip if no probability was requested
        p_generated = np.broadcast_to(np.float64(_NOT_REQUESTED), p_generated.shape)
    columns = ClipAnswerColumns(
        ties=tying.ties(),
        kinds=tuple(kinds),
        kind=np.frombuffer(kind, np.int32),
        answer_codes=np.frombuffer(calls, np.int8),
        answered=np.frombuffer(answered, np.bool_),
        p_generated=p_generated,
    )
    return RealityScorecardData(columns=columns, failures=failures, unparsed=unparsed)


@add_benchmark_part_metrics(METRICS)
def compute_reality_scorecard(rows: Sequence[RealityRow], *, seed: int) -> Scorecard:
    """Compute the accuracy in percent per creator, with all real clips, and the mean over creators.

    - `pooled: X` is the fraction of right answers among the real clips and the clips of creator X;
      `balanced: X` is the mean of the fractions on real clips and on X's clips. `pooled` and
      `balanced` are the means over creators with equal weights; they are unmeasured if the metric
      of one creator is unmeasured.
    - A creator with settings has a metric for each, `X/SETTING`, besides the one over all its
      clips; the means over creators count each creator once.
    - These count valid answers only. `-all-clips` counts every clip: a clip whose answer is
      unreadable, or whose question failed, counts as wrong.
    - `caught: X` is the fraction of the valid answers on X's clips that are generated; low is good
      for X. `real-accuracy` and `fake-accuracy` are the fractions of right ones among valid
      answers.
    - `answered-real` is the fraction of all valid answers that are real.
    - `accuracy` is the fraction of right answers over all clips; `f1` is that of the label
      `generated`, in which `-all-clips` counts a generated clip without that answer as missed.
      `confusion` counts answers.
    - If a confidence was requested, `auc`, `tpr-at-fpr-`, `brier` and `ece` use the probability of
      being generated from label and confidence; an answer without one of them is excluded.
    """
    count = build_reality_columns(rows)
    asks = count.columns
    answered = asks.only(asks.answered)
    valid = asks.only(asks.valid)
    return Scorecard(
        instrument=INSTRUMENT,
        n_questions=len(rows),
        n_answered=len(answered.answer_codes),
        metrics=(
            *_iter_accuracy_metrics("", all_columns=answered, counted_columns=valid, seed=seed),
            *_iter_accuracy_metrics(ALL_CLIPS, all_columns=asks, counted_columns=asks, seed=seed),
            *_iter_rate_metrics(answered, seed=seed),
            *_iter_label_metrics("", all_columns=answered, counted_columns=valid, seed=seed),
            *_iter_label_metrics(ALL_CLIPS, all_columns=asks, counted_columns=asks, seed=seed),
            *_iter_confidence_metrics(answered, seed=seed),
        ),
        failures=dict(sorted(count.failures.items())),
        unparsed=dict(sorted(count.unparsed.items())),
        confusion=count_confusion_matrix(answered.calls),
    )


def _iter_label_metrics(
    suffix: str, *, all_columns: ClipAnswerColumns, counted_columns: ClipAnswerColumns, seed: int
) -> Iterator[Metric]:
    right = measure_mean_percent(counted_columns.right, clips=counted_columns.ties, seed=seed)
    yield Metric(name="accuracy" + suffix, value=right, coverage=all_columns.coverage)
    value = measure_label_f1(counted_columns.calls, seed=seed)
    yield Metric(name="f1" + suffix, value=value, coverage=all_columns.coverage)


def _iter_confidence_metrics(answered: ClipAnswerColumns, *, seed: int) -> Iterator[Metric]:
    rated = answered.only(answered.p_generated >= 0)
    coverage = Coverage(
        parsed=len(rated.answer_codes), asked=int((answered.p_generated != _NOT_REQUESTED).sum())
    )
    reason = "no confidence could be read" if coverage.asked else "no confidence was asked for"
    yield from iter_detection_metrics(
        rated.ties,
        rated.generated,
        rated.p_generated,
        coverage=coverage,
        why_none=reason,
        seed=seed,
    )
    fit: CalibrationMetrics | None = None
    if coverage.parsed:
        fit = measure_probability_calibration(
            rated.generated, rated.p_generated, seed=seed, clusters=rated.ties
        )
    yield Metric(name="brier", value=fit.brier if fit else Unmeasured(reason), coverage=coverage)
    yield Metric(name="ece", value=fit.ece if fit else Unmeasured(reason), coverage=coverage)


def _iter_accuracy_metrics(
    suffix: str, *, all_columns: ClipAnswerColumns, counted_columns: ClipAnswerColumns, seed: int
) -> Iterator[Metric]:
    creators, creator_names, right = (
        all_columns.creators,
        all_columns.creator_names,
        counted_columns.right,
    )
    for metric, parts_of in (("pooled", _build_pooled_means), ("balanced", _build_balanced_means)):
        parts = {name: parts_of(counted_columns, name, right) for name in creator_names}
        average = [
            WeightedMean(part.name, part.factor / len(creators), part.values, part.held, creator)
            for creator in creators
            for part in parts[creator]
        ]
        value = measure_weighted_sum_percent(average, clips=counted_columns.ties, seed=seed)
        yield Metric(name=metric + suffix, value=value, coverage=all_columns.coverage)
        for name, against in parts.items():
            value = measure_weighted_sum_percent(against, clips=counted_columns.ties, seed=seed)
            coverage = all_columns.only(
                all_columns.made_by(None) | all_columns.made_by(name)
            ).coverage
            yield Metric(name=f"{metric}{suffix}: {name}", value=value, coverage=coverage)


def _build_pooled_means(
    counted_columns: ClipAnswerColumns, creator_name: str, right: Array
) -> list[WeightedMean]:
    parts = _build_balanced_means(counted_columns, creator_name, right)
    if any(part.is_empty for part in parts):
        return parts  # unmeasured; the empty part's name gives the reason
    return [WeightedMean(creator_name, 1, right, np.logical_or(*(part.held for part in parts)))]


def _build_balanced_means(
    counted_columns: ClipAnswerColumns, creator_name: str, right: Array
) -> list[WeightedMean]:
    return [
        WeightedMean("real clips", 1 / 2, right, counted_columns.made_by(None)),
        WeightedMean(
            f"clips of {creator_name}", 1 / 2, right, counted_columns.made_by(creator_name)
        ),
    ]


def _iter_rate_metrics(answered: ClipAnswerColumns, *, seed: int) -> Iterator[Metric]:
    yield _measure_label_rate("answered-real", Label.REAL, answered, seed=seed)
    yield _measure_label_rate(
        "real-accuracy", Label.REAL, answered.only(answered.made_by(None)), seed=seed
    )
    yield _measure_label_rate(
        "fake-accuracy", Label.GENERATED, answered.only(answered.generated), seed=seed
    )
    for name in answered.creator_names:
        clips = answered.only(answered.made_by(name))
        yield _measure_label_rate(f"caught: {name}", Label.GENERATED, clips, seed=seed)


def _measure_label_rate(
    name: str, label: Label, all_columns: ClipAnswerColumns, *, seed: int
) -> Metric:
    valid = all_columns.only(all_columns.valid)
    value = measure_mean_percent(valid.answer_codes == CALLS[label], clips=valid.ties, seed=seed)
    return Metric(name=name, value=value, coverage=all_columns.coverage)
