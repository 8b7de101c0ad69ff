"""Correlation of scores with people's scores."""

import numpy as np
import numpy.typing as npt

from unreel.core.estimate import Measured, Unmeasured
from unreel.stats.bootstrap import StatisticLimits, bootstrap
from unreel.stats.resampling import Statistic
from unreel.stats.sample import Array, Clusters, RowSample, as_columns, first_of_run, weighted_sum

# A variance below this share of the mean square is rounding.
_ROUNDING = 1e-12


def plcc(
    human: npt.ArrayLike,
    scores: npt.ArrayLike,
    *,
    seed: int,
    clusters: Clusters = None,
    level: float = 0.95,
) -> Measured:
    """Compute Pearson's linear correlation with an interval clustered by clip; n counts rows."""
    x, y = as_columns(human, scores)
    flat = _explain_constant_scores(x, y)
    if flat:
        return Unmeasured(flat)
    sample = RowSample.of((_standardise_column(x), _standardise_column(y)), clusters)
    return _estimate_correlation(_build_pearson_statistic(sample), sample, seed=seed, level=level)


def srocc(
    human: npt.ArrayLike,
    scores: npt.ArrayLike,
    *,
    seed: int,
    clusters: Clusters = None,
    level: float = 0.95,
) -> Measured:
    """Compute Spearman's rank correlation with an interval clustered by clip; n counts rows.

    Ties have their average rank.
    """
    x, y = as_columns(human, scores)
    flat = _explain_constant_scores(x, y)
    if flat:
        return Unmeasured(flat)
    sample = RowSample.of((x, y), clusters)
    return _estimate_correlation(_build_spearman_statistic(sample), sample, seed=seed, level=level)


def _estimate_correlation(
    statistic: Statistic, sample: RowSample, *, seed: int, level: float
) -> Measured:
    limits = StatisticLimits(-1.0, 1.0, sample.n_free)
    return bootstrap(statistic, sample, seed=seed, level=level, limits=limits)


def _explain_constant_scores(x: Array, y: Array) -> str:
    if len(x) == 0:
        return "no rows"
    for name, column in (("people's", x), ("given", y)):
        if column.min() == column.max():
            return f"all {name} scores are {column[0]:g}: a constant correlates with nothing"
    return ""


def _standardise_column(column: Array) -> Array:
    """Return the column centred and scaled, so that sums of products keep their precision."""
    # The largest distance scales first: squares of tiny or huge scores leave the range of floats.
    centred = column - column.mean()
    centred /= np.abs(centred).max()
    scaled: Array = centred / centred.std()
    return scaled


def _build_pearson_statistic(sample: RowSample) -> Statistic:
    x, y = sample.columns
    columns = (x, y, x * x, y * y, x * y)

    def correlate(weights: Array) -> Array:
        n = weights.sum(axis=1)
        sx, sy, sxx, syy, sxy = (weighted_sum(weights, column) for column in columns)
        vx, vy = sxx - sx * sx / n, syy - sy * sy / n
        vx[vx <= _ROUNDING * sxx] = np.nan
        vy[vy <= _ROUNDING * syy] = np.nan
        linear: Array = np.clip((sxy - sx * sy / n) / np.sqrt(vx * vy), -1, 1)
        return linear

    return correlate


def _build_spearman_statistic(sample: RowSample) -> Statistic:
    x, y = sample.columns
    by_y = np.argsort(y, kind="stable")
    to_x = np.argsort(by_y)
    x_runs, y_runs = first_of_run(x), first_of_run(y[by_y])

    def correlate(weights: Array) -> Array:
        rx = _compute_centred_ranks(weights, x_runs)
        ry = _compute_centred_ranks(weights.take(by_y, axis=1), y_runs).take(to_x, axis=1)
        weighted_x = weights * rx
        vx = np.einsum("ri,ri->r", weighted_x, rx)
        vy = np.einsum("ri,ri,ri->r", weights, ry, ry)
        vx[vx == 0] = np.nan
        vy[vy == 0] = np.nan
        covariance = np.einsum("ri,ri->r", weighted_x, ry)
        monotone: Array = np.clip(covariance / np.sqrt(vx) / np.sqrt(vy), -1, 1)
        return monotone

    return correlate


def _compute_centred_ranks(weights: Array, runs: npt.NDArray[np.bool_]) -> Array:
    """Return average ranks minus their mean, for sorted rows.

    `runs` is true at the first row of each run of equal values.
    """
    total = weights if runs.all() else np.add.reduceat(weights, np.flatnonzero(runs), axis=1)
    ranks = np.cumsum(total, axis=1)
    middle = ranks[:, -1:] / 2
    ranks -= total / 2
    ranks -= middle
    return ranks if runs.all() else ranks.take(np.cumsum(runs) - 1, axis=1)
