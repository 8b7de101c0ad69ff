"""Small version of a span of frames: moving parts and background."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from scipy import ndimage

from unreel.media.decode import Rgb

Floats = NDArray[np.float32]
Mask = NDArray[np.bool_]

SMALL: Final = 160
"""Longest side of the pictures in which regions are looked for."""
_PLATE_FRAMES: Final = 9
_DIFFERS: Final = 14
"""Levels of 255 by which a moving pixel differs from the background or its past."""
_STILL_SHARE: Final = 0.35
"""At most this share of a still camera's picture moves."""
_STILL_LEVELS: Final = 4
_CUT_LEVELS: Final = 40
"""Mean change from one frame to the next above which the picture is another one."""


@dataclass(frozen=True, slots=True, eq=False)
class ObservedShot:
    """Frames `first` to `first + n - 1` of a clip, looked at."""

    frames: Sequence[Rgb]
    first: int
    small: Floats
    """Frames x rows x columns x 3, `scale` times smaller."""
    moving: Mask
    """Frames x rows x columns, small."""
    plate: Rgb | None
    """The picture without what moves; none where the camera moves."""
    drift: tuple[tuple[int, int], ...] = ()
    """Columns and rows, small, by which a moving camera shifts each frame against the middle one."""

    @property
    def n(self) -> int:
        """Return the number of frames in the span."""
        return len(self.small)

    @property
    def size(self) -> tuple[int, int]:
        """Return the width and height of the frames."""
        height, width, _ = self.frames[self.first].shape
        return width, height

    @property
    def scale(self) -> float:
        """Return the number of frame pixels for each pixel of a small picture, along one side."""
        return self.size[0] / int(self.small.shape[2])

    @property
    def grey(self) -> Floats:
        """Return the small pictures in grey."""
        grey: Floats = self.small.mean(axis=3)
        return grey

    def picture(self, index: int) -> Rgb:
        """Return frame `index` of the span."""
        return self.frames[self.first + index]


def look(frames: Sequence[Rgb], *, first: int, n: int) -> ObservedShot | None:
    """Return the shot of `n` frames from `first` on; `None` if the shot contains a cut."""
    small = np.stack([shrink(frames[index]) for index in range(first, first + n)])
    steps = np.abs(np.diff(small, axis=0)).mean(axis=(1, 2, 3))
    if steps.max(initial=0) > _CUT_LEVELS:
        return None
    sampled = np.unique(np.linspace(0, len(frames) - 1, _PLATE_FRAMES).round().astype(int))
    behind = np.median([shrink(frames[index]) for index in sampled], axis=0)
    away = np.abs(small - behind).max(axis=3)
    still = (
        np.median(away) < _STILL_LEVELS
        and np.mean(away > _DIFFERS, axis=(1, 2)).max() < _STILL_SHARE
    )
    if not still:
        grey = small.mean(axis=3)
        shifts = [global_shift(grey[n // 2], now) for now in grey]
        drift = tuple((across, down) for down, across in shifts)
        return ObservedShot(frames, first, small, _compute_motion_mask(small, shifts), None, drift)
    plate = np.sort(np.stack([frames[index] for index in sampled]), axis=0)[len(sampled) // 2]
    return ObservedShot(frames, first, small, _clean_mask(away > _DIFFERS), plate)


def shrink(rgb: Rgb) -> Floats:
    """Return `rgb` scaled down so that its longest side is at most `SMALL` pixels."""
    height, width, _ = rgb.shape
    scale = min(1.0, SMALL / max(width, height))
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    picture = Image.fromarray(rgb).resize(size, Image.Resampling.BOX)
    return np.asarray(picture, dtype=np.float32)


def global_shift(before: Floats, after: Floats) -> tuple[int, int]:
    """Return the shift from `before` to `after` in rows and columns that gives the best correlation."""
    spectrum = np.fft.rfft2(_compute_fine_detail(after)) * np.conj(
        np.fft.rfft2(_compute_fine_detail(before))
    )
    alike = np.fft.irfft2(spectrum, s=before.shape)
    row, column = (int(step) for step in np.unravel_index(int(alike.argmax()), alike.shape))
    rows, columns = before.shape
    return row - rows * (row > rows // 2), column - columns * (column > columns // 2)


def _compute_fine_detail(grey: Floats) -> Floats:
    """Return the fine detail of the picture, faded towards its borders.

    Without the fading, the borders would correlate with themselves.
    """
    detail = grey - ndimage.gaussian_filter(grey, 4)
    rows, columns = (np.hanning(side + 2)[1:-1] for side in grey.shape)
    faded: Floats = detail * np.sqrt(rows[:, None] * columns).astype(np.float32)
    return faded


def _compute_motion_mask(small: Floats, shifts: Sequence[tuple[int, int]]) -> Mask:
    """Return a mask of parts that move differently from the camera."""
    aligned = [
        _shift_picture(now, (-down, -across))
        for now, (down, across) in zip(small, shifts, strict=True)
    ]
    plate = np.nanmedian(aligned, axis=0).astype(np.float32)
    away = np.stack(
        [
            _compute_difference(now, _shift_picture(plate, shift))
            for now, shift in zip(small, shifts, strict=True)
        ]
    )
    found = _clean_mask(away > _DIFFERS)
    if found.mean(axis=(1, 2)).max() >= _STILL_SHARE:  # The camera does more than to turn.
        return np.zeros_like(found)
    return found


def _shift_picture(picture: Floats, by: tuple[int, int]) -> Floats:
    """Return `picture` shifted by rows and columns; pixels that enter at the edges are NaN."""
    moved = np.roll(picture, by, axis=(0, 1))
    for axis, step in enumerate(by):
        if step:
            edge = slice(0, step) if step > 0 else slice(step, None)
            moved[(edge, slice(None)) if axis == 0 else (slice(None), edge)] = np.nan
    return moved


def _compute_difference(now: Floats, behind: Floats) -> Floats:
    """Return how far each pixel is outside the range of background values within one pixel of it.

    The largest difference over all colours counts. The result is 0 if the background is unknown.
    """
    low = ndimage.minimum_filter(np.nan_to_num(behind, nan=np.inf), (3, 3, 1))
    high = ndimage.maximum_filter(np.nan_to_num(behind, nan=-np.inf), (3, 3, 1))
    away: Floats = np.maximum(np.maximum(now - high, low - now), 0)
    most: Floats = np.where(np.isnan(behind), np.float32(0), away).max(axis=2)
    return most


def _clean_mask(found: Mask) -> Mask:
    """Return the mask without specks and with small gaps closed."""
    disc = ndimage.generate_binary_structure(2, 1)[None]
    opened = ndimage.binary_opening(found, disc)
    closed: Mask = ndimage.binary_closing(opened, disc, iterations=2)
    return closed
