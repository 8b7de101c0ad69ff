"""All checks of the printed results of the three papers."""

from decimal import Decimal
from math import comb
from typing import Final

from unreel.benchmarks.published.deeptrace_check import (
    check_deeptrace_accuracy,
    check_deeptrace_explanation_rates,
    check_deeptrace_overall,
)
from unreel.benchmarks.published.misprints import (
    MisprintCause,
    PrintedMisprint,
    PrintedNumberCheckResult,
)
from unreel.benchmarks.published.printed_tables import (
    read_printed_count_tables,
    read_printed_creator_lines,
    read_printed_reviewer_lines,
)
from unreel.benchmarks.published.reality_test_check import (
    check_printed_averages,
    check_printed_creator_cells,
    check_printed_human_clip_count,
    check_printed_human_scores,
    check_printed_ranks,
    check_printed_reviewer_cells,
    list_printed_creator_cells,
    list_printed_reviewer_cells,
)

CLIPS_BY_SCORE: Final = (3, 7, 10, 6, 4)
"""Number of the thirty clips to which people gave the score 1, 2, 3, 4 and 5."""
PRINTED_PAIRS: Final = 345


def count_untied_pairs(clips_by_score: tuple[int, ...]) -> int:
    """Count the pairs of clips with different scores: all pairs minus ties."""
    return comb(sum(clips_by_score), 2) - sum(comb(clips, 2) for clips in clips_by_score)


def check_printed_pair_count() -> PrintedNumberCheckResult:
    """Check VideoRealBench's printed number of pairs of clips with different scores."""
    pairs = count_untied_pairs(CLIPS_BY_SCORE)
    misprint = PrintedMisprint(
        cell="ordered pairs",
        formula="30 x 29 / 2 less the ties",
        calculated=Decimal(pairs),
        printed=Decimal(PRINTED_PAIRS),
        cause=MisprintCause.UNEXPLAINED,
        because="The scores give another number",
    )
    wrong = () if pairs == PRINTED_PAIRS else (misprint,)
    return PrintedNumberCheckResult(
        name="VRB pairs",
        formula="30 x 29 / 2 less the ties of 3, 7, 10, 6 and 4 clips = 345",
        reproduced=1 - len(wrong),
        total=1,
        expected=1,
        expected_total=1,
        misprints=wrong,
    )


def check_published_numbers() -> tuple[PrintedNumberCheckResult, ...]:
    """Recalculate printed results; return a check per group, whose data are sound if `ok` is true."""
    tables = read_printed_count_tables()
    reviewers, creators = read_printed_reviewer_lines(), read_printed_creator_lines()
    return (
        check_deeptrace_overall(),
        check_deeptrace_accuracy(),
        check_deeptrace_explanation_rates(),
        check_printed_reviewer_cells(tables),
        check_printed_averages(
            reviewers, list_printed_reviewer_cells(tables), name="VRT table 2 averages", expected=13
        ),
        check_printed_ranks(reviewers, name="VRT table 2 ranks", best_is_high=True),
        check_printed_creator_cells(tables),
        check_printed_averages(
            creators, list_printed_creator_cells(tables), name="VRT table 3 averages", expected=10
        ),
        check_printed_ranks(creators, name="VRT table 3 ranks", best_is_high=False),
        check_printed_human_scores(),
        check_printed_human_clip_count(),
        check_printed_pair_count(),
    )
