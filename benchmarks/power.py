"""How often a true difference between two reviewers is found, where it is as large as unreel says it must be.

    python benchmarks/power.py
    python benchmarks/power.py --trials 300 --json
    python benchmarks/power.py --corrected --trials 200
    python benchmarks/power.py --adjusted --trials 2000

Two reviewers judge the same clips; of a share of them one alone is right. `planned` is what
`unreel benchmarks check` prints for so many clips, `compared` what `unreel compare` prints where two equal
reviewers were compared (the median). Prints both in percentage points, and how often a true difference of
that size is found at p < 0.05, with the 95 % interval of that share.

`--corrected` asks how often `unreel compare`, with Holm's correction over all its differences of `reality`,
finds the difference that `unreel benchmarks check` states.

`--adjusted` asks instead whether the difference of each clip, regressed on the mean of eight other reviewers,
gives shorter intervals that still hold the truth for new clips.
"""

import argparse
import itertools
import json
import math

import numpy as np
import numpy.typing as npt

from unreel.core.clip import ClipId, Generated, Real
from unreel.core.estimate import Estimate
from unreel.core.question import Condition
from unreel.evaluation.comparison import ComparedReviewer, compare_reviewers
from unreel.protocols.protocol import AnswerContext, ScoredQuestion, get_protocol
from unreel.stats.bootstrap import bootstrap_mean
from unreel.stats.jackknife_values import JackknifeGroups, jackknife_context
from unreel.stats.paired_differences import DifferenceTestResult, estimate_paired_difference
from unreel.stats.power import DISCORDANT, N_DIFFERENCES, compute_detectable_accuracy_gap
from unreel.stats.proportion import estimate_proportion

SIZES = (60, 150, 600)
SHARES = (0.05, 0.15, DISCORDANT)
"""Of clips of which one reviewer alone is right."""
_HARD = 0.2
"""Share of clips that neither gets right."""


def compare(
    rng: np.random.Generator, n: int, difference: float, discordant: float
) -> DifferenceTestResult:
    """Two reviewers with this true difference; one that is larger than `discordant` makes more clips differ."""
    differing = max(discordant, difference)
    ends = np.cumsum([(differing + difference) / 2, (differing - difference) / 2, _HARD])
    kind = np.searchsorted(ends, rng.random(n))
    groups = JackknifeGroups()
    with jackknife_context(groups):
        ours, theirs = (
            bootstrap_mean(right, seed=0, bounds=(0, 1))
            for right in ((kind == 0) | (kind == 3), (kind == 1) | (kind == 3))
        )
    gap = estimate_paired_difference(ours, theirs, groups=groups, reach=1)
    assert isinstance(gap, DifferenceTestResult)
    return gap


def measure_power(
    n: int, discordant: float, stated: float, *, trials: int, seed: int
) -> dict[str, float]:
    """How often a true difference as large as stated is found."""
    rng = np.random.default_rng([seed, n, round(1000 * discordant), round(1e6 * stated)])
    found = sum(compare(rng, n, stated, discordant).p < 0.05 for _ in range(trials))
    power = estimate_proportion(found, trials)
    assert isinstance(power, Estimate)
    return {"points": 100 * stated, "power": power.value, "low": power.low, "high": power.high}


def median_stated(n: int, discordant: float, *, trials: int, seed: int) -> float:
    """What two equal reviewers are told, in the middle."""
    rng = np.random.default_rng([seed, n, round(1000 * discordant)])
    return float(
        np.median([compare(rng, n, 0.0, discordant).detectable(0.05) for _ in range(trials)])
    )


