import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unreel.core.box import Box
from unreel.core.errors import InvalidValueError

GRID = 40


def _box(edges: tuple[int, int, int, int]) -> Box:
    left, top, width, height = edges
    return Box(
        left / GRID, top / GRID, min(GRID, left + width) / GRID, min(GRID, top + height) / GRID
    )


boxes = st.tuples(
    st.integers(0, GRID - 1), st.integers(0, GRID - 1), st.integers(1, GRID), st.integers(1, GRID)
).map(_box)


def _cells(box: Box) -> set[tuple[int, int]]:
    columns = range(round(box.x0 * GRID), round(box.x1 * GRID))
    rows = range(round(box.y0 * GRID), round(box.y1 * GRID))
    return {(column, row) for column in columns for row in rows}


@pytest.mark.parametrize(
    "corners",
    [(0.5, 0, 0.5, 1), (0.6, 0, 0.5, 1), (-0.1, 0, 1, 1), (0, 0, 1.1, 1), (0, 0, math.nan, 1)],
)
def test_a_box_without_area_or_outside_the_frame_is_refused(
    corners: tuple[float, float, float, float],
) -> None:
    with pytest.raises(InvalidValueError, match="parts of the frame"):
        Box(*corners)


@given(boxes, boxes)
def test_iou_equals_the_share_of_grid_cells(a: Box, b: Box) -> None:
    expected = len(_cells(a) & _cells(b)) / len(_cells(a) | _cells(b))
    assert a.iou(b) == pytest.approx(expected)


@given(boxes, boxes)
def test_centre_distance_is_symmetric_and_at_most_one(a: Box, b: Box) -> None:
    assert a.centre_distance(b) == pytest.approx(b.centre_distance(a))
    assert 0 <= a.centre_distance(b) <= 1
