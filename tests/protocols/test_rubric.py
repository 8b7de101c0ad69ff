from fractions import Fraction
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unreel.core.box import Box
from unreel.core.errors import InvalidValueError
from unreel.core.span import TimeSpan
from unreel.core.trace import BoxAt, Trace
from unreel.protocols.realism_rubric import (
    TraceCoverage,
    measure_box_union_area,
    measure_span_union_us,
    measure_trace_coverage,
)

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


def test_all_boxes_of_a_track_count() -> None:
    moving = Trace(
        span=TimeSpan(0, 2), track=(BoxAt(0, Box(0, 0, 0.3, 1)), BoxAt(1, Box(0.5, 0, 0.8, 1)))
    )
    assert measure_trace_coverage([moving], duration_us=CLIP_US).picture == Fraction(6, 10)


def test_time_after_the_end_of_the_clip_does_not_count() -> None:
    late = trace(None, 9 * SECOND, 20 * SECOND)
    after = trace(None, 10 * SECOND, 20 * SECOND)
    assert measure_trace_coverage([late, after], duration_us=CLIP_US).time == Fraction(1, 10)


def test_a_clip_lasts_some_time() -> None:
    with pytest.raises(InvalidValueError):
        measure_trace_coverage([], duration_us=0)


@given(st.lists(boxes, max_size=7))
def test_the_union_is_the_cells_that_a_grid_counts(given_boxes: list[Box]) -> None:
    covered = {
        (i, j)
        for box in given_boxes
        for i in range(round(box.x0 * 20), round(box.x1 * 20))
        for j in range(round(box.y0 * 20), round(box.y1 * 20))
    }
    assert measure_box_union_area(given_boxes) == Fraction(len(covered), 400)


@given(st.lists(spans, max_size=7), st.integers(1, 70))
def test_the_covered_time_is_the_microseconds_that_a_set_counts(
    given_spans: list[TimeSpan], duration_us: int
) -> None:
    covered = {us for span in given_spans for us in range(span.start_us, span.end_us)}
    expected = len(covered & set(range(duration_us)))
    assert measure_span_union_us(given_spans, duration_us=duration_us) == expected


floats = st.tuples(st.floats(0, 1), st.floats(0, 1)).filter(lambda p: p[0] != p[1]).map(sorted)
any_box = st.tuples(floats, floats).map(lambda p: Box(p[0][0], p[1][0], p[0][1], p[1][1]))


@given(st.lists(any_box, min_size=1, max_size=6))
def test_the_union_lies_between_the_largest_box_and_the_sum(given_boxes: list[Box]) -> None:
    union = measure_box_union_area(given_boxes)
    areas = [measure_box_union_area([box]) for box in given_boxes]
    assert max(areas) <= union <= min(Fraction(1), sum(areas, Fraction(0)))
    assert float(areas[0]) == pytest.approx(given_boxes[0].area, abs=1e-8)


@given(st.lists(traces, max_size=4), traces, st.integers(1, 60))
def test_another_trace_never_raises_the_level(
    known: list[Trace], another: Trace, duration_us: int
) -> None:
    before = measure_trace_coverage(known, duration_us=duration_us)
    after = measure_trace_coverage([*known, another], duration_us=duration_us)
    assert after.level <= before.level
    assert after.picture >= before.picture
    assert after.time >= before.time


@given(st.lists(traces, max_size=4), st.integers(1, 60))
def test_the_order_of_traces_does_not_matter(known: list[Trace], duration_us: int) -> None:
    found = {
        measure_trace_coverage(order, duration_us=duration_us) for order in permutations(known)
    }
    assert len(found) == 1


@given(st.fractions(0, 1), st.fractions(0, 1), st.integers(1, 9))
def test_every_extent_has_a_level_of_the_rubric(
    picture: Fraction, time: Fraction, n_traces: int
) -> None:
    found = TraceCoverage(n_traces=n_traces, picture=picture, time=time).level
    percent, duration = 100 * picture, 100 * time
    assert (found == 1) == (percent > 40 or duration > 80)
    assert (found <= 2) == (percent > 20 or duration > 40)
    assert (found == 4) == (percent < 10 and duration < 20 and n_traces <= 2)
