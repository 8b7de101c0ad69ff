"""Standings of a season from its folder and runs; removed creators are unranked."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from unreel.arena.answers.answer_table import SILENT, SeasonAnswerTable
from unreel.arena.answers.season_answers import (
    exclude_creators,
    find_name_indices,
    read_reviewer_answers,
    read_season_answers,
    read_season_clips,
)
from unreel.arena.boards.leaderboard_metrics import SeasonLeaderboard
from unreel.arena.boards.preference_ranking import (
    TOOK_FIRST,
    TOOK_SECOND,
    PairAnswerTable,
    PreferenceRates,
    rank_entrants_by_pair_answers,
)
from unreel.arena.boards.ranking import rank_season_entrants
from unreel.arena.season.folder import SeasonEntrants, SeasonFolder
from unreel.core.clip import format_creator_with_setting
from unreel.core.failure import Failure
from unreel.core.settings import read_environment_settings
from unreel.core.verdict import Position, PreferenceVerdict, Verdict
from unreel.creators.contract import CreatorInput
from unreel.stats.resampling import RESAMPLES

_TOOK = {Position.FIRST: TOOK_FIRST, Position.SECOND: TOOK_SECOND}


class _AnsweredPair(NamedTuple):
    reviewer: str
    first: str
    second: str
    scene: str
    took: int


def read_pair_answers(folder: SeasonFolder, condition: str) -> PairAnswerTable:
    """Return all answers about pairs of a preference season under one condition, without baselines."""
    entrants = folder.require_played()
    entrants.require_condition(condition)
    pairs = list(_iter_answered_pairs(folder, entrants, condition))
    titles = entrants.shown(entrants.reviewers)
    reviewers = tuple(sorted(titles[judge.name] for judge in entrants.heard if not judge.floor))
    creators = tuple(sorted({creator for pair in pairs for creator in pair[1:3]} - {""}))
    scenes = tuple(sorted({pair.scene for pair in pairs}))
    return PairAnswerTable(
        condition=condition,
        reviewers=reviewers,
        creators=creators,
        scenes=scenes,
        reviewer=find_name_indices(reviewers, [pair.reviewer for pair in pairs]),
        first=find_name_indices(creators, [pair.first for pair in pairs]),
        second=find_name_indices(creators, [pair.second for pair in pairs]),
        scene=find_name_indices(scenes, [pair.scene for pair in pairs]),
        took=np.array([pair.took for pair in pairs], dtype=np.int8),
    )


def _iter_answered_pairs(
    folder: SeasonFolder, entrants: SeasonEntrants, condition: str
) -> Iterator[_AnsweredPair]:
    settings, titles = read_environment_settings(), entrants.shown(entrants.reviewers)
    for reviewer in entrants.heard:
        if reviewer.floor:
            continue
        for planned, _, read in read_reviewer_answers(folder, reviewer, condition, settings):
            first, second = map(format_creator_with_setting, planned.origins)
            if first != second:
                scene = planned.source or planned.name
                yield _AnsweredPair(
                    titles[reviewer.name], first, second, scene, _get_chosen_position(read)
                )


def _get_chosen_position(read: Verdict | Failure) -> int:
    if isinstance(read, PreferenceVerdict) and isinstance(read.real, Position):
        return _TOOK[read.real]
    return SILENT


def iter_season_leaderboards(
    folder: SeasonFolder,
    conditions: Sequence[str] = (),
    *,
    resamples: int = RESAMPLES,
    nuisances: Sequence[str] = (),
) -> Iterator[tuple[SeasonAnswerTable, SeasonLeaderboard]]:
    """Yield the answers and the leaderboards of a season under each of `conditions`; by default all.

    People who voted in the season count as reviewers. Removed creators have a row without a rank,
    and their clips affect no other entrant.
    """
    entrants = folder.require_played()
    clips = read_season_clips(folder, retired=True)
    for title in conditions or entrants.conditions:
        answers = read_season_answers(folder, title, clips=clips, people=True)
        rows = rank_without_retired_creators(
            answers,
            seed=entrants.seed,
            resamples=resamples,
            nuisances=nuisances,
            retired=entrants.retired_creators,
        )
        yield answers, rows


def rank_without_retired_creators(
    answers: SeasonAnswerTable,
    *,
    seed: int,
    resamples: int = RESAMPLES,
    nuisances: Sequence[str] = (),
    retired: Collection[str] = (),
) -> SeasonLeaderboard:
    """Rank a season as if its `retired` creators did not exist; their rows follow without a rank.

    So later reviewers, who were not asked about retired creators, still have complete answers.
    """
    gone = frozenset(
        row
        for row in answers.clips.creators
        if any(is_leaderboard_row_of_entrant(row, title) for title in retired)
    )
    full = rank_season_entrants(answers, seed=seed, resamples=resamples, nuisances=nuisances)
    if not gone:
        return full
    current = exclude_creators(answers, gone)
    board = rank_season_entrants(current, seed=seed, resamples=resamples, nuisances=nuisances)
    unranked = (
        replace(row, rank=None, first_class=False) for row in full.creators if row.name in gone
    )
    ranked = [row for row in board.creators if row.rank is not None]
    return replace(
        board,
        creators=(*ranked, *unranked, *(row for row in board.creators if row.rank is None)),
        cells=(*board.cells, *(cell for cell in full.cells if cell.creator in gone)),
    )


def is_leaderboard_row_of_entrant(row: str, title: str) -> bool:
    """Return whether a leaderboard row belongs to `title`: its name is `title` or `title/SETTING`."""
    before, _, setting = row.rpartition("/")
    return row == title or (before == title and setting in set(CreatorInput))


def iter_pair_answers_and_leaderboards(
    folder: SeasonFolder, conditions: Sequence[str] = ()
) -> Iterator[tuple[PairAnswerTable, PreferenceRates]]:
    """Yield the answers about pairs and their leaderboards under each of `conditions`; by default all."""
    entrants = folder.require_played()
    for title in conditions or entrants.conditions:
        answers = read_pair_answers(folder, title)
        yield answers, rank_entrants_by_pair_answers(answers, seed=entrants.seed)
