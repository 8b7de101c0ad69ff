"""Frames as JPEG files."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scenes.ball import SampleScene, read_index
from unreel.media.picture import decode_jpeg, encode_jpeg, scale_down_picture

RGB = SampleScene(320, 180, 0).draw(9)


def test_a_jpeg_keeps_the_picture_and_repeats_byte_for_byte() -> None:
    data = encode_jpeg(RGB)
    assert data == encode_jpeg(RGB.copy())
    back = decode_jpeg(data)
    assert np.abs(back.astype(int) - RGB).mean() < 4
    assert read_index(back) == 9


@pytest.mark.parametrize(
    ("longest", "shape"),
    [(160, (90, 160, 3)), (320, (180, 320, 3)), (None, (180, 320, 3)), (900, (180, 320, 3))],
)
def test_pictures_shrink_and_never_grow(longest, shape) -> None:
    assert scale_down_picture(RGB, longest).shape == shape


@given(st.integers(1, 400), st.integers(1, 400), st.integers(1, 60_000))
def test_a_cap_on_pixels_is_kept_and_the_shape_too(width, height, most) -> None:
    small = scale_down_picture(np.zeros((height, width, 3), np.uint8), None, most_pixels=most)
    rows, columns, _ = small.shape
    assert rows * columns <= most
    if width * height <= most:
        assert (rows, columns) == (height, width)
    elif min(rows, columns) > 8:
        assert abs(columns / rows / (width / height) - 1) < 0.2
