"""Two contenders on the clips that both answered: their difference, and the sentence about it."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from unreel.core.cluster import Cluster
from unreel.core.estimate import ENOUGH_CLUSTERS, Estimate, Measured, Unmeasured
from unreel.core.failure import Failure
from unreel.core.judgement import Label
from unreel.protocols.figures import Figure
from unreel.protocols.measure import percent
from unreel.report.boards.board import Board, Contender
from unreel.report.boards.figures import decided
from unreel.report.boards.standing import cell_of
from unreel.report.entrants import Entrant, Item
from unreel.stats.paired import paired_difference
from unreel.stats.resampling import fewest_clusters
from unreel.stats.sample import Array, IntArray, Ties

LEVEL: Final = 0.95
_RIGHT_OR_WRONG: Final = (0.0, 1.0)
_OFF: Final = (-4.0, 0.0)
"""Less the distance of two scores from 1 to 5."""
_CLAIMS: Final = {
    ("floor", "ahead"): "{first} beats the floor {second}",
    ("floor", "behind"): "{first} does worse than the floor {second}",
    ("floor", "open"): "{first} has not shown that it beats the floor {second}",
    ("reviewer", "ahead"): "{first} is ahead of {second}, the second",
    ("reviewer", "behind"): "{second}, the second, is ahead of {first} where both answered",
    ("reviewer", "open"): "Whether {first} is ahead of {second}, the second, is not settled",
}
"""By whom the first is compared with, and on which side of 0 the interval lies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """What the first has more than the second."""

    measured: Measured
    of: str
    """What it is a difference of, as it follows a number."""
    places: int
    n_clips: int
    """Questions that both answered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Mark:
    """What one row is worth to a figure."""

    value: float
    stratum: str
    """What it is averaged with before strata are."""
    cluster: Cluster


@dataclass(frozen=True, slots=True, kw_only=True)
class _Both:
    """The rows that both answered."""

    ours: Array
    theirs: Array
    places: IntArray
    """Of the rows' strata among all."""
    ties: Ties
    bounds: tuple[float, float]
    """The least and the most that one row is worth."""
    level: float


def compare(first: Entrant, second: Entrant, *, level: float = LEVEL) -> Difference:
    """The figure of `first` less that of `second`, both on the questions that both answered.

    `level` is that of its interval. It is the figure that ranks without a judge. A correlation is no mean over clips: where one ranks,
    the distances of the scores from people's are compared.
    """
    figures = first.instrument.figures
    figure = figures[figures.ranks_by(judged=False)]
    by_score = first.instrument.wording.decides == "score"
    ours, theirs = (dict(_marks(entrant, figure)) for entrant in (first, second))
    common = [question for question in ours if len(ours[question]) == len(theirs.get(question, ()))]
    measured = _difference(
        [mark for question in common for mark in ours[question]],
        [mark for question in common for mark in theirs[question]],
        weights=_weights(first, figure),
        bounds=_OFF if by_score else _RIGHT_OR_WRONG,
        seed=first.seed,
        level=level,
    )
    return Difference(
        measured=measured if by_score else percent(measured),
        of="points nearer to people's scores" if by_score else f"points of {figure.title.lower()}",
        places=2 if by_score else figure.places,
        n_clips=len(common),
    )


def tell_difference(board: Board, first: Contender, second: Contender) -> str:
    """Which of two leads, or that it is not known: a sentence that the paired difference bears out."""
    difference = compare(first.entrant, second.entrant)
    measured = difference.measured
    if isinstance(measured, Unmeasured):
        return f"{first.name} and {second.name} cannot be compared clip by clip: {measured.why}."
    kind = "pairs" if board.asked.subject == "pair" else "clips"
    value, low, high = (
        f"{number:+.{difference.places}f}"
        for number in (measured.value, measured.low, measured.high)
    )
    rests_on = measured.n_clusters or measured.n
    few = f", from as few as {rests_on} clips or scenes" if rests_on < ENOUGH_CLUSTERS else ""
    return (
        f"{_claim(first, second, measured)}: {value} {difference.of} on the {difference.n_clips:,} "
        f"{kind} that both answered (95 % interval {low} to {high}{few})."
    )


def _claim(first: Contender, second: Contender, measured: Estimate) -> str:
    lead = "ahead" if measured.low > 0 else "behind" if measured.high < 0 else "open"
    return _CLAIMS[second.kind, lead].format(first=first.name, second=second.name)


def _marks(entrant: Entrant, figure: Figure) -> Iterator[tuple[tuple[str, ...], list[_Mark]]]:
    """By the names of what was shown, which stay the same where a cleaned copy was shown."""
    for item in entrant.items:
        decision = decided(item.outcome)
        counts = decision is not None or figure.unreadable == "worst"
        if counts and not isinstance(item.outcome, Failure):
            question = tuple(subject.entry.name for subject in item.subjects)
            yield (
                question,
                [
                    _Mark(
                        value=_worth(item, decision, row.truth),
                        stratum=_stratum(entrant, item, figure),
                        cluster=_cluster(item),
                    )
                    for row in item.rows
                ],
            )


