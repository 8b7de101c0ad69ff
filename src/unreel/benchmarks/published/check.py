"""Every check of the printed figures."""

from unreel.benchmarks.published.counts import count_tables
from unreel.benchmarks.published.realism_check import check_pairs
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
from unreel.benchmarks.published.tables import creator_lines, reviewer_lines
from unreel.benchmarks.published.trace_check import check_accuracy, check_overall, check_sources
from unreel.benchmarks.published.verdicts import FigureCheck


def check() -> tuple[FigureCheck, ...]:
    """All printed figures recalculated from counts and cells; sound while every `ok` is True."""
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
