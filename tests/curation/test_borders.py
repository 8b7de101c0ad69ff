import io

import numpy as np
import pytest
from PIL import Image

from footage import film, write_clip
from unreel.media.decode import Rgb
from unreel.media.fingerprint import BorderWidths, find_frame_borders
from unreel.media.messages import MAX_PIXELS
from unreel.media.scan import scan_clip

FILLS = {"black": (0, 0, 0), "white": (255, 255, 255), "blue": (20, 40, 160)}
BARS = {
    "letterbox": BorderWidths(top=30, bottom=30),
    "pillarbox": BorderWidths(left=44, right=44),
    "both": BorderWidths(left=26, top=18, right=26, bottom=18),
    "odd": BorderWidths(left=13, top=7, right=31, bottom=19),
    "one side": BorderWidths(right=22),
    "thin": BorderWidths(top=4, bottom=4),
}


def padded(pictures: list[Rgb], bars: BorderWidths, fill: tuple[int, int, int]) -> list[Rgb]:
    """Every picture inside bars; an odd size grows by a line of the picture's last one."""
    out = []
    for picture in pictures:
        rows, columns, _ = picture.shape
        height, width = rows + bars.top + bars.bottom, columns + bars.left + bars.right
        canvas = np.empty((height, width, 3), np.uint8)
        canvas[:] = fill
        canvas[bars.top : bars.top + rows, bars.left : bars.left + columns] = picture
        out.append(canvas)
    return out


def found(pictures: list[Rgb], *, crf: int = 26) -> BorderWidths:
    data = write_clip(pictures, crf=crf)
    return find_frame_borders(scan_clip(io.BytesIO(data), max_pixels=MAX_PIXELS).picked)


@pytest.mark.parametrize("fill", FILLS.values(), ids=FILLS)
@pytest.mark.parametrize("bars", BARS.values(), ids=BARS)
def test_bars_are_found_within_two_pixels(bars, fill) -> None:
    ours = found(padded(film(11, n_frames=8, width=200, height=140), bars, fill))
    for side in ("left", "top", "right", "bottom"):
        assert abs(getattr(ours, side) - getattr(bars, side)) <= 2, (side, ours)


@pytest.mark.parametrize("seed", range(8))
def test_a_clip_without_bars_keeps_all_its_pixels(seed) -> None:
    assert not found(film(seed, n_frames=8))


def test_a_dark_scene_is_not_cropped() -> None:
    dark = [picture // 12 for picture in film(3, n_frames=8)]
    assert not found(dark)


def test_a_thing_before_a_black_backdrop_is_not_cropped() -> None:
    pictures = []
    for index in range(8):
        picture = np.zeros((128, 192, 3), np.uint8)
        down, across = np.ogrid[:128, :192]
        ball = (down - 64) ** 2 + (across - 70 - 6 * index) ** 2 < 40**2
        picture[ball] = (220, 180, 90)
        pictures.append(picture)
    assert not found(pictures)


def test_a_bar_that_changes_its_grey_is_part_of_the_scene() -> None:
    pictures = [
        padded([picture], BorderWidths(left=40), (20 * index,) * 3)[0]
        for index, picture in enumerate(film(5, n_frames=8))
    ]
    assert found(pictures).left == 0


def test_a_blank_clip_has_no_borders_because_it_has_no_content() -> None:
    blank = Image.new("RGB", (64, 64), (128, 128, 128))
    assert not found([np.asarray(blank)] * 4)
