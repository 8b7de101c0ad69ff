"""Paired comparison of reviewers on the clips that both judged: differences and significance."""

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from unreel.core.comparison import Comparison, Comparisons, Difference
from unreel.core.errors import InvalidSettingError, UnknownNameError
from unreel.core.estimate import Estimate, Measured, Unmeasured
from unreel.core.failure import Failure
from unreel.core.judgement import list_subject_clips
from unreel.core.question import Condition, list_differing_condition_fields
from unreel.core.verdict import Unparsed
from unreel.evaluation.explanation_scores import ExplanationJudges, build_stored_rulings_judge
from unreel.evaluation.run_job import EvalRun
from unreel.evaluation.scored_columns import InternedTextColumn, ScoredQuestionColumns
from unreel.evaluation.scoring import iter_scored_rows
from unreel.protocols.group_metrics import SelectedRows
from unreel.protocols.protocol import Mode, Protocol, ScoredQuestion
from unreel.stats.jackknife_values import JackknifeGroups, jackknife_context
from unreel.stats.paired_differences import (
    DifferenceTestResult,
    PairedRowIndices,
    Places,
    adjust_p_values_by_holm,
    estimate_paired_difference,
    pair_rows_by_clip,
)

Rows = Sequence[ScoredQuestion[Any, Any]]
_SEED = 0
_ALPHA = 0.05
_RUNS = "runs"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ComparedReviewer:
    """One reviewer under one condition, with all its questions and answers."""

    reviewer: str
    condition: Condition
    instrument: Protocol[Any, Any]
    """Protocol, at the version of the stored answers."""
    names: Iterable[str]
    """Name of the clip or pair of each row."""
    rows: Rows


def compare_runs(
    runs: Sequence[EvalRun],
    *,
    metrics: Sequence[str] = (),
    parser: Mode | None = None,
    judge: str | None = None,
) -> Comparisons:
    """Compare each pair of conditions in `runs` by the stored answers; no question is sent.

    Raise `InvalidSettingError` if the runs cannot be compared, or one is named twice, or
    `UnknownNameError` if a name in `metrics` is not a metric of the runs.
    """
    uris = [run.place.uri for run in runs]
    if len({*uris}) < len(uris):
        twice = next(uri for uri in uris if uris.count(uri) > 1)
        raise InvalidSettingError(_RUNS, f"{twice} is named twice", "Name each run once")
    reviewers = [
        r for run in runs for r in read_compared_reviewers(run, parser=parser, judge=judge)
    ]
    return compare_reviewers(reviewers, metrics=metrics)


def read_compared_reviewers(
    run: EvalRun, *, parser: Mode | None = None, judge: str | None = None
) -> list[ComparedReviewer]:
    """Read the scored answers of `run`: one `ComparedReviewer` for each of its conditions."""
    names = {condition: InternedTextColumn() for condition in run.scope.conditions}
    packed = run.recipe.instrument.packed if judge is None else None
    rows = {condition: ScoredQuestionColumns(packed) for condition in run.scope.conditions}
    # A copy of the run, so that its cached key indexes are freed before the metrics are computed.
    for name, condition, row in iter_scored_rows(
        replace(run), mode=parser or run.recipe.reviewer.parser
    ):
        if row is not None:
            names[condition].append(name)
            rows[condition].append(row)
    score_texts: Callable[[Rows], Rows] | None = None
    if judge is not None and "explanation" in run.recipe.instrument.figures:
        score_texts = ExplanationJudges([build_stored_rulings_judge(judge, run)], run.recipe.seed)
    return [
        ComparedReviewer(
            reviewer=run.reviewer_name(),
            condition=condition,
            instrument=replace(run.recipe.instrument, instrument=run.scope.instrument),
            names=names[condition],
            rows=scored if score_texts is None else score_texts(scored),
        )
        for condition, scored in rows.items()
    ]


