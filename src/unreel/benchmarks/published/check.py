"""Every check of the printed figures."""

from decimal import Decimal
from math import comb
from typing import Final

from unreel.benchmarks.published.reality_check import (
    check_averages,
    check_creator_cells,
    check_human_clips,
    check_humans,
    check_ranks,
    check_reviewer_cells,
    creator_cells,
    reviewer_cells,
)
from unreel.benchmarks.published.tables import count_tables, creator_lines, reviewer_lines
from unreel.benchmarks.published.trace_check import check_accuracy, check_overall, check_sources
from unreel.benchmarks.published.verdicts import FigureCheck, MisprintCause, PrintedMisprint

CLIPS_BY_SCORE: Final = (3, 7, 10, 6, 4)
"""How many of the thirty clips people scored 1, 2, 3, 4 and 5."""
PRINTED_PAIRS: Final = 345


def ordered_pairs(clips_by_score: tuple[int, ...]) -> int:
    """Count the pairs of clips with different scores: all pairs minus ties."""
    return comb(sum(clips_by_score), 2) - sum(comb(clips, 2) for clips in clips_by_score)


def check_pairs() -> FigureCheck:
    """Check the printed number of strictly ordered pairs."""
    pairs = ordered_pairs(CLIPS_BY_SCORE)
    misprint = PrintedMisprint(
        cell="ordered pairs",
        formula="30 x 29 / 2 less the ties",
        calculated=Decimal(pairs),
        printed=Decimal(PRINTED_PAIRS),
        cause=MisprintCause.UNEXPLAINED,
        because="The scores give another number",
    )
    wrong = () if pairs == PRINTED_PAIRS else (misprint,)
    return FigureCheck(
        name="VRB pairs",
        formula="30 x 29 / 2 less the ties of 3, 7, 10, 6 and 4 clips = 345",
        reproduced=1 - len(wrong),
        total=1,
        expected=1,
        expected_total=1,
        misprints=wrong,
    )


def check() -> tuple[FigureCheck, ...]:
    """Check all printed figures against counts and cells; the figures are sound if every `ok` is true."""
    tables = count_tables()
    reviewers, creators = reviewer_lines(), creator_lines()
    return (
        check_overall(),
        check_accuracy(),
        check_sources(),
        check_reviewer_cells(tables),
        check_averages(reviewers, reviewer_cells(tables), name="VRT table 2 averages", expected=13),
        check_ranks(reviewers, name="VRT table 2 ranks", best_is_high=True),
        check_creator_cells(tables),
        check_averages(creators, creator_cells(tables), name="VRT table 3 averages", expected=10),
        check_ranks(creators, name="VRT table 3 ranks", best_is_high=False),
        check_humans(),
        check_human_clips(),
        check_pairs(),
    )
