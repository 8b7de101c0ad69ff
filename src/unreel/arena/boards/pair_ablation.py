"""Pair compared with single: whether a reviewer detects generated clips better next to the real one."""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from unreel.arena.answers.play import (
    NOBODY,
    SAID_GENERATED,
    SAID_REAL,
    AnswerTable,
    lay_out,
    select_real,
)
from unreel.arena.boards.ablations import EVERYBODY, AblationEffect, correct_effects
from unreel.arena.boards.contrast import jackknife_difference, sum_scenes
from unreel.arena.boards.preference import TOOK_FIRST, TOOK_SECOND, PairPlay
from unreel.protocols.formulas import PERCENT
from unreel.stats.sample import Array

KNOB: Final = "pair against single"
RIGHT: Final = "right"
_Cell = tuple[str, str]
"""A creator and a scene."""
_Scores = Mapping[_Cell, float]


def compare_pairs(pairs: PairPlay, single: AnswerTable) -> tuple[AblationEffect, ...]:
    """Compare each reviewer's accuracy on pairs with its accuracy on the same two clips shown singly.

    The difference is pairs minus single clips. Only pairs of a real and a generated clip of one
    scene count, and only if all three answers are readable. Guessing is right half of the time in
    both cases.
    """
    names = [name for name in pairs.reviewers if name in single.reviewers]
    found: list[AblationEffect] = []
    scores = {
        name: (_compute_pair_scores(pairs, name), _compute_single_scores(single, name))
        for name in names
    }
    ranked = [name for name in names if name not in single.floors]
    for shown, chosen in ((EVERYBODY, ranked), *((name, [name]) for name in names)):
        found.append(
            _measure_presentation_effect(pairs, single, shown, [scores[name] for name in chosen])
        )
    return correct_effects(found)


def _compute_pair_scores(play: PairPlay, name: str) -> _Scores:
    """Return the score of each creator and scene: 1 if the pair was judged right, else 0.

    The score is the mean if a pair was shown in both orders.
    """
    own = play.reviewer == play.reviewers.index(name)
    told: dict[_Cell, list[bool]] = {}
    for at in np.flatnonzero(own & np.isin(play.took, (TOOK_FIRST, TOOK_SECOND))):
        first, second = int(play.first[at]), int(play.second[at])
        if NOBODY not in {first, second}:
            continue
        maker = play.creators[second if first == NOBODY else first]
        right = play.took[at] == (TOOK_FIRST if first == NOBODY else TOOK_SECOND)
        told.setdefault((maker, play.scenes[play.scene[at]]), []).append(bool(right))
    return {cell: float(np.mean(each)) for cell, each in told.items()}


def _compute_single_scores(play: AnswerTable, name: str) -> _Scores:
    """Return the mean score of each creator's clip of a scene and the real clip of that scene."""
    lineup, line = play.lineup, lay_out(play)[play.reviewers.index(name)]
    filmed: dict[int, float] = {}
    for at in np.flatnonzero(select_real(lineup) & (line >= 0))[::-1]:
        filmed[int(lineup.scene[at])] = float(line[at] == SAID_REAL)
    scores = {}
    for at in np.flatnonzero((lineup.creator != NOBODY) & (line >= 0)):
        scene = int(lineup.scene[at])
        if scene in filmed:
            caught = float(line[at] == SAID_GENERATED)
            cell = lineup.creators[lineup.creator[at]], lineup.scenes[scene]
            scores[cell] = (caught + filmed[scene]) / 2
    return scores


def _measure_presentation_effect(
    pairs: PairPlay, single: AnswerTable, name: str, scores: Sequence[tuple[_Scores, _Scores]]
) -> AblationEffect:
    rows = [
        (cell[1], ours[cell], theirs[cell])
        for ours, theirs in scores
        for cell in ours
        if cell in theirs
    ]
    left_out = sum(len(ours.keys() ^ theirs.keys()) for ours, theirs in scores)
    _, scene = np.unique([row[0] for row in rows], return_inverse=True)
    columns = [np.array([row[at] for row in rows], dtype=np.float64) for at in (1, 2)]
    sums = sum_scenes(scene.astype(np.int64), *columns, np.ones(len(rows)))
    tested = jackknife_difference(_compute_gap, sums, n=len(rows), reach=PERCENT)
    return AblationEffect(
        knob=KNOB,
        first=f"pairs, {pairs.condition}",
        second=single.condition,
        reviewer=name,
        figure=RIGHT,
        difference=tested.value,
        p=tested.p,
        n_pairs=len(rows),
        n_left_out=left_out,
    )


def _compute_gap(sums: Array) -> Array:
    gap: Array = PERCENT * (sums[:, 0] - sums[:, 1]) / sums[:, 2]
    return gap