def compare_reviewers(
    reviewers: Sequence[ComparedReviewer], *, metrics: Sequence[str] = ()
) -> Comparisons:
    """Compare each pair of `reviewers`, with Holm's correction over all differences: see `compare_runs`."""
    if len(reviewers) < 2:  # noqa: PLR2004  it takes two
        raise InvalidSettingError(
            _RUNS,
            "there is nothing to compare with",
            "Name two runs, or one run with several conditions",
        )
    names = disambiguate_reviewers([(r.reviewer, r.condition) for r in reviewers])
    first = reviewers[0].instrument
    for reviewer, name in zip(reviewers, names, strict=True):
        if reviewer.instrument.instrument != first.instrument:
            raise InvalidSettingError(
                _RUNS,
                f"{names[0]} has the protocol {first.instrument}, {name} {reviewer.instrument.instrument}",
                "Compare runs of one protocol at one version; run the older one again",
            )
    compared = [
        _compare_reviewer_pair(left, right, metrics=metrics)
        for left, right in itertools.combinations(zip(reviewers, names, strict=True), 2)
    ]
    gaps = [gap for _, tests in compared for gap in tests if gap is not None]
    corrected = iter(adjust_p_values_by_holm([gap.p for gap in gaps]))
    comparisons = []
    for comparison, tests in compared:
        differences = []
        for difference, test in zip(comparison.differences, tests, strict=True):
            if test is None:
                differences.append(difference)
                continue
            p = next(corrected)
            # The smallest detectable difference, if this one is not significant.
            detectable = None if p < _ALPHA else test.detectable(_ALPHA / max(1, len(gaps)))
            differences.append(replace(difference, p_corrected=p, detectable=detectable))
        comparisons.append(replace(comparison, differences=tuple(differences)))
    return Comparisons(
        instrument=first.instrument, comparisons=tuple(comparisons), n_tests=len(gaps)
    )


def disambiguate_reviewers(reviewers: Sequence[tuple[str, Condition]]) -> list[str]:
    """Return unique reviewer names: with the condition fields that differ, and a number if still equal."""
    differing = list_differing_condition_fields([condition for _, condition in reviewers])
    names = [" · ".join([name, *condition.words(differing)]) for name, condition in reviewers]
    used = {name for name in names if names.count(name) == 1}
    unique = []
    for name in names:
        numbered = (f"{name} ({number})" for number in itertools.count(1))
        alone = names.count(name) == 1
        unique.append(name if alone else next(text for text in numbered if text not in used))
        used.add(unique[-1])
    return unique


def _compare_reviewer_pair(
    left: tuple[ComparedReviewer, str],
    right: tuple[ComparedReviewer, str],
    *,
    metrics: Sequence[str],
) -> tuple[Comparison, list[DifferenceTestResult | None]]:
    (first, first_name), (second, second_name) = left, right
    by_name = first.condition.watermark != second.condition.watermark
    pairing = pair_rows_by_clip(
        _get_clip_ids(first, by_name=by_name), _get_clip_ids(second, by_name=by_name)
    )
    if not len(pairing.ours):
        raise InvalidSettingError(
            _RUNS,
            f"{first_name} and {second_name} have answers about different clips",
            "Compare runs over one benchmark: `unreel eval` adds missing answers",
        )
    if not by_name:
        for i, j in zip(pairing.ours.tolist(), pairing.theirs.tolist(), strict=True):
            if _get_truth_key(first.rows, i) != _get_truth_key(second.rows, j):
                clips = "+".join(list_subject_clips(first.rows[i].subject))
                raise InvalidSettingError(
                    _RUNS,
                    f"the runs have different ground truths for the clip {clips}",
                    "Compare runs over one version of a benchmark",
                )
    ours, theirs = _mask_outcomes(first, pairing.ours), _mask_outcomes(second, pairing.theirs)
    valid = pairing.at(ours[0] & theirs[0])
    # Each metric is over the questions that it is over on a scorecard: a reviewer gains nothing here by
    # answers that cannot be read, where they count as wrong.
    pairs = {"readable": valid, "answered": pairing.at(ours[1] & theirs[1]), "all": pairing}
    metric_set = first.instrument.figures
    scores = {"readable": _compute_paired_metrics(first, second, valid)}
    for counted in ("answered", "all"):
        if pairs[counted].n_shown == valid.n_shown:
            scores[counted] = scores["readable"]
        elif counted == "answered" or any(metric_set.counts(name) == counted for name in metrics):
            scores[counted] = _compute_paired_metrics(first, second, pairs[counted])
    known = {
        name: paired
        for counted, paired in scores.items()
        for name in paired.names
        if metric_set.counts(name) == counted
    }
    tested = []
    for name in _select_metrics(first, [*known], metrics):
        # The largest possible difference of the metric or its variant; infinity if unknown.
        plain = name.partition(": ")[0]
        ranges = (
            definition.range
            for definition in metric_set
            if plain == definition.metric or plain.startswith(f"{definition.metric}-")
        )
        low, high = next(ranges, (0.0, math.inf))
        tested.append(known[name].difference(name, reach=high - low))

    comparison = Comparison(
        first=first_name,
        second=second_name,
        n_common=valid.n_shown,
        n_sources=len(scores["readable"].groups.scenes),
        n_invalid=pairing.n_shown - valid.n_shown,
        n_unshared=pairing.n_unshared,
        differences=tuple(difference for difference, _ in tested),
    )
    return comparison, [test for _, test in tested]


