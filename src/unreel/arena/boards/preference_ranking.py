"""Ranking by answers about pairs: creators, reviewers, and pairs compared with single clips."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from unreel.arena.answers.answer_table import (
    ANSWERED_GENERATED,
    ANSWERED_REAL,
    NOBODY,
    SILENT,
    Indices,
    SeasonAnswerTable,
    build_answer_grid,
    get_real_clip_mask,
)
from unreel.arena.boards.ablations import EVERYBODY, AblationEffect, correct_effect_p_values
from unreel.arena.boards.leaderboard_metrics import (
    REAL_CLIPS,
    LeaderboardRow,
    estimate_by_scene_jackknife,
    find_leading_entrants,
    is_above_chance,
    rank_means,
    sum_by_scene,
)
from unreel.core.errors import InvalidValueError
from unreel.core.estimate import Estimate, Measured
from unreel.protocols.paper_formulas import PERCENT
from unreel.stats.bootstrap import bootstrap_mean
from unreel.stats.ranking import BattleOutcome, ClipBattle, bradley_terry
from unreel.stats.resampling import RESAMPLES
from unreel.stats.row_sample import Array

TOOK_FIRST = 0
TOOK_SECOND = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PairAnswerTable:
    """Table of all answers about pairs of clips under one condition. Columns are as long as `took`."""

    condition: str
    reviewers: tuple[str, ...]
    creators: tuple[str, ...]
    scenes: tuple[str, ...]
    reviewer: Indices
    first: Indices
    """Creator of the first clip: an index in `creators`, or `NOBODY` (-1) for the real one."""
    second: Indices
    scene: Indices
    took: npt.NDArray[np.int8]
    """Clip that was taken for real: `TOOK_FIRST`, `TOOK_SECOND` or `SILENT`."""

    def __post_init__(self) -> None:
        columns = (self.reviewer, self.first, self.second, self.scene)
        if any(len(column) != len(self.took) for column in columns):
            raise InvalidValueError("columns of pairs must be equally long. Build them together")
        if (self.first == self.second).any():
            raise InvalidValueError(
                "a pair shows two clips of one creator. Pair clips of different makers"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class PreferenceRates:
    """Both leaderboards of a season with questions about pairs, under one condition."""

    condition: str
    creators: tuple[LeaderboardRow, ...]
    """Rows of creators by strength; the real clips have a row without a rank, for comparison."""
    reviewers: tuple[LeaderboardRow, ...]
    """Rows of reviewers by the fraction of pairs with a real clip in which they find it."""


def rank_entrants_by_pair_answers(answers: PairAnswerTable, *, seed: int) -> PreferenceRates:
    """Rank creators and reviewers by the answers about pairs of clips.

    Creators are ranked by Bradley-Terry strength, which is also estimated for the real clips.
    Reviewers are ranked by the fraction of pairs with a real clip in which they find it. Confidence
    intervals resample scenes.
    """
    read = answers.took != SILENT
    names = (*answers.creators, REAL_CLIPS)  # NOBODY is the last index
    outcomes = {TOOK_FIRST: BattleOutcome.FIRST, TOOK_SECOND: BattleOutcome.SECOND}
    columns = (answers.first, answers.second, answers.took, answers.scene)
    battles = [
        ClipBattle(names[first], names[second], outcomes[took], answers.scenes[scene])
        for first, second, took, scene in zip(*(c[read].tolist() for c in columns), strict=True)
    ]
    strengths = bradley_terry(battles, seed=seed)

    def select_wins(creator: int) -> _Rows:
        """Return the pairs with a clip of the creator, and whether its clip was taken for real."""
        is_first = answers.first == creator
        won = np.where(is_first, answers.took == TOOK_FIRST, answers.took == TOOK_SECOND)
        return read & (is_first | (answers.second == creator)), won

    has_real, found_real = select_wins(NOBODY)
    wins = {name: select_wins(i) for i, name in enumerate(answers.creators)}
    hits = {
        name: (has_real & (answers.reviewer == i), found_real)
        for i, name in enumerate(answers.reviewers)
    }
    creators = [
        LeaderboardRow(
            name=name,
            kind="control" if name == REAL_CLIPS else "creator",
            figures={
                "strength": strengths[name],
                "taken-for-real": _estimate_percentage(answers, *rows, seed=seed),
            },
        )
        for name, rows in {**wins, REAL_CLIPS: (has_real, found_real)}.items()
        if name in strengths
    ]
    reviewers = [
        LeaderboardRow(
            name=name,
            kind="reviewer",
            figures={
                "pair-accuracy": _estimate_percentage(answers, *hits[name], seed=seed),
                "took-first": _estimate_percentage(
                    answers, read & (answers.reviewer == i), answers.took == TOOK_FIRST, seed=seed
                ),
            },
        )
        for i, name in enumerate(answers.reviewers)
    ]
    return PreferenceRates(
        condition=answers.condition,
        creators=_rank_leaderboard_rows(
            creators, "strength", _resample_win_rates(answers, wins, seed=seed)
        ),
        reviewers=_rank_leaderboard_rows(
            reviewers, "pair-accuracy", _resample_win_rates(answers, hits, seed=seed)
        ),
    )


_Rows = tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]
"""Masks of the pairs that count for an entrant, and of the pairs that it won."""


def _resample_win_rates(
    answers: PairAnswerTable, rows: Mapping[str, _Rows], *, seed: int
) -> dict[str, Array]:
    """Return won-pair fractions per entrant: observed, then per shared bootstrap resample of scenes."""
    n_scenes = max(1, len(answers.scenes))
    draws = np.random.default_rng(seed).multinomial(
        n_scenes, np.full(n_scenes, 1 / n_scenes), size=RESAMPLES
    )
    weights = np.concatenate([np.ones((1, n_scenes)), draws])
    proportions = {}
    for name, (mask, won) in rows.items():
        wins, pairs = (
            np.bincount(answers.scene[chosen], minlength=n_scenes) for chosen in (mask & won, mask)
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            proportions[name] = (weights @ wins) / (weights @ pairs)
    return proportions


def _estimate_percentage(
    answers: PairAnswerTable,
    mask: npt.NDArray[np.bool_],
    right: npt.NDArray[np.bool_],
    *,
    seed: int,
) -> Measured:
    estimate = bootstrap_mean(
        right[mask].astype(np.float64),
        seed=seed,
        clusters=[answers.scenes[scene] for scene in answers.scene[mask].tolist()],
        bounds=(0.0, 1.0),
    )
    return estimate.scaled(PERCENT) if isinstance(estimate, Estimate) else estimate


def _rank_leaderboard_rows(
    rows: Sequence[LeaderboardRow], by: str, win_rates: Mapping[str, Array]
) -> tuple[LeaderboardRow, ...]:
    """Return leaderboard rows ranked by the metric `by`, best first.

    Rows without that metric, and the real clips, have no rank. An entrant leads if the first one does
    not significantly beat it in `win_rates`, the resampled win rates; the interval of a reviewer must also
    be above 50 percent.
    """
    values = [(row, row.figures[by]) for row in rows]
    ranked = [(row, v) for row, v in values if isinstance(v, Estimate) and row.kind != "control"]
    ranks = rank_means([value.value for _, value in ranked], better="high")
    columns = [win_rates[row.name] for row, _ in ranked]
    values_of = np.stack(columns, axis=1) if columns else np.zeros((1, 0))
    first = ranks.index(1) if ranks else None
    n_scenes = max((value.n_clusters or 0 for _, value in ranked), default=0)
    leading = find_leading_entrants(values_of, better="high", n_scenes=n_scenes, best=first)
    placed = {
        row.name: replace(
            row,
            rank=rank,
            first_class=bool(leads)
            and (row.kind != "reviewer" or is_above_chance(value, n_reviewers=len(ranked))),
        )
        for (row, value), rank, leads in zip(ranked, ranks, leading, strict=True)
    }
    listed = [placed.get(row.name, row) for row in rows]
    return tuple(sorted(listed, key=lambda row: (row.rank or len(listed) + 1, row.name)))


KNOB = "pair against single"
RIGHT = "right"
_Cell = tuple[str, str]
"""Creator and scene."""
_Scores = Mapping[_Cell, float]


def compare_pairs_with_single_clips(
    pairs: PairAnswerTable, single_answers: SeasonAnswerTable
) -> tuple[AblationEffect, ...]:
    """Compare each reviewer's accuracy on pairs with its accuracy on the same two clips shown singly.

    The difference is pairs minus single clips. Only pairs of a real and a generated clip of one
    scene count, and only if all three answers are readable. Guessing is right half of the time in
    both cases.
    """
    names = [name for name in pairs.reviewers if name in single_answers.reviewers]
    scores = {
        name: (_compute_pair_scores(pairs, name), _compute_single_clip_scores(single_answers, name))
        for name in names
    }
    ranked = [name for name in names if name not in single_answers.floors]
    effects: list[AblationEffect] = []
    for title, chosen in ((EVERYBODY, ranked), *((name, [name]) for name in names)):
        rows = [
            (cell[1], paired[cell], single[cell])
            for paired, single in (scores[name] for name in chosen)
            for cell in paired
            if cell in single
        ]
        n_skipped = sum(len(scores[name][0].keys() ^ scores[name][1].keys()) for name in chosen)
        _, scene = np.unique([row[0] for row in rows], return_inverse=True)
        columns = [np.array([row[at] for row in rows], dtype=np.float64) for at in (1, 2)]
        difference, p = estimate_by_scene_jackknife(
            lambda sums: PERCENT * (sums[:, 0] - sums[:, 1]) / sums[:, 2],
            sum_by_scene(scene.astype(np.int64), *columns, np.ones(len(rows))),
            n=len(rows),
            reach=PERCENT,
        )
        effects.append(
            AblationEffect(
                knob=KNOB,
                first=f"pairs, {pairs.condition}",
                second=single_answers.condition,
                reviewer=title,
                figure=RIGHT,
                difference=difference,
                p=p,
                n_pairs=len(rows),
                n_left_out=n_skipped,
            )
        )
    return correct_effect_p_values(effects)


def _compute_pair_scores(answers: PairAnswerTable, name: str) -> _Scores:
    """Return pair accuracy per creator and scene: 1 if the real clip was found; mean of both orders."""
    mask = answers.reviewer == answers.reviewers.index(name)
    hits: dict[_Cell, list[bool]] = {}
    for at in np.flatnonzero(mask & np.isin(answers.took, (TOOK_FIRST, TOOK_SECOND))):
        first, second = int(answers.first[at]), int(answers.second[at])
        if NOBODY not in {first, second}:
            continue
        creator = answers.creators[second if first == NOBODY else first]
        right = answers.took[at] == (TOOK_FIRST if first == NOBODY else TOOK_SECOND)
        hits.setdefault((creator, answers.scenes[answers.scene[at]]), []).append(bool(right))
    return {cell: float(np.mean(values)) for cell, values in hits.items()}


def _compute_single_clip_scores(answers: SeasonAnswerTable, name: str) -> _Scores:
    """Return mean accuracy on the creator's and the scene's real clip, per creator and scene."""
    clips, line = answers.clips, build_answer_grid(answers)[answers.reviewers.index(name)]
    filmed: dict[int, float] = {}
    for at in np.flatnonzero(get_real_clip_mask(clips) & (line >= 0))[::-1]:
        filmed[int(clips.scene[at])] = float(line[at] == ANSWERED_REAL)
    scores = {}
    for at in np.flatnonzero((clips.creator != NOBODY) & (line >= 0)):
        scene = int(clips.scene[at])
        if scene in filmed:
            caught = float(line[at] == ANSWERED_GENERATED)
            cell = clips.creators[clips.creator[at]], clips.scenes[scene]
            scores[cell] = (caught + filmed[scene]) / 2
    return scores
