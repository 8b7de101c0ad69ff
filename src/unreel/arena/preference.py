"""Preference play: two clips of one scene, one judge, which is the real one? Creators ranked by Bradley and Terry."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from unreel.arena.comparing import places
from unreel.arena.figures import REAL_CLIPS
from unreel.arena.play import NOBODY, SILENT, Indices
from unreel.arena.standings import Standing
from unreel.core.errors import InvalidValueError
from unreel.core.estimate import Estimate, Measured
from unreel.protocols.formulas import PERCENT
from unreel.stats.bootstrap import bootstrap_mean
from unreel.stats.ranking import Battle, Outcome, bradley_terry

TOOK_FIRST: Final = 0
TOOK_SECOND: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PairPlay:
    """Answers about pairs under one condition. Columns are as long as `took`."""

    condition: str
    reviewers: tuple[str, ...]
    creators: tuple[str, ...]
    scenes: tuple[str, ...]
    reviewer: Indices
    first: Indices
    """Whose clip was shown first: a place in `creators`, or `NOBODY` for the real one."""
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
class Preferences:
    """Fractions of pairs in which each creator's clip is taken for real."""

    condition: str
    creators: tuple[Standing, ...]
    """By strength; real clips stand among them, unranked, as the mark to reach."""
    reviewers: tuple[Standing, ...]
    """By the share of pairs with a real clip in which they find it."""


def rank_preferences(play: PairPlay, *, seed: int) -> Preferences:
    """Strengths of creators and real clips, and how well each reviewer finds the real one; intervals by scene."""
    strengths = bradley_terry(_battles(play), seed=seed)
    names = [*play.creators, REAL_CLIPS]
    found = [
        Standing(
            name=name,
            kind="control" if name == REAL_CLIPS else "creator",
            figures={"strength": strengths[name], "taken-for-real": _taken(play, place, seed=seed)},
        )
        for place, name in zip([*range(len(play.creators)), NOBODY], names, strict=True)
        if name in strengths
    ]
    reviewers = [
        Standing(
            name=name,
            kind="reviewer",
            figures={
                "pair-accuracy": _accuracy(play, place, seed=seed),
                "took-first": _took_first(play, place, seed=seed),
            },
        )
        for place, name in enumerate(play.reviewers)
    ]
    return Preferences(
        condition=play.condition,
        creators=_placed(found, "strength"),
        reviewers=_placed(reviewers, "pair-accuracy"),
    )


def _battles(play: PairPlay) -> list[Battle]:
    names = (*play.creators, REAL_CLIPS)  # the last is the place NOBODY
    outcomes = {TOOK_FIRST: Outcome.FIRST, TOOK_SECOND: Outcome.SECOND}
    columns = (play.first, play.second, play.took, play.scene)
    return [
        Battle(names[first], names[second], outcomes[took], play.scenes[scene])
        for first, second, took, scene in zip(*(c.tolist() for c in columns), strict=True)
        if took != SILENT
    ]


def _taken(play: PairPlay, place: int, *, seed: int) -> Measured:
    """Return the fraction of pairs in which its clip is taken for the real one."""
    read = play.took != SILENT
    here = read & ((play.first == place) | (play.second == place))
    taken = np.where(play.first == place, play.took == TOOK_FIRST, play.took == TOOK_SECOND)
    return _share(play, here, taken, seed=seed)


def _accuracy(play: PairPlay, reviewer: int, *, seed: int) -> Measured:
    """Of the pairs with a real clip, those in which it is found."""
    read = (play.took != SILENT) & (play.reviewer == reviewer)
    here = read & ((play.first == NOBODY) | (play.second == NOBODY))
    right = np.where(play.first == NOBODY, play.took == TOOK_FIRST, play.took == TOOK_SECOND)
    return _share(play, here, right, seed=seed)


def _took_first(play: PairPlay, reviewer: int, *, seed: int) -> Measured:
    """The lean towards whichever clip is shown first."""
    here = (play.took != SILENT) & (play.reviewer == reviewer)
    return _share(play, here, play.took == TOOK_FIRST, seed=seed)


def _share(
    play: PairPlay, here: npt.NDArray[np.bool_], right: npt.NDArray[np.bool_], *, seed: int
) -> Measured:
    found = bootstrap_mean(
        right[here].astype(np.float64),
        seed=seed,
        clusters=[play.scenes[scene] for scene in play.scene[here].tolist()],
        bounds=(0.0, 1.0),
    )
    return found.scaled(PERCENT) if isinstance(found, Estimate) else found


def _placed(found: Sequence[Standing], by: str) -> tuple[Standing, ...]:
    """Ranked by that figure, best first; whoever lacks it, and real clips, bear no rank."""
    values = [(one, one.figures[by]) for one in found]
    ranked = [(one, v) for one, v in values if isinstance(v, Estimate) and one.kind != "control"]
    ranks = places([value.value for _, value in ranked], better="high")
    best = max((value for _, value in ranked), key=lambda value: value.value, default=None)
    placed = {
        one.name: replace(one, rank=place, first_class=best is not None and value.high >= best.low)
        for (one, value), place in zip(ranked, ranks, strict=True)
    }
    told = [placed.get(one.name, one) for one in found]
    return tuple(sorted(told, key=lambda one: (one.rank or len(told) + 1, one.name)))
