"""The papers' tables through the arena's own code."""

import numpy as np
import pytest

from arena.counted_play import counted_play
from arena.printed_figures import NO_VERDICTS, RecomputedFigure, recalculate, table_2, table_3
from published.recompute import REAL, AnswerCounts, check_published_figures, read_table_lines
from unreel.arena.boards.ranking import rank_season_entrants
from unreel.core.estimate import Estimate


@pytest.fixture(scope="module")
def recalculated() -> tuple[RecomputedFigure, ...]:
    return recalculate(resamples=50)


def test_every_verdict_figure_that_the_check_knows_is_the_arenas_too(
    recalculated: tuple[RecomputedFigure, ...],
) -> None:
    checks = check_published_figures()
    assert set(checks) == {one.check for one in recalculated} | set(NO_VERDICTS)
    for name in checks.keys() - set(NO_VERDICTS) - {"DTR accuracy"}:
        mine = [one for one in recalculated if one.check == name]
        wrong = {one.cell: one.arena for one in mine if not one.agrees}
        assert len(mine) == checks[name].total
        assert wrong == {one.cell: one.calculated for one in checks[name].misprints}


def test_the_accuracies_of_deeptracereward_follow_from_its_counts(
    recalculated: tuple[RecomputedFigure, ...],
) -> None:
    known = check_published_figures()["DTR accuracy"]
    mine = [one for one in recalculated if one.check == "DTR accuracy"]
    assert len(mine) == 3 * known.reproduced
    assert all(one.agrees for one in mine)


def test_averages_of_lines_whose_cells_all_have_counts_are_those_of_the_board() -> None:
    board = rank_season_entrants(table_2(), seed=0, resamples=20)
    cells = {(one.cell, one.check): one for one in recalculate(resamples=20)}
    for line in read_table_lines("reality_reviewers"):
        mine = [cells.get((f"{line.name}, {column}", "VRT table 2 cells")) for column in line.cells]
        if not all(one is not None and one.agrees for one in mine):
            continue
        (standing,) = [one for one in board.reviewers if one.name == line.name]
        accuracy = standing.figures["accuracy"]
        assert isinstance(accuracy, Estimate)
        printed = float(sum(line.cells.values())) / len(line.cells)
        assert accuracy.value == pytest.approx(printed, abs=0.005)


def test_a_creator_that_not_all_reviewers_met_ranks_by_those_who_met_everybody() -> None:
    board = rank_season_entrants(table_3(), seed=0, resamples=20)
    lacking = [one for one in board.reviewers if one.lacks]
    assert all(one.rank is None for one in lacking)
    ranks = [one.rank for one in board.creators]
    assert ranks == sorted(ranks, key=lambda place: place or 99)


def test_a_counted_play_has_exactly_the_counts() -> None:
    counted = {
        "a": {REAL: AnswerCounts(valid=7, said_fake=2), "x": AnswerCounts(valid=5, said_fake=5)},
        "b": {REAL: AnswerCounts(valid=4, said_fake=0), "x": AnswerCounts(valid=9, said_fake=1)},
    }
    play = counted_play(counted, condition="c", seed=3)
    for place, name in enumerate(play.reviewers):
        for source, count in counted[name].items():
            creator = -1 if source == REAL else play.clips.creators.index(source)
            mine = (play.reviewer == place) & (play.clips.creator[play.clip] == creator)
            assert int((play.answer_codes[mine] == 1).sum()) == count.said_fake
            assert int((play.answer_codes[mine] >= 0).sum()) == count.valid
            assert int(mine.sum()) == (7 if source == REAL else 9)
    assert np.array_equal(
        counted_play(counted, condition="c", seed=3).answer_codes, play.answer_codes
    )
