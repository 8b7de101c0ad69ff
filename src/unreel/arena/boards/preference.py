"""Preference play: two clips of one scene, one judge, which is the real one? Creators ranked by Bradley and Terry."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from unreel.arena.answers.play import NOBODY, SILENT, Indices
from unreel.arena.boards.comparison import find_leading, rank_means
from unreel.arena.boards.figures import REAL_CLIPS
from unreel.arena.boards.standings import LeaderboardRow
from unreel.core.errors import InvalidValueError
from unreel.core.estimate import Estimate, Measured
from unreel.protocols.formulas import PERCENT
from unreel.stats.bootstrap import bootstrap_mean
from unreel.stats.ranking import BattleOutcome, ClipBattle, bradley_terry
from unreel.stats.resampling import RESAMPLES
from unreel.stats.sample import Array

TOOK_FIRST: Final = 0
TOOK_SECOND: Final = 1
_COIN_PERCENT: Final = 50.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PairPlay:
    """Answers about pairs under one condition. Columns are as long as `took`."""

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
    """Which was taken for real: `TOOK_FIRST`, `TOOK_SECOND` or `SILENT`."""

    def __post_init__(self) -> None:
        columns = (self.reviewer, self.first, self.second, self.scene)
        if any(len(column) != len(self.took) for column in columns):
            msg = "columns of pairs must be equally long. Build them together"
            raise InvalidValueError(msg)
        if (self.first == self.second).any():
            msg = "a pair shows two clips of one creator. Pair clips of different makers"
            raise InvalidValueError(msg)


@dataclass(frozen=True, slots=True, kw_only=True)
class PreferenceRates:
    """Fractions of pairs in which each creator's clip is taken for real."""

    condition: str
    creators: tuple[LeaderboardRow, ...]
    """By strength; real clips stand among them, unranked, as the mark to reach."""
    reviewers: tuple[LeaderboardRow, ...]
    """By the share of pairs with a real clip in which they find it."""


def rank_preferences(play: PairPlay, *, seed: int) -> PreferenceRates:
    """Rank creators by strength and reviewers by pair accuracy; confidence intervals are by scene.

    Strengths include the real clips. Pair accuracy is how often a reviewer finds the real clip.
    """
    strengths = bradley_terry(_build_battles(play), seed=seed)
    names = [*play.creators, REAL_CLIPS]
    found = [
        LeaderboardRow(
            name=name,
            kind="control" if name == REAL_CLIPS else "creator",
            figures={
                "strength": strengths[name],
                "taken-for-real": _estimate_win_rate(play, place, seed=seed),
            },
        )
        for place, name in zip([*range(len(play.creators)), NOBODY], names, strict=True)
        if name in strengths
    ]
    reviewers = [
        LeaderboardRow(
            name=name,
            kind="reviewer",
            figures={
                "pair-accuracy": _estimate_pair_accuracy(play, place, seed=seed),
                "took-first": _estimate_first_position_rate(play, place, seed=seed),
            },
        )
        for place, name in enumerate(play.reviewers)
    ]
    return PreferenceRates(
        condition=play.condition,
        creators=_rank_rows(
            found, "strength", _draw_shares(play, _group_wins_by_creator(play), seed=seed)
        ),
        reviewers=_rank_rows(
            reviewers, "pair-accuracy", _draw_shares(play, _group_hits_by_reviewer(play), seed=seed)
        ),
    )


_Rows = tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]
"""Pairs that count for an entrant, and those that it won."""


def _group_wins_by_creator(play: PairPlay) -> dict[str, _Rows]:
    return {name: _select_creator_wins(play, place) for place, name in enumerate(play.creators)}


def _group_hits_by_reviewer(play: PairPlay) -> dict[str, _Rows]:
    return {name: _select_reviewer_hits(play, place) for place, name in enumerate(play.reviewers)}


