"""How often the intervals and claims of a season's boards are true, where the truth is known.

    python benchmarks/board_coverage.py
    python benchmarks/board_coverage.py --guessing --runs 60

Five reviewers judge four creators over 40 scenes; scenes and single clips differ, alike for all who look. Prints
how often 95 % intervals of accuracy and fakeness held what unlimited scenes would give, how many pairs were
claimed to stand surely one above the other, and in how many plays such a claim was wrong. `--guessing` counts the
plays of five guessers in which somebody leads instead.
"""

import argparse

import numpy as np
import numpy.typing as npt

from unreel.arena.answers.answer_table import NOBODY, SeasonAnswerTable, SeasonClips
from unreel.arena.boards.leaderboard_metrics import SeasonLeaderboard
from unreel.arena.boards.ranking import rank_season_entrants
from unreel.core.estimate import Estimate
from unreel.stats.proportion import estimate_proportion

REVIEWERS, CREATORS, SCENES = 5, 4, 40
BIAS = np.random.default_rng(1).normal(-1.2, 0.6, REVIEWERS)
ABILITY, REALISM = np.linspace(0, 4, REVIEWERS), np.linspace(-1.5, 1.5, CREATORS)
Floats = npt.NDArray[np.float64]


def chances(scenes: int, rng: np.random.Generator) -> Floats:
    """Chances to say generated: by reviewer, source (real first) and scene."""
    odds = np.repeat(BIAS[:, None], CREATORS + 1, axis=1)
    odds[:, 1:] += ABILITY[:, None] - REALISM[None, :]
    alike = rng.normal(size=(1, 1, scenes)) + rng.normal(size=(1, CREATORS + 1, scenes))
    return 1 / (1 + np.exp(-(odds[:, :, None] + 0.6 * alike)))


def make_play(said: npt.NDArray[np.bool_]) -> SeasonAnswerTable:
    """The answers as columns."""
    n = (CREATORS + 1) * SCENES
    lineup = SeasonClips(
        names=tuple(map(str, range(n))),
        creators=tuple(f"creator-{number}" for number in range(CREATORS)),
        scenes=tuple(map(str, range(SCENES))),
        creator=np.repeat(np.arange(NOBODY, CREATORS, dtype=np.int32), SCENES),
        scene=np.tile(np.arange(SCENES, dtype=np.int32), CREATORS + 1),
        control=np.full(n, NOBODY, dtype=np.int32),
        nuisance=np.zeros((n, 0)),
    )
    return SeasonAnswerTable(
        clips=lineup,
        condition="benchmark",
        reviewers=tuple(f"reviewer-{number}" for number in range(REVIEWERS)),
        reviewer=np.repeat(np.arange(REVIEWERS, dtype=np.int32), n),
        clip=np.tile(np.arange(n, dtype=np.int32), REVIEWERS),
        answer_codes=said.ravel().astype(np.int8),
    )


def count(
    leaderboards: SeasonLeaderboard, truth: dict[str, float]
) -> tuple[list[bool], list[bool], list[bool]]:
    """Whether intervals of accuracy and of fakeness hold the truth, and whether each claim is true."""
    held: dict[str, list[bool]] = {"accuracy": [], "fakeness": []}
    claims = []
    for board, name, sign in (
        (leaderboards.reviewers, "accuracy", 1),
        (leaderboards.creators, "fakeness", -1),
    ):
        for one in board:
            figure = one.figures[name]
            assert isinstance(figure, Estimate)
            held[name].append(figure.low <= truth[one.name] <= figure.high)
            claims += [sign * (truth[one.name] - truth[other]) > 0 for other in one.surely_above]
    return held["accuracy"], held["fakeness"], claims


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=150)
    parser.add_argument("--resamples", type=int, default=400)
    parser.add_argument("--guessing", action="store_true")
    asked = parser.parse_args()
    if asked.guessing:
        n_led = 0
        for run in range(asked.runs):
            play = make_play(
                np.random.default_rng(run).random((REVIEWERS, CREATORS + 1, SCENES)) < 0.5
            )
            board = rank_season_entrants(play, seed=run, resamples=asked.resamples).reviewers
            n_led += any(row.first_class for row in board)
        print(
            f"plays with a leader: {n_led} of {asked.runs}, {estimate_proportion(n_led, asked.runs)}"
        )
        return
    mean = chances(200_000, np.random.default_rng(9)).mean(axis=2)
    accuracy = 50 * (1 - mean[:, [0]] + mean[:, 1:]).mean(axis=1)
    truth = {f"reviewer-{place}": float(value) for place, value in enumerate(accuracy)}
    fakeness = 100 * mean[:, 1:].mean(axis=0)
    truth |= {f"creator-{place}": float(value) for place, value in enumerate(fakeness)}
    found = []
    for run in range(asked.runs):
        rng = np.random.default_rng(run)
        chance = chances(SCENES, rng)
        play = make_play(rng.random(chance.shape) < chance)
        found.append(count(rank_season_entrants(play, seed=run, resamples=asked.resamples), truth))
    for name, place in (("accuracy", 0), ("fakeness", 1)):
        print(f"{name} held: {np.mean([hit for each in found for hit in each[place]]):.3f}")
    claims = [each[2] for each in found]
    wrong = sum(not all(each) for each in claims)
    print(f"sure claims: {sum(map(len, claims))}; plays of {asked.runs} with a wrong one: {wrong}")


if __name__ == "__main__":
    main()
