"""How many judgements a ranking takes: pairs by information gain against pairs at random.

    python benchmarks/pair_choice.py

Clips of known strength are ranked from judgements drawn by Bradley and Terry's model, in batches as a
campaign asks them. Prints the mean rank correlation with the truth after so many judgements, and how
many judgements each way takes to a correlation of 0.90 and 0.95. Then, for strengths of spread 0.5, 1 and 2, the
root mean square error of strengths at the end, with its 95 % interval over the runs: pairs at random and by gain,
with the spread that is assumed without data and with the one that is estimated.
"""

import argparse
import itertools
import json
from collections.abc import Iterator

import numpy as np
from scipy.stats import spearmanr

from unreel.stats.next_pair import choose_next_pairs, estimate_strength_posterior

LEVELS = (0.90, 0.95)
PLANS = ("random", "gain")
ASSUMED = 2.0
"""Spread of strengths where none is estimated."""
FIRST_SEED = 100
"""Of the errors: the prior of the spread was chosen on runs with smaller seeds."""
ERRORS_AFTER = 150
"""Judgements: five for each of 30 clips."""


def play(
    plan: str,
    *,
    clips: int,
    batch: int,
    most: int,
    seed: int,
    spread: float = 1.5,
    assumed: float | None = None,
) -> tuple[dict[int, float], float]:
    """Rank correlation after each batch, by judgements so far; and the error of strengths at the end.

    `spread` is the true one, `assumed` the one that is believed; without it, the belief estimates it.
    """
    rng = np.random.default_rng(seed)
    strengths = rng.normal(0, spread, clips)
    pairs = [(i, j) for i in range(clips) for j in range(i + 1, clips)]
    wins = np.zeros((clips, clips))
    found: dict[int, float] = {}
    belief = estimate_strength_posterior(wins, spread=assumed)
    for done in range(batch, most + 1, batch):
        if plan == "gain":
            chosen = choose_next_pairs(belief, pairs, n=batch, seed=seed + done)
        else:
            chosen = rng.choice(len(pairs), batch, replace=False).tolist()
        for place in chosen:
            i, j = pairs[place]
            first_wins = rng.random() < 1 / (1 + np.exp(strengths[j] - strengths[i]))
            wins[(i, j) if first_wins else (j, i)] += 1
        belief = estimate_strength_posterior(wins, spread=assumed)
        found[done] = float(spearmanr(belief.mean, strengths).statistic)
    error = belief.mean - (strengths - strengths.mean())
    return found, float(np.sqrt((error**2).mean()))


def compare_errors(
    *, clips: int, batch: int, most: int, runs: int
) -> Iterator[dict[str, float | str]]:
    """Errors of strengths at the end, for each true spread and way to choose."""
    for spread, plan, assumed in itertools.product((0.5, 1.0, 2.0), PLANS, (ASSUMED, None)):
        errors = [
            play(
                plan, clips=clips, batch=batch, most=most, seed=seed, spread=spread, assumed=assumed
            )[1]
            for seed in range(FIRST_SEED, FIRST_SEED + runs)
        ]
        half = 1.96 * float(np.std(errors, ddof=1)) / runs**0.5
        spelt = "estimated" if assumed is None else f"assumed {assumed:g}"
        mean = float(np.mean(errors))
        yield {"true spread": spread, "plan": plan, "spread": spelt, "rmse": mean, "half": half}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clips", type=int, default=30)
    parser.add_argument("--batch", type=int, default=15)
    parser.add_argument("--most", type=int, default=900)
    parser.add_argument("--runs", type=int, default=40)
    asked = parser.parse_args()
    told = {}
    for plan in PLANS:
        runs = [
            play(plan, clips=asked.clips, batch=asked.batch, most=asked.most, seed=seed)[0]
            for seed in range(asked.runs)
        ]
        mean = {n: float(np.mean([run[n] for run in runs])) for n in runs[0]}
        error = {
            n: float(np.std([run[n] for run in runs], ddof=1) / len(runs) ** 0.5) for n in mean
        }
        told[plan] = {
            "correlation": {n: [round(mean[n], 4), round(1.96 * error[n], 4)] for n in mean},
            "needed": {lv: next((n for n in mean if mean[n] >= lv), None) for lv in LEVELS},
        }
        print(
            plan, told[plan]["needed"], {n: told[plan]["correlation"][n] for n in list(mean)[::6]}
        )
    print(json.dumps(told["gain"]["needed"]))
    for row in compare_errors(
        clips=asked.clips, batch=asked.batch, most=ERRORS_AFTER, runs=asked.runs
    ):
        print(json.dumps(row))


if __name__ == "__main__":
    main()
