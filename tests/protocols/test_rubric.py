from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unreel.core.box import Box
from unreel.core.span import TimeSpan
from unreel.core.trace import BoxAt, Trace
from unreel.protocols.realism_rubric import measure_box_union_area, measure_trace_coverage

SECOND = 1_000_000
CLIP_US = 10 * SECOND


def trace(box: Box | None, start_us: int = 0, end_us: int = 1) -> Trace:
    track = () if box is None else (BoxAt(start_us, box),)
    return Trace(span=TimeSpan(start_us, end_us), track=track)


def level(*traces: Trace) -> int:
    return measure_trace_coverage(traces, duration_us=CLIP_US).level


sides = st.tuples(st.integers(0, 20), st.integers(0, 20)).filter(lambda p: p[0] != p[1]).map(sorted)
boxes = st.tuples(sides, sides).map(
    lambda p: Box(p[0][0] / 20, p[1][0] / 20, p[0][1] / 20, p[1][1] / 20)
)
spans = st.tuples(st.integers(0, 30), st.integers(1, 30)).map(lambda p: TimeSpan(p[0], p[0] + p[1]))
traces = st.tuples(st.none() | boxes, spans).map(lambda p: trace(p[0], p[1].start_us, p[1].end_us))


def test_a_clip_without_traces_is_excellent() -> None:
    assert level() == 5


@pytest.mark.parametrize(
    ("width", "expected"),
    [(0.05, 4), (0.099, 4), (0.1, 3), (0.15, 3), (0.2, 3), (0.201, 2), (0.4, 2), (0.401, 1), (1.0, 1)],
)  # fmt: skip
def test_the_share_of_the_picture_decides(width: float, expected: int) -> None:
    assert level(trace(Box(0, 0, width, 1))) == expected


@pytest.mark.parametrize(
    ("tenths", "expected"),
    [(1, 4), (19, 4), (20, 3), (30, 3), (40, 3), (41, 2), (80, 2), (81, 1), (100, 1)],
)
def test_the_share_of_the_time_decides(tenths: int, expected: int) -> None:
    assert level(trace(None, 0, tenths * SECOND // 10)) == expected


def test_the_worse_of_picture_and_time_counts() -> None:
    assert level(trace(Box(0, 0, 0.3, 1), 0, 9 * SECOND)) == 1
    assert level(trace(Box(0, 0, 0.5, 1), 0, SECOND)) == 1


def test_three_minor_errors_are_not_one_or_two() -> None:
    minor = trace(Box(0, 0, 0.1, 0.1))
    assert level(minor) == level(minor, minor) == 4
    assert level(minor, minor, minor) == 3


def test_boxes_that_overlap_are_counted_once() -> None:
    same = trace(Box(0, 0, 0.3, 1))
    assert level(same, same) == 2  # 30 %, not 60 %
    assert level(same, trace(Box(0.3, 0, 0.45, 1))) == 1


@given(st.lists(boxes, max_size=7))
def test_the_union_is_the_cells_that_a_grid_counts(given_boxes: list[Box]) -> None:
    covered = {
        (i, j)
        for box in given_boxes
        for i in range(round(box.x0 * 20), round(box.x1 * 20))
        for j in range(round(box.y0 * 20), round(box.y1 * 20))
    }
    assert measure_box_union_area(given_boxes) == Fraction(len(covered), 400)


floats = st.tuples(st.floats(0, 1), st.floats(0, 1)).filter(lambda p: p[0] != p[1]).map(sorted)


@given(st.lists(traces, max_size=4), traces, st.integers(1, 60))
def test_another_trace_never_raises_the_level(
    known: list[Trace], another: Trace, duration_us: int
) -> None:
    before = measure_trace_coverage(known, duration_us=duration_us)
    after = measure_trace_coverage([*known, another], duration_us=duration_us)
    assert after.level <= before.level
    assert after.picture >= before.picture
    assert after.time >= before.time
