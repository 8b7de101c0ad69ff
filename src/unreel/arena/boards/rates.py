"""Rates of both leaderboards, and of each reviewer on the clips of each creator.

Confidence intervals resample scenes.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from unreel.arena.answers.resampled_counts import ResampledAnswerCounts, ResampledAnswerTable
from unreel.arena.boards.leaderboard_metrics import CREATOR_FIGURES, REVIEWER_FIGURES
from unreel.core.estimate import Estimate, Measured, Unmeasured
from unreel.protocols.paper_formulas import PERCENT
from unreel.stats.proportion_intervals import compute_proportion_intervals
from unreel.stats.row_sample import Array, BoolArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class ResampledRates:
    """Several rates (columns), observed and on each resample, and their number of answers by scene."""

    values: Array
    """Values: a row for each resample (row 0: observed), a column for each rate."""
    by_scene: Array
    """Number of answers: a row for each scene, a column for each rate."""

    @classmethod
    def beside(cls, *rates: "ResampledRates") -> "ResampledRates":
        """Return one table with the columns of all rate tables in `rates`."""
        return cls(
            np.concatenate([rate.values for rate in rates], axis=1),
            np.concatenate([rate.by_scene for rate in rates], axis=1),
        )

    def measure(self) -> list[Measured]:
        """Return each rate in percent, with its confidence interval."""
        n = self.by_scene.sum(axis=0)
        n_scenes = (self.by_scene > 0).sum(axis=0)
        squares = (self.by_scene**2).sum(axis=0)
        ends = compute_proportion_intervals(
            self.values[0],
            self.values[1:],
            n_clusters=n_scenes.astype(np.float64),
            n_free=n**2 / np.maximum(squares, 1.0),
        )
        columns = (self.values[0], ends.low, ends.high, n, n_scenes)
        return [
            _build_percentage_estimate(*map(float, column)) for column in zip(*columns, strict=True)
        ]


def _build_percentage_estimate(
    value: float, low: float, high: float, n: float, n_scenes: float
) -> Measured:
    if np.isnan(value) or n < 1:
        return Unmeasured("no readable answer to measure it by")
    if np.isnan(low):
        return Unmeasured(f"too few scenes carry it; the bare value is {PERCENT * value:.4g}")
    return Estimate(value=value, low=low, high=high, n=int(n), n_clusters=int(n_scenes)).scaled(
        PERCENT
    )


@dataclass(frozen=True, slots=True, eq=False)
class ReviewerSourceRates:
    """Rates of one reviewer on the clips of each source."""

    caught: list[Measured]
    """Rate of "generated" for every source: creators, real clips, controls."""
    accuracy: list[Measured]
    """Accuracy on real clips pooled with one creator's clips, for every creator."""
    balanced: list[Measured]


@dataclass(frozen=True, slots=True, eq=False)
class LeaderboardRates:
    """All rates of a season's answers: of reviewers, creators, controls, and reviewers by creators."""

    reviewers: Sequence[Mapping[str, Measured]]
    accuracy: Array
    """Accuracy, which ranks the reviewers: a row for each resample, a column for each reviewer."""
    cells: list[ReviewerSourceRates]
    creators: Sequence[Mapping[str, Measured]]
    fakeness: Array
    controls: Sequence[Mapping[str, Measured]]


def measure_leaderboard_rates(tally: ResampledAnswerTable, used: BoolArray) -> LeaderboardRates:
    """Compute all rates of both leaderboards from the answer table `tally`.

    Args:
        tally: The answers with their bootstrap resamples.
        used: Mask of the reviewers (rows) that count for each clip source (columns).
    """
    reviewers, accuracy, cells = [], [], []
    pool = _PooledAnswerCounts.empty(tally)
    for i, counts in enumerate(tally.counts()):
        shares = dict(_iter_reviewer_rates(counts, tally))
        accuracy.append(shares["accuracy"].values[:, 0])
        measured = ResampledRates.beside(*shares.values()).measure()
        reviewers.append(dict(zip(shares, measured, strict=True)))
        cells.append(_measure_reviewer_source_rates(counts, tally))
        pool.add(counts, used[i])
    of_sources = pool.shares()
    fakeness = of_sources["fakeness"].values[:, tally.sources.made]
    figures = {name: rate.measure() for name, rate in of_sources.items()}
    made, changed = tally.sources.made, tally.sources.changed
    names = [name for name in CREATOR_FIGURES if name in figures]
    creators = [
        dict(zip(names, values, strict=True))
        for values in zip(*(figures[name][made] for name in names), strict=True)
    ]
    controls = [{"called-generated": value} for value in figures["fakeness"][changed]]
    rates = np.stack(accuracy, axis=1) if accuracy else np.zeros((len(tally.weights), 0))
    return LeaderboardRates(reviewers, rates, cells, creators, fakeness, controls)


