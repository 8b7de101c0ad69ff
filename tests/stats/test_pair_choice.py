"""Comparisons are chosen by what their result would tell."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm, spearmanr

from unreel.core.errors import InvalidValueError
from unreel.stats.next_pair import (
    StrengthPosterior,
    choose_next_pairs,
    compute_pair_information_gain,
    estimate_strength_posterior,
)


def all_pairs(n: int) -> list[tuple[int, int]]:
    return [(i, j) for i in range(n) for j in range(i + 1, n)]


@pytest.mark.parametrize("difference", [0.0, 0.7, 3.0])
@pytest.mark.parametrize("spread", [0.1, 1.0, 6.0])
def test_information_is_close_to_its_integral(difference: float, spread: float) -> None:
    def bits(p: float) -> float:
        return 0.0 if p in (0.0, 1.0) else -(p * np.log2(p) + (1 - p) * np.log2(1 - p))

    def mean(of: object) -> float:
        scale = spread**0.5
        return float(
            quad(
                lambda x: of(1 / (1 + np.exp(-x))) * norm.pdf(x, difference, scale),  # type: ignore[operator]
                difference - 9 * scale,
                difference + 9 * scale,
            )[0]
        )

    exact = bits(mean(lambda p: p)) - mean(bits)
    belief = StrengthPosterior(np.array([difference, 0.0]), np.array([[spread, 0.0], [0.0, 0.0]]))
    told = compute_pair_information_gain(belief, np.array([0]), np.array([1]))[0]
    assert told == pytest.approx(exact, rel=0.1, abs=0.02)


def test_a_belief_is_the_top_of_its_posterior_and_mirrors_who_won() -> None:
    wins = np.array([[0.0, 3.0, 4.0], [1.0, 0.0, 2.0], [0.0, 2.0, 0.0]])
    belief = estimate_strength_posterior(wins, spread=2.0)
    assert belief.mean.sum() == pytest.approx(0, abs=1e-9)

    def height(strengths: np.ndarray) -> float:
        chance = 1 / (1 + np.exp(-(strengths[:, None] - strengths[None, :])))
        return float((wins * np.log(chance)).sum() - (strengths**2).sum() / 8)

    rng = np.random.default_rng(0)
    nearby = [belief.mean + rng.normal(0, 0.05, 3) for _ in range(50)]
    assert all(height(belief.mean) >= height(other) for other in nearby)
    assert estimate_strength_posterior(wins.T, spread=2.0).mean == pytest.approx(-belief.mean)


@pytest.mark.parametrize("spread", [0.4, 1.0, 3.0])
def test_the_spread_of_strengths_follows_the_results(spread: float) -> None:
    rng = np.random.default_rng(4)
    strengths = rng.normal(0, spread, 25)
    chance = 1 / (1 + np.exp(strengths[None, :] - strengths[:, None]))
    firsts = np.triu(rng.binomial(1, chance), 1)
    wins = (firsts + np.triu(1 - firsts, 1).T).astype(float)

    def error(assumed: float | None) -> float:
        away = estimate_strength_posterior(wins, spread=assumed).mean - (
            strengths - strengths.mean()
        )
        return float(np.sqrt((away**2).mean()))

    assert error(None) <= 1.2 * error(spread)
    assert error(None) < max(error(4 * spread), error(spread / 4))


def test_who_always_wins_still_has_a_finite_strength() -> None:
    wins = np.zeros((3, 3))
    wins[0, 1:] = 10_000
    belief = estimate_strength_posterior(wins)
    assert np.isfinite(belief.mean).all()
    assert belief.mean[0] > 3


def test_close_and_unknown_pairs_come_before_settled_ones() -> None:
    wins = np.zeros((4, 4))
    wins[0, 1] = wins[0, 2] = wins[0, 3] = 30  # 0 is stronger than all others, that is settled
    pairs = all_pairs(4)
    chosen = [
        pairs[at] for at in choose_next_pairs(estimate_strength_posterior(wins), pairs, n=3, seed=1)
    ]
    assert all(0 not in pair for pair in chosen)


def test_a_batch_spreads_over_competitors_and_follows_from_the_seed() -> None:
    belief = estimate_strength_posterior(np.zeros((10, 10)))
    pairs = all_pairs(10)
    chosen = choose_next_pairs(belief, pairs, n=5, seed=3)
    assert len({name for at in chosen for name in pairs[at]}) == 10
    assert chosen == choose_next_pairs(belief, pairs, n=5, seed=3)
    assert chosen != choose_next_pairs(belief, pairs, n=5, seed=4)
    assert sorted(choose_next_pairs(belief, pairs, n=90, seed=3)) == sorted(list(range(45)) * 2)
    assert choose_next_pairs(belief, [], n=5, seed=3) == []


def test_tables_that_are_no_results_are_refused() -> None:
    for wrong in (np.zeros((2, 3)), np.zeros((1, 1)), -np.ones((2, 2))):
        with pytest.raises(InvalidValueError):
            estimate_strength_posterior(wrong)


@pytest.mark.slow
def test_a_ranking_by_information_is_closer_to_the_truth_than_one_by_chance() -> None:
    def correlation(plan: str, seed: int) -> float:
        rng = np.random.default_rng(seed)
        strengths = rng.normal(0, 1.5, 20)
        pairs, wins = all_pairs(20), np.zeros((20, 20))
        for _ in range(8):
            chosen = (
                choose_next_pairs(estimate_strength_posterior(wins), pairs, n=10, seed=seed)
                if plan == "gain"
                else rng.choice(len(pairs), 10, replace=False).tolist()
            )
            for at in chosen:
                i, j = pairs[at]
                first = rng.random() < 1 / (1 + np.exp(strengths[j] - strengths[i]))
                wins[(i, j) if first else (j, i)] += 1
        return float(spearmanr(estimate_strength_posterior(wins).mean, strengths).statistic)

    by_gain, by_chance = ([correlation(plan, s) for s in range(60)] for plan in ("gain", "chance"))
    better = np.array(by_gain) - np.array(by_chance)
    assert better.mean() > 2 * better.std(ddof=1) / 60**0.5
