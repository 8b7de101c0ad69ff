"""Moving parts, background and tracked regions of a shot, for the injection of traces."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
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
            raise InvalidValueError(f"window must have at least one column and one row, got {self}")

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
    background = np.median([shrink_frame(frames[index]) for index in sampled], axis=0)
    away = np.abs(small - background).max(axis=3)
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
    # The fine detail is faded towards the borders, which would match themselves.
    fade = [np.hanning(length + 2)[1:-1] for length in before.shape]
    window = np.sqrt(fade[0][:, None] * fade[1]).astype(np.float32)
    first, second = (
        np.fft.rfft2((grey - ndimage.gaussian_filter(grey, 4)) * window) for grey in (before, after)
    )
    spectrum = second * np.conj(first)
    correlation = np.fft.irfft2(spectrum, s=before.shape)
    row, column = (
        int(step) for step in np.unravel_index(int(correlation.argmax()), correlation.shape)
    )
    rows, columns = before.shape
    return row - rows * (row > rows // 2), column - columns * (column > columns // 2)


def _compute_motion_mask(small: Floats, shifts: Sequence[tuple[int, int]]) -> Mask:
    """Return a mask of the pixels that move differently from the camera, for each frame."""
    aligned = [
        _shift_picture(frame, (-down, -across))
        for frame, (down, across) in zip(small, shifts, strict=True)
    ]
    plate = np.nanmedian(aligned, axis=0).astype(np.float32)
    distances = []
    for frame, shift in zip(small, shifts, strict=True):
        # Each pixel's largest distance from nearby background values; 0 if they are unknown.
        shifted_plate = _shift_picture(plate, shift)
        low = ndimage.minimum_filter(np.nan_to_num(shifted_plate, nan=np.inf), (3, 3, 1))
        high = ndimage.maximum_filter(np.nan_to_num(shifted_plate, nan=-np.inf), (3, 3, 1))
        away = np.maximum(np.maximum(frame - high, low - frame), 0)
        distances.append(np.where(np.isnan(shifted_plate), np.float32(0), away).max(axis=2))
    mask = _remove_specks_and_gaps(np.stack(distances) > _DIFFERS)
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


def _remove_specks_and_gaps(mask: Mask) -> Mask:
    """Return the mask of moving pixels without specks and with small gaps closed."""
    disc = ndimage.generate_binary_structure(2, 1)[None]
    opened = ndimage.binary_opening(mask, disc)
    closed: Mask = ndimage.binary_closing(opened, disc, iterations=2)
    return closed


_SMALLEST_SHARE = 0.004
_LARGEST_SHARE = 0.2
_LONGEST_SHAPE = 4.0
"""Maximum ratio of the sides of a region."""
_MIN_SIDE = 20
"""Minimum side of a region in pixels of the frame: coding removes smaller regions."""
_LIKENESS = 0.7
"""Minimum correlation of a tracked patch with its earlier pixels."""
_SEARCH = 5
_MIN_PATH = 0.3
"""Minimum path of a moving object, in units of its size."""
_FEATHER = 0.3
"""Outer part of the radius of an ellipse over which its opacity falls to 0."""
_CLEAR_OF_ITSELF = 1.5
"""Minimum travel of an object before a moving camera, in units of its size: after less, the median of the
frames shows parts of it, so its outline is incomplete and it would vanish only partly."""
_MARGIN = 0.25
"""Margin on each side of an object's box, relative to its size, for the ellipse around it."""
_TEXTURE_LEVELS = 6
_DEEPEST_SHADOW = 0.4
_NO_LIGHTER = 1.03
_SAME_LIGHT = 0.12
_ABOVE_NOISE = 10
"""Difference from the background, in levels, above which a pixel belongs to an object."""


@dataclass(frozen=True, slots=True, eq=False)
class TrackedRegion:
    """Region of the picture that was tracked: the pixel window in each frame of a shot."""

    windows: tuple[PixelWindow, ...]
    silhouettes: tuple[Mask, ...] | None = None
    """Masks of a moving object in the scaled-down frames of a still camera; otherwise `None`."""
    is_object: bool = False
    """Whether it is a moving object; otherwise it is an area of the picture."""

    @property
    def moves(self) -> bool:
        """Return whether the region moves far enough, relative to its size, to be a moving object."""
        centres = [window.centre for window in self.windows]
        path = sum(float(np.hypot(b[0] - a[0], b[1] - a[1])) for a, b in pairwise(centres))
        return path >= _MIN_PATH * max(self.windows[0].width, self.windows[0].height)


