"""Windows, fields and fills: what holds for every size and place."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from unreel.core.box import Box
from unreel.core.errors import InvalidValueError
from unreel.curation.inject.frame_injection import (
    format_box_position,
    format_direction,
    name_median_colour,
)
from unreel.curation.inject.image_operations import (
    blend_patches,
    compute_effect_strength,
    erase_region,
    paste_cutout,
    warp_ellipse,
)
from unreel.curation.inject.shot_analysis import (
    PixelWindow,
    build_pixel_window,
    estimate_camera_shift,
    merge_pixel_windows,
    pad_pixel_window,
)
from unreel.curation.inject.tracked_regions import RegionCutout, build_ellipse_mask, inpaint_patch

WIDTH, HEIGHT = 64, 48


@st.composite
def windows(draw: st.DrawFn) -> PixelWindow:
    left, top = draw(st.integers(0, WIDTH - 4)), draw(st.integers(0, HEIGHT - 4))
    right, bottom = draw(st.integers(left + 4, WIDTH)), draw(st.integers(top + 4, HEIGHT))
    return PixelWindow(left, top, right, bottom)


def picture(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (HEIGHT, WIDTH, 3), np.uint8)


def a_cut(frame: np.ndarray, window: PixelWindow) -> RegionCutout:
    patch = frame[window.slices].astype(np.float32)
    alpha = build_ellipse_mask(window)
    return RegionCutout(window, patch, alpha, alpha, inpaint_patch(patch, alpha))


@given(windows(), windows())
def test_a_hull_holds_both_windows(one, two) -> None:
    both = merge_pixel_windows((one, two))
    assert both.left == min(one.left, two.left)
    assert both.area >= max(one.area, two.area)
    assert both.right == max(one.right, two.right)


@given(windows(), st.integers(0, 100))
def test_padding_stays_in_the_frame_and_holds_the_window(window, by) -> None:
    grown = pad_pixel_window(window, by, frame=(WIDTH, HEIGHT))
    assert grown.right <= WIDTH
    assert grown.bottom <= HEIGHT
    assert merge_pixel_windows((grown, window)) == grown


@given(windows())
def test_a_window_becomes_the_box_of_its_pixels(window) -> None:
    box = window.as_box(WIDTH, HEIGHT)
    assert box.area * WIDTH * HEIGHT == pytest.approx(window.area)


@given(st.floats(-100, 200), st.floats(-100, 200), st.floats(0.1, 100), st.floats(0.1, 100))
def test_a_window_about_a_point_never_leaves_the_frame(x, y, width, height) -> None:
    window = build_pixel_window((x, y), (width, height), frame=(WIDTH, HEIGHT))
    if window is not None:
        assert window.right <= WIDTH
        assert window.bottom <= HEIGHT


def test_a_window_without_pixels_is_refused() -> None:
    with pytest.raises(InvalidValueError, match="a window needs a column"):
        PixelWindow(3, 0, 3, 5)


@given(windows(), st.integers(0, 5), st.floats(-2, 2), st.floats(-2, 2))
def test_a_warp_changes_nothing_outside_of_its_ellipse(window, seed, across, down) -> None:
    frame = picture(seed)
    bent = warp_ellipse(frame, window, lambda x, y: (x + across, y + down))
    outside = np.ones((HEIGHT, WIDTH), bool)
    outside[window.slices] = build_ellipse_mask(window)[..., 0] == 0
    assert np.array_equal(bent[outside], frame[outside])


@given(windows(), st.integers(0, 5))
def test_a_warp_to_the_same_place_is_no_warp(window, seed) -> None:
    frame = picture(seed)
    assert np.array_equal(warp_ellipse(frame, window, lambda x, y: (x, y)), frame)


@given(windows(), st.integers(-80, 80), st.integers(-80, 80), st.integers(0, 5))
def test_a_paste_changes_its_window_alone_wherever_it_lands(window, across, down, seed) -> None:
    frame = picture(seed)
    drawn = paste_cutout(frame, a_cut(frame, window), (across, down))
    assert drawn.shape == frame.shape
    changed = (drawn != frame).any(axis=2)
    rows, columns = np.nonzero(changed)
    if len(rows):
        assert window.left + across <= columns.min()
        assert columns.max() < window.right + across
        assert window.top + down <= rows.min()
        assert rows.max() < window.bottom + down


@given(windows(), st.integers(0, 5))
def test_erasing_by_nothing_leaves_the_frame(window, seed) -> None:
    frame = picture(seed)
    assert np.array_equal(erase_region(frame, a_cut(frame, window), 0.0), frame)


@given(windows(), st.integers(0, 255))
def test_a_fill_in_one_colour_is_that_colour(window, level) -> None:
    patch = np.full((window.height, window.width, 3), level, np.float32)
    assert np.allclose(inpaint_patch(patch, build_ellipse_mask(window)), level, atol=0.51)


def test_a_fill_keeps_what_is_known_and_stays_between_what_it_saw() -> None:
    window = PixelWindow(0, 0, 40, 30)
    patch = np.repeat(np.linspace(50, 200, 40, dtype=np.float32)[None, :, None], 30, axis=0)
    patch = np.repeat(patch, 3, axis=2)
    alpha = build_ellipse_mask(window)
    holed = np.where(alpha > 0, 0, patch).astype(np.float32)
    filled = inpaint_patch(holed, alpha)
    known = alpha[..., 0] < 0.02
    assert np.array_equal(filled[known], holed[known])
    assert filled[15, 5, 0] < filled[15, 35, 0], "the slope goes on through the hole"


@given(st.integers(1, 100), st.integers(0, 9))
def test_an_envelope_is_never_empty_inside_and_the_same_from_both_ends(n, rise) -> None:
    levels = [compute_effect_strength(place, n, rise=rise) for place in range(n)]
    assert all(0 < level <= 1 for level in levels)
    assert levels == pytest.approx(levels[::-1])
    if n > 2 * rise + 1:
        assert max(levels) == 1


def test_blending_goes_from_below_to_above() -> None:
    below, above = np.zeros((1, 1, 3), np.float32), np.full((1, 1, 3), 8, np.float32)
    assert blend_patches(below, above, 0.25).tolist() == [[[2.0, 2.0, 2.0]]]


@given(st.integers(-8, 8), st.integers(-8, 8))
def test_a_moved_camera_is_told_by_its_shift(down, across) -> None:
    rng = np.random.default_rng(3)
    before = rng.uniform(0, 255, (60, 80)).astype(np.float32)
    assert estimate_camera_shift(before, np.roll(before, (down, across), (0, 1))) == (down, across)


@pytest.mark.parametrize(
    ("box", "words"),
    [
        (Box(0, 0, 0.2, 0.2), "at the top left"),
        (Box(0.4, 0.4, 0.6, 0.6), "in the middle"),
        (Box(0.8, 0.4, 1, 0.6), "on the right"),
        (Box(0.4, 0.8, 0.6, 1), "at the bottom"),
        (Box(0, 0, 1, 1), "in the middle"),
    ],
)
def test_places_have_plain_names(box, words) -> None:
    assert format_box_position(box) == words


@pytest.mark.parametrize(
    ("towards", "words"),
    [((3, 1), "to the right"), ((-3, 1), "to the left"), ((1, 3), "down"), ((0, -2), "up")],
)
def test_directions_have_plain_names(towards, words) -> None:
    assert format_direction(towards) == words


@pytest.mark.parametrize(
    ("rgb", "word"),
    [
        ((250, 20, 10), "red"),
        ((20, 30, 240), "blue"),
        ((10, 200, 30), "green"),
        ((240, 230, 30), "yellow"),
        ((8, 9, 8), "dark"),
        ((250, 250, 250), "bright"),
        ((128, 130, 128), "grey"),
    ],
)
def test_colours_have_plain_names(rgb, word) -> None:
    assert name_median_colour(np.array([[rgb]], np.uint8)) == word


@given(st.lists(st.tuples(*[st.integers(0, 255)] * 3), min_size=1, max_size=5))
def test_every_colour_has_a_name(pixels) -> None:
    assume(pixels)
    assert name_median_colour(np.array(pixels, np.uint8)).isalpha()
