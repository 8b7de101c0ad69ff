"""Warnings on a season's pages as sentences: gaps, copies, and the best of several attempts."""

from collections.abc import Iterator, Sequence

from unreel.arena.answers.play import AnswerTable
from unreel.arena.fairness.attempts import BestAttempt, TeamAttempts, correct_best, is_row_of
from unreel.arena.fairness.holdout import (
    compare_hidden,
    find_canaries,
    find_hidden,
    measure_canary_answers,
)
from unreel.arena.fairness.similar_reviewers import find_alike
from unreel.arena.season.folder import SeasonEntrants, SeasonFolder
from unreel.arena.season.stored_recipe import read_stored_recipe
from unreel.arena.submission.log import SeasonLog
from unreel.core.estimate import Estimate
from unreel.core.server_keys import hide_addresses


def iter_gaps(entrants: SeasonEntrants) -> Iterator[str]:
    """Yield the entrants that took no part or were withdrawn."""
    for each in entrants.reviewers:
        if each.unfitted:
            yield hide_addresses(f"{each.title} took no part: {each.unfitted.rstrip('.')}.")
    if entrants.retired:
        names = hide_addresses(", ".join(entrants.retired))
        yield f"Removed from the season; their results stay: {names}."


def iter_log_edits(log: SeasonLog) -> Iterator[str]:
    """Yield the changes made to the log after it was written."""
    for problem in log.broken:
        yield f"The log of entries was changed: {problem}."


def iter_similar_reviewers(play: AnswerTable, *, seed: int) -> Iterator[str]:
    """Yield a warning for each pair of reviewers that share more errors than hard clips explain."""
    for pair in find_alike(play, seed=seed).suspected:
        share = pair.shared_errors
        told = f"{share.value:.0f} %" if isinstance(share, Estimate) else "most"
        yield (
            f"{pair.first} and {pair.second} share {told} of their errors under {play.condition}, more than hard clips "
            "explain: copies, or one model under two names."
        )


def iter_seen_before(folder: SeasonFolder, play: AnswerTable) -> Iterator[str]:
    """Yield entrants that are better on public scenes than on hidden ones, or repeat labels published as a trap."""
    recipe = read_stored_recipe(folder)
    hidden = find_hidden(folder.path, recipe, play.lineup.scenes)
    for gap in compare_hidden(play, hidden) if hidden else ():
        if gap.flagged and isinstance(gap.gap, Estimate):
            yield (
                f"{gap.name} is better on known scenes, by {gap.gap.value:.1f} points "
                f"[{gap.gap.low:.1f}, {gap.gap.high:.1f}] under {play.condition}: it may have seen them before."
            )
    canaries = find_canaries(folder.path, recipe, play.lineup)
    for sung in measure_canary_answers(play, canaries) if canaries else ():
        if sung.flagged:
            yield f"{sung.reviewer} repeats labels that were published as a trap, under {play.condition}."


def iter_repeated_attempts(
    play: AnswerTable, tries: Sequence[TeamAttempts], *, seed: int
) -> Iterator[str]:
    """Yield a note for each team with several entries: its best result, corrected for selection."""
    for each in tries:
        rows = select_team_rows(each, play)
        best = correct_best(play, rows, kind=each.kind, seed=seed) if len(rows) > 1 else None
        if isinstance(best, BestAttempt) and isinstance(best.corrected, Estimate):
            worth = best.corrected
            yield (
                f"{each.team or 'A team without a name'} entered {len(rows)} times as {each.kind}. The best, "
                f"{best.entry}, has {best.raw:.1f} % as played, and {worth.value:.1f} % "
                f"[{worth.low:.1f}, {worth.high:.1f}] after correction for choosing the luckiest."
            )


def select_team_rows(tries: TeamAttempts, play: AnswerTable) -> list[str]:
    """Return the board rows that are entries of the team."""
    board = play.reviewers if tries.kind == "reviewer" else play.lineup.creators
    return [row for row in board if any(is_row_of(row, entry) for entry in tries.entries)]
