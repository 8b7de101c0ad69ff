"""From the folder in which a season was played to its boards: one try of each team, and who was taken out below them."""

from unreel.arena.attempts import count_tries, is_row_of, rank_tries
from unreel.arena.lineup import read_lineup
from unreel.arena.log import read_log
from unreel.arena.pair_playing import read_pairs
from unreel.arena.play import Play
from unreel.arena.playing import read_play
from unreel.arena.preference import rank_preferences
from unreel.arena.standings import Standings
from unreel.arena.working_folder import Entrants, SeasonFolder
from unreel.report.season.view import Season


def read_boards(folder: SeasonFolder, *, resamples: int) -> Season:
    """A season with its boards alone, which is all that the history of a later one needs.

    People whose votes the season keeps are reviewers. Creators that were taken out keep a row without a rank: their
    clips count for nobody else.
    """
    entrants = folder.require_played()
    if entrants.is_about_pairs:
        return _of_pairs(folder, entrants)
    tries = count_tries(read_log(folder.path))
    lineup = read_lineup(folder, retired=True)
    plays = [read_play(folder, how, lineup=lineup, people=True) for how in entrants.conditions]
    shown = entrants.shown(entrants.creators)
    gone = [shown[creator.name] for creator in entrants.creators if creator.retired]
    standings = [
        rank_tries(play, tries, seed=entrants.seed, resamples=resamples, retired=gone)
        for play in plays
    ]
    return Season(
        name=entrants.season,
        plays=tuple(plays),
        standings=tuple(standings),
        retired=_retired(entrants, plays[0], gone),
    )


def _of_pairs(folder: SeasonFolder, entrants: Entrants) -> Season:
    boards = []
    for how in entrants.conditions:
        play = read_pairs(folder, how)
        found = rank_preferences(play, seed=entrants.seed)
        boards.append(
            Standings(
                condition=how,
                reviewers=found.reviewers,
                creators=found.creators,
                cells=(),
                n_scenes=len(play.scenes),
                n_resamples=0,
            )
        )
    return Season(name=entrants.season, plays=(), standings=tuple(boards))


def _retired(entrants: Entrants, play: Play, gone: list[str]) -> frozenset[str]:
    """Rows of those that were taken out."""
    shown = entrants.shown(entrants.reviewers)
    reviewers = {shown[reviewer.name] for reviewer in entrants.reviewers if reviewer.retired}
    lineup = play.lineup
    rows = (*lineup.creators, *lineup.controls)
    return frozenset({*reviewers, *(r for r in rows if any(is_row_of(r, each) for each in gone))})
