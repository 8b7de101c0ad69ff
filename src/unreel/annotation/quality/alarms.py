"""Alarms about annotators: answers that drift or ignore the clip, and implausible times per task."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np

from unreel.annotation.campaign import AnnotationTask
from unreel.annotation.opinion import (
    AnnotatorOpinion,
    get_categorical_answer,
    group_opinions_by_task,
)
from unreel.annotation.quality.qualification import score_answers_to_known_tasks
from unreel.core.estimate import Estimate, Measured, Unmeasured
from unreel.stats.bootstrap import StatisticLimits, bootstrap
from unreel.stats.dawid_skene import DawidSkeneFit, dawid_skene
from unreel.stats.resampling import Statistic
from unreel.stats.row_sample import Array, IntArray, RowSample

MIN_INFORMED_ANSWERS: Final = 20
"""Minimum number of answers for the classification as a spammer."""
_RARELY: Final = 1e-6
"""Minimum total weight of the answers with a true label; the recall of a rarer label is not estimated."""
LOOKS: Final = 0.4
"""Minimum informedness of an annotator who looks at the clips."""


@dataclass(frozen=True, slots=True)
class AnnotatorInformedness:
    """Informedness of one annotator: 1 if always right, 0 if the answers do not depend on the clip."""

    informed: Measured
    n_answers: int

    @property
    def is_spammer(self) -> bool:
        """Return whether the annotator's answers seem not to depend on the clip.

        This is so if the interval of the informedness includes 0 and ends below `LOOKS`. It is false for
        fewer than `MIN_INFORMED_ANSWERS` answers.
        """
        value = self.informed
        enough = self.n_answers >= MIN_INFORMED_ANSWERS
        return enough and isinstance(value, Estimate) and value.low <= 0 and value.high < LOOKS


@dataclass(frozen=True, slots=True, eq=False)
class _AnswerArrays:
    who: IntArray
    task: IntArray
    said: IntArray
    names: Sequence[str]


def estimate_annotator_informedness(
    opinions: Sequence[AnnotatorOpinion], *, seed: int
) -> Mapping[str, AnnotatorInformedness]:
    """Return, by annotator, how much their answers depend on the truth that others' answers suggest.

    Dawid-Skene over all answers estimates the truths; the annotator's own answer is removed from
    them. The interval resamples clips and treats these truths as known.
    """
    answers = _build_shared_task_arrays(opinions)
    if answers is None:
        return {}
    skills = dawid_skene(answers.who, answers.task, answers.said)
    results = {}
    for number, name in enumerate(answers.names):
        own = answers.who == number
        truths = _estimate_truths_without_annotator(
            skills, number, answers.task[own], answers.said[own]
        )
        chosen = np.eye(len(skills.shares))[answers.said[own]]
        results[name] = AnnotatorInformedness(
            _estimate_informedness(truths, chosen, seed=seed), int(own.sum())
        )
    return results


def _build_shared_task_arrays(opinions: Sequence[AnnotatorOpinion]) -> _AnswerArrays | None:
    rows = [
        (opinion.annotator, i, get_categorical_answer(opinion.value))
        for i, those in enumerate(group_opinions_by_task(opinions).values())
        if len(those) > 1
        for opinion in those
    ]
    if not rows:
        return None
    people, tasks, answers = zip(*rows, strict=True)
    names, who = np.unique(people, return_inverse=True)
    _, chosen = np.unique(answers, return_inverse=True)
    _, task = np.unique(tasks, return_inverse=True)
    return _AnswerArrays(who, task, chosen, names.tolist())


def _estimate_truths_without_annotator(
    skills: DawidSkeneFit, who: int, task: IntArray, answers: IntArray
) -> Array:
    """Return the probability of each true label by all others' answers, as `[answer, label]`."""
    weights = skills.posterior[task] / skills.confusion[who][:, answers].T
    total = weights.sum(axis=1, keepdims=True)
    truths: Array = np.where(total > 0, weights / np.where(total > 0, total, 1), skills.shares)
    return truths


