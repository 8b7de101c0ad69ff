"""Bradley-Terry strengths of competitors from battles between two of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from unreel.core.errors import InvalidValueError
from unreel.core.estimate import Estimate, Measured, Unmeasured
from unreel.core.registry import LazyImport
from unreel.stats.bootstrap import compute_bootstrap_interval, explain_too_few_clusters
from unreel.stats.resampling import Statistic, resample_statistic
from unreel.stats.row_sample import Array, IntArray, RowSample

_BRADLEY_TERRY = LazyImport("evalica:bradley_terry", extra="eval")
_WINNER = LazyImport("evalica:Winner", extra="eval")

# Far below any interval width, reached in a few hundred rounds unless one side nearly always wins.
_TOLERANCE = 1e-8
_MAX_ROUNDS = 10_000
# Maximum number of names in one reason; "..." replaces the others.
_NAMED = 5


class BattleOutcome(StrEnum):
    """Winner of a battle."""

    FIRST = "first"
    SECOND = "second"
    TIE = "tie"


_POINTS = {BattleOutcome.FIRST: 1.0, BattleOutcome.TIE: 0.5, BattleOutcome.SECOND: 0.0}


@dataclass(frozen=True, slots=True)
class ClipBattle:
    """Battle of two competitors over one clip; battles over the same clip are resampled together."""

    first: str
    second: str
    outcome: BattleOutcome
    clip: str

    def __post_init__(self) -> None:
        if self.first == self.second:
            raise InvalidValueError(
                f"the competitors of a battle must differ, got {self.first!r} twice"
            )


def bradley_terry(
    battles: Sequence[ClipBattle], *, seed: int, level: float = 0.95
) -> dict[str, Measured]:
    """Compute the strength of every competitor, by name, with an interval clustered by clip.

    n counts the competitor's battles. Strengths are natural logarithms with sum 0: a competitor
    that is stronger by d wins with probability 1 / (1 + exp(-d)). A tie is half a win for both.
    `estimate.scaled(400 / math.log(10))` gives Elo points around 0. If battles do not connect all
    competitors, all strengths are unmeasured.
    """
    names = sorted({name for battle in battles for name in (battle.first, battle.second)})
    if not names:
        return {}
    number = {name: index for index, name in enumerate(names)}
    first = np.array([number[battle.first] for battle in battles])
    second = np.array([number[battle.second] for battle in battles])
    points = np.array([_POINTS[battle.outcome] for battle in battles])
    # The order of a pair has no effect on strengths: one order for all halves the table.
    points = np.where(first < second, points, 1 - points)
    pair = np.minimum(first, second), np.maximum(first, second)
    columns = (*(column.astype(np.float64) for column in pair), points)
    sample = RowSample.of(columns, [battle.clip for battle in battles])
    fought = np.bincount(np.concatenate([first, second]), minlength=len(names))
    measured = _estimate_strengths(
        _BattleTable.of(sample, names), sample, fought=fought, seed=seed, level=level
    )
    return dict(zip(names, measured, strict=True))


@dataclass(frozen=True, slots=True, eq=False)
class _BattleTable:
    """Distinct battle results with the winner and loser of each; a tie counts in both directions."""

    names: list[str]
    first: IntArray
    second: IntArray
    points: Array
    """Points of the first competitor: 1, 1/2 or 0."""
    winner: IntArray
    loser: IntArray
    row: IntArray
    """Index of the distinct result of each (winner, loser)."""

    @classmethod
    def of(cls, sample: RowSample, names: list[str]) -> "_BattleTable":
        first, second = (column.astype(np.int64) for column in sample.columns[:2])
        points = sample.columns[2]
        first_scores, second_scores = np.flatnonzero(points > 0), np.flatnonzero(points < 1)
        row = np.concatenate([first_scores, second_scores])
        winner = np.concatenate([first[first_scores], second[second_scores]])
        loser = np.concatenate([second[first_scores], first[second_scores]])
        return cls(names, first, second, points, winner, loser, row)

    def groups(
        self, weights: Array, *, connection: Literal["weak", "strong"]
    ) -> tuple[int, IntArray]:
        """Return number and members of connected groups: by one result (`weak`) or both ways (`strong`)."""
        occurs = weights[self.row] > 0
        size = len(self.names)
        edges = (self.winner[occurs], self.loser[occurs])
        beat = csr_array((np.ones(int(occurs.sum())), edges), shape=(size, size))
        count, group = connected_components(beat, directed=True, connection=connection)
        return int(count), group.astype(np.int64)

    def why_loose(self, weights: Array) -> str:
        """Return the reason why these battle results determine no strengths; "" if they do."""
        count, group = self.groups(weights, connection="weak")
        if count > 1:
            groups = self._name(group == group[0]), self._name(group != group[0])
            return f"no battle links {groups[0]} with {groups[1]}"
        count, group = self.groups(weights, connection="strong")
        if count > 1:
            across = group[self.winner] != group[self.loser]
            beaten = np.unique(group[self.loser][across])
            top = self._name(~np.isin(group, beaten))
            return f"{top} never lost or tied against the others, so strengths have no limit"
        return ""

    def _name(self, chosen: npt.NDArray[np.bool_]) -> str:
        named = [name for name, is_chosen in zip(self.names, chosen, strict=True) if is_chosen]
        return ", ".join([*named[:_NAMED], *(["..."] if len(named) > _NAMED else [])])

    def strengths(self) -> Statistic:
        """Return the statistic that computes log strengths, one column per competitor; NaN if undefined."""
        solve, winner = _BRADLEY_TERRY.load(), _WINNER.load()
        winner_by_points = {1.0: winner.X, 0.5: winner.Draw, 0.0: winner.Y}
        winners = [winner_by_points[points] for points in self.points.tolist()]
        xs, ys = self.first.tolist(), self.second.tolist()

        def fit_once(weights: Array) -> Array:
            undefined = np.full(len(self.names), np.nan)
            if self.groups(weights, connection="strong")[0] > 1:
                return undefined
            result = solve(
                xs, ys, winners, weights=weights, tolerance=_TOLERANCE, limit=_MAX_ROUNDS
            )
            if result.iterations >= _MAX_ROUNDS:
                return undefined
            strengths = np.log(result.scores.sort_index().to_numpy(dtype=np.float64))
            centred: Array = strengths - strengths.mean()
            return centred

        return lambda weights: np.stack([fit_once(line) for line in weights])


def _estimate_strengths(
    table: _BattleTable, sample: RowSample, *, fought: IntArray, seed: int, level: float
) -> list[Measured]:
    loose = table.why_loose(sample.observed[0]) or explain_too_few_clusters(sample, level=level)
    if loose:
        return [Unmeasured(loose)] * len(table.names)
    strengths = table.strengths()
    values = strengths(sample.observed)[0]
    if np.isnan(values).any():
        return [Unmeasured("one side nearly always wins, so strengths do not settle")] * len(values)
    replicates, _ = resample_statistic(strengths, sample, seed=seed, level=level)
    measured: list[Measured] = []
    for value, column, n in zip(values.tolist(), replicates.T, fought.tolist(), strict=True):
        interval = compute_bootstrap_interval(
            value, column, n_clusters=sample.n_clusters, level=level
        )
        if isinstance(interval, Unmeasured):
            measured.append(interval)
        else:
            low, high = interval
            clusters = sample.n_clusters
            measured.append(
                Estimate(value=value, low=low, high=high, n=n, n_clusters=clusters, level=level)
            )
    return measured