def _draw_shares(play: PairPlay, rows: Mapping[str, _Rows], *, seed: int) -> dict[str, Array]:
    """Return the fraction of each entrant, then on resamples of the scenes: the same for all entrants."""
    n_scenes = max(1, len(play.scenes))
    draws = np.random.default_rng(seed).multinomial(
        n_scenes, np.full(n_scenes, 1 / n_scenes), size=RESAMPLES
    )
    weights = np.concatenate([np.ones((1, n_scenes)), draws])
    shares = {}
    for name, (here, won) in rows.items():
        wins, pairs = (
            np.bincount(play.scene[chosen], minlength=n_scenes) for chosen in (here & won, here)
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            shares[name] = (weights @ wins) / (weights @ pairs)
    return shares


def _build_battles(play: PairPlay) -> list[ClipBattle]:
    names = (*play.creators, REAL_CLIPS)  # the last is the place NOBODY
    outcomes = {TOOK_FIRST: BattleOutcome.FIRST, TOOK_SECOND: BattleOutcome.SECOND}
    columns = (play.first, play.second, play.took, play.scene)
    return [
        ClipBattle(names[first], names[second], outcomes[took], play.scenes[scene])
        for first, second, took, scene in zip(*(c.tolist() for c in columns), strict=True)
        if took != SILENT
    ]


def _estimate_win_rate(play: PairPlay, index: int, *, seed: int) -> Measured:
    """Return the fraction of pairs in which its clip is taken for the real one."""
    return _estimate_percentage(play, *_select_creator_wins(play, index), seed=seed)


def _select_creator_wins(play: PairPlay, index: int) -> _Rows:
    read = play.took != SILENT
    here = read & ((play.first == index) | (play.second == index))
    return here, np.where(play.first == index, play.took == TOOK_FIRST, play.took == TOOK_SECOND)


def _estimate_pair_accuracy(play: PairPlay, reviewer: int, *, seed: int) -> Measured:
    """Compute the percentage of pairs with a real clip in which the reviewer finds the real clip."""
    return _estimate_percentage(play, *_select_reviewer_hits(play, reviewer), seed=seed)


def _select_reviewer_hits(play: PairPlay, reviewer: int) -> _Rows:
    read = (play.took != SILENT) & (play.reviewer == reviewer)
    here = read & ((play.first == NOBODY) | (play.second == NOBODY))
    return here, np.where(play.first == NOBODY, play.took == TOOK_FIRST, play.took == TOOK_SECOND)


def _estimate_first_position_rate(play: PairPlay, reviewer: int, *, seed: int) -> Measured:
    """Compute the percentage of pairs in which the reviewer takes the first clip for real."""
    here = (play.took != SILENT) & (play.reviewer == reviewer)
    return _estimate_percentage(play, here, play.took == TOOK_FIRST, seed=seed)


def _estimate_percentage(
    play: PairPlay, here: npt.NDArray[np.bool_], right: npt.NDArray[np.bool_], *, seed: int
) -> Measured:
    found = bootstrap_mean(
        right[here].astype(np.float64),
        seed=seed,
        clusters=[play.scenes[scene] for scene in play.scene[here].tolist()],
        bounds=(0.0, 1.0),
    )
    return found.scaled(PERCENT) if isinstance(found, Estimate) else found


def _rank_rows(
    found: Sequence[LeaderboardRow], by: str, shares: Mapping[str, Array]
) -> tuple[LeaderboardRow, ...]:
    """Rank by that metric, best first; entrants without it, and real clips, have no rank.

    Leading are those that the first does not beat in `shares`, and of reviewers only those above
    the coin.
    """
    values = [(one, one.figures[by]) for one in found]
    ranked = [(one, v) for one, v in values if isinstance(v, Estimate) and one.kind != "control"]
    ranks = rank_means([value.value for _, value in ranked], better="high")
    columns = [shares[one.name] for one, _ in ranked]
    values_of = np.stack(columns, axis=1) if columns else np.zeros((1, 0))
    first = ranks.index(1) if ranks else None
    n_scenes = max((value.n_clusters or 0 for _, value in ranked), default=0)
    leading = find_leading(values_of, better="high", n_scenes=n_scenes, best=first)
    placed = {
        one.name: replace(
            one,
            rank=place,
            first_class=bool(leads) and (one.kind != "reviewer" or value.value > _COIN_PERCENT),
        )
        for (one, value), place, leads in zip(ranked, ranks, leading, strict=True)
    }
    told = [placed.get(one.name, one) for one in found]
    return tuple(sorted(told, key=lambda one: (one.rank or len(told) + 1, one.name)))