def _estimate_informedness(truths: Array, answers: Array, *, seed: int) -> Measured:
    n_labels = truths.shape[1]
    if n_labels == 1:
        return Unmeasured("all annotators always gave the same answer")
    sample = RowSample.of(tuple(np.concatenate([truths, truths * answers], axis=1).T))
    limits = StatisticLimits(-1.0, 1.0, sample.n_free)
    return bootstrap(
        _build_informedness_statistic(sample, n_labels), sample, seed=seed, limits=limits
    )


def _build_informedness_statistic(sample: RowSample, n_labels: int) -> Statistic:
    """Build the informedness: mean recall over labels relative to chance, 0 if blind and 1 if all right."""
    columns = np.stack(sample.columns, axis=1)
    truths, hits = columns[:, :n_labels], columns[:, n_labels:]

    def excess_of(weights: Array) -> Array:
        totals = weights @ truths
        shares = np.divide(
            weights @ hits, totals, out=np.full_like(totals, np.nan), where=totals > _RARELY
        )
        known = np.isfinite(shares)
        n_known = known.sum(axis=1)
        total = np.where(known, shares, 0).sum(axis=1)
        excess: Array = np.full(len(total), np.nan)
        np.divide(total - 1, n_known - 1, out=excess, where=n_known > 1)
        return excess

    return excess_of


FAR: Final = 3.5
"""Threshold of unusual times, in robust standard deviations of the logarithm (Iglewicz and Hoaglin 1993)."""
_NORMAL: Final = 1.4826
"""Ratio of standard deviation and median absolute deviation of a normal distribution."""
_LEAST_SPREAD: Final = 0.1
"""Minimum standard deviation of the logarithm, so that nearly equal times give no outliers."""
MIN_TIMED_TASKS: Final = 10


class TimedJudgement(Protocol):
    """Protocol of a judgement with the time that the annotator spent on the task."""

    @property
    def annotator(self) -> str:
        """Return the name of the annotator who judged the task."""
        ...

    @property
    def task(self) -> AnnotationTask:
        """Return the task that the annotator judged."""
        ...

    @property
    def lead_us(self) -> int | None:
        """Return the time that the annotator spent on the task, in microseconds; `None` if unknown."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotatorSpeed:
    """Median time per task of one annotator, and the tasks answered unusually fast or slowly."""

    n: int
    median_us: int
    fast: tuple[str, ...]
    """Identifiers of tasks answered much faster than the annotator's other tasks."""
    slow: tuple[str, ...]
    unseen: tuple[str, ...]
    """Identifiers of tasks answered in less than half of the clip's duration."""


def measure_annotator_speeds(judgements: Sequence[TimedJudgement]) -> Mapping[str, AnnotatorSpeed]:
    """Return the timed annotators' time per task; unusual tasks are listed from `MIN_TIMED_TASKS` tasks on."""
    times: dict[str, list[tuple[str, int, int]]] = {}
    for j in judgements:
        if j.lead_us is not None and j.lead_us > 0:
            lasts = sum(copy.duration_us for copy in j.task.copies)
            times.setdefault(j.annotator, []).append((j.task.id, j.lead_us, lasts))
    return {who: _measure_annotator_speed(sorted(rows)) for who, rows in sorted(times.items())}


def _measure_annotator_speed(rows: Sequence[tuple[str, int, int]]) -> AnnotatorSpeed:
    logs = np.log([lead for _, lead, _ in rows])
    middle = float(np.median(logs))
    spread = max(_LEAST_SPREAD, _NORMAL * float(np.median(np.abs(logs - middle))))
    apart = (logs - middle) / spread if len(rows) >= MIN_TIMED_TASKS else np.zeros(len(rows))
    return AnnotatorSpeed(
        n=len(rows),
        median_us=int(np.median([lead for _, lead, _ in rows])),
        fast=tuple(id_ for (id_, _, _), z in zip(rows, apart, strict=True) if z < -FAR),
        slow=tuple(id_ for (id_, _, _), z in zip(rows, apart, strict=True) if z > FAR),
        unseen=tuple(id_ for id_, lead, lasts in rows if 2 * lead < lasts),
    )


