"""Whether the skill model finds abilities and realism that are known, where raw means do not.

    python benchmarks/skill_recovery.py
    python benchmarks/skill_recovery.py --runs 20 --json

Reviewers of known ability judge clips of creators of known realism; every scene gives one real clip and
one by each creator. Six plays: every cell; cells missing not at random (strong reviewers are
asked about convincing creators, weak ones about crude ones); scenes that differ, so that answers about one
are alike; fewer or more slips; and a small season. Prints the mean and the least rank correlation with
the truth, that of raw means, and how often 95 % intervals hold the truth. Then one of five reviewers answers
"generated" whatever it sees, but for a share of its answers: how often its ability is unmeasured, the
largest that it gets, and how often that of the four others is unmeasured.
"""

import argparse
import json
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.stats import spearmanr

from unreel.core.estimate import Estimate
from unreel.stats.skill_likelihood import (
    REAL,
    EqualProbabilityCounts,
    SkillAnswerColumns,
    SkillTermLayout,
)
from unreel.stats.skill_model import estimate_skill_intervals

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """What is drawn."""

    reviewers: int = 20
    creators: int = 20
    scenes: int = 100
    missing: bool = False
    """Whether strong reviewers meet convincing creators alone."""
    scene_spread: float = 0.0
    """How far clips differ, shared by all who judge them."""
    slips: float = 0.01
    """Chance of either answer however clear the clip is."""


WORLDS = {
    "every cell": World(),
    "cells missing not at random": World(missing=True),
    "scenes that differ": World(scene_spread=0.5),
    "no slips": World(slips=0.0),
    "slips of 3 in 100": World(slips=0.03),
    "6 x 6 over 30 scenes": World(reviewers=6, creators=6, scenes=30),
}


CONSTANT_SHARES = (0.0, 0.01, 0.03, 0.1)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Truth:
    """What the model should find."""

    bias: Floats
    ability: Floats
    realism: Floats
    met: npt.NDArray[np.bool_]


def draw_truth(world: World, rng: np.random.Generator) -> Truth:
    """Abilities from guessing to nearly sure, realism on both sides of 0, biases towards real."""
    ability = rng.permutation(np.linspace(-0.5, 5.0, world.reviewers))
    realism = rng.permutation(np.linspace(-2.5, 2.5, world.creators))
    bias = rng.normal(-1.0, 0.7, world.reviewers)
    met = np.ones((world.reviewers, world.creators), dtype=np.bool_)
    if world.missing:
        strength = ability.argsort().argsort() / max(1, world.reviewers - 1)
        convincing = realism.argsort().argsort() / max(1, world.creators - 1)
        met = np.abs(strength[:, None] - convincing[None, :]) < 0.3
    return Truth(bias=bias, ability=ability, realism=realism, met=met)


def draw_answers(world: World, truth: Truth, rng: np.random.Generator) -> SkillAnswerColumns:
    """One real clip and one by each creator for every scene, judged by whoever meets the creator."""
    columns = []
    for creator in range(REAL, world.creators):
        odds = truth.bias[:, None] + np.zeros((1, world.scenes))
        if creator != REAL:
            odds = odds + (truth.ability - truth.realism[creator])[:, None]
        odds = odds + world.scene_spread * rng.normal(size=(1, world.scenes))
        chance = world.slips + (1 - 2 * world.slips) / (1 + np.exp(-odds))
        said = rng.random(odds.shape) < chance
        who = (
            np.arange(world.reviewers) if creator == REAL else np.flatnonzero(truth.met[:, creator])
        )
        reviewer, scene = np.meshgrid(who, np.arange(world.scenes), indexing="ij")
        columns.append(
            (reviewer.ravel(), np.full(reviewer.size, creator), scene.ravel(), said[who].ravel())
        )
    reviewer, creator, scene, said = (
        np.concatenate(column) for column in zip(*columns, strict=True)
    )
    return SkillAnswerColumns(
        reviewer=reviewer,
        creator=creator,
        scene=scene,
        generated=said,
        nuisance=np.zeros((len(said), 0)),
    )


def raw_means(answers: SkillAnswerColumns, layout: SkillTermLayout) -> tuple[Floats, Floats]:
    """Accuracy of each reviewer as the paper takes it, over the creators it met, and each creator's fakeness."""
    rows = EqualProbabilityCounts.of(answers, layout)
    accuracy, caught = (
        np.zeros(layout.n_reviewers),
        np.full((layout.n_reviewers, layout.n_creators), np.nan),
    )
    for reviewer in range(layout.n_reviewers):
        mine = rows.reviewer == reviewer
        real, made = mine & (rows.made == 0), mine & (rows.made == 1)
        right = (rows.n - rows.n_generated)[real].sum()
        pooled = (right + rows.n_generated[made]) / (rows.n[real].sum() + rows.n[made])
        accuracy[reviewer] = pooled.mean()
        caught[reviewer, rows.creator[made]] = rows.n_generated[made] / rows.n[made]
    return accuracy, np.nanmean(caught, axis=0)


