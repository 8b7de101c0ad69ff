"""Agreement of raters beyond chance: Krippendorff's alpha, Cohen's kappa and Fleiss' kappa."""

from collections.abc import Sequence
from typing import Any, Literal, assert_never

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from unreel.core.errors import InvalidValueError
from unreel.core.estimate import Measured, Unmeasured
from unreel.stats.bootstrap import bootstrap_coefficient
from unreel.stats.resampling import Statistic
from unreel.stats.row_sample import Array, Clusters, IntArray, RowSample, weighted_sum

Scale = Literal["nominal", "ordinal", "interval"]

# Disagreement below this fraction of the mean square is rounding error.
_ROUNDING = 1e-12


def krippendorff_alpha(
    ratings: npt.ArrayLike, *, scale: Scale, seed: int, level: float = 0.95
) -> Measured:
    """Compute Krippendorff's alpha of `ratings[rater, unit]`; NaN marks a missing rating.

    The confidence interval resamples units. n counts the units with at least two ratings, as other
    units contain no information about agreement.
    """
    rated = _build_rating_units(ratings)
    if isinstance(rated, Unmeasured):
        return rated
    sample, units, values = rated
    statistic = _build_alpha_statistic(units, values, scale=scale)
    return bootstrap_coefficient(statistic, sample, seed=seed, level=level)


def cohen_kappa(
    first: Sequence[Any] | npt.NDArray[Any],
    second: Sequence[Any] | npt.NDArray[Any],
    *,
    seed: int,
    clusters: Clusters = None,
    level: float = 0.95,
) -> Measured:
    """Compute Cohen's kappa of two raters that put the same rows into categories; n counts rows."""
    if len(first) != len(second):
        raise InvalidValueError(
            f"both raters must have the same number of rows, got {len(first)} and {len(second)}"
        )
    if len(first) == 0:
        return Unmeasured("no rows")
    labels, codes = np.unique(np.concatenate([first, second]), return_inverse=True)
    if labels.dtype.kind == "f" and np.isnan(labels).any():
        raise InvalidValueError(
            "a label is NaN. Leave out rows that one rater did not rate, and count them"
        )
    if len(labels) == 1:
        return Unmeasured(f"both raters always say {labels[0]}: agreement and chance look the same")
    x, y = codes.astype(np.float64).reshape(2, -1)
    sample = RowSample.of((x, y), clusters)
    statistic = _build_kappa_statistic(sample, len(labels))
    return bootstrap_coefficient(statistic, sample, seed=seed, level=level)


def fleiss_kappa(ratings: npt.ArrayLike, *, seed: int, level: float = 0.95) -> Measured:
    """Compute Fleiss' kappa of `ratings[rater, unit]`: labels as numbers, NaN for a missing rating.

    Fleiss assumes the same number of ratings for every unit. If the numbers differ, each unit
    counts with the mean agreement of its pairs of ratings, and label frequencies are taken from all
    ratings. The confidence interval resamples units. n counts the units with at least two ratings.
    """
    rated = _build_rating_units(ratings)
    if isinstance(rated, Unmeasured):
        return rated
    sample, units, values = rated
    statistic = _build_fleiss_statistic(_count_ratings_per_unit(units, len(values)))
    return bootstrap_coefficient(statistic, sample, seed=seed, level=level)


def _build_rating_units(ratings: npt.ArrayLike) -> tuple[RowSample, IntArray, Array] | Unmeasured:
    """Return the rated units with at least two ratings; ratings are indices into the sorted values."""
    table = np.asarray(ratings, dtype=np.float64)
    if table.ndim != 2 or np.isinf(table).any():  # noqa: PLR2004  raters by units
        raise InvalidValueError(
            f"ratings must be finite or NaN, raters by units, got shape {table.shape}. Pivot them"
        )
    pairable = table[:, (~np.isnan(table)).sum(axis=0) >= 2]  # noqa: PLR2004  a pair
    values = np.unique(pairable[~np.isnan(pairable)])
    if len(values) == 0:
        return Unmeasured("no unit was rated by two raters")
    if len(values) == 1:
        return Unmeasured(f"all ratings are {values[0]:g}: agreement and chance look the same")
    # The order of the raters has no effect, so each unit's ratings are sorted; NaN comes last.
    codes = np.searchsorted(values, np.sort(pairable, axis=0))
    sample = RowSample.of(tuple(codes.astype(np.float64)))
    units = np.stack(sample.columns, axis=1).astype(np.int64)
    return sample, units, values


