"""How often intervals hold a truth that is known, for every estimator of `unreel.stats`.

    python benchmarks/coverage.py                 # the table of docs/intervals.md, about 5 minutes of one core
    python benchmarks/coverage.py --trials 2000 --only auc "clustered share" --json

Each trial makes data whose truth is known and asks for its 95 % interval; the same seed gives the same table.
"""

import argparse
import json
import math
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from statistics import NormalDist
from typing import Any

import locate_cases
import numpy as np
import numpy.typing as npt

from unreel.core.estimate import Estimate, Measured, RowCluster, Unmeasured
from unreel.protocols.metric_estimates import WeightedMean, measure_weighted_sum_percent
from unreel.stats.agreement import cohen_kappa, krippendorff_alpha
from unreel.stats.bootstrap import bootstrap_mean
from unreel.stats.correlation import pair_consistency, plcc, srocc
from unreel.stats.detection_metrics import (
    auc,
    balanced_accuracy,
    f1,
    measure_probability_calibration,
    tpr_at_fpr,
)
from unreel.stats.jackknife_values import JackknifeGroups, jackknife_context
from unreel.stats.paired_differences import estimate_paired_difference
from unreel.stats.proportion import estimate_event_rate, estimate_proportion

SIZES = (6, 20, 50, 200)
GOAL = (0.93, 0.97)
ROWS = 4
"""Rows of a cluster, where it has several."""
ALIKE = 0.3
"""Correlation of the rows of one cluster."""
CREATORS = 7

Rng = np.random.Generator
Array = npt.NDArray[Any]
Trial = Callable[[Rng, int], Measured]


@dataclass(frozen=True)
class Case:
    """An estimator on data with this truth."""

    estimator: str
    truth: float
    told: str
    """The truth in words."""
    trial: Trial
    """From a source of chance and a number of clusters to what is measured."""


@dataclass(frozen=True)
class Cell:
    """What came of the trials of one case with one number of clusters."""

    estimator: str
    truth: str
    clusters: int
    trials: int
    held: float
    """Share of the intervals that hold the truth."""
    above: float
    """Share of the intervals that lie above the truth."""
    width: float
    unmeasured: int


def cases() -> Iterator[Case]:
    yield from _means()
    yield from _scores()
    yield from _accuracies()
    yield from _agreements()
    yield from _crossings()
    yield from _segments()


def _means() -> Iterator[Case]:
    for p in (0.7, 0.98):
        yield Case(
            "share", p, f"{p}", lambda rng, k, p=p: estimate_proportion(rng.binomial(k, p), k)
        )
    for p in (0.5, 0.95):
        yield Case("clustered share", p, f"{p}", lambda rng, k, p=p: _clustered_share(rng, k, p))
    for a, b in ((2, 2), (0.5, 4), (0.1, 3)):
        name = f"beta({a}, {b})"
        yield Case(
            "bounded mean", a / (a + b), name, lambda rng, k, a=a, b=b: _iou(rng.beta(a, b, k))
        )
    yield Case("unbounded mean", 0.0, "normal", lambda rng, k: _mean(rng.normal(size=k)))
    for spread in (0, 1):
        name = f"20 per hour, scenes vary by {spread}"
        yield Case("event rate", 20.0, name, lambda rng, k, sd=spread: _rate(rng, k, sd))
    skewed = math.exp(1 / 2)
    yield Case("unbounded mean", skewed, "log-normal", lambda rng, k: _mean(rng.lognormal(size=k)))
    yield Case("bootstrap-t", skewed, "log-normal", lambda rng, k: _by_t(rng.lognormal(size=k)))
    yield Case("bootstrap-t", 0.1 / 3.1, "beta(0.1, 3)", lambda rng, k: _by_t(rng.beta(0.1, 3, k)))


