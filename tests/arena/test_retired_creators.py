"""Removed creators keep their rows, and change nothing for the others."""

from arena.plays import lineup, play
from unreel.arena.answers.season_answers import exclude_creators
from unreel.arena.boards.ranking import (
    is_leaderboard_row_of_entrant,
    rank_season_entrants,
    rank_without_retired_creators,
)
from unreel.core.estimate import Estimate


def test_a_retired_creator_keeps_its_row_and_nobody_who_came_later_lacks_it() -> None:
    shown, abilities = lineup(("Old", "Sora", "Wan"), n_scenes=12), {"ada": 1.0, "new": 0.5}
    season = play(shown, abilities, never_met=[("new", "Old")])
    board = rank_without_retired_creators(season, seed=0, retired=["Old"])
    assert {s.name: s.rank is not None for s in board.reviewers} == {"ada": True, "new": True}
    assert [s.name for s in board.creators if s.rank is None] == ["Old"]
    assert isinstance(board.creators[-1].figures["fakeness"], Estimate)


def test_a_retired_creator_changes_nothing_for_the_others() -> None:
    season = play(lineup(("Old/image", "Sora", "Wan"), n_scenes=12), {"ada": 1.0, "bob": 0.5})
    board = rank_without_retired_creators(season, seed=0, retired=["Old"])
    alone = rank_season_entrants(exclude_creators(season, {"Old/image"}), seed=0)
    assert board.reviewers == alone.reviewers
    assert board.creators[:2] == alone.creators
    assert {(c.reviewer, c.creator) for c in board.cells} == {
        (who, whom) for who in ("ada", "bob") for whom in ("Old/image", "Sora", "Wan")
    }


def test_rows_of_like_names_belong_to_other_entrants() -> None:
    rows = ("Wan", "Wan (2.2)", "Wan-3", "Wan/image", "Wan/image+text/x")
    assert [row for row in rows if is_leaderboard_row_of_entrant(row, "Wan")] == [
        "Wan",
        "Wan/image",
    ]
