"""Scorecard of the protocol `preference`."""

from collections.abc import Iterator, Sequence

from unreel.core.errors import InvalidValueError
from unreel.core.estimate import Coverage, Metric, RowCluster, Scorecard
from unreel.core.failure import Failure
from unreel.core.judgement import Pair
from unreel.core.verdict import Position, PreferenceVerdict, Unparsed
from unreel.protocols.group_metrics import add_benchmark_part_metrics
from unreel.protocols.metric_estimates import (
    WeightedMean,
    count_failure_reasons,
    count_unparsed_parts,
    measure_weighted_sum_percent,
)
from unreel.protocols.preference.metrics import INSTRUMENT, METRICS
from unreel.protocols.protocol import ScoredQuestion

PreferenceRow = ScoredQuestion[Position, PreferenceVerdict]


@add_benchmark_part_metrics(METRICS)
def compute_preference_scorecard(rows: Sequence[PreferenceRow], *, seed: int) -> Scorecard:
    """Compute the metrics of `preference` in percent: accuracy over both orders, and position bias.

    - `accuracy` is the mean of `real-first-accuracy` and `real-second-accuracy`, so that an unequal
      number of orders has no effect; `pooled` gives all pairs the same weight.
    - These count valid answers only. `pooled-all-pairs` counts every pair: a pair with an
      unreadable answer, or whose question failed, counts as wrong.
    - `position-bias` is half of the difference of the two orders' accuracies: 0 if the order does
      not matter, 50 if the first clip is always called real, -50 if it is always the second.
    - `pooled: X` is `pooled` over the pairs with a clip of creator X, `X/SETTING` over those of one
      setting.

    Pairs that share their source, or their real clip, are resampled together for every interval.
    """
    answers = [row.outcome for row in rows if not isinstance(row.outcome, Failure)]
    valid = [row for row in rows if _find_chosen_position(row)]
    n_valid, n_answered = len(valid), len(answers)
    return Scorecard(
        instrument=INSTRUMENT,
        n_questions=len(rows),
        n_answered=n_answered,
        metrics=(
            *_iter_preference_metrics(valid, Coverage(parsed=n_valid, asked=n_answered), seed=seed),
            Metric(
                name="pooled-all-pairs",
                value=measure_weighted_sum_percent(
                    [_build_pooled_mean(rows)], clips=_list_row_clusters(rows), seed=seed
                ),
                coverage=Coverage(parsed=n_valid, asked=len(rows)),
            ),
            *_iter_creator_metrics(rows, seed=seed),
        ),
        failures=count_failure_reasons(rows),
        unparsed=count_unparsed_parts(("real", verdict.real) for verdict in answers),
    )


def _iter_preference_metrics(
    valid: Sequence[PreferenceRow], coverage: Coverage, *, seed: int
) -> Iterator[Metric]:
    metrics = {
        "accuracy": [
            _build_order_mean(valid, Position.FIRST, 1 / 2),
            _build_order_mean(valid, Position.SECOND, 1 / 2),
        ],
        "pooled": [_build_pooled_mean(valid)],
        "real-first-accuracy": [_build_order_mean(valid, Position.FIRST, 1)],
        "real-second-accuracy": [_build_order_mean(valid, Position.SECOND, 1)],
        "position-bias": [
            _build_order_mean(valid, Position.FIRST, 1 / 2),
            _build_order_mean(valid, Position.SECOND, -1 / 2),
        ],
    }
    clips = _list_row_clusters(valid)
    for name, parts in metrics.items():
        value = measure_weighted_sum_percent(parts, clips=clips, seed=seed)
        yield Metric(name=name, value=value, coverage=coverage)


def _iter_creator_metrics(rows: Sequence[PreferenceRow], *, seed: int) -> Iterator[Metric]:
    for name in sorted({creator for row in rows for creator in row.creator_names}):
        answered = [
            row
            for row in rows
            if name in row.creator_names and not isinstance(row.outcome, Failure)
        ]
        valid = [row for row in answered if _find_chosen_position(row)]
        value = measure_weighted_sum_percent(
            [_build_pooled_mean(valid)], clips=_list_row_clusters(valid), seed=seed
        )
        coverage = Coverage(parsed=len(valid), asked=len(answered))
        yield Metric(name=f"pooled: {name}", value=value, coverage=coverage)


def _build_pooled_mean(rows: Sequence[PreferenceRow]) -> WeightedMean:
    return WeightedMean.of(
        "pairs", 1, [float(_find_chosen_position(row) is row.truth) for row in rows]
    )


def _build_order_mean(
    rows: Sequence[PreferenceRow], real_position: Position, factor: float
) -> WeightedMean:
    right = [
        float(_find_chosen_position(row) is real_position) if row.truth is real_position else None
        for row in rows
    ]
    return WeightedMean.of(f"pairs with the real clip {real_position.value}", factor, right)


def _find_chosen_position(row: PreferenceRow) -> Position | None:
    if isinstance(row.outcome, Failure) or isinstance(row.outcome.real, Unparsed):
        return None
    return row.outcome.real


def _list_row_clusters(rows: Sequence[PreferenceRow]) -> list[RowCluster]:
    clusters = []
    for row in rows:
        if row.source:
            clusters.append(row.cluster)
        elif isinstance(row.subject, Pair):
            is_first = row.truth is Position.FIRST
            real_clip = row.subject.first if is_first else row.subject.second
            clusters.append(RowCluster(real_clip, row.creator))
        else:
            raise InvalidValueError(f"a preference must be about a pair, not {row.subject}")
    return clusters