def _scores() -> Iterator[Case]:
    for area in (0.7, 0.98):
        yield Case("auc", area, f"{area}", lambda rng, k, area=area: _auc(rng, k, area))
    for gap in (1.5, 3.5):
        caught = NormalDist().cdf(gap - NormalDist().inv_cdf(0.95))
        yield Case("tpr at 5 % fpr", caught, f"{caught:.2f}", partial(_caught, gap=gap))
    for rho in (0.3, 0.9):
        order = 0.5 + math.asin(rho) / math.pi
        ranks = 6 / math.pi * math.asin(rho / 2)
        figures = (("plcc", plcc, rho), ("srocc", srocc, ranks), ("pcr", pair_consistency, order))
        for name, figure, truth in figures:
            trial = partial(_follow, figure=figure, rho=rho)
            yield Case(name, truth, f"{truth:.2f}", trial)
    yield Case("calibration error", 0.0, "0", lambda rng, k: _error(rng, k, lambda told: told))
    guessed = lambda told: 0 * told + 0.5  # noqa: E731
    yield Case("calibration error", 0.25, "0.25", lambda rng, k: _error(rng, k, guessed))


def _accuracies() -> Iterator[Case]:
    for real, fake in ((0.7, 0.8), (0.95, 0.99)):
        told, truth = f"{real} and {fake}", (real + fake) / 2
        yield Case("balanced accuracy", truth, told, partial(_balanced, real=real, fake=fake))
        by_scene = partial(_balanced_by_scene, real=real, fake=fake)
        yield Case("clustered balanced accuracy", 100 * truth, told, by_scene)
        harmonic = 2 * fake / (1 + fake + 1 - real)
        yield Case("f1", harmonic, f"{harmonic:.2f}", partial(_f1, real=real, fake=fake))
    for ours, theirs in ((0.7, 0.6), (0.99, 0.95)):
        trial = partial(_paired, ours=ours, theirs=theirs)
        yield Case("paired difference", ours - theirs, f"{ours} less {theirs}", trial)


def _agreements() -> Iterator[Case]:
    for truth in (0.5, 0.95):
        yield Case("kappa", truth, f"{truth}", partial(_kappa, kappa=truth))
        yield Case("alpha", truth, f"{truth}", partial(_alpha, alpha=truth))


def _crossings() -> Iterator[Case]:
    for middle in (0.7, 3.5):
        yield _two_way(1.2, 0.0, middle)
        yield _two_way(1.2, 0.7, middle)
        yield _mean_over_creators(1.2, 0.7, middle)


def _segments() -> Iterator[Case]:
    for (metric, told), truth in locate_cases.TRUTHS.items():
        skill, figure = locate_cases.SKILLS[told], locate_cases.METRICS[metric]
        trial = partial(_located, skill=skill, figure=figure)
        yield Case(f"locate {metric}", truth, f"{truth:.0f} %", trial)


def _located(rng: Rng, k: int, skill: float, figure: Callable[..., Measured]) -> Measured:
    return figure(locate_cases.draw_clips(rng, k, skill))


def _iou(values: Array) -> Measured:
    return bootstrap_mean(values, seed=0, bounds=(0, 1))


def _mean(values: Array) -> Measured:
    return bootstrap_mean(values, seed=0)


def _by_t(values: Array) -> Measured:
    """The mean with an interval that unreel does not use, to compare with those that it does."""
    drawn = values[np.random.default_rng(0).integers(len(values), size=(2000, len(values)))]
    mean, errors = values.mean(), drawn.std(axis=1, ddof=1)
    ratios = (drawn.mean(axis=1) - mean)[errors > 0] / errors[errors > 0]
    low, high = mean - values.std(ddof=1) * np.quantile(ratios, (0.975, 0.025))
    return Estimate(value=mean, low=min(low, mean), high=max(high, mean), n=len(values))


def _beta(rng: Rng, share: float, size: int) -> Array:
    """Chances of clusters whose rows are alike."""
    spread = (1 - ALIKE) / ALIKE
    return rng.beta(share * spread, (1 - share) * spread, size)


def _clustered_share(rng: Rng, k: int, share: float) -> Measured:
    rows = rng.random((k, ROWS)) < _beta(rng, share, k)[:, np.newaxis]
    return bootstrap_mean(rows.ravel(), seed=0, clusters=np.arange(k).repeat(ROWS), bounds=(0, 1))


def _auc(rng: Rng, k: int, area: float) -> Measured:
    truth = np.arange(k) % 2
    gap = math.sqrt(2) * NormalDist().inv_cdf(area)
    return auc(truth, rng.normal(size=k) + gap * truth, seed=0)