def _iter_reviewer_rates(
    counts: ResampledAnswerCounts, tally: ResampledAnswerTable
) -> Iterator[tuple[str, ResampledRates]]:
    """Yield each metric of a reviewer: its name, and its observed and resampled values."""
    sources = tally.sources
    met = counts.valid[0, sources.made] > 0
    of = _CorrectAnswerCounts.of(counts, real=sources.real, made=np.flatnonzero(met))
    met_changed = np.flatnonzero(counts.valid[0, sources.changed] > 0) + sources.changed.start
    changed = _compute_ratio(counts.generated[:, met_changed], counts.valid[:, met_changed])
    played, right = sources.played, of.right.sum(axis=1)
    valid, asked = (column[:, played].sum(axis=1) for column in (counts.valid, counts.asked))
    generated = counts.generated[:, played].sum(axis=1)
    everything = counts.asked.sum(axis=1)
    columns = {
        "accuracy": (_compute_column_mean(of.pooled(counts.valid)), counts.scene_valid[:, played]),
        "accuracy-all": (
            _compute_column_mean(of.pooled(counts.asked)),
            counts.scene_asked[:, played],
        ),
        "balanced": (
            _compute_column_mean(of.balanced(counts.valid)),
            counts.scene_valid[:, played],
        ),
        "balanced-all": (
            _compute_column_mean(of.balanced(counts.asked)),
            counts.scene_asked[:, played],
        ),
        "plain": (_compute_ratio(right, valid), counts.scene_valid[:, played]),
        "plain-all": (_compute_ratio(right, asked), counts.scene_asked[:, played]),
        "caught": (
            _compute_column_mean(of.caught(counts.valid)),
            counts.scene_valid[:, sources.made],
        ),
        "false-alarms": (
            _compute_ratio(counts.generated[:, sources.real], counts.valid[:, sources.real]),
            counts.scene_valid[:, [sources.real]],
        ),
        "control-false-alarms": (
            _compute_column_mean(changed),
            counts.scene_valid[:, sources.changed],
        ),
        "said-real": (_compute_ratio(valid - generated, valid), counts.scene_valid[:, played]),
        "answered": (_compute_ratio(counts.valid.sum(axis=1), everything), counts.scene_asked),
    }
    for name in REVIEWER_FIGURES:
        if name in columns:
            values, by_scene = columns[name]
            yield name, ResampledRates(values[:, np.newaxis], by_scene.sum(axis=1, keepdims=True))


@dataclass(frozen=True, slots=True, eq=False)
class _CorrectAnswerCounts:
    """Numbers of right answers of one reviewer: on real clips, and on clips of the creators `made`."""

    real: int
    made: IntArray
    right: Array
    """Number of right answers: a column for real clips, then one for each of `made`."""

    @classmethod
    def of(
        cls, counts: ResampledAnswerCounts, *, real: int, made: IntArray
    ) -> "_CorrectAnswerCounts":
        right_real = counts.valid[:, [real]] - counts.generated[:, [real]]
        return cls(real, made, np.concatenate([right_real, counts.generated[:, made]], axis=1))

    def pooled(self, totals: Array) -> Array:
        """Compute a reviewer's accuracy on real clips pooled with one creator's clips, for each creator."""
        n_real = totals[:, [self.real]]
        rate = _compute_ratio(self.right[:, [0]] + self.right[:, 1:], n_real + totals[:, self.made])
        return np.where(n_real > 0, rate, np.nan)

    def caught(self, totals: Array) -> Array:
        """Compute a reviewer's accuracy on each creator's clips: the rate of answers "generated"."""
        return _compute_ratio(self.right[:, 1:], totals[:, self.made])

    def balanced(self, totals: Array) -> Array:
        """Compute, for each creator, the mean of a reviewer's accuracies on real clips and on its clips."""
        of_real = _compute_ratio(self.right[:, [0]], totals[:, [self.real]])
        balanced: Array = (of_real + self.caught(totals)) / 2
        return balanced


