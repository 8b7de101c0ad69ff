"""The papers' formulas on plain numbers: one place for scorers and for the check of printed figures."""

import math
from decimal import Decimal
from fractions import Fraction
from typing import Final

from unreel.core.errors import InvalidValueError

PERCENT: Final = 100


def compute_overall_score(
    *, accuracy: float, explanation: float, box_iou: float, time_distance: float
) -> float:
    """DeepTraceReward's overall score, 0 to 100, from four figures of 0 to 100 each.

    The box distance is no part of it, and a time distance of 100 is worth nothing.
    """
    parts = (accuracy, explanation, box_iou, time_distance)
    if not all(0 <= part <= PERCENT for part in parts):
        msg = f"the parts of overall lie between 0 and 100, got {parts}. Give percentages"
        raise InvalidValueError(msg)
    return math.fsum((accuracy, explanation, box_iou, PERCENT - time_distance)) / 4


def pooled_accuracy(*, real_correct: int, n_real: int, fake_correct: int, n_fake: int) -> float:
    """Percent of all clips that were judged rightly, real and generated ones in one pool."""
    _check_counts(real_correct, n_real)
    _check_counts(fake_correct, n_fake)
    return PERCENT * (real_correct + fake_correct) / (n_real + n_fake)


def balanced_accuracy(*, real_correct: int, n_real: int, fake_correct: int, n_fake: int) -> float:
    """Mean of the real and of the generated clips' accuracy in percent, whatever their numbers."""
    _check_counts(real_correct, n_real)
    _check_counts(fake_correct, n_fake)
    return float(PERCENT * (Fraction(real_correct, n_real) + Fraction(fake_correct, n_fake)) / 2)


def paper_round(value: Fraction | float, places: int = 1) -> Decimal:
    """`value` as DeepTraceReward prints it: half up to `places + 1`, then half up to `places`.

    So 372/440 is 84.545.. -> 84.55 -> 84.6 percent. A `Fraction` is taken exactly; a float as the
    shortest decimal that names it, which is the figure that people read and type.
    """
    if not math.isfinite(value) or places < 0:
        msg = f"cannot round {value} to {places} places. Give a finite number and places >= 0"
        raise InvalidValueError(msg)
    exact = value if isinstance(value, Fraction) else Fraction(str(value))
    finer = _round_half_up(exact * 10 ** (places + 1))
    steps = _round_half_up(Fraction(finer, 10))
    digits = tuple(map(int, str(abs(steps))))
    return Decimal((int(steps < 0), digits, -places))  # built exactly, whatever the context


def _round_half_up(value: Fraction) -> int:
    nearest = math.floor(abs(value) + Fraction(1, 2))
    return -nearest if value < 0 else nearest


def _check_counts(correct: int, n: int) -> None:
    if not 0 <= correct <= n or n == 0:
        msg = (
            f"{correct} of {n} is impossible. Give counts, without questions that were never asked"
        )
        raise InvalidValueError(msg)