def _worth(item: Item, decision: Any, truth: Any) -> float:
    score = getattr(truth, "score", None)
    if score is not None:
        return -float(abs(decision - score))
    right = item.subjects[0].entry.label if isinstance(decision, Label) else truth
    return float(decision == right)


def _stratum(entrant: Entrant, item: Item, figure: Figure) -> str:
    match figure.alike:
        case "rows":
            return "questions"
        case "sides":
            return (
                f"questions whose answer is {entrant.instrument.wording.right(item.rows[0].truth)}"
            )
        case "creators":
            return cell_of(item)


def _weights(entrant: Entrant, figure: Figure) -> Mapping[str, float]:
    """How much each stratum counts, by what was asked, whatever was answered."""
    makers = {_stratum(entrant, item, figure): item.creator for item in entrant.items}
    if figure.alike != "creators":
        return dict.fromkeys(makers, 1 / len(makers))
    n_creators = sum(creator is not None for creator in makers.values())
    return {
        stratum: 1 / 2 if creator is None else 1 / 2 / n_creators
        for stratum, creator in makers.items()
    }


def _cluster(item: Item) -> Cluster:
    """The scene and the creator; where nobody names a scene, the clip, of a pair the real one."""
    entries = [subject.entry for subject in item.subjects]
    shown = next((e.name for e in entries if e.label is Label.REAL), entries[0].name)
    source = item.rows[0].source
    return Cluster(f"source {source}" if source else shown, item.creator or "")


def _difference(
    ours: Sequence[_Mark],
    theirs: Sequence[_Mark],
    *,
    weights: Mapping[str, float],
    bounds: tuple[float, float],
    seed: int,
    level: float,
) -> Measured:
    if not ours:
        return Unmeasured("they have no answered clip in common")
    strata = [mark.stratum for mark in ours]
    absent = [stratum for stratum in weights if stratum not in {*strata}]
    if absent:
        return Unmeasured(f"both answered none of the {absent[0]}")
    numbers = {stratum: number for number, stratum in enumerate(weights)}
    both = _Both(
        ours=np.array([mark.value for mark in ours]),
        theirs=np.array([mark.value for mark in theirs]),
        places=np.array([numbers[stratum] for stratum in strata]),
        ties=Ties.of([mark.cluster for mark in ours], len(ours)),
        bounds=bounds,
        level=level,
    )
    shares = np.array(list(weights.values()))
    scenes = {(mark.cluster.scene, mark.stratum) for mark in ours}
    draws_creators = both.ties.n_creators >= fewest_clusters(level)
    is_apart = len(scenes) == both.ties.n_scenes and not draws_creators
    if is_apart or len(weights) == 1:
        return _sum_strata(both, shares, seed=seed)
    return _sum_rows(both, shares, draws_creators=draws_creators, seed=seed)


def _sum_strata(both: _Both, weights: Array, *, seed: int) -> Measured:
    """Strata that are drawn apart: each has its own interval, and their distances add up as squares."""
    value = below = above = 0.0
    sizes = []
    for place, weight in enumerate(weights.tolist()):
        rows = both.places == place
        part = paired_difference(
            both.ours[rows],
            both.theirs[rows],
            seed=seed,
            clusters=both.ties.only(rows),
            bounds=both.bounds,
            level=both.level,
        )
        if isinstance(part, Unmeasured):
            return part
        value += weight * part.value
        below += (weight * (part.value - part.low)) ** 2
        above += (weight * (part.high - part.value)) ** 2
        sizes.append(part.n)
    low, high = value - math.sqrt(below), value + math.sqrt(above)
    return Estimate(
        value=value, low=low, high=high, n=sum(sizes), n_clusters=min(sizes), level=both.level
    )


def _sum_rows(both: _Both, weights: Array, *, draws_creators: bool, seed: int) -> Measured:
    """Strata that share scenes, or whose creators are drawn again: all are drawn together."""
    sides = np.arange(len(weights))
    if draws_creators:
        sides[weights < 1 / 2] = len(weights)  # a side counts for one half, a creator for less
    first, second = (_spread(v, both, weights, sides) for v in (both.ours, both.theirs))
    return paired_difference(
        first.values,
        second.values,
        seed=seed,
        clusters=both.ties,
        bounds=(min(first.low, second.low), max(first.high, second.high)),
        level=both.level,
    )


@dataclass(frozen=True, slots=True)
class _Spread:
    values: Array
    low: float
    high: float


def _spread(values: Array, both: _Both, weights: Array, sides: IntArray) -> _Spread:
    """One value a row whose plain mean is the weighted mean over strata, and whose spread is its doubt.

    A row moves the figure by its distance from the mean of its stratum, or, where strata are creators
    that are drawn too, from the mean of all creators (the linearised mean over strata).
    """
    sizes = np.bincount(both.places)
    means = np.bincount(both.places, weights=values) / sizes
    centres = np.bincount(sides, weights=means)[sides] / np.bincount(sides)[sides]
    pulls = weights * len(values) / sizes
    figure = float(weights @ means)
    ends = [figure + pulls * (bound - centres) for bound in both.bounds]
    spread = figure + pulls[both.places] * (values - centres[both.places])
    return _Spread(spread, float(ends[0].min()), float(ends[1].max()))