def _caught(rng: Rng, k: int, gap: float) -> Measured:
    truth = np.arange(k) % 2
    return tpr_at_fpr(truth, rng.normal(size=k) + gap * truth, fpr=0.05, seed=0)


def _f1(rng: Rng, k: int, real: float, fake: float) -> Measured:
    truth = np.arange(k) % 2
    called = rng.random(k) < np.where(truth == 1, fake, 1 - real)
    return f1(truth, called, seed=0)


def _follow(rng: Rng, k: int, figure: Callable[..., Measured], rho: float) -> Measured:
    human, noise = rng.normal(size=(2, k))
    return figure(human, rho * human + math.sqrt(1 - rho**2) * noise, seed=0)


def _balanced(rng: Rng, k: int, real: float, fake: float) -> Measured:
    half = k // 2
    return balanced_accuracy(
        correct_real=int(rng.binomial(half, real)),
        n_real=half,
        correct_generated=int(rng.binomial(k - half, fake)),
        n_generated=k - half,
    )


def _balanced_by_scene(rng: Rng, k: int, real: float, fake: float) -> Measured:
    """Each scene with one real clip and `ROWS` generated ones, too few creators to be drawn."""
    right = rng.random((k, 1)) < real
    caught = rng.random((k, ROWS)) < _beta(rng, fake, k)[:, np.newaxis]
    none: list[None] = [None]
    parts = [
        WeightedMean.of(
            "real", 1 / 2, [v for line in right.tolist() for v in [float(line[0]), *none * ROWS]]
        ),
        WeightedMean.of(
            "fake", 1 / 2, [v for line in caught.tolist() for v in [*none, *map(float, line)]]
        ),
    ]
    return measure_weighted_sum_percent(
        parts, clips=[str(i) for i in range(k) for _ in range(ROWS + 1)], seed=0
    )


def _paired(rng: Rng, k: int, ours: float, theirs: float) -> Measured:
    """Two reviewers for whom every second clip is hard in the same way."""
    common, own = rng.random((2, k))
    other = np.where(np.arange(k) % 2 == 0, common, own)
    groups = JackknifeGroups()
    with jackknife_context(groups):
        first, second = (
            bootstrap_mean(right, seed=0, bounds=(0, 1))
            for right in (common < ours, other < theirs)
        )
    gap = estimate_paired_difference(first, second, groups=groups, reach=1)
    return gap if isinstance(gap, Unmeasured) else gap.estimate


def _rate(rng: Rng, k: int, spread: float) -> Measured:
    """Events in scenes of 1 to 5 minutes, whose rates have this standard deviation relative to their mean."""
    hours = rng.uniform(1, 5, k) / 60
    factor = rng.gamma(1 / spread**2, spread**2, k) if spread else np.ones(k)
    return estimate_event_rate(rng.poisson(20 * factor * hours), hours, n=k)


def _kappa(rng: Rng, k: int, kappa: float) -> Measured:
    """Raters who see the truth with the square root of `kappa` as chance, and else guess."""
    truth = rng.integers(3, size=k)
    first, second = (
        np.where(rng.random(k) < math.sqrt(kappa), truth, rng.integers(3, size=k)) for _ in range(2)
    )
    return cohen_kappa(first, second, seed=0)


def _alpha(rng: Rng, k: int, alpha: float) -> Measured:
    ratings = math.sqrt(alpha) * rng.normal(size=k) + math.sqrt(1 - alpha) * rng.normal(size=(3, k))
    return krippendorff_alpha(ratings, scale="interval", seed=0)


def _error(rng: Rng, k: int, came_true: Callable[[Array], Array]) -> Measured:
    told = rng.random(k)
    return measure_probability_calibration(rng.random(k) < came_true(told), told, seed=0).ece


def _logistic(spread: float, middle: float) -> float:
    """Mean of the logistic curve over a normal one."""
    places, weights = np.polynomial.hermite_e.hermegauss(60)
    return float(weights @ (1 / (1 + np.exp(-middle - spread * places))) / weights.sum())


