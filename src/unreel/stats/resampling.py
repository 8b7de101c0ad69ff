"""Values of a statistic on resampled rows, by scene, and by creator if creators vary too.

A statistic is a function of weights: it takes a block of resamples, one per row, where `weights[r,
i]` is the count of the distinct row `i` of a `RowSample` in resample `r`, and returns one value per
resample, NaN if undefined. The original rows are a resample like any other, so value and interval
come from one formula.

Clips of one scene are correlated, and so are clips of one creator. The variance of a statistic over
both is that by scene, plus that by creator, minus the part that both count twice (Cameron, Gelbach
and Miller 2011, doi:10.1198/jbes.2010.07136); it is never less than the larger of the two. Real
clips have no creator: they vary by scene only.
"""

import math
from collections.abc import Callable

import numpy as np

from unreel.stats.jackknife_values import get_jackknife_groups
from unreel.stats.proportion import central_normal_quantile
from unreel.stats.row_sample import Array, ClusterIds, ClusterResampler, Clusters, RowSample

Statistic = Callable[[Array], Array]

RESAMPLES = 2_000
# The variance that is counted twice is the smallest part, so fewer resamples are sufficient.
_CELL_RESAMPLES = 500
# Maximum fraction of undefined resamples; an interval without more of them would be misleading.
MAX_UNDEFINED = 0.1


def resample_statistic(
    statistic: Statistic, sample: RowSample, *, seed: int, level: float
) -> tuple[Array, Array]:
    """Compute the statistic of `RESAMPLES` resamples (lines), in bounded memory.

    Also return, for each column, the number of independent clusters with the same uncertainty of the
    spread: the number of scenes, or fewer if a few creators cause most of the spread.

    If the creators are fewer than an interval at `level` needs, clips are resampled by scene only,
    and the result is valid for these creators only.
    """
    rng = np.random.default_rng(seed)
    values = _draw_replicates(statistic, sample.scenes, RESAMPLES, block=sample.block, rng=rng)
    if sample.ties.n_creators < compute_min_clusters(level):
        return values, np.full(values.shape[1:], sample.n_clusters, dtype=np.float64)
    without = np.concatenate([statistic(weights) for weights in sample.without_creators()])
    cells = sample.cells
    per_cell = _draw_replicates(statistic, cells, _CELL_RESAMPLES, block=sample.block, rng=rng)
    by_scene = _compute_row_variance(values) * _compute_bias_correction(sample.n_clusters)
    # Jackknife: the variance of k leave-one-out values, times k - 1, is that of resamples of k.
    by_creator = _compute_row_variance(without) * (len(without) - 1)
    by_cell = _compute_row_variance(per_cell) * _compute_bias_correction(cells.n_groups)
    twice = compute_shared_variance(by_scene, by_creator, by_cell, sample.crossing)
    total = by_scene + by_creator - twice
    # Satterthwaite's degrees of freedom of a sum of variances.
    welch_denominator = by_scene**2 / (sample.n_clusters - 1) + by_creator**2 / (len(without) - 1)
    free = np.where(
        total > 0,
        total**2 / np.where(welch_denominator > 0, welch_denominator, 1),
        sample.n_clusters - 1,
    )
    spread = np.sqrt(total * free / (free + 1))
    centre = statistic(sample.observed)[0]
    from scipy.special import ndtri

    sd = np.sqrt(_compute_row_variance(values))
    normal = ndtri((np.arange(len(values)) + 0.5) / len(values))
    normal = normal.reshape(-1, *([1] * (values.ndim - 1)))
    shape = np.where(sd > 0, (values - centre) / np.where(sd > 0, sd, 1), normal)
    return centre + shape * spread, free + 1


def compute_min_clusters(level: float) -> int:
    """Return the minimum number of clusters for an interval at `level`.

    No resample leaves the range of the clusters, and the range of k clusters misses the median of all
    clusters once in 2 ** (k - 1) times.
    """
    central_normal_quantile(level)  # rejects an invalid level
    return 1 + math.ceil(-math.log2(1 - level))


def are_rows_independent(clusters: Clusters, n_rows: int, *, level: float = 0.95) -> bool:
    """Return whether each row is a scene and creators are few; false in `jackknife_context`."""
    if get_jackknife_groups() is not None:
        return False
    ties = ClusterIds.of(clusters, n_rows)
    return ties.n_scenes == n_rows and ties.n_creators < compute_min_clusters(level)


def _draw_replicates(
    statistic: Statistic,
    resampler: ClusterResampler,
    count: int,
    *,
    block: int,
    rng: np.random.Generator,
) -> Array:
    counts = [block] * (count // block)
    if count % block:
        counts.append(count % block)
    return np.concatenate([statistic(resampler.draw(rng, size)) for size in counts])


def compute_shared_variance(
    by_scene: Array, by_creator: Array, by_cell: Array, crossing: tuple[float, float, float]
) -> Array:
    """Return the part of the variance that both scenes and creators include: that of single clips.

    If every creator made every scene, resamples of single clips also include a part of the scenes'
    and of the creators' own variance, which is subtracted; if creators share no scene they include
    nothing else.
    """
    crossed, per_scene, per_creator = crossing
    unshared = crossed * (by_scene / per_scene + by_creator / per_creator)
    shared = (by_cell - unshared) / (1 - crossed * (1 / per_scene + 1 / per_creator))
    return np.clip(shared, 0, np.minimum(by_scene, by_creator))


def _compute_row_variance(values: Array) -> Array:
    """Return the variance over the lines; NaN if too many lines have no value."""
    known = np.isfinite(values)
    n = known.sum(axis=0)
    n = np.where(n < (1 - MAX_UNDEFINED) * len(values), np.nan, n)
    mean = np.where(known, values, 0).sum(axis=0) / n
    variance: Array = (np.where(known, values - mean, 0) ** 2).sum(axis=0) / n
    return variance


def _compute_bias_correction(n_clusters: int) -> float:
    """Return the factor k / (k - 1) that corrects the variance of resamples of k clusters."""
    return n_clusters / (n_clusters - 1)
