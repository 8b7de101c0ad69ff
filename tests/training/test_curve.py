"""A curve is a table that programs read and a picture that people look at."""

import csv
import io
import xml.etree.ElementTree as ET

import pytest

from unreel.training.curve import draw_training_curve_svg, format_training_curve_csv

MOMENTS = [
    {"step": 1, "epoch": 0.5, "loss": 2.0, "learning rate": 1e-4},
    {"step": 2, "epoch": 1.0, "loss": 1.0, "held-out loss": 1.5, "trace accuracy": 50.0},
]


def test_the_table_has_a_line_for_each_step_and_leaves_empty_what_was_not_measured() -> None:
    first, second = csv.DictReader(io.StringIO(format_training_curve_csv(MOMENTS)))
    assert (first["step"], first["loss"], first["held-out loss"]) == ("1", "2", "")
    assert (second["held-out loss"], second["trace accuracy"]) == ("1.5", "50")


@pytest.mark.parametrize(
    "moments",
    [
        [],
        MOMENTS[:1],
        MOMENTS,
        [{"step": 1, "loss": float("nan")}, {"step": 2, "loss": float("inf")}],
        [{"step": i, "loss": 0.0} for i in range(1, 5000)],
    ],
)
def test_the_picture_is_sound_whatever_was_measured(moments: list[dict[str, float]]) -> None:
    picture = draw_training_curve_svg(moments)
    assert ET.fromstring(picture).tag.endswith("svg")
    assert len(picture) < 40_000
    assert "nan" not in picture
