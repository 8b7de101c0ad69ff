"""Analysis of a shot: scaled-down frames, moving parts and background; and windows of pixels."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from scipy import ndimage

from unreel.core.box import Box
from unreel.core.errors import InvalidValueError
from unreel.media.decode import Rgb


@dataclass(frozen=True, slots=True)
class PixelWindow:
    """Rectangle of pixels in a frame; `right` and `bottom` are exclusive."""

    left: int
    top: int
    right: int
    bottom: int

    def __post_init__(self) -> None:
        if not (0 <= self.left < self.right and 0 <= self.top < self.bottom):
            raise InvalidValueError(
                f"a window needs a column and a row, got {self}. Clip it to the frame first"
            )

    @property
    def width(self) -> int:
        return self.right - self.left

    @property
    def height(self) -> int:
        return self.bottom - self.top

    @property
    def area(self) -> int:
        return self.width * self.height

    @property
    def centre(self) -> tuple[float, float]:
        return (self.left + self.right) / 2, (self.top + self.bottom) / 2

    @property
    def slices(self) -> tuple[slice, slice]:
        """Return the rows and columns of the window as slices of a frame array."""
        return slice(self.top, self.bottom), slice(self.left, self.right)

    def as_box(self, width: int, height: int) -> Box:
        """Return the window as fractions of a frame of `width` x `height` pixels."""
        return Box(self.left / width, self.top / height, self.right / width, self.bottom / height)


def build_pixel_window(
    centre: tuple[float, float], size: tuple[float, float], *, frame: tuple[int, int]
) -> PixelWindow | None:
    """Return the pixel window of `size` around `centre`, clipped to `frame`; `None` if it is outside."""
    left, right = (round(centre[0] + sign * size[0] / 2) for sign in (-1, 1))
    top, bottom = (round(centre[1] + sign * size[1] / 2) for sign in (-1, 1))
    left, top = max(0, left), max(0, top)
    right, bottom = min(frame[0], right), min(frame[1], bottom)
    return PixelWindow(left, top, right, bottom) if left < right and top < bottom else None


def merge_pixel_windows(windows: Sequence[PixelWindow]) -> PixelWindow:
    """Return the smallest window that contains all `windows`."""
    return PixelWindow(
        min(window.left for window in windows),
        min(window.top for window in windows),
        max(window.right for window in windows),
        max(window.bottom for window in windows),
    )


def pad_pixel_window(window: PixelWindow, by: int, *, frame: tuple[int, int]) -> PixelWindow:
    """Return `window` with `by` more pixels on each side, clipped to `frame`."""
    return PixelWindow(
        max(0, window.left - by),
        max(0, window.top - by),
        min(frame[0], window.right + by),
        min(frame[1], window.bottom + by),
    )


Floats = NDArray[np.float32]
Mask = NDArray[np.bool_]

SMALL = 160
"""Longest side in pixels of the scaled-down frames in which regions are searched."""
_PLATE_FRAMES = 9
_DIFFERS = 14
"""Difference from the background, in levels of 255, above which a pixel is moving."""
_STILL_SHARE = 0.35
"""Maximum moving fraction of the picture of a still camera."""
_STILL_LEVELS = 4
_CUT_LEVELS = 40
"""Mean difference of two consecutive frames above which there is a cut."""


@dataclass(frozen=True, slots=True, eq=False)
class AnalysedShot:
    """Frames `first` to `first + n - 1` of a clip, with masks of the moving parts and the background."""

    frames: Sequence[Rgb]
    first: int
    small: Floats
    """Frames, `scale` times smaller: an array of frames x rows x columns x 3."""
    moving: Mask
    """Mask of the moving pixels: an array of frames x rows x columns of `small`."""
    plate: Rgb | None
    """Background without the moving parts; `None` for a moving camera."""
    drift: tuple[tuple[int, int], ...] = ()
    """Columns and rows of `small` by which a moving camera shifts each frame against the middle one."""

    @property
    def n(self) -> int:
        """Return the number of frames in the shot."""
        return len(self.small)

    @property
    def size(self) -> tuple[int, int]:
        """Return the width and height of the frames at full size."""
        height, width, _ = self.frames[self.first].shape
        return width, height

    @property
    def scale(self) -> float:
        """Return the factor by which frames were scaled down, along one side."""
        return self.size[0] / int(self.small.shape[2])

    @property
    def grey(self) -> Floats:
        """Return the scaled-down frames of the shot as grey levels."""
        grey: Floats = self.small.mean(axis=3)
        return grey

    def picture(self, index: int) -> Rgb:
        """Return frame `index` of the shot at full size."""
        return self.frames[self.first + index]


def analyse_shot(frames: Sequence[Rgb], *, first: int, n: int) -> AnalysedShot | None:
    """Find moving parts and background in `n` frames from `first` on; `None` if they contain a cut."""
    small = np.stack([shrink_frame(frames[index]) for index in range(first, first + n)])
    steps = np.abs(np.diff(small, axis=0)).mean(axis=(1, 2, 3))
    if steps.max(initial=0) > _CUT_LEVELS:
        return None
    sampled = np.unique(np.linspace(0, len(frames) - 1, _PLATE_FRAMES).round().astype(int))
    behind = np.median([shrink_frame(frames[index]) for index in sampled], axis=0)
    away = np.abs(small - behind).max(axis=3)
    still = (
        np.median(away) < _STILL_LEVELS
        and np.mean(away > _DIFFERS, axis=(1, 2)).max() < _STILL_SHARE
    )
    if not still:
        grey = small.mean(axis=3)
        shifts = [estimate_camera_shift(grey[n // 2], frame) for frame in grey]
        drift = tuple((across, down) for down, across in shifts)
        return AnalysedShot(frames, first, small, _compute_motion_mask(small, shifts), None, drift)
    plate = np.sort(np.stack([frames[index] for index in sampled]), axis=0)[len(sampled) // 2]
    return AnalysedShot(frames, first, small, _remove_specks_and_gaps(away > _DIFFERS), plate)


def shrink_frame(rgb: Rgb) -> Floats:
    """Return `rgb` scaled down so that its longest side is at most `SMALL` pixels."""
    height, width, _ = rgb.shape
    scale = min(1.0, SMALL / max(width, height))
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    picture = Image.fromarray(rgb).resize(size, Image.Resampling.BOX)
    return np.asarray(picture, dtype=np.float32)


def estimate_camera_shift(before: Floats, after: Floats) -> tuple[int, int]:
    """Return the best-correlated shift (rows, columns) of the picture from `before` to `after`."""
    spectrum = np.fft.rfft2(_compute_fine_detail(after)) * np.conj(
        np.fft.rfft2(_compute_fine_detail(before))
    )
    alike = np.fft.irfft2(spectrum, s=before.shape)
    row, column = (int(step) for step in np.unravel_index(int(alike.argmax()), alike.shape))
    rows, columns = before.shape
    return row - rows * (row > rows // 2), column - columns * (column > columns // 2)


def _compute_fine_detail(grey: Floats) -> Floats:
    """Return the picture's fine detail, faded towards the borders, which would match themselves."""
    detail = grey - ndimage.gaussian_filter(grey, 4)
    rows, columns = (np.hanning(length + 2)[1:-1] for length in grey.shape)
    faded: Floats = detail * np.sqrt(rows[:, None] * columns).astype(np.float32)
    return faded