def _build_fleiss_statistic(counts: csr_array[np.float64, tuple[int, int]]) -> Statistic:
    m = np.asarray(counts.sum(axis=1), dtype=np.float64)
    same = np.asarray((counts * counts).sum(axis=1), dtype=np.float64)
    agree = (same - m) / (m * (m - 1))

    def kappa(weights: Array) -> Array:
        used = np.asarray(weights @ counts, dtype=np.float64)
        proportions = used / used.sum(axis=1, keepdims=True)
        max_agreement = 1 - np.einsum("rv,rv->r", proportions, proportions)
        max_agreement[max_agreement <= _ROUNDING] = np.nan
        observed = weighted_sum(weights, agree) / weights.sum(axis=1)
        beyond: Array = 1 - (1 - observed) / max_agreement
        return beyond

    return kappa


def _build_alpha_statistic(units: IntArray, values: Array, *, scale: Scale) -> Statistic:
    """Return alpha of weighted `units`; ratings are indices into `values`, beyond the end if missing."""
    match scale:
        case "nominal":
            counts = _count_ratings_per_unit(units, len(values))
            m = np.asarray(counts.sum(axis=1), dtype=np.float64)
            same = np.asarray((counts * counts).sum(axis=1), dtype=np.float64)
            disagreement = (m**2 - same) / (m - 1)

            def alpha(weights: Array) -> Array:
                used = np.asarray(weights @ counts, dtype=np.float64)
                n = used.sum(axis=1)
                observed = weighted_sum(weights, disagreement)
                return _compute_alpha(n, observed, n**2 - np.einsum("rv,rv->r", used, used))

            return alpha
        case "ordinal":
            return _build_ordinal_alpha(_count_ratings_per_unit(units, len(values)))
        case "interval":
            padded = np.append(values - values.mean(), 0.0)
            return _build_interval_alpha(padded[units], (units < len(values)).sum(axis=1))
        case _:
            assert_never(scale)


def _build_ordinal_alpha(counts: csr_array[np.float64, tuple[int, int]]) -> Statistic:
    """Return alpha with the ordinal distance: the squared difference of the values' middle ranks."""
    m = np.asarray(counts.sum(axis=1), dtype=np.float64)
    by_value = counts.T.tocsr()

    def alpha(weights: Array) -> Array:
        used = np.asarray(weights @ counts, dtype=np.float64)
        n = used.sum(axis=1)
        ranks = np.cumsum(used, axis=1) - used / 2 - n[:, np.newaxis] / 2
        sums = np.asarray(ranks @ by_value, dtype=np.float64)
        squares = np.asarray(ranks**2 @ by_value, dtype=np.float64)
        disagreement = 2 * (m * squares - sums**2) / (m - 1)
        # The mean rank is 0, because ranks are relative to the middle: the squared sum drops out.
        expected = 2 * n * np.einsum("rv,rv,rv->r", used, ranks, ranks)
        return _compute_alpha(n, np.einsum("ru,ru->r", weights, disagreement), expected)

    return alpha


def _build_interval_alpha(ratings: Array, m: IntArray) -> Statistic:
    sums, squares = ratings.sum(axis=1), (ratings**2).sum(axis=1)
    disagreement = 2 * (m * squares - sums**2) / (m - 1)
    columns = (m.astype(np.float64), sums, squares, disagreement)

    def alpha(weights: Array) -> Array:
        n, total, square, observed = (weighted_sum(weights, column) for column in columns)
        expected = 2 * (n * square - total**2)
        expected[expected <= _ROUNDING * n * square] = 0
        return _compute_alpha(n, observed, expected)

    return alpha


def _compute_alpha(n: Array, observed: Array, expected: Array) -> Array:
    """Compute alpha from sums of disagreement: `observed` within units, `expected` between all ratings."""
    expected[expected == 0] = np.nan
    agreement: Array = 1 - (n - 1) * observed / expected
    return agreement


def _count_ratings_per_unit(
    units: IntArray, n_values: int
) -> csr_array[np.float64, tuple[int, int]]:
    """Return the count of each value (column) per unit (row)."""
    unit, rater = np.nonzero(units < n_values)
    ones = np.ones(len(unit))
    return csr_array((ones, (unit, units[unit, rater])), shape=(len(units), n_values))


def _build_kappa_statistic(sample: RowSample, n_labels: int) -> Statistic:
    x, y = sample.columns
    agree = (x == y).astype(np.float64)
    category_masks = [
        ((x == label).astype(np.float64), (y == label).astype(np.float64))
        for label in range(n_labels)
    ]

    def kappa(weights: Array) -> Array:
        n = weights.sum(axis=1)
        chance = np.zeros_like(n)
        for x_is, y_is in category_masks:
            chance += weighted_sum(weights, x_is) * weighted_sum(weights, y_is)
        max_agreement = n**2 - chance
        max_agreement[max_agreement == 0] = np.nan
        beyond: Array = (n * weighted_sum(weights, agree) - chance) / max_agreement
        return beyond

    return kappa