@dataclass(frozen=True, slots=True, eq=False)
class RegionCutout:
    """Region cut out of one frame: pixels, soft mask, and the background."""

    window: PixelWindow
    patch: Floats
    alpha: Floats
    """Opacity of the region, rows x columns x 1, from 0 to 1."""
    cover: Floats
    """Opacity of the slightly larger region that must be painted over to remove the object."""
    background: Floats


def iter_moving_objects(shot: AnalysedShot) -> Iterator[TrackedRegion]:
    """Yield the moving objects that can be tracked through the whole shot, largest first."""
    middle = shot.n // 2
    labels, n_found = ndimage.label(shot.moving[middle])
    sizes = ndimage.sum_labels(shot.moving[middle], labels, np.arange(1, n_found + 1))
    for label in 1 + np.argsort(-sizes, kind="stable"):
        seed: Mask = labels == label
        if not _is_suitable_shape(seed) or _is_shadow(shot, seed):
            continue
        follow = _track_object_ellipse if shot.plate is None else _track_silhouette
        region = follow(shot, seed)
        if region is not None and (shot.plate is None or region.moves):
            yield region


def iter_textured_regions(
    shot: AnalysedShot, rng: np.random.Generator, *, fraction: float, away_from_motion: bool
) -> Iterator[TrackedRegion]:
    """Yield tracked detailed regions of about `fraction` of the shorter side; with `away_from_motion`, none on moving things."""
    rows, columns = shot.grey.shape[1:]
    half = max(3, round(fraction * min(rows, columns) / 2))
    grey = shot.grey[shot.n // 2]
    mean, squares = (ndimage.uniform_filter(levels, 2 * half) for levels in (grey, grey * grey))
    detail = np.sqrt(np.maximum(squares - mean * mean, 0))
    if away_from_motion:
        busy = ndimage.maximum_filter(shot.moving.any(axis=0), size=2 * half + 3)
        detail = np.where(busy, 0, detail)
    margin = half + 2
    inner = np.zeros_like(detail)
    inside = (slice(margin, rows - margin), slice(margin, columns - margin))
    inner[inside] = detail[inside]
    weights = inner * rng.uniform(0.6, 1.0, inner.shape)
    for _ in range(6):
        row, column = np.unravel_index(int(weights.argmax()), weights.shape)
        if inner[row, column] < _TEXTURE_LEVELS:
            return
        weights[max(0, row - half) : row + half, max(0, column - half) : column + half] = 0
        window = PixelWindow(
            int(column) - half, int(row) - half, int(column) + half, int(row) + half
        )
        region = _track_patch(shot, window)
        if region is not None:
            yield region


def cut_out_region(shot: AnalysedShot, region: TrackedRegion, index: int) -> RegionCutout:
    """Cut the region out of frame `index` of the shot."""
    window = region.windows[index]
    patch = shot.picture(index)[window.slices].astype(np.float32)
    if region.silhouettes is None or shot.plate is None:
        alpha = build_ellipse_mask(window)
        return RegionCutout(window, patch, alpha, alpha, inpaint_patch(patch, alpha))
    background = shot.plate[window.slices].astype(np.float32)
    # The part of the scaled-down mask inside the window, slightly dilated, at full size.
    shape = ndimage.binary_dilation(region.silhouettes[index], iterations=2)
    rows = np.minimum(np.arange(window.top, window.bottom) / shot.scale, shape.shape[0] - 1)
    columns = np.minimum(np.arange(window.left, window.right) / shot.scale, shape.shape[1] - 1)
    area = shape[np.ix_(rows.astype(int), columns.astype(int))]
    away = ndimage.gaussian_filter(np.abs(patch - background).max(axis=2), 1)
    solid = ndimage.binary_fill_holes((away > _ABOVE_NOISE) & area)
    inner = ndimage.binary_erosion(solid) if solid.sum() > _MIN_SIDE**2 else solid
    return RegionCutout(
        window, patch, _soften_mask(inner), _soften_mask(ndimage.binary_dilation(solid)), background
    )


def build_ellipse_mask(window: PixelWindow) -> Floats:
    """Return the opacity for the ellipse inscribed in `window`: 1 inside, falling to 0 at its edge."""
    radius = np.sqrt(compute_squared_radius(window))
    alpha = np.clip((1 - radius) / _FEATHER, 0, 1)
    soft: Floats = (alpha * alpha * (3 - 2 * alpha)).astype(np.float32)
    return soft[..., None]


def compute_squared_radius(window: PixelWindow) -> Floats:
    """Return each pixel's squared distance from the middle of `window`: 1 on its inscribed ellipse."""
    across = (np.arange(window.width) + 0.5) / window.width * 2 - 1
    down = (np.arange(window.height) + 0.5) / window.height * 2 - 1
    squared: Floats = (across[None] ** 2 + down[:, None] ** 2).astype(np.float32)
    return squared


def inpaint_patch(patch: Floats, alpha: Floats) -> Floats:
    """Return `patch` with the pixels under `alpha` filled in from the surrounding pixels."""
    known = (alpha < 0.02).astype(np.float32)  # noqa: PLR2004  all but invisible
    if not known.any():
        return np.broadcast_to(patch.mean(axis=(0, 1)), patch.shape).astype(np.float32)
    guess = np.broadcast_to((patch * known).sum(axis=(0, 1)) / known.sum(), patch.shape)
    spread = max(patch.shape[:2]) / 3
    while spread > 0.8:  # noqa: PLR2004  a pixel
        weight = ndimage.gaussian_filter(known, (spread, spread, 0))
        nearby = ndimage.gaussian_filter(patch * known, (spread, spread, 0))
        trust = np.clip(weight / 0.15, 0, 1)
        guess = trust * nearby / np.maximum(weight, 1e-6) + (1 - trust) * guess
        spread /= 1.6
    filled: Floats = np.where(known > 0, patch, guess).astype(np.float32)
    return filled


def _is_suitable_shape(shape: Mask) -> bool:
    rows, columns = np.nonzero(shape.any(axis=1))[0], np.nonzero(shape.any(axis=0))[0]
    height, width = rows[-1] - rows[0] + 1, columns[-1] - columns[0] + 1
    on_edge = shape[0].any() or shape[-1].any() or shape[:, 0].any() or shape[:, -1].any()
    fraction = shape.mean()
    return bool(
        not on_edge
        and _SMALLEST_SHARE <= fraction <= _LARGEST_SHARE
        and max(height, width) <= _LONGEST_SHAPE * min(height, width)
    )


def _is_shadow(shot: AnalysedShot, shape: Mask) -> bool:
    """Return whether the moving area is a shadow: background darkened by a like factor in every colour."""
    if shot.plate is None:
        return False
    background = shrink_frame(shot.plate)[shape] + 1
    light = (shot.small[shot.n // 2][shape] + 1) / background
    by_colour = light.mean(axis=0)
    return bool(
        _DEEPEST_SHADOW < by_colour.mean() < 1
        and np.quantile(light, 0.95) < _NO_LIGHTER
        and np.ptp(by_colour) < _SAME_LIGHT
    )


def _track_silhouette(shot: AnalysedShot, seed: Mask) -> TrackedRegion | None:
    """Track the object of mask `seed` from the middle frame to both ends, by overlap; `None` if it is lost."""
    middle = shot.n // 2
    shapes: dict[int, Mask] = {middle: seed}
    for steps in (range(middle + 1, shot.n), range(middle - 1, -1, -1)):
        before = seed
        for index in steps:
            labels, _ = ndimage.label(shot.moving[index])
            shared = np.bincount(labels[ndimage.binary_dilation(before, iterations=2)])
            if len(shared) < 2 or not shared[1:].any():  # noqa: PLR2004  label 0 is what stands still
                return None
            after: Mask = labels == 1 + int(shared[1:].argmax())
            if not _is_suitable_shape(after):
                return None
            if not 0.5 < after.sum() / before.sum() < 2:  # noqa: PLR2004  another object joined or left
                return None
            shapes[index] = before = after
    ordered = tuple(shapes[index] for index in range(shot.n))
    windows = tuple(_compute_shape_window(shape, shot) for shape in ordered)
    if min(min(window.width, window.height) for window in windows) < _MIN_SIDE:
        return None
    return TrackedRegion(windows, ordered, is_object=True)


def _track_object_ellipse(shot: AnalysedShot, seed: Mask) -> TrackedRegion | None:
    """Track an object, given by its mask `seed`, in windows with room for an ellipse around it.

    This is used for moving cameras, for which the outline is known only at low resolution. The
    result is `None` if the object is lost or moves too little against its background.
    """
    followed = _track_silhouette(shot, seed)
    if followed is None:
        return None
    longest = max(max(window.width, window.height) for window in followed.windows)
    first, last = (np.array(followed.windows[end].centre) for end in (0, -1))
    camera = np.subtract(shot.drift[-1], shot.drift[0]) * shot.scale
    if np.linalg.norm(last - first - camera) < _CLEAR_OF_ITSELF * longest:
        return None
    width, height = (
        (1 + 2 * _MARGIN) * max(getattr(window, name) for window in followed.windows)
        for name in ("width", "height")
    )
    centres = ndimage.gaussian_filter1d(
        np.array([window.centre for window in followed.windows]), 1.0, axis=0, mode="nearest"
    )
    placed = [
        build_pixel_window((float(x), float(y)), (width, height), frame=shot.size)
        for x, y in centres
    ]
    windows = tuple(window for window in placed if window is not None)
    return TrackedRegion(windows, is_object=True) if len(windows) == shot.n else None


def _track_patch(shot: AnalysedShot, window: PixelWindow) -> TrackedRegion | None:
    """Track the picture patch in `window` of the scaled-down middle frame; `None` if it is lost."""
    grey, middle = shot.grey, shot.n // 2
    first = grey[middle][window.slices]
    spots: dict[int, tuple[float, float]] = {middle: (float(window.left), float(window.top))}
    for steps in (range(middle + 1, shot.n), range(middle - 1, -1, -1)):
        spot, before = spots[middle], first
        for index in steps:
            position = _find_patch_position(grey[index], (first + before) / 2, near=spot)
            if position is None:
                return None
            spots[index] = spot = position
            left, top = round(spot[0]), round(spot[1])
            before = grey[index][top : top + window.height, left : left + window.width]
    path = np.array([spots[index] for index in range(shot.n)])
    path = ndimage.gaussian_filter1d(path, 1.0, axis=0, mode="nearest")
    scale = shot.scale
    size = (window.width * scale, window.height * scale)
    windows = []
    for left, top in path:
        centre = (left * scale + size[0] / 2, top * scale + size[1] / 2)
        placed = build_pixel_window(centre, size, frame=shot.size)
        if placed is None or min(placed.width, placed.height) < _MIN_SIDE:
            return None
        windows.append(placed)
    return TrackedRegion(tuple(windows))


def _find_patch_position(
    picture: Floats, patch: Floats, *, near: tuple[float, float]
) -> tuple[float, float] | None:
    """Return the position near `near` where `patch` fits best into `picture`; `None` if it is lost."""
    height, width = patch.shape
    left = min(max(0, round(near[0]) - _SEARCH), picture.shape[1] - width)
    top = min(max(0, round(near[1]) - _SEARCH), picture.shape[0] - height)
    area = picture[top : top + height + 2 * _SEARCH, left : left + width + 2 * _SEARCH]
    views = sliding_window_view(area, (height, width))
    centred = patch - patch.mean()
    dot = np.einsum("abij,ij->ab", views, centred)
    spread = views.std(axis=(2, 3)) * patch.std() * patch.size
    likeness = dot / np.maximum(spread, 1e-3)
    row, column = np.unravel_index(int(likeness.argmax()), likeness.shape)
    if likeness[row, column] < _LIKENESS:
        return None
    return (
        left + int(column) + _compute_peak_offset(likeness[row], int(column)),
        top + int(row) + _compute_peak_offset(likeness[:, column], int(row)),
    )


def _compute_peak_offset(values: Floats, peak: int) -> float:
    """Return the subpixel offset of a peak, from the parabola through it and its neighbours."""
    if not 0 < peak < len(values) - 1:
        return 0.0
    below, top, above = (float(values[peak + step]) for step in (-1, 0, 1))
    curvature = below - 2 * top + above
    return 0.0 if curvature >= 0 else float(np.clip((below - above) / (2 * curvature), -0.5, 0.5))


def _compute_shape_window(shape: Mask, shot: AnalysedShot) -> PixelWindow:
    rows, columns = np.nonzero(shape.any(axis=1))[0], np.nonzero(shape.any(axis=0))[0]
    scale = shot.scale
    window = PixelWindow(
        int(columns[0] * scale),
        int(rows[0] * scale),
        int(np.ceil((columns[-1] + 1) * scale)),
        int(np.ceil((rows[-1] + 1) * scale)),
    )
    return pad_pixel_window(window, max(2, round(2 * scale)), frame=shot.size)


def _soften_mask(solid: Mask) -> Floats:
    soft: Floats = ndimage.gaussian_filter(solid.astype(np.float32), 0.7)
    return soft[..., None]
