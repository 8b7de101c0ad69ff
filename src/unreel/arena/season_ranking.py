"""Standings of a season from its folder: one attempt per team, removed entrants unranked."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from unreel.arena.answers.lineup import read_lineup
from unreel.arena.answers.play import AnswerTable
from unreel.arena.answers.read_play import read_play
from unreel.arena.boards.preference import PairPlay, PreferenceRates, rank_preferences
from unreel.arena.boards.read_pairs import read_pairs
from unreel.arena.boards.standings import SeasonLeaderboard
from unreel.arena.fairness.attempts import count_tries, rank_tries
from unreel.arena.season.folder import SeasonFolder
from unreel.arena.submission.log import read_log
from unreel.stats.resampling import RESAMPLES


@dataclass(frozen=True, slots=True)
class RankedPlay:
    """Answers under one condition, and their ranking."""

    play: AnswerTable
    standings: SeasonLeaderboard


@dataclass(frozen=True, slots=True)
class RankedPairs:
    """The same for pairs."""

    play: PairPlay
    preferences: PreferenceRates


def rank_season(
    folder: SeasonFolder,
    conditions: Sequence[str] = (),
    *,
    resamples: int = RESAMPLES,
    nuisances: Sequence[str] = (),
) -> Iterator[RankedPlay]:
    """Return the standings under each of `conditions`; by default all of the season's.

    Voters of the season are reviewers. Removed creators keep a row without a rank: their clips
    affect no other entrant.

    Raises:
        UnreelError: There are no answers, a condition is unknown, or the answers are about pairs.
    """
    entrants = folder.require_played()
    tries, lineup = count_tries(read_log(folder.path)), read_lineup(folder, retired=True)
    for title in conditions or entrants.conditions:
        play = read_play(folder, title, lineup=lineup, people=True)
        standings = rank_tries(
            play,
            tries,
            seed=entrants.seed,
            resamples=resamples,
            nuisances=nuisances,
            retired=entrants.retired_creators,
        )
        yield RankedPlay(play, standings)


def rank_pairs(folder: SeasonFolder, conditions: Sequence[str] = ()) -> Iterator[RankedPairs]:
    """Yield the ranking of each of `conditions`; of all conditions of the season by default.

    Raises:
        UnreelError: Nothing was played there, or a condition is none of the season's.
    """
    entrants = folder.require_played()
    for title in conditions or entrants.conditions:
        play = read_pairs(folder, title)
        yield RankedPairs(play, rank_preferences(play, seed=entrants.seed))
