"""VideoRealBench's number of pairs, recalculated from the scores of its thirty clips."""

from decimal import Decimal
from math import comb
from typing import Final

from unreel.benchmarks.published.verdicts import FigureCheck, MisprintCause, PrintedMisprint

CLIPS_BY_SCORE: Final = (3, 7, 10, 6, 4)
"""How many of the thirty clips people scored 1, 2, 3, 4 and 5."""
PRINTED_PAIRS: Final = 345


def ordered_pairs(clips_by_score: tuple[int, ...]) -> int:
    """Pairs of clips with different scores: all pairs less the tied ones."""
    return comb(sum(clips_by_score), 2) - sum(comb(clips, 2) for clips in clips_by_score)


def check_pairs() -> FigureCheck:
    """The number of strictly ordered pairs."""
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
