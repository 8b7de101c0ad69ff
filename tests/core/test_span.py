from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unreel.core.errors import InvalidValueError
from unreel.core.span import TimeSpan, add_seconds_fields, convert_to_microseconds

spans = st.tuples(st.integers(0, 10**9), st.integers(1, 10**9)).map(
    lambda pair: TimeSpan(pair[0], pair[0] + pair[1])
)


@pytest.mark.parametrize(("start_us", "end_us"), [(-1, 5), (5, 5), (6, 5)])
def test_a_span_that_cannot_be_is_refused(start_us: int, end_us: int) -> None:
    with pytest.raises(InvalidValueError, match="0 <= start < end"):
        TimeSpan(start_us, end_us)


@given(spans, spans)
def test_overlap_is_symmetric_and_never_longer_than_either_span(a: TimeSpan, b: TimeSpan) -> None:
    shared = a.overlap_us(b)
    assert shared == b.overlap_us(a)
    assert 0 <= shared <= min(a.length_us, b.length_us)


def test_a_frame_of_ntsc_video_rounds_to_the_nearest_microsecond() -> None:
    assert convert_to_microseconds(Fraction(1001, 30000)) == 33_367
    assert convert_to_microseconds(0.5) == 500_000


def test_seconds_stand_beside_whole_microseconds_wherever_a_document_has_them() -> None:
    told = {"start_us": 1_500_000, "parts": [{"at_us": 250_000}], "end_us": None, "name": "a"}
    assert add_seconds_fields(told) == {
        "start_us": 1_500_000,
        "start_s": 1.5,
        "parts": [{"at_us": 250_000, "at_s": 0.25}],
        "end_us": None,
        "name": "a",
    }


@given(st.fractions())
def test_microseconds_are_the_nearest_with_ties_to_even(seconds: Fraction) -> None:
    assert convert_to_microseconds(seconds) == round(seconds * 1_000_000)
    tie = Fraction(2 * seconds.numerator + 1, 2_000_000)
    assert convert_to_microseconds(tie) == round(tie * 1_000_000)
