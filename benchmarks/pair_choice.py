"""How many judgements a ranking takes: pairs by information gain against pairs at random.

    python benchmarks/pair_choice.py

Clips of known strength are ranked from judgements drawn by Bradley and Terry's model, in batches as a
campaign asks them. Prints the mean rank correlation with the truth after so many judgements, and how
many judgements each way takes to a correlation of 0.90 and 0.95.
"""

import argparse
import json

import numpy as np
from scipy.stats import spearmanr

from unreel.stats.pair_choice import believe, choose_pairs

LEVELS = (0.90, 0.95)


def play(plan: str, *, clips: int, batch: int, most: int, seed: int) -> dict[int, float]:
    """Rank correlation after each batch, by judgements so far."""
    rng = np.random.default_rng(seed)
    strengths = rng.normal(0, 1.5, clips)
    pairs = [(i, j) for i in range(clips) for j in range(i + 1, clips)]
    wins = np.zeros((clips, clips))
    found: dict[int, float] = {}
    belief = believe(wins)
    for done in range(batch, most + 1, batch):
        if plan == "gain":
            chosen = choose_pairs(belief, pairs, n=batch, seed=seed + done)
        else:
            chosen = rng.choice(len(pairs), batch, replace=False).tolist()
        for place in chosen:
            i, j = pairs[place]
            first_wins = rng.random() < 1 / (1 + np.exp(strengths[j] - strengths[i]))
            wins[(i, j) if first_wins else (j, i)] += 1
        belief = believe(wins)
        found[done] = float(spearmanr(belief.mean, strengths).statistic)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clips", type=int, default=30)
    parser.add_argument("--batch", type=int, default=15)
    parser.add_argument("--most", type=int, default=900)
    parser.add_argument("--runs", type=int, default=40)
    asked = parser.parse_args()
    told = {}
    for plan in ("random", "gain"):
        runs = [
            play(plan, clips=asked.clips, batch=asked.batch, most=asked.most, seed=seed)
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


if __name__ == "__main__":
    main()
