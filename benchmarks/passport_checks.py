"""Validity of `unreel calibrate`'s numbers on simulated archives: p-values, intervals, wrong archives.

    python benchmarks/passport_checks.py [ARCHIVES]

A reviewer's score of a real clip is drawn from N(0, 1), of a generated clip from N(2, 1); an archive has
300 clips. For p-values, each archive judges one new real clip.
"""

import sys

import numpy as np
from scipy.stats import kstest

from unreel.stats.proportion import clopper_pearson_interval

N_CLIPS, ALPHA = 300, 0.05


def p_value(archive: np.ndarray, score: float) -> float:
    return (1 + int((archive >= score).sum())) / (len(archive) + 1)


def share_of_alarms(random: np.random.Generator, n_archives: int, spoil, mean: float) -> float:
    """Share of new clips with `mean` that p <= ALPHA calls odd, with archives changed by `spoil`."""
    hits = 0
    for _ in range(n_archives):
        archive = spoil(random.normal(0, 1, N_CLIPS))
        hits += p_value(archive, random.normal(mean, 1)) <= ALPHA
    return hits / n_archives


def main() -> None:
    n_archives = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    random = np.random.default_rng(41)
    values = [p_value(random.normal(0, 1, N_CLIPS), random.normal(0, 1)) for _ in range(n_archives)]
    test = kstest(values, "uniform")
    print(
        f"{n_archives} archives, p of a held-out real clip: KS {test.statistic:.3f}, p {test.pvalue:.2f}"
    )
    for rate in (0.001, 0.01, 0.1):
        counts = random.binomial(N_CLIPS, rate, 20 * n_archives)
        bounds = [clopper_pearson_interval(int(k), N_CLIPS, level=0.95) for k in counts]
        covered = np.mean([low <= rate <= high for low, high in bounds])
        print(f"rate {rate}: the 95 % interval covers in {covered:.3f} of {len(counts)}")
    spoils = {
        "clean": lambda a: a,
        "1 % generated": lambda a: np.concatenate([a[3:], random.normal(2, 1, 3)]),
        "5 % generated": lambda a: np.concatenate([a[15:], random.normal(2, 1, 15)]),
        "each clip ten times": lambda a: np.repeat(a[:30], 10),
        "other source, 0.5 less odd": lambda a: a - 0.5,
    }
    for name, spoil in spoils.items():
        real = share_of_alarms(random, 20 * n_archives, spoil, 0)
        made = share_of_alarms(random, 20 * n_archives, spoil, 2)
        print(f"{name}: p <= {ALPHA} for {real:.3f} of real and {made:.3f} of generated clips")


if __name__ == "__main__":
    main()
