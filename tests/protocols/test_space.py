from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unreel.core.box import Box
from unreel.protocols.box_space import BoxSpace, parse_box_space


def corners(*numbers: float) -> list[Fraction]:
    return [Fraction(str(number)) for number in numbers]


@pytest.mark.parametrize(
    ("declared", "numbers"),
    [
        ("pixel", (320, 90, 640, 180)),
        ("unit", (0.25, 0.125, 0.5, 0.25)),
        ("permille", (250, 125, 500, 250)),
        ("model-input 448x256", (112, 32, 224, 64)),
    ],
)
def test_the_same_box_in_every_space(declared: str, numbers: tuple[float, ...]) -> None:
    space = parse_box_space(declared, width=1280, height=720)
    assert space.box(corners(*numbers)) == Box(0.25, 0.125, 0.5, 0.25)
    assert space.corners(Box(0.25, 0.125, 0.5, 0.25)) == numbers


def test_the_numbers_never_choose_the_space() -> None:
    looks_like_unit = corners(0.1, 0.1, 0.9, 0.9)
    box = parse_box_space("pixel", width=100, height=100).box(looks_like_unit)
    assert box == Box(0.001, 0.001, 0.009, 0.009)
    looks_like_pixels = corners(100, 100, 300, 300)
    assert parse_box_space("unit", width=640, height=360).box(looks_like_pixels) is None


def test_a_box_is_clipped_to_the_frame() -> None:
    space = BoxSpace("pixel", 100, 50)
    assert space.box(corners(-10, -5, 120, 25)) == Box(0, 0, 1, 0.5)


@pytest.mark.parametrize(
    "numbers", [(50, 10, 20, 30), (20, 30, 50, 10), (20, 10, 20, 30), (100, 0, 150, 50), (-9, 0, 0, 9)]
)  # fmt: skip
def test_no_box_is_left_of_reversed_empty_or_outside_corners(numbers: tuple[float, ...]) -> None:
    assert BoxSpace("pixel", 100, 50).box(corners(*numbers)) is None


@given(st.lists(st.fractions(-2, 3), min_size=4, max_size=4), st.integers(1, 5000))
def test_a_box_lies_in_the_frame_or_is_none(numbers: list[Fraction], size: int) -> None:
    box = BoxSpace("any", size, size).box([number * size for number in numbers])
    x0, y0, x1, y1 = (min(Fraction(1), max(Fraction(0), number)) for number in numbers)
    if x0 < x1 and y0 < y1 and float(x0) < float(x1) and float(y0) < float(y1):
        assert box == Box(float(x0), float(y0), float(x1), float(y1))
    else:
        assert box is None
