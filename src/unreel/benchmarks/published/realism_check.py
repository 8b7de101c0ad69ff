"""VideoRealBench's preference figures, recalculated from the scores of its thirty clips."""

from decimal import ROUND_HALF_UP, Decimal
from math import comb
from typing import Final

from unreel.benchmarks.published.verdicts import Cause, Check, Misprint
from unreel.protocols.formulas import pair_consistency

CLIPS_BY_SCORE: Final = (3, 7, 10, 6, 4)
"""How many of the thirty clips people scored 1, 2, 3, 4 and 5."""
PRINTED_PAIRS: Final = 345
PRINTED_PCR: Final = {319: Decimal("0.925"), 260: Decimal("0.754")}
"""The printed share of pairs in the right order, by the whole count of pairs behind it."""


def ordered_pairs(clips_by_score: tuple[int, ...]) -> int:
    """Pairs of clips with different scores: all pairs less the tied ones."""
    return comb(sum(clips_by_score), 2) - sum(comb(clips, 2) for clips in clips_by_score)


def check_pairs() -> Check:
    """The number of strictly ordered pairs."""
    pairs = ordered_pairs(CLIPS_BY_SCORE)
    misprint = Misprint(
        cell="ordered pairs",
        formula="30 x 29 / 2 less the ties",
        calculated=Decimal(pairs),
        printed=Decimal(PRINTED_PAIRS),
        cause=Cause.UNEXPLAINED,
        because="The scores give another number",
    )
    wrong = () if pairs == PRINTED_PAIRS else (misprint,)
    return Check(
        name="VRB pairs",
        formula="30 x 29 / 2 less the ties of 3, 7, 10, 6 and 4 clips = 345",
        reproduced=1 - len(wrong),
        total=1,
        expected=1,
        expected_total=1,
        misprints=wrong,
    )


def check_pcr() -> Check:
    """Both printed shares, each from a whole count of pairs."""
    pairs = ordered_pairs(CLIPS_BY_SCORE)
    misprints = []
    for right, printed in PRINTED_PCR.items():
        share = Decimal(str(pair_consistency(agreeing=right, pairs=pairs)))
        calculated = share.quantize(printed, ROUND_HALF_UP)
        if calculated != printed:
            misprints.append(
                Misprint(
                    cell=f"PCR {printed}",
                    formula=f"{right} / {pairs}",
                    calculated=calculated,
                    printed=printed,
                    cause=Cause.UNEXPLAINED,
                    because="The count gives another share",
                )
            )
    return Check(
        name="VRB PCR",
        formula="pairs in the right order / ordered pairs: 319/345 and 260/345",
        reproduced=len(PRINTED_PCR) - len(misprints),
        total=len(PRINTED_PCR),
        expected=2,
        expected_total=2,
        misprints=tuple(misprints),
    )