def _compute_motion_mask(small: Floats, shifts: Sequence[tuple[int, int]]) -> Mask:
    """Return a mask of the pixels that move differently from the camera, for each frame."""
    aligned = [
        _shift_picture(frame, (-down, -across))
        for frame, (down, across) in zip(small, shifts, strict=True)
    ]
    plate = np.nanmedian(aligned, axis=0).astype(np.float32)
    away = np.stack(
        [
            _compute_background_difference(frame, _shift_picture(plate, shift))
            for frame, shift in zip(small, shifts, strict=True)
        ]
    )
    mask = _remove_specks_and_gaps(away > _DIFFERS)
    if mask.mean(axis=(1, 2)).max() >= _STILL_SHARE:  # The camera does more than rotate.
        return np.zeros_like(mask)
    return mask


def _shift_picture(picture: Floats, by: tuple[int, int]) -> Floats:
    """Return `picture` shifted by rows and columns; pixels that enter at the edges are NaN."""
    moved = np.roll(picture, by, axis=(0, 1))
    for axis, step in enumerate(by):
        if step:
            edge = slice(0, step) if step > 0 else slice(step, None)
            moved[(edge, slice(None)) if axis == 0 else (slice(None), edge)] = np.nan
    return moved


def _compute_background_difference(frame: Floats, behind: Floats) -> Floats:
    """Return each pixel's largest distance from nearby background values; 0 if they are unknown."""
    low = ndimage.minimum_filter(np.nan_to_num(behind, nan=np.inf), (3, 3, 1))
    high = ndimage.maximum_filter(np.nan_to_num(behind, nan=-np.inf), (3, 3, 1))
    away: Floats = np.maximum(np.maximum(frame - high, low - frame), 0)
    distance: Floats = np.where(np.isnan(behind), np.float32(0), away).max(axis=2)
    return distance


def _remove_specks_and_gaps(mask: Mask) -> Mask:
    """Return the mask of moving pixels without specks and with small gaps closed."""
    disc = ndimage.generate_binary_structure(2, 1)[None]
    opened = ndimage.binary_opening(mask, disc)
    closed: Mask = ndimage.binary_closing(opened, disc, iterations=2)
    return closed
