"""Cells from strangers become exact values, or are refused with a reason."""

from contextlib import suppress
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unreel.benchmarks import cells
from unreel.core.errors import InvalidValueError

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        (29.97, Fraction(2997, 100)),
        ("29.97", Fraction(2997, 100)),
        ("30000/1001", Fraction(30000, 1001)),
        (30, Fraction(30)),
        (" 7 ", Fraction(7)),
        (-1234567.125, Fraction(-9876537, 8)),
        (-(10**12), Fraction(-(10**12))),
    ],
)
def test_a_number_is_taken_exactly_as_written(cell: object, value: Fraction) -> None:
    assert cells.parse_exact_number(cell, "rate") == value


@pytest.mark.parametrize(
    "cell",
    ["", "x", "1/0", "nan", "inf", "1e999", "9" * 5000, True, None, [], 10**400, float("nan")],
)
def test_what_is_no_number_is_refused(cell: object) -> None:
    with pytest.raises(InvalidValueError, match=r"rate cannot be .* Write a plain number"):
        cells.parse_exact_number(cell, "rate")


@pytest.mark.parametrize("cell", [1.5, -1, "-3", "1/3"])
def test_a_count_is_whole_and_not_below_zero(cell: object) -> None:
    with pytest.raises(InvalidValueError, match="whole number"):
        cells.parse_count_cell(cell, "frames")


@pytest.mark.parametrize(
    ("cell", "place"),
    [
        ("videos/x.mp4", "videos/x.mp4"),
        ("./videos//x.mp4", "videos/x.mp4"),
        ("a/../b/x.mp4", "b/x.mp4"),
        ("été/x y.mp4", "été/x y.mp4"),
        ("https://example.org/x.mp4", "https://example.org/x.mp4"),
        ("s3://bucket/x.mp4", "s3://bucket/x.mp4"),
    ],
)
def test_a_location_is_a_plain_path_below_the_root_or_a_url(cell: str, place: str) -> None:
    assert cells.parse_clip_location(cell, "file") == place


@pytest.mark.parametrize(
    "cell",
    [
        "/etc/passwd",
        "../x.mp4",
        "a/../../x.mp4",
        "C:/x.mp4",
        "C:\\x.mp4",
        "..\\x.mp4",
        "x\x00.mp4",
        "x\n.mp4",
        "file:///etc/passwd",
        "https://",
        "",
        ".",
        "a/..",
        None,
        "\udcff.mp4",
        {},
    ],
)
def test_a_location_that_leaves_the_root_is_refused(cell: object) -> None:
    with pytest.raises(InvalidValueError):
        cells.parse_clip_location(cell, "file")


@given(JSON_VALUES)
def test_no_cell_does_worse_than_be_refused(cell: object) -> None:
    for read in (
        cells.parse_text_cell,
        cells.parse_exact_number,
        cells.parse_count_cell,
        cells.parse_positive_number,
        cells.parse_clip_location,
    ):
        with suppress(InvalidValueError):
            read(cell, "cell")


@given(JSON_VALUES)
def test_a_refusal_can_be_printed(cell: object) -> None:
    with pytest.raises(InvalidValueError) as caught:
        cells.raise_invalid_cell("cell", cell, "Write another")
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 120


@given(st.text(alphabet="./ab\\:~", max_size=12))
def test_no_path_that_is_accepted_climbs(cell: str) -> None:
    try:
        place = cells.parse_clip_location(cell, "file")
    except InvalidValueError:
        return
    assert not place.startswith("/")
    assert ".." not in place.split("/")
