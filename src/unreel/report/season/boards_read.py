"""From the folder in which a season was played to its boards: one try of each team, and who was taken out below them."""

from dataclasses import replace

from unreel.arena.attempts import count_tries, rank_tries
from unreel.arena.lineup import read_lineup
from unreel.arena.log import read_log
from unreel.arena.play import Lineup
from unreel.arena.playing import read_play
from unreel.arena.ranking import rank
from unreel.arena.standings import Standing, Standings
from unreel.arena.working_folder import Entrants, SeasonFolder
from unreel.report.season.view import Season


def read_boards(folder: SeasonFolder, *, resamples: int) -> Season:
    """A season with its boards alone, which is all that the history of a later one needs.

    People whose votes the season keeps are reviewers. Creators that were taken out keep a row without a rank: their
    clips count for nobody else.
    """
    entrants = folder.require_played()
    tries = count_tries(read_log(folder.path))
    lineup = read_lineup(folder)
    plays = [read_play(folder, how, lineup=lineup, people=True) for how in entrants.conditions]
    held = [rank_tries(play, tries, seed=entrants.seed, resamples=resamples) for play in plays]
    gone = _gone(folder, entrants, lineup, resamples=resamples)
    standings = [
        replace(board, creators=(*board.creators, *gone.get(board.condition, ()))) for board in held
    ]
    names = {standing.name for rows in gone.values() for standing in rows}
    return Season(
        name=entrants.season,
        plays=tuple(plays),
        standings=tuple(standings),
        retired=frozenset({*names, *_retired_reviewers(entrants)}),
    )


def _gone(
    folder: SeasonFolder, entrants: Entrants, current: Lineup, *, resamples: int
) -> dict[str, list[Standing]]:
    """Creators that were taken out, by condition, with what was measured of them and no rank."""
    if not any(creator.retired for creator in entrants.creators):
        return {}
    whole = read_lineup(folder, retired=True)
    names = {*whole.creators, *whole.controls} - {*current.creators, *current.controls}
    found = {}
    for how in entrants.conditions:
        play = read_play(folder, how, lineup=whole, people=True)
        board = rank(play, seed=entrants.seed, resamples=resamples)
        found[how] = _without_rank(board, names)
    return found


def _without_rank(board: Standings, names: set[str]) -> list[Standing]:
    rows = (standing for standing in board.creators if standing.name in names)
    return [replace(row, rank=None, first_class=False, above={}) for row in rows]


def _retired_reviewers(entrants: Entrants) -> set[str]:
    shown = entrants.shown(entrants.reviewers)
    return {shown[reviewer.name] for reviewer in entrants.reviewers if reviewer.retired}
