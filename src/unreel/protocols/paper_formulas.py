"""Formulas of the papers on plain numbers, for scorers and for checking published results."""

import math
from decimal import Decimal
from fractions import Fraction

from unreel.core.errors import InvalidValueError

PERCENT = 100


def compute_trace_overall_score(
    *, accuracy: float, explanation: float, box_iou: float, time_distance: float
) -> float:
    """Compute DeepTraceReward's overall score from four metrics (0 to 100), without box distance."""
    parts = (accuracy, explanation, box_iou, time_distance)
    if not all(0 <= part <= PERCENT for part in parts):
        raise InvalidValueError(f"the parts of overall must be 0 to 100, not {parts}")
    return math.fsum((accuracy, explanation, box_iou, PERCENT - time_distance)) / 4


def compute_pooled_accuracy(
    *, real_correct: int, n_real: int, fake_correct: int, n_fake: int
) -> float:
    """Compute the percentage of correctly judged clips, with real and generated clips pooled."""
    _require_valid_counts(real_correct, n_real)
    _require_valid_counts(fake_correct, n_fake)
    return PERCENT * (real_correct + fake_correct) / (n_real + n_fake)


def compute_balanced_accuracy(
    *, real_correct: int, n_real: int, fake_correct: int, n_fake: int
) -> float:
    """Compute the mean of the accuracies on real and generated clips, in percent, equally weighted."""
    _require_valid_counts(real_correct, n_real)
    _require_valid_counts(fake_correct, n_fake)
    return float(PERCENT * (Fraction(real_correct, n_real) + Fraction(fake_correct, n_fake)) / 2)


def round_as_printed(value: Fraction | float, places: int = 1) -> Decimal:
    """Round `value` as DeepTraceReward does: half up to `places + 1`, then half up to `places`.

    For example, 372/440 is 84.545.. -> 84.55 -> 84.6 percent. A `Fraction` is rounded exactly. A
    float is first converted to its shortest decimal form, which is the number that people read and
    type.
    """
    if not math.isfinite(value) or places < 0:
        raise InvalidValueError(
            f"cannot round {value} to {places} places. Give a finite number and places >= 0"
        )
    exact = value if isinstance(value, Fraction) else Fraction(str(value))
    finer = _round_half_up(exact * 10 ** (places + 1))
    steps = _round_half_up(Fraction(finer, 10))
    digits = tuple(map(int, str(abs(steps))))
    return Decimal((int(steps < 0), digits, -places))  # exact, independent of the decimal context


def _round_half_up(value: Fraction) -> int:
    nearest = math.floor(abs(value) + Fraction(1, 2))
    return -nearest if value < 0 else nearest


def _require_valid_counts(correct: int, n: int) -> None:
    if not 0 <= correct <= n or n == 0:
        raise InvalidValueError(
            f"{correct} of {n} is impossible. Give counts, without questions that were never asked"
        )
