"""Standings of a season from its folder and runs: one attempt per team, removed entrants unranked."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from unreel.arena.answers.answer_table import SILENT, SeasonAnswerTable
from unreel.arena.answers.season_answers import (
    find_name_indices,
    read_reviewer_answers,
    read_season_answers,
    read_season_clips,
)
from unreel.arena.boards.leaderboard_types import SeasonLeaderboard
from unreel.arena.boards.preference_ranking import (
    TOOK_FIRST,
    TOOK_SECOND,
    PairAnswerTable,
    PreferenceRates,
    rank_entrants_by_pair_answers,
)
from unreel.arena.fairness.team_attempts import collect_team_attempts, rank_one_attempt_per_team
from unreel.arena.season.folder import SeasonEntrants, SeasonFolder
from unreel.arena.submission.season_log import read_season_log
from unreel.core.clip import format_creator_with_setting
from unreel.core.failure import Failure
from unreel.core.settings import read_environment_settings
from unreel.core.verdict import Position, PreferenceVerdict, Verdict
from unreel.stats.resampling import RESAMPLES

_TOOK: Final = {Position.FIRST: TOOK_FIRST, Position.SECOND: TOOK_SECOND}


class _AnsweredPair(NamedTuple):
    reviewer: str
    first: str
    second: str
    scene: str
    took: int


def read_pair_answers(folder: SeasonFolder, condition: str) -> PairAnswerTable:
    """Return all answers about pairs of a preference season under one condition, without baselines.

    Raises:
        UnreelError: There are no answers, or the condition is unknown.
    """
    entrants = folder.require_played()
    entrants.require_condition(condition)
    pairs = list(_iter_answered_pairs(folder, entrants, condition))
    titles = entrants.shown(entrants.reviewers)
    reviewers = tuple(sorted(titles[judge.name] for judge in entrants.heard if not judge.floor))
    creators = tuple(sorted({maker for pair in pairs for maker in pair[1:3]} - {""}))
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


@dataclass(frozen=True, slots=True)
class LeaderboardWithAnswers:
    """The answers of a season under one condition, and their leaderboard."""

    play: SeasonAnswerTable
    standings: SeasonLeaderboard


@dataclass(frozen=True, slots=True)
class PreferenceRatesWithAnswers:
    """The answers about pairs under one condition, and both leaderboards computed from them."""

    play: PairAnswerTable
    preferences: PreferenceRates


def iter_season_leaderboards(
    folder: SeasonFolder,
    conditions: Sequence[str] = (),
    *,
    resamples: int = RESAMPLES,
    nuisances: Sequence[str] = (),
) -> Iterator[LeaderboardWithAnswers]:
    """Yield the answers and the leaderboards of a season under each of `conditions`; by default all.

    People who voted in the season count as reviewers. Removed creators have a row without a rank,
    and their clips affect no other entrant.

    Raises:
        UnreelError: There are no answers, a condition is unknown, or the answers are about pairs.
    """
    entrants = folder.require_played()
    tries, lineup = (
        collect_team_attempts(read_season_log(folder.path)),
        read_season_clips(folder, retired=True),
    )
    for title in conditions or entrants.conditions:
        play = read_season_answers(folder, title, lineup=lineup, people=True)
        standings = rank_one_attempt_per_team(
            play,
            tries,
            seed=entrants.seed,
            resamples=resamples,
            nuisances=nuisances,
            retired=entrants.retired_creators,
        )
        yield LeaderboardWithAnswers(play, standings)


def iter_pair_answers_and_leaderboards(
    folder: SeasonFolder, conditions: Sequence[str] = ()
) -> Iterator[PreferenceRatesWithAnswers]:
    """Yield the answers about pairs and their leaderboards under each of `conditions`; by default all.

    Raises:
        UnreelError: The season has no answers, or it has no condition of that title.
    """
    entrants = folder.require_played()
    for title in conditions or entrants.conditions:
        play = read_pair_answers(folder, title)
        yield PreferenceRatesWithAnswers(
            play, rank_entrants_by_pair_answers(play, seed=entrants.seed)
        )