def _crossed(rng: Rng, k: int, scene: float, creator: float, middle: float) -> Array:
    ease = middle + scene * rng.normal(size=(k, 1)) + creator * rng.normal(size=(1, CREATORS))
    return rng.random((k, CREATORS)) < 1 / (1 + np.exp(-ease))


def _two_way(scene: float, creator: float, middle: float) -> Case:
    truth = _logistic(math.hypot(scene, creator), middle)

    def trial(rng: Rng, k: int) -> Measured:
        caught = _crossed(rng, k, scene, creator, middle).ravel()
        clusters = [RowCluster(str(s), str(c)) for s in range(k) for c in range(CREATORS)]
        return bootstrap_mean(caught, seed=0, clusters=clusters, bounds=(0, 1))

    name = "scenes x 7 creators" + (", creators alike" if creator == 0 else "")
    return Case(name, truth, f"{truth:.2f}", trial)


def _mean_over_creators(scene: float, creator: float, middle: float) -> Case:
    """The mean over creators of the mean of two accuracies, as `reality` has it."""
    fake, real = _logistic(math.hypot(scene, creator), middle), 0.8

    def trial(rng: Rng, k: int) -> Measured:
        caught = _crossed(rng, k, scene, creator, middle).astype(float)
        right = (rng.random(k) < real).astype(float).tolist()
        clusters = [RowCluster(str(s)) for s in range(k)]
        clusters += [RowCluster(str(s), str(c)) for c in range(CREATORS) for s in range(k)]
        parts = []
        for c in range(CREATORS):
            made = (
                [None] * (k * (c + 1)) + caught[:, c].tolist() + [None] * (k * (CREATORS - c - 1))
            )
            known = right + [None] * (k * CREATORS)
            for name, values in (("real", known), ("made", made)):
                parts.append(WeightedMean.of(name, 1 / 2 / CREATORS, values, str(c)))
        return measure_weighted_sum_percent(parts, clips=clusters, seed=0)

    return Case("mean over 7 creators", 50 * (fake + real), f"{real} and {fake:.2f}", trial)


def measure(case: Case, k: int, *, trials: int, seed: int) -> Cell:
    name = f"{case.estimator} {case.told} {k}"
    rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
    found = [case.trial(rng, k) for _ in range(trials)]
    known = [each for each in found if isinstance(each, Estimate)]
    n = max(1, len(known))
    return Cell(
        estimator=case.estimator,
        truth=case.told,
        clusters=k,
        trials=trials,
        held=sum(each.low <= case.truth <= each.high for each in known) / n,
        above=sum(each.low > case.truth for each in known) / n,
        width=sum(each.high - each.low for each in known) / n,
        unmeasured=trials - len(known),
    )


def as_markdown(cells: Sequence[Cell]) -> str:
    """One line for each case; cells outside the goal from 20 clusters on are bold."""
    lines = [
        "| estimator | truth | " + " | ".join(f"{k}" for k in SIZES) + " |",
        "|---|---|" + "---|" * len(SIZES),
    ]
    rows: dict[tuple[str, str], dict[int, str]] = {}
    for cell in cells:
        rows.setdefault((cell.estimator, cell.truth), {})[cell.clusters] = _spelt(cell)
    for (estimator, truth), held in rows.items():
        lines.append(f"| {estimator} | {truth} | {' | '.join(held[k] for k in SIZES)} |")
    return "\n".join(lines)


def _spelt(cell: Cell) -> str:
    if cell.unmeasured > cell.trials / 2:
        return "-"
    text = f"{cell.held:.3f}"
    missed = cell.clusters >= SIZES[1] and not GOAL[0] <= round(cell.held, 3) <= GOAL[1]
    return f"**{text}**" if missed else text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="+", help="names of estimators")
    parser.add_argument("--json", action="store_true", help="all that was counted, as JSON")
    asked = parser.parse_args()
    chosen = [case for case in cases() if not asked.only or case.estimator in asked.only]
    cells = []
    for case in chosen:
        for k in SIZES:
            cells.append(measure(case, k, trials=asked.trials, seed=asked.seed))
            print(cells[-1], file=sys.stderr)
    if asked.json:
        print(json.dumps([asdict(cell) for cell in cells], indent=1))
    else:
        print(as_markdown(cells))


if __name__ == "__main__":
    main()
