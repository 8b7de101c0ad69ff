"""What processors are told of time."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local.sheets import shown
from unreel.reviewers.message_parts import (
    compute_even_frame_timing,
    compute_exact_frame_timing,
    explain_uneven_frame_timing,
)

INSTANTS = st.lists(
    st.fractions(min_value=0, max_value=600, max_denominator=90_000),
    min_size=1,
    max_size=8,
    unique=True,
).map(sorted)


@given(INSTANTS)
def test_any_instants_are_told_exactly(instants: list[Fraction]) -> None:
    timing = compute_exact_frame_timing(shown(instants).frames)
    assert list(timing.seconds) == instants
    marks = [index / float(timing.fps) for index in timing.indices]
    assert marks == pytest.approx([float(at_s) for at_s in instants], abs=1e-9)


@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_frames_at_a_rate_are_told_by_their_distance(n: int) -> None:
    frames = shown([Fraction(i, 2) for i in range(n)]).frames
    assert explain_uneven_frame_timing(frames) == ""
    if n > 1:
        assert list(compute_even_frame_timing(frames).seconds) == [frame.at_s for frame in frames]


def test_the_middles_of_equal_shares_rounded_to_frames_are_even_enough() -> None:
    middles = [Fraction(2 * i + 1, 16) * Fraction(101, 25) for i in range(8)]
    rounded = [Fraction(round(at_s * 25), 25) for at_s in middles]
    assert explain_uneven_frame_timing(shown(rounded).frames) == ""


def test_frames_of_the_end_alone_are_not_taken_for_the_beginning() -> None:
    assert "4.00 s after the clip's start" in explain_uneven_frame_timing(
        shown([4, Fraction(9, 2), 5]).frames
    )
