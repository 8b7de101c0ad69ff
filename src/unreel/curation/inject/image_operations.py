"""Image operations for trace effects: warp, blend, erase and paste parts of a frame."""

from collections.abc import Callable

import numpy as np
from scipy import ndimage

from unreel.curation.inject.shot_analysis import Floats, PixelWindow
from unreel.curation.inject.tracked_regions import RegionCutout, compute_squared_radius
from unreel.media.decode import Rgb

Field = Callable[[Floats, Floats], tuple[Floats, Floats]]
"""Function from columns and rows (-1 to 1 across a window) to the source columns and rows of the warp."""


def compute_effect_strength(index: int, n: int, *, rise: int) -> float:
    """Return the strength at frame `index`: 0 outside the span, 1 inside, smooth over `rise` frames."""
    part = min(1.0, (index + 1) / (rise + 1), (n - index) / (rise + 1))
    return part * part * (3 - 2 * part)


def warp_ellipse(frame: Rgb, window: PixelWindow, field: Field) -> Rgb:
    """Return `frame` with the ellipse in `window` warped by `field`; the edge of the ellipse is fixed."""
    across = (np.arange(window.width, dtype=np.float32) + 0.5) / window.width * 2 - 1
    down = (np.arange(window.height, dtype=np.float32) + 0.5) / window.height * 2 - 1
    columns, rows = (grid.astype(np.float32) for grid in np.meshgrid(across, down))
    to_column, to_row = field(columns, rows)
    inner = np.clip(1 - compute_squared_radius(window), 0, 1) ** 2
    coordinates = (
        (rows + inner * (to_row - rows) + 1) / 2 * window.height - 0.5,
        (columns + inner * (to_column - columns) + 1) / 2 * window.width - 0.5,
    )
    patch = frame[window.slices].astype(np.float32)
    bent = np.stack(
        [
            ndimage.map_coordinates(patch[..., channel], coordinates, order=1, mode="nearest")
            for channel in range(3)
        ],
        axis=-1,
    )
    return paste_patch(frame, window, np.where(inner[..., None] > 0, bent, patch))


def blend_patches(below: Floats, above: Floats, alpha: Floats | float) -> Floats:
    """Return the patch `above` blended over the patch `below` with the opacity `alpha`."""
    blended: Floats = (below + (above - below) * alpha).astype(np.float32)
    return blended


def paste_patch(frame: Rgb, window: PixelWindow, patch: Floats) -> Rgb:
    """Return a copy of `frame` with `patch` pasted into `window`."""
    picture = frame.copy()
    picture[window.slices] = np.clip(np.rint(patch), 0, 255).astype(np.uint8)
    return picture


def erase_region(frame: Rgb, cut: RegionCutout, much: float = 1.0) -> Rgb:
    """Return `frame` with a cut-out region replaced by its background; `much` is the opacity."""
    return paste_patch(frame, cut.window, blend_patches(cut.patch, cut.behind, cut.cover * much))


def paste_cutout(frame: Rgb, cut: RegionCutout, offset: tuple[int, int], much: float = 1.0) -> Rgb:
    """Paste a cutout at its position plus `offset` (columns, rows) with opacity `much`; clip it at the edges."""
    height, width, _ = frame.shape
    left, top = cut.window.left + offset[0], cut.window.top + offset[1]
    rows = slice(max(0, -top), min(cut.window.height, height - top))
    columns = slice(max(0, -left), min(cut.window.width, width - left))
    if rows.start >= rows.stop or columns.start >= columns.stop:
        return frame
    window = PixelWindow(
        left + columns.start, top + rows.start, left + columns.stop, top + rows.stop
    )
    below = frame[window.slices].astype(np.float32)
    alpha = cut.alpha[rows, columns] * much
    return paste_patch(frame, window, blend_patches(below, cut.patch[rows, columns], alpha))


def build_swirl_field(turn: float, bulge: float, phase: float) -> Field:
    """Return a warp field that turns the window by `turn` radians and bends it in waves."""

    def field(columns: Floats, rows: Floats) -> tuple[Floats, Floats]:
        cos, sin = np.cos(turn), np.sin(turn)
        bent = columns + bulge * np.sin(4 * rows + phase)
        return cos * bent - sin * rows, sin * bent + cos * rows

    return field


def build_ripple_field(waves: Floats, pushes: Floats, phases: Floats) -> Field:
    """Return a warp field that adds sine waves of the given directions, heights and phases."""

    def field(columns: Floats, rows: Floats) -> tuple[Floats, Floats]:
        ridges = [
            np.sin(wave[0] * columns + wave[1] * rows + phase)
            for wave, phase in zip(waves, phases, strict=True)
        ]
        return (
            columns + sum(push[0] * ridge for push, ridge in zip(pushes, ridges, strict=True)),
            rows + sum(push[1] * ridge for push, ridge in zip(pushes, ridges, strict=True)),
        )

    return field


def build_pinch_field(
    window: PixelWindow, first: PixelWindow, second: PixelWindow, pull: float
) -> Field:
    """Return a warp field that pulls both ends of the line between two windows to its middle."""
    axis = np.subtract(second.centre, first.centre) / (window.width / 2, window.height / 2)
    axis = axis / np.linalg.norm(axis)

    def field(columns: Floats, rows: Floats) -> tuple[Floats, Floats]:
        along = columns * axis[0] + rows * axis[1]
        return columns + pull * along * axis[0], rows + pull * along * axis[1]

    return field