def target(world: World, truth: Truth) -> Truth:
    """What unlimited scenes would give: where scenes differ, mean chances are flatter than those of one clip."""
    if not world.scene_spread:
        centred = truth.realism.mean()
        return Truth(
            bias=truth.bias,
            ability=truth.ability - centred,
            realism=truth.realism - centred,
            met=truth.met,
        )
    rng = np.random.default_rng(2**31)
    scenes = 20_000
    many = World(
        reviewers=world.reviewers,
        creators=world.creators,
        scenes=scenes,
        scene_spread=world.scene_spread,
    )
    found = estimate_skill_intervals(
        draw_answers(many, truth, rng), SkillTermLayout(world.reviewers, world.creators)
    )
    values = [
        np.array([one.value for one in part if isinstance(one, Estimate)])
        for part in (found.bias, found.ability, found.realism)
    ]
    return Truth(bias=values[0], ability=values[1], realism=values[2], met=truth.met)


def try_world(world: World, *, runs: int, redraw: bool = True) -> dict[str, float]:
    """Correlations and coverage over `runs` plays."""
    shape = SkillTermLayout(world.reviewers, world.creators)
    told: dict[str, list[float]] = {}
    held: dict[str, list[bool]] = {"ability": [], "realism": [], "bias": []}
    aim: Truth | None = None
    for run in range(runs):
        rng = np.random.default_rng(run)
        truth = draw_truth(world, np.random.default_rng(run if redraw else 0))
        if aim is None or redraw:
            aim = target(world, truth)
        answers = draw_answers(world, truth, rng)
        skills = estimate_skill_intervals(answers, shape)
        accuracy, fakeness = raw_means(answers, shape)
        for name, raw in (("ability", accuracy), ("realism", -fakeness)):
            found = [one.value for one in getattr(skills, name) if isinstance(one, Estimate)]
            told.setdefault(name, []).append(
                float(spearmanr(found, getattr(truth, name)).statistic)
            )
            told.setdefault(f"raw {name}", []).append(
                float(spearmanr(raw, getattr(truth, name)).statistic)
            )
        for name, hits in held.items():
            for one, true in zip(getattr(skills, name), getattr(aim, name), strict=True):
                hits.append(isinstance(one, Estimate) and one.low <= true <= one.high)
    found = {}
    for name, values in told.items():
        found[f"{name}: rank correlation"] = float(np.mean(values))
        found[f"{name}: least"] = float(np.min(values))
    return found | {f"{name}: held": float(np.mean(hits)) for name, hits in held.items()}


def try_constant_reviewer(share: float, *, runs: int, scenes: int = 100) -> dict[str, float]:
    """The first of five reviewers says "real" with the chance `share`, and otherwise "generated"."""
    world = World(reviewers=5, creators=5, scenes=scenes)
    abilities, n_honest = [], 0
    for run in range(runs):
        rng = np.random.default_rng([run, scenes])
        answers = draw_answers(world, draw_truth(world, rng), rng)
        constant = rng.random(len(answers.generated)) >= share
        said = np.where(answers.reviewer == 0, constant, answers.generated)
        found = estimate_skill_intervals(
            replace(answers, generated=said), SkillTermLayout(5, 5)
        ).ability
        abilities.append(found[0].value if isinstance(found[0], Estimate) else np.nan)
        n_honest += sum(isinstance(one, Estimate) for one in found[1:])
    measured = np.abs(np.array(abilities))[~np.isnan(abilities)]
    return {
        "constant: unmeasured": 1 - len(measured) / runs,
        "constant: largest": float(measured.max(initial=0.0)),
        "others: unmeasured": 1 - n_honest / (4 * runs),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    found = {
        name: try_world(world, runs=asked.runs, redraw=not world.scene_spread)
        for name, world in WORLDS.items()
    }
    for share in CONSTANT_SHARES:
        name = f"one of five says generated in {1 - share:.0%}"
        found[name] = try_constant_reviewer(share, runs=asked.runs)
    if asked.json:
        print(json.dumps(found, indent=2))
        return
    for name, figures in found.items():
        print(name)
        for figure, value in figures.items():
            print(f"  {figure:28} {value:.3f}")


if __name__ == "__main__":
    main()
