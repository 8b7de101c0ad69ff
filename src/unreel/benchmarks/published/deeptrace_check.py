"""Recalculation of DeepTraceReward's printed tables 1, 2 and 5."""

from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from typing import Final

from unreel.benchmarks.published.misprints import (
    MisprintCause,
    PrintedMisprint,
    PrintedNumberCheckResult,
)
from unreel.benchmarks.published.printed_tables import (
    PrintedDeepTraceRow,
    PrintedExplanationRate,
    read_printed_cell_counts,
    read_printed_deeptrace_rows,
    read_printed_explanation_rates,
)
from unreel.protocols.paper_formulas import (
    PERCENT,
    compute_pooled_accuracy,
    compute_trace_overall_score,
    round_as_printed,
)

SPLITS: Final = ("test", "val")
TOLERANCE: Final = Decimal("0.05")
N_REAL: Final = 332
N_FAKE: Final = {"test": 440, "val": 434}
"""Number of annotation rows with a generated clip in each split; the paper scores rows."""


def check_deeptrace_overall() -> PrintedNumberCheckResult:
    """Check DeepTraceReward's overall scores against their four printed components, within 0.05."""
    rows = [(split, row) for split in SPLITS for row in read_printed_deeptrace_rows(split)]
    misprints = []
    for split, row in rows:
        calculated = _compute_deeptrace_overall_score(row)
        if abs(calculated - row.overall) > TOLERANCE:
            misprints.append(
                PrintedMisprint(
                    cell=f"{split}, {row.model}",
                    formula=f"({row.accuracy} + {row.explanation} + {row.bbox_iou} + "
                    f"(100 - {row.time_distance})) / 4",
                    calculated=calculated,
                    printed=row.overall,
                    cause=MisprintCause.UNEXPLAINED,
                    because=f"It is {abs(calculated - row.overall)} off",
                )
            )
    return PrintedNumberCheckResult(
        name="DTR overall",
        formula="(accuracy + explanation + IoU + (100 - time distance)) / 4, within 0.05",
        reproduced=len(rows) - len(misprints),
        total=len(rows),
        expected=42,
        expected_total=42,
        misprints=tuple(misprints),
    )


def check_deeptrace_accuracy() -> PrintedNumberCheckResult:
    """Check that integer counts of rows give the printed accuracies (all, fake, real) of each line."""
    counts = read_printed_cell_counts()["deeptracereward"]
    rows = [
        (split, row, golden["fake_correct"], golden["real_correct"])
        for split in SPLITS
        for row, golden in zip(read_printed_deeptrace_rows(split), counts[split], strict=True)
    ]
    misprints = tuple(
        _build_accuracy_misprint(split, row, fake_correct=fake, real_correct=real)
        for split, row, fake, real in rows
        if _compute_accuracies(split, fake_correct=fake, real_correct=real)
        != (row.accuracy, row.fake_accuracy, row.real_accuracy)
    )
    return PrintedNumberCheckResult(
        name="DTR accuracy",
        formula="100 (fake right + real right) / (fake rows + real rows), and each side alone",
        reproduced=len(rows) - len(misprints),
        total=len(rows),
        expected=41,
        expected_total=42,
        misprints=misprints,
    )


def check_deeptrace_explanation_rates() -> PrintedNumberCheckResult:
    """Check that an integer count of rows gives each creator's printed percentage with explanation."""
    rows = read_printed_explanation_rates()
    misprints = tuple(
        _build_explanation_rate_misprint(row) for row in rows if not _list_possible_counts(row)
    )
    return PrintedNumberCheckResult(
        name="DTR table 1 explained",
        formula="100 x explained / rows, for some whole number of explained rows",
        reproduced=len(rows) - len(misprints),
        total=len(rows),
        expected=6,
        expected_total=7,
        misprints=misprints,
    )


def _list_possible_counts(row: PrintedExplanationRate) -> list[int]:
    return [
        n
        for n in range(row.annotations + 1)
        if _compute_percentage(n, row.annotations) == row.explained
    ]


def _build_explanation_rate_misprint(row: PrintedExplanationRate) -> PrintedMisprint:
    below = int(row.explained * row.annotations / PERCENT)
    nearest = " and ".join(
        f"{n} gives {_compute_percentage(n, row.annotations)}" for n in (below, below + 1)
    )
    return PrintedMisprint(
        cell=f"{row.source}, explained",
        formula=f"100 x ?/{row.annotations}",
        calculated=None,
        printed=row.explained,
        cause=MisprintCause.IMPOSSIBLE_SHARE,
        because=f"Of {row.annotations} rows {nearest}",
    )


def _compute_percentage(n: int, rows: int) -> Decimal:
    # Rounded in one step, unlike tables 2 and 5: only so is 69 of 102, 67.647, printed as 67.6.
    return (Decimal(PERCENT * n) / rows).quantize(Decimal("0.1"), ROUND_HALF_UP)


def _compute_deeptrace_overall_score(row: PrintedDeepTraceRow) -> Decimal:
    value = compute_trace_overall_score(
        accuracy=float(row.accuracy),
        explanation=float(row.explanation),
        box_iou=float(row.bbox_iou),
        time_distance=float(row.time_distance),
    )
    return round_as_printed(value, places=3)  # exact: a quarter of tenths has three places


def _compute_accuracies(
    split: str, *, fake_correct: int | None, real_correct: int | None
) -> tuple[Decimal, Decimal, Decimal] | None:
    if fake_correct is None or real_correct is None:
        return None
    n_fake = N_FAKE[split]
    pooled = compute_pooled_accuracy(
        real_correct=real_correct, n_real=N_REAL, fake_correct=fake_correct, n_fake=n_fake
    )
    return (
        round_as_printed(pooled),
        round_as_printed(Fraction(PERCENT * fake_correct, n_fake)),
        round_as_printed(Fraction(PERCENT * real_correct, N_REAL)),
    )


def _build_accuracy_misprint(
    split: str, row: PrintedDeepTraceRow, *, fake_correct: int | None, real_correct: int | None
) -> PrintedMisprint:
    accuracies = _compute_accuracies(split, fake_correct=fake_correct, real_correct=real_correct)
    n_fake = N_FAKE[split]
    cause, because = _explain_accuracy_misprint(split, row)
    right = "? + ?" if accuracies is None else f"{fake_correct} + {real_correct}"
    return PrintedMisprint(
        cell=f"{split}, {row.model}",
        formula=f"100 x ({right})/({n_fake} + {N_REAL})",
        calculated=None if accuracies is None else accuracies[0],
        printed=row.accuracy,
        cause=cause,
        because=because,
    )


def _explain_accuracy_misprint(split: str, row: PrintedDeepTraceRow) -> tuple[MisprintCause, str]:
    n_fake = N_FAKE[split]
    possible = any(
        round_as_printed(Fraction(PERCENT * right, n_fake)) == row.fake_accuracy
        for right in range(n_fake + 1)
    )
    printed = (row.accuracy, row.fake_accuracy, row.real_accuracy)
    for other in (other for other in SPLITS if other != split):
        twins = [twin for twin in read_printed_deeptrace_rows(other) if twin.model == row.model]
        same = [(twin.accuracy, twin.fake_accuracy, twin.real_accuracy) for twin in twins]
        if not possible and printed in same:
            reason = (
                f"No whole count of {n_fake} prints a fake accuracy of {row.fake_accuracy}, and the "
                f"three accuracies are those of the {other} row"
            )
            return MisprintCause.REPEATED_ROW, reason
    return MisprintCause.UNEXPLAINED, "The counts print other accuracies"