def measure(*, trials: int, seed: int, sizes: tuple[int, ...] = SIZES) -> list[dict[str, object]]:
    """One row for each number of clips and each share of clips that differ."""
    rows: list[dict[str, object]] = []
    for n in sizes:
        for share in SHARES:
            told = {
                "planned": compute_detectable_accuracy_gap(n, discordant=share),
                "compared": median_stated(n, share, trials=max(20, trials // 10), seed=seed),
            }
            for name, stated in told.items():
                power = measure_power(n, share, stated, trials=trials, seed=seed)
                rows.append({"clips": n, "one alone right": share, "stated": name, **power})
    return rows


def find_corrected(
    *, trials: int, seed: int, sizes: tuple[int, ...] = SIZES
) -> list[dict[str, object]]:
    """How often all of `unreel compare` finds the stated difference of accuracy at a corrected p < 0.05."""
    protocol = get_protocol("reality")
    real, generated = (
        protocol.parse(f"<answer>{answer}</answer>", AnswerContext()) for answer in "10"
    )
    origins, outcomes = (Real(), Generated("Veo")), ((generated, real), (real, generated))
    rng = np.random.default_rng(seed)
    rows: list[dict[str, object]] = []
    for n in sizes:
        stated = compute_detectable_accuracy_gap(n, alpha=0.05 / N_DIFFERENCES)
        differing = max(DISCORDANT, stated)
        ends = np.cumsum([(differing + stated) / 2, (differing - stated) / 2, _HARD])
        found = 0
        for _ in range(trials):
            kind = np.searchsorted(ends, rng.random(n))
            reviewers = [
                ComparedReviewer(
                    reviewer=name,
                    condition=Condition(),
                    instrument=protocol,
                    names=[str(clip) for clip in range(n)],
                    rows=[
                        ScoredQuestion(
                            subject=ClipId(str(clip)),
                            truth=origins[clip % 2],
                            outcome=outcomes[clip % 2][is_right],
                            creator=("", "Veo")[clip % 2],
                        )
                        for clip, is_right in enumerate(((kind == alone) | (kind == 3)).tolist())
                    ],
                )
                for alone, name in enumerate(("one", "other"))
            ]
            compared = compare_reviewers(reviewers)
            assert compared.n_tests == N_DIFFERENCES
            (comparison,) = compared
            p = {d.metric: d.p_corrected for d in comparison.differences}["accuracy"]
            found += p is not None and p < 0.05
        power = estimate_proportion(found, trials)
        assert isinstance(power, Estimate)
        rows.append(
            {
                "clips": n,
                "one alone right": DISCORDANT,
                "stated": "corrected",
                "points": 100 * stated,
            }
            | {"power": power.value, "low": power.low, "high": power.high}
        )
    return rows


def adjust(*, trials: int, seed: int) -> list[dict[str, object]]:
    """Intervals of a difference with and without what other reviewers tell of each clip's difficulty.

    The first reviewer is hurt by difficulty as much as the second, or more than twice as much.
    """
    from scipy.special import stdtrit

    rng = np.random.default_rng(seed)
    rows: list[dict[str, object]] = []
    grid = np.linspace(-6, 6, 4001)
    weight = np.exp(-(grid**2) / 2) / np.exp(-(grid**2) / 2).sum()
    for n, ease, steep in itertools.product((60, 200), (1.0, 1.6), (1.0, 2.5)):
        truth = weight @ (_right(ease, steep, grid) - _right(1.0, 1.0, grid))
        hits, widths = np.zeros((2, trials)), np.zeros((2, trials))
        for trial in range(trials):
            hard = rng.normal(size=n)
            right = [rng.random(n) < _right(1.0, 1.0, hard) for _ in range(9)]
            gap = (rng.random(n) < _right(ease, steep, hard)).astype(float) - right[0]
            others = np.mean(right[1:], axis=0)
            away = others - others.mean()
            rest = gap - gap.mean() - away * (away @ gap) / (away @ away)
            for place, (left, free) in enumerate(((gap - gap.mean(), n - 1), (rest, n - 2))):
                half = -stdtrit(free, 0.025) * math.sqrt(left @ left / free / n)
                hits[place, trial] = abs(gap.mean() - truth) <= half
                widths[place, trial] = 200 * half
        for name, held, width in zip(("plain", "adjusted"), hits, widths, strict=True):
            told = {"held": held.mean(), "width": width.mean()}
            rows.append(
                {"clips": n, "points": 100 * truth, "steep": steep, "interval": name, **told}
            )
    return rows


def _right(ease: float, steep: float, hard: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return np.asarray(1 / (1 + np.exp(steep * hard - ease)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--adjusted", action="store_true", help="try intervals by difficulty")
    parser.add_argument(
        "--corrected", action="store_true", help="all differences of unreel compare"
    )
    asked = parser.parse_args()
    if asked.adjusted:
        for row in adjust(trials=asked.trials, seed=asked.seed):
            print(json.dumps(row))
        return
    rows = (find_corrected if asked.corrected else measure)(trials=asked.trials, seed=asked.seed)
    if asked.json:
        print(json.dumps(rows, indent=1))
        return
    print("| clips | one alone right | stated | points | power | 95 % interval |")
    print("|---|---|---|---|---|---|")
    for row in rows:
        power = f"{row['power']:.2f} | {row['low']:.2f} to {row['high']:.2f}"
        print(
            f"| {row['clips']} | {row['one alone right']:.0%} | {row['stated']} | {row['points']:.1f} | {power} |"
        )


if __name__ == "__main__":
    main()