@dataclass(frozen=True, slots=True, eq=False)
class _PairedMetrics:
    """Metrics of two compared reviewers, computed over the clips that both judged."""

    ours: dict[str, Measured]
    theirs: dict[str, Measured]
    groups: JackknifeGroups

    @property
    def names(self) -> list[str]:
        """Return the names of the metrics that both reviewers have."""
        return [name for name in self.ours if name in self.theirs]

    def difference(
        self, metric: str, *, reach: float
    ) -> tuple[Difference, DifferenceTestResult | None]:
        """Test the difference of `metric`, first reviewer minus second; `reach` is the width of its range."""
        left, right = self.ours[metric], self.theirs[metric]
        first, second = (
            measured.value if isinstance(measured, Estimate) else None for measured in (left, right)
        )
        tested = estimate_paired_difference(left, right, groups=self.groups, reach=reach)
        if isinstance(tested, Unmeasured):
            return Difference(metric=metric, first=first, second=second, difference=tested), None
        difference = Difference(
            metric=metric, first=first, second=second, difference=tested.estimate, p=tested.p
        )
        return difference, tested


def _compute_paired_metrics(
    first_reviewer: ComparedReviewer, second_reviewer: ComparedReviewer, pairs: PairedRowIndices
) -> _PairedMetrics:
    groups = JackknifeGroups()
    metrics = _compute_reviewer_metrics(
        first_reviewer, SelectedRows(first_reviewer.rows, pairs.ours), groups
    )
    # A copy without watermark has another id, but counts as the same clip here.
    aligned = _AlignedRows(second_reviewer.rows, pairs.theirs, first_reviewer.rows, pairs.ours)
    return _PairedMetrics(
        metrics, _compute_reviewer_metrics(second_reviewer, aligned, groups), groups
    )


def _get_clip_ids(reviewer: ComparedReviewer, *, by_name: bool) -> Iterable[str]:
    """Return row keys to pair by: clip hashes, or names if one side saw clips without watermark."""
    if by_name:
        return reviewer.names
    rows = reviewer.rows
    subjects = (
        rows.subjects()
        if isinstance(rows, ScoredQuestionColumns)
        else (row.subject for row in rows)
    )
    return ("+".join(list_subject_clips(subject)) for subject in subjects)


class _AlignedRows(Sequence[ScoredQuestion[Any, Any]]):
    """Rows of one reviewer, with subject, source and creator copied from the other reviewer's rows."""

    def __init__(self, rows: Rows, indices: Places, others: Rows, other_indices: Places) -> None:
        self._rows, self._others = SelectedRows(rows, indices), SelectedRows(others, other_indices)

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[ScoredQuestion[Any, Any]]:
        return map(_copy_clip_identity, self._rows, self._others)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        return _copy_clip_identity(self._rows[index], self._others[index])


def _copy_clip_identity(
    row: ScoredQuestion[Any, Any], identity: ScoredQuestion[Any, Any]
) -> ScoredQuestion[Any, Any]:
    return replace(row, subject=identity.subject, source=identity.source, creator=identity.creator)


def _get_truth_key(rows: Rows, index: int) -> Any:
    """Return a key that is equal if, and only if, the ground truths are equal."""
    return rows.truth_mark(index) if isinstance(rows, ScoredQuestionColumns) else rows[index].truth


def _mask_outcomes(
    reviewer: ComparedReviewer, indices: Places
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Return which questions have a readable answer, and which have an answer at all."""
    decision, rows = reviewer.instrument.wording.decision, reviewer.rows
    columns = rows if isinstance(rows, ScoredQuestionColumns) else None
    readable = np.zeros(len(indices), np.bool_)
    answered = np.zeros(len(indices), np.bool_)
    for place, index in enumerate(indices.tolist()):
        outcome = columns.outcome(index) if columns else rows[index].outcome
        answered[place] = not isinstance(outcome, Failure)
        readable[place] = answered[place] and not isinstance(decision(outcome), Unparsed)
    return readable, answered


def _select_metrics(
    reviewer: ComparedReviewer, known: Sequence[str], metrics: Sequence[str]
) -> list[str]:
    if not metrics:
        return [
            definition.metric
            for definition in reviewer.instrument.figures
            if definition.metric in known
        ]
    chosen: dict[str, None] = {}
    for name in metrics:
        matches = [name] if name in known else [k for k in known if k.startswith(f"{name}: ")]
        if not matches:
            raise UnknownNameError("metric", name, known)
        chosen.update(dict.fromkeys(matches))
    return [*chosen]


def _compute_reviewer_metrics(
    reviewer: ComparedReviewer, rows: Rows, groups: JackknifeGroups
) -> dict[str, Measured]:
    with jackknife_context(groups):
        card = reviewer.instrument.score(rows, seed=_SEED)
    return {metric.name: metric.value for metric in card.metrics}
