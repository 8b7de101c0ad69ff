import json
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest

from unreel.protocols.paper_formulas import (
    compute_balanced_accuracy,
    compute_pooled_accuracy,
    compute_trace_overall_score,
    round_as_printed,
)


def test_overall_weighs_four_figures_alike_and_wants_a_small_time_distance() -> None:
    assert compute_trace_overall_score(
        accuracy=80, explanation=40, box_iou=20, time_distance=30
    ) == pytest.approx(52.5)
    assert (
        compute_trace_overall_score(accuracy=100, explanation=100, box_iou=100, time_distance=0)
        == 100
    )
    assert compute_trace_overall_score(accuracy=0, explanation=0, box_iou=0, time_distance=100) == 0


def test_overall_reproduces_every_printed_row(shared: Path) -> None:
    tables = json.loads((shared / "published" / "goldens.json").read_text(encoding="utf-8"))
    rows = [row["printed"] for split in tables["deeptracereward"].values() for row in split]
    assert len(rows) == 42
    for row in rows:
        value = compute_trace_overall_score(
            accuracy=row["acc"],
            explanation=row["explanation"],
            box_iou=row["bbox_iou"],
            time_distance=row["time_dist"],
        )
        assert abs(Decimal(str(row["overall"])) - Decimal(repr(value))) <= Decimal("0.0501")


def test_pooled_weighs_clips_and_balanced_weighs_sides() -> None:
    counts = {"real_correct": 90, "n_real": 100, "fake_correct": 3, "n_fake": 10}
    assert compute_pooled_accuracy(**counts) == pytest.approx(100 * 93 / 110)
    assert compute_balanced_accuracy(**counts) == pytest.approx((90 + 30) / 2)


@pytest.mark.parametrize(
    ("value", "places", "printed"),
    [
        (Fraction(37200, 440), 1, "84.6"),  # 84.545.. -> 84.55 -> 84.6; rounding once gives 84.5
        (84.545, 1, "84.6"),
        (84.544, 1, "84.5"),
        (0.05, 1, "0.1"),
        (0.045, 1, "0.1"),
        (0.0449, 1, "0.0"),
        (99.945, 1, "100.0"),
        (36.275, 1, "36.3"),  # the float lies just below; its shortest name does not
        (2.675, 2, "2.68"),
        (1.45, 0, "2"),
        (1.44, 0, "1"),
        (-0.25, 1, "-0.3"),
        (-0.01, 1, "0.0"),
        (0, 1, "0.0"),
        (1e30, 1, "1000000000000000000000000000000.0"),
        (5e-324, 1, "0.0"),
    ],
)
def test_paper_round_rounds_twice_and_half_up(
    value: Fraction | float, places: int, printed: str
) -> None:
    assert str(round_as_printed(value, places)) == printed
