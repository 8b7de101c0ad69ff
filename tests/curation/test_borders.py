import io

import numpy as np
import pytest
from PIL import Image

from footage import film, write_clip
from unreel.core.box import Box
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


def test_strong_compression_does_not_move_them() -> None:
    bars = BorderWidths(left=33, right=33, top=10, bottom=10)
    ours = found(padded(film(12, n_frames=8, width=320, height=180), bars, (0, 0, 0)), crf=36)
    assert (
        max(abs(getattr(ours, side) - getattr(bars, side)) for side in BorderWidths.__slots__) <= 2
    )


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


def test_a_plain_sky_above_a_ragged_skyline_is_not_cropped() -> None:
    heights = np.random.default_rng(0).integers(30, 90, 24).repeat(8)
    rows = np.arange(128)[:, None]
    picture = np.full((128, 192, 3), 235, np.uint8)
    picture[rows >= heights] = (60, 70, 80)
    moving = [np.roll(picture, 3 * index, axis=1) for index in range(8)]
    assert not found(moving)


def test_a_bar_that_changes_its_grey_is_part_of_the_scene() -> None:
    pictures = [
        padded([picture], BorderWidths(left=40), (20 * index,) * 3)[0]
        for index, picture in enumerate(film(5, n_frames=8))
    ]
    assert found(pictures).left == 0


def test_a_black_frame_among_others_does_not_hide_the_bars() -> None:
    bars = BorderWidths(top=24, bottom=24)
    pictures = padded(film(6, n_frames=8), bars, (0, 0, 0))
    pictures[0] = np.zeros_like(pictures[0])
    assert abs(found(pictures).top - 24) <= 2


def test_the_content_is_what_lies_between_the_bars() -> None:
    assert BorderWidths(left=50, bottom=20).content(width=200, height=100) == Box(
        0.25, 0.0, 1.0, 0.8
    )


def test_a_blank_clip_has_no_borders_because_it_has_no_content() -> None:
    blank = Image.new("RGB", (64, 64), (128, 128, 128))
    assert not found([np.asarray(blank)] * 4)


@pytest.mark.slow
def test_padded_clips_of_the_shared_set_are_cropped_within_two_pixels(shared, record_property):
    import csv

    from unreel.media.decode import decode_frames
    from unreel.media.timeline import read_frame_timeline

    draw = np.random.default_rng(0)
    kept, within = 0, 0
    with (shared / "clips" / "manifest.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for number, row in enumerate(rows):
        with (shared / "clips" / row["file"]).open("rb") as clip:
            timeline = read_frame_timeline(clip, max_pixels=MAX_PIXELS)
            wanted = sorted({place * (timeline.n_frames - 1) // 7 for place in range(8)})
            frames = decode_frames(clip, timeline, indices=wanted, max_pixels=MAX_PIXELS)
            pictures = [frame.rgb for frame in frames]
        height, width, _ = pictures[0].shape
        pictures = [p[: height - height % 2, : width - width % 2] for p in pictures]
        kept += not found(pictures)
        left, top, right, bottom = (2 * int(v) for v in draw.integers(3, 40, 4))
        bars = BorderWidths(left=left, top=top, right=right, bottom=bottom)
        ours = found(padded(pictures, bars, list(FILLS.values())[number % 3]))
        within += all(abs(getattr(ours, s) - getattr(bars, s)) <= 2 for s in BorderWidths.__slots__)
    record_property("kept", kept / len(rows))
    record_property("within", within / len(rows))
    assert kept >= 0.98 * len(rows)
    assert within >= 0.95 * len(rows)
