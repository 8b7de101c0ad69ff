"""The boards of a season as pages show them, who was taken out below them."""

from unreel.arena.attempts import is_row_of
from unreel.arena.play import AnswerTable
from unreel.arena.season_ranking import RankedPairs, rank_pairs, rank_season
from unreel.arena.standings import SeasonLeaderboard
from unreel.arena.working_folder import SeasonEntrants, SeasonFolder
from unreel.report.season.view import SeasonView


def read_boards(folder: SeasonFolder, *, resamples: int) -> SeasonView:
    """A season with its boards alone, which is all that the history of a later one needs."""
    entrants = folder.require_played()
    if entrants.is_about_pairs:
        boards = tuple(_board(ranked) for ranked in rank_pairs(folder))
        return SeasonView(name=entrants.season, plays=(), standings=boards)
    found = list(rank_season(folder, resamples=resamples))
    return SeasonView(
        name=entrants.season,
        plays=tuple(each.play for each in found),
        standings=tuple(each.standings for each in found),
        retired=_retired(entrants, found[0].play),
    )


def _board(ranked: RankedPairs) -> SeasonLeaderboard:
    return SeasonLeaderboard(
        condition=ranked.play.condition,
        reviewers=ranked.preferences.reviewers,
        creators=ranked.preferences.creators,
        cells=(),
        n_scenes=len(ranked.play.scenes),
        n_resamples=0,
    )


def _retired(entrants: SeasonEntrants, play: AnswerTable) -> frozenset[str]:
    """Rows of those that were taken out."""
    shown = entrants.shown(entrants.reviewers)
    reviewers = {shown[reviewer.name] for reviewer in entrants.reviewers if reviewer.retired}
    gone = entrants.retired_creators
    rows = (*play.lineup.creators, *play.lineup.controls)
    return frozenset({*reviewers, *(r for r in rows if any(is_row_of(r, each) for each in gone))})
