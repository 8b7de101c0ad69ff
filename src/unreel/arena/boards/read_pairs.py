"""Answers of a preference season, read from its runs; no question is sent."""

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np

from unreel.arena.answers.lineup import find_indices
from unreel.arena.answers.play import SILENT
from unreel.arena.answers.read_play import read_answers
from unreel.arena.boards.preference import TOOK_FIRST, TOOK_SECOND, PairPlay
from unreel.arena.season.folder import SeasonEntrants, SeasonFolder
from unreel.core.clip import get_maker
from unreel.core.failure import Failure
from unreel.core.settings import read_settings
from unreel.core.verdict import Position, PreferenceVerdict, Verdict

_TOOK: Final = {Position.FIRST: TOOK_FIRST, Position.SECOND: TOOK_SECOND}


class _PlayedPair(NamedTuple):
    reviewer: str
    first: str
    second: str
    scene: str
    took: int


def read_pairs(folder: SeasonFolder, condition: str) -> PairPlay:
    """Return all answers of a preference season under one condition, without baselines.

    Raises:
        UnreelError: There are no answers, or the condition is unknown.
    """
    entrants = folder.require_played()
    entrants.require_condition(condition)
    told = list(_iter_played_pairs(folder, entrants, condition))
    shown = entrants.shown(entrants.reviewers)
    reviewers = tuple(sorted(shown[each.name] for each in entrants.heard if not each.floor))
    creators = tuple(sorted({maker for pair in told for maker in pair[1:3]} - {""}))
    scenes = tuple(sorted({pair.scene for pair in told}))
    return PairPlay(
        condition=condition,
        reviewers=reviewers,
        creators=creators,
        scenes=scenes,
        reviewer=find_indices(reviewers, [pair.reviewer for pair in told]),
        first=find_indices(creators, [pair.first for pair in told]),
        second=find_indices(creators, [pair.second for pair in told]),
        scene=find_indices(scenes, [pair.scene for pair in told]),
        took=np.array([pair.took for pair in told], dtype=np.int8),
    )


def _iter_played_pairs(
    folder: SeasonFolder, entrants: SeasonEntrants, condition: str
) -> Iterator[_PlayedPair]:
    settings, shown = read_settings(), entrants.shown(entrants.reviewers)
    for reviewer in entrants.heard:
        if reviewer.floor:
            continue
        for planned, _, read in read_answers(folder, reviewer, condition, settings):
            first, second = map(get_maker, planned.origins)
            if first != second:
                scene = planned.source or planned.name
                yield _PlayedPair(
                    shown[reviewer.name], first, second, scene, _get_chosen_position(read)
                )


def _get_chosen_position(read: Verdict | Failure) -> int:
    if isinstance(read, PreferenceVerdict) and isinstance(read.real, Position):
        return _TOOK[read.real]
    return SILENT
