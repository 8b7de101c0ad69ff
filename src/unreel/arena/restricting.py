"""A play without some of its entrants, as if they had never entered."""

from collections.abc import Collection
from dataclasses import replace

import numpy as np

from unreel.arena.play import NOBODY, AnswerTable, Indices, SeasonClips
from unreel.stats.sample import BoolArray


def leave_out(
    play: AnswerTable, *, creators: Collection[str], reviewers: Collection[str]
) -> AnswerTable:
    """The same without those rows and columns; everything else is as it was."""
    kept = np.array([name not in creators for name in play.lineup.creators], dtype=np.bool_)
    clips: BoolArray = np.ones(len(play.lineup.clips), dtype=np.bool_)
    made = play.lineup.creator != NOBODY
    clips[made] = kept[play.lineup.creator[made]]
    judges = np.array([name not in reviewers for name in play.reviewers], dtype=np.bool_)
    rows = judges[play.reviewer] & clips[play.clip]
    return replace(
        play,
        lineup=_lineup(play.lineup, clips, kept),
        reviewers=tuple(n for n, own in zip(play.reviewers, judges, strict=True) if own),
        floors=play.floors.difference(reviewers),
        reviewer=_places(judges)[play.reviewer[rows]],
        clip=_places(clips)[play.clip[rows]],
        said=play.said[rows],
    )


def _lineup(lineup: SeasonClips, clips: BoolArray, creators: BoolArray) -> SeasonClips:
    old = lineup.creator[clips]
    place = np.append(_places(creators), np.int32(NOBODY))  # NOBODY is the last place
    return replace(
        lineup,
        clips=tuple(name for name, own in zip(lineup.clips, clips, strict=True) if own),
        creators=tuple(name for name, own in zip(lineup.creators, creators, strict=True) if own),
        creator=place[old].astype(np.int32),
        scene=lineup.scene[clips],
        control=lineup.control[clips],
        nuisance=lineup.nuisance[clips],
    )


def _places(kept: BoolArray) -> Indices:
    """The new place of each one that is kept."""
    places: Indices = (np.cumsum(kept) - 1).astype(np.int32)
    return places