def _measure_reviewer_source_rates(
    counts: ResampledAnswerCounts, tally: ResampledAnswerTable
) -> ReviewerSourceRates:
    sources = tally.sources
    of = _CorrectAnswerCounts.of(counts, real=sources.real, made=np.arange(sources.n_creators))
    caught = ResampledRates(_compute_ratio(counts.generated, counts.valid), counts.scene_valid)
    by_scene = counts.scene_valid[:, sources.made] + counts.scene_valid[:, [sources.real]]
    met = np.where(counts.valid[0, sources.made] > 0, 1.0, np.nan)
    accuracy = ResampledRates(of.pooled(counts.valid) * met, by_scene)
    balanced = ResampledRates(of.balanced(counts.valid), by_scene)
    measured = ResampledRates.beside(caught, accuracy, balanced).measure()
    ends = sources.total, sources.total + sources.n_creators
    return ReviewerSourceRates(
        measured[: ends[0]], measured[ends[0] : ends[1]], measured[ends[1] :]
    )


@dataclass(slots=True, eq=False)
class _PooledAnswerCounts:
    """Sums of the answer counts of all reviewers per clip source; reviewers are added one by one."""

    caught: Array
    caught_all: Array
    generated: Array
    valid: Array
    scene_valid: Array
    scene_asked: Array
    n_reviewers: Array

    @classmethod
    def empty(cls, tally: ResampledAnswerTable) -> "_PooledAnswerCounts":
        lines, total = len(tally.weights), tally.sources.total
        shape, by_scene = (lines, total), (tally.n_scenes, total)
        return cls(
            caught=np.zeros(shape),
            caught_all=np.zeros(shape),
            generated=np.zeros(shape),
            valid=np.zeros(shape),
            scene_valid=np.zeros(by_scene),
            scene_asked=np.zeros(by_scene),
            n_reviewers=np.zeros(total),
        )

    def add(self, counts: ResampledAnswerCounts, used: BoolArray) -> None:
        """Add the answer counts of one reviewer for the clip sources (columns) that `used` selects."""
        self.caught += np.where(used, _compute_ratio(counts.generated, counts.valid), 0.0)
        self.caught_all += np.where(used, _compute_ratio(counts.generated, counts.asked), 0.0)
        self.generated += np.where(used, counts.generated, 0.0)
        self.valid += np.where(used, counts.valid, 0.0)
        self.scene_valid += np.where(used, counts.scene_valid, 0.0)
        self.scene_asked += np.where(used, counts.scene_asked, 0.0)
        self.n_reviewers += used

    def shares(self) -> Mapping[str, ResampledRates]:
        """Return the fakeness metrics by name, with one column per clip source."""
        return {
            "fakeness": ResampledRates(
                _compute_ratio(self.caught, self.n_reviewers), self.scene_valid
            ),
            "fakeness-all": ResampledRates(
                _compute_ratio(self.caught_all, self.n_reviewers), self.scene_asked
            ),
            "fakeness-pooled": ResampledRates(
                _compute_ratio(self.generated, self.valid), self.scene_valid
            ),
        }


def _compute_ratio(part: Array, total: Array) -> Array:
    """Return `part / total`; NaN if `total` is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio: Array = np.where(total > 0, part / total, np.nan)
    return ratio


def _compute_column_mean(values: Array) -> Array:
    """Return the mean over the columns; NaN if there are no columns."""
    if not values.shape[1]:
        return np.full(len(values), np.nan)
    mean: Array = values.mean(axis=1)
    return mean