ALARM: Final = 0.01
"""Significance level: probability of a false alarm for each of the two statistics."""
MIN_DRIFT_ANSWERS: Final = 20
"""Minimum number of answers for a result."""
_SHUFFLES: Final = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerDrift:
    """Largest difference between an annotator's earlier and later answers, with its p-value."""

    what: str
    p_chance: float
    """P-value: fraction of random orders of the same answers with a change at least as large."""
    since: int
    """Number of answers before the largest change."""
    n: int
    before: float
    after: float

    @property
    def alarm(self) -> bool:
        """Return whether the change of the annotator's answers is significant at the level `ALARM`."""
        return self.p_chance <= ALARM


def measure_answer_drift(
    opinions: Sequence[AnnotatorOpinion], *, seed: int
) -> Mapping[str, tuple[AnswerDrift, ...]]:
    """Return, by annotator, the change over time of the accuracy on known clips and of the answers.

    Answers are summarised by the fraction of the annotator's most common answer, or the mean score.
    A series of fewer than `MIN_DRIFT_ANSWERS` values has no result.
    """
    by_person: dict[str, list[AnnotatorOpinion]] = {}
    for opinion in sorted(opinions, key=lambda o: (o.submitted_us, o.task.id)):
        by_person.setdefault(opinion.annotator, []).append(opinion)
    drifts = {}
    for who, own in sorted(by_person.items()):
        rights = np.array([right.share for right in score_answers_to_known_tasks(own)])
        answers = _convert_answers_to_numbers([get_categorical_answer(o.value) for o in own])
        series = (("right", rights), ("answers", answers))
        drifts[who] = tuple(
            _measure_drift(what, values, seed=seed)
            for what, values in series
            if len(values) >= MIN_DRIFT_ANSWERS
        )
    return drifts


def _convert_answers_to_numbers(answers: Sequence[str]) -> Array:
    if all(answer.isdigit() for answer in answers):
        return np.array([float(answer) for answer in answers])
    common = max(sorted(set(answers)), key=answers.count)
    return np.array([float(answer == common) for answer in answers])


def _measure_drift(what: str, values: Array, *, seed: int) -> AnswerDrift:
    """Find the largest change between earlier and later values, and its p-value by random reordering."""
    rng = np.random.default_rng(seed)
    heights, since = _compute_largest_shifts(values[np.newaxis])
    shuffled = rng.permuted(np.tile(values, (_SHUFFLES, 1)), axis=1)
    chance, _ = _compute_largest_shifts(shuffled)
    # The observed order is one of the possible orders.
    p_chance = (1 + int((chance >= heights[0] - 1e-12).sum())) / (1 + _SHUFFLES)
    at = int(since[0])
    return AnswerDrift(
        what=what,
        p_chance=p_chance,
        since=at,
        n=len(values),
        before=float(values[:at].mean()),
        after=float(values[at:].mean()),
    )


def _compute_largest_shifts(orders: Array) -> tuple[Array, Array]:
    """Return per row the largest mean shift in (scaled) standard errors, and its position."""
    n = orders.shape[1]
    margin = max(5, n // 20)
    before = np.arange(margin, n - margin + 1)
    sums = np.cumsum(orders, axis=1)
    total = sums[:, -1:]
    ahead = sums[:, before - 1] / before
    behind = (total - sums[:, before - 1]) / (n - before)
    heights = np.abs(ahead - behind) * np.sqrt(before * (n - before) / n)
    best = heights.argmax(axis=1)
    return heights.max(axis=1), before[best]
