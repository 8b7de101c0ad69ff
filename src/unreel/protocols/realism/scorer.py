"""Scorecard of the protocol `realism`."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from unreel.core.errors import InvalidValueError
from unreel.core.estimate import Coverage, Measured, Metric, Scorecard, Unmeasured
from unreel.core.failure import Failure
from unreel.core.judgement import Rating
from unreel.core.verdict import RealismVerdict, Unparsed
from unreel.protocols.group_metrics import add_benchmark_part_metrics
from unreel.protocols.metric_estimates import (
    count_failure_reasons,
    count_unparsed_parts,
    iter_detection_metrics,
    measure_mean_percent,
)
from unreel.protocols.protocol import ScoredQuestion
from unreel.protocols.realism.metrics import INSTRUMENT, METRICS
from unreel.stats.bootstrap import bootstrap_mean
from unreel.stats.correlation import pair_consistency, plcc, srocc

MIDDLE = 3
"""Score that replaces an unreadable score in the `-impute-3` metrics."""

RealismRow = ScoredQuestion[Rating, RealismVerdict]
Answered = tuple[RealismRow, RealismVerdict]
_CORRELATIONS: tuple[tuple[str, Callable[..., Measured]], ...] = (
    ("plcc", plcc),
    ("srocc", srocc),
    ("pcr", pair_consistency),
)


@add_benchmark_part_metrics(METRICS)
def compute_realism_scorecard(rows: Sequence[RealismRow], *, seed: int) -> Scorecard:
    """Compute PLCC, SROCC, PCR and STS against human ratings, on the paper's scale of at most 1.

    - A row counts if its question was answered. A failure is in no metric, only in `failures`.
    - An unreadable score is excluded from `plcc`, `srocc` and `pcr`, and counts as 3 in
      their `-impute-3` variants. Failures are never imputed.
    - `sts` is the mean of the similarities in `text_score`, over answers with a reason to clips
      whose rating has one. An answer without reasons is excluded and counted; without any
      similarity `sts` is unmeasured.
    - `auc` and `tpr-at-fpr-` treat a low score as a sign of a generated clip, over readable scores;
      they are measured if some of the clips are real.
    - `family` is the fraction of readable families of errors that match the human one, over clips
      with such an annotation; a prompt must ask for it.
    """
    answered = [(row, row.outcome) for row in rows if not isinstance(row.outcome, Failure)]
    pairs = [(row, v.family) for row, v in answered if v.family is not None and row.truth.family]
    read = [(row, family) for row, family in pairs if not isinstance(family, Unparsed)]
    coverage = Coverage(parsed=len(read), asked=len(pairs))
    value: Measured = Unmeasured("no family of errors was asked for, or none is known")
    if pairs:
        right = [float(family is row.truth.family) for row, family in read]
        value = measure_mean_percent(right, clips=[row.cluster for row, _ in read], seed=seed)
    return Scorecard(
        instrument=INSTRUMENT,
        n_questions=len(rows),
        n_answered=len(answered),
        metrics=(
            *_iter_correlation_metrics(answered, seed=seed),
            *_iter_detection_metrics(answered, seed=seed),
            _measure_text_similarity(answered, seed=seed),
            Metric(name="family", value=value, coverage=coverage),
        ),
        failures=count_failure_reasons(rows),
        unparsed=count_unparsed_parts(
            part for _, verdict in answered for part in _iter_verdict_parts(verdict)
        ),
    )


def _iter_correlation_metrics(answered: Sequence[Answered], *, seed: int) -> Iterator[Metric]:
    read = [pair for pair in answered if not isinstance(pair[1].score, Unparsed)]
    coverage = Coverage(parsed=len(read), asked=len(answered))
    for suffix, pairs in (("", read), ("-impute-3", answered)):
        human = [row.truth.score for row, _ in pairs]
        scores = [MIDDLE if isinstance(v.score, Unparsed) else v.score for _, v in pairs]
        clips = [row.cluster for row, _ in pairs]
        for name, measure in _CORRELATIONS:
            value = measure(human, scores, seed=seed, clusters=clips)
            yield Metric(name=name + suffix, value=value, coverage=coverage)


def _iter_detection_metrics(answered: Sequence[Answered], *, seed: int) -> Iterator[Metric]:
    read = [
        (row, verdict.score) for row, verdict in answered if not isinstance(verdict.score, Unparsed)
    ]
    yield from iter_detection_metrics(
        [row.cluster for row, _ in read],
        np.array([bool(row.creator) for row, _ in read], np.bool_),
        np.array([-score for _, score in read], np.float64),
        coverage=Coverage(parsed=len(read), asked=len(answered)),
        why_none="no score could be read",
        seed=seed,
    )


def _measure_text_similarity(answered: Sequence[Answered], *, seed: int) -> Metric:
    pairs = [(row, v) for row, v in answered if row.truth.problem or row.truth.adherence]
    read = [row for row, v in pairs if isinstance(v.problem, str) or isinstance(v.adherence, str)]
    scored = [(row.cluster, row.text_score) for row in read if row.text_score is not None]
    coverage = Coverage(parsed=len(read), asked=len(pairs))
    if not scored:
        nothing = Unmeasured("no reason has been compared with a person's")
        return Metric(name="sts", value=nothing, coverage=coverage)
    clips, values = zip(*scored, strict=True)
    if not all(-1 <= value <= 1 for value in values):
        raise InvalidValueError(f"similarity must be -1 to 1, not {max(values, key=abs)}")
    value = bootstrap_mean(values, seed=seed, clusters=clips, bounds=(-1, 1))
    return Metric(name="sts", value=value, coverage=coverage)


def _iter_verdict_parts(verdict: RealismVerdict) -> Iterator[tuple[str, object]]:
    yield "score", verdict.score
    yield "problem", verdict.problem
    yield "adherence", verdict.adherence
    yield "family", verdict.family
