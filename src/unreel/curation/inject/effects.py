"""Effects that inject the nine categories of traces into a shot, most suitable first, and their image operations."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice

import numpy as np
from scipy import ndimage

from unreel.core.trace import Category
from unreel.curation.inject.shot_analysis import (
    AnalysedShot,
    Floats,
    PixelWindow,
    RegionCutout,
    TrackedRegion,
    build_ellipse_mask,
    compute_squared_radius,
    cut_out_region,
    iter_moving_objects,
    iter_textured_regions,
    merge_pixel_windows,
    pad_pixel_window,
)
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


def erase_region(frame: Rgb, cutout: RegionCutout, much: float = 1.0) -> Rgb:
    """Return `frame` with a cut-out region replaced by its background; `much` is the opacity."""
    return paste_patch(
        frame, cutout.window, blend_patches(cutout.patch, cutout.background, cutout.cover * much)
    )


def paste_cutout(
    frame: Rgb, cutout: RegionCutout, offset: tuple[int, int], much: float = 1.0
) -> Rgb:
    """Paste a cutout at its position plus `offset` (columns, rows) with opacity `much`; clip it at the edges."""
    height, width, _ = frame.shape
    left, top = cutout.window.left + offset[0], cutout.window.top + offset[1]
    rows = slice(max(0, -top), min(cutout.window.height, height - top))
    columns = slice(max(0, -left), min(cutout.window.width, width - left))
    if rows.start >= rows.stop or columns.start >= columns.stop:
        return frame
    window = PixelWindow(
        left + columns.start, top + rows.start, left + columns.stop, top + rows.stop
    )
    below = frame[window.slices].astype(np.float32)
    alpha = cutout.alpha[rows, columns] * much
    return paste_patch(frame, window, blend_patches(below, cutout.patch[rows, columns], alpha))


Offset = tuple[int, int]

_MAX_OBJECTS = 4
_DIRECTIONS = 16
_MIN_INSIDE = 0.7
"""Minimum fraction of a moved region that stays in the picture."""
_NEAREST = 0.6
_FARTHEST = 1.5
_FARTHEST_OBJECTS = 2.6
"""Maximum distance of two objects that merge, in units of their mean size."""
_LARGEST_PAIR = 0.25


@dataclass(frozen=True, slots=True, eq=False)
class TraceEffect:
    """Effect that paints a trace into the frames of a shot, at one region of the picture."""

    paint: Callable[[int], Rgb]
    """Function from a frame's index in the shot to the frame with the trace."""
    about: TrackedRegion
    towards: Offset = (0, 0)
    """Offset of a moved part, in columns and rows."""
    run: range | None = None
    """Frames of the shot that the effect changes; `None` for all of them."""


@dataclass(frozen=True, slots=True, eq=False)
class TraceEffectContext:
    """Input of trace effects: the analysed shot, the random generator and the strength."""

    shot: AnalysedShot
    rng: np.random.Generator
    strength: float

    def objects(self) -> list[TrackedRegion]:
        """Return at most `_MAX_OBJECTS` moving objects of the shot, in an order that depends on the seed."""
        regions = list(islice(iter_moving_objects(self.shot), _MAX_OBJECTS))
        return [regions[index] for index in self.rng.permutation(len(regions))]

    def places(self, *, fraction: float, away_from_motion: bool = False) -> Iterator[TrackedRegion]:
        """Yield regions of the shot that are rich in detail, in an order that depends on the seed.

        `fraction` is the width of a region relative to the shorter side of the frame. With `away_from_motion`,
        regions are away from everything that moves.
        """
        return iter_textured_regions(
            self.shot, self.rng, fraction=fraction, away_from_motion=away_from_motion
        )


def _iter_blur_effects(context: TraceEffectContext) -> Iterator[TraceEffect]:
    shot = context.shot
    for region in chain(context.objects(), context.places(fraction=0.4)):
        windows = _pad_region_windows(region, 0.1, shot)
        spread = (0.05 + 0.1 * context.strength) * min(windows[0].width, windows[0].height)

        def paint(
            index: int, windows: Sequence[PixelWindow] = windows, spread: float = spread
        ) -> Rgb:
            frame, window = shot.picture(index), windows[index]
            patch = frame[window.slices].astype(np.float32)
            much = compute_effect_strength(index, shot.n, rise=1)
            soft = ndimage.gaussian_filter(patch, (spread, spread, 0), mode="nearest")
            return paste_patch(
                frame, window, blend_patches(patch, soft, build_ellipse_mask(window) * much)
            )

        yield TraceEffect(paint, region)


def _iter_distortion_effects(context: TraceEffectContext) -> Iterator[TraceEffect]:
    shot, rng = context.shot, context.rng
    for region in chain(context.objects(), context.places(fraction=0.4)):
        windows = _pad_region_windows(region, 0.15, shot)
        turn = rng.choice((-1, 1)) * (0.6 + 1.0 * context.strength)
        phase, speed = rng.uniform(0, 6.28), rng.uniform(0.15, 0.3)
        bulge = 0.12 + 0.16 * context.strength

        def paint(
            index: int,
            windows: Sequence[PixelWindow] = windows,
            turn: float = turn,
            wave: tuple[float, float, float] = (phase, speed, bulge),
        ) -> Rgb:
            much = compute_effect_strength(index, shot.n, rise=3)
            angle, phase = turn * much, wave[0] + wave[1] * index

            def swirl(columns: Floats, rows: Floats) -> tuple[Floats, Floats]:
                cos, sin = np.cos(angle), np.sin(angle)
                bent = columns + wave[2] * much * np.sin(4 * rows + phase)
                return cos * bent - sin * rows, sin * bent + cos * rows

            return warp_ellipse(shot.picture(index), windows[index], swirl)

        yield TraceEffect(paint, region)


def _iter_background_distortions(context: TraceEffectContext) -> Iterator[TraceEffect]:
    shot, rng = context.shot, context.rng
    amplitude = 0.1 + 0.14 * context.strength
    candidates = (
        context.places(fraction=fraction, away_from_motion=True) for fraction in (0.6, 0.45, 0.3)
    )
    for region in chain.from_iterable(candidates):
        waves, pushes = rng.normal(size=(2, 4, 2)).astype(np.float32)
        phases = rng.uniform(0, 6.28, 4).astype(np.float32)
        speed = rng.uniform(0.1, 0.2)

        def paint(
            index: int,
            windows: Sequence[PixelWindow] = region.windows,
            field: tuple[Floats, ...] = (waves, pushes, phases),
            speed: float = speed,
        ) -> Rgb:
            much = amplitude * compute_effect_strength(index, shot.n, rise=3)
            waves, pushes, phases = 2.2 * field[0], much * field[1], field[2] + speed * index

            def ripple(columns: Floats, rows: Floats) -> tuple[Floats, Floats]:
                ridges = [
                    np.sin(wave[0] * columns + wave[1] * rows + phase)
                    for wave, phase in zip(waves, phases, strict=True)
                ]
                shift = [
                    sum(push[axis] * ridge for push, ridge in zip(pushes, ridges, strict=True))
                    for axis in (0, 1)
                ]
                return columns + shift[0], rows + shift[1]

            return warp_ellipse(shot.picture(index), windows[index], ripple)

        yield TraceEffect(paint, region)


def _iter_disappearance_effects(context: TraceEffectContext) -> Iterator[TraceEffect]:
    shot = context.shot
    for region in context.objects():

        def paint(index: int, region: TrackedRegion = region) -> Rgb:
            much = compute_effect_strength(index, shot.n, rise=3)
            return erase_region(shot.picture(index), cut_out_region(shot, region, index), much)

        yield TraceEffect(paint, region)


def _iter_duplicate_effects(context: TraceEffectContext) -> Iterator[TraceEffect]:
    shot = context.shot
    for region in context.objects():
        for offset in _iter_valid_offsets(context, region, parts=(1.15, 1.5, 2.2), signs=(1,)):
            if any(
                (abs(offset[0]) < window.width and abs(offset[1]) < window.height)
                for window in region.windows
            ):
                continue

            def paint(index: int, region: TrackedRegion = region, offset: Offset = offset) -> Rgb:
                much = compute_effect_strength(index, shot.n, rise=3)
                return paste_cutout(
                    shot.picture(index), cut_out_region(shot, region, index), offset, much
                )

            yield TraceEffect(paint, region, offset)
            break


def _iter_merge_effects(context: TraceEffectContext) -> Iterator[TraceEffect]:
    shot = context.shot
    objects = context.objects()
    candidates = [*objects, *context.places(fraction=0.25)]
    for region in objects:
        for other in candidates:
            pairs = tuple(zip(region.windows, other.windows, strict=True))
            both_seen = bool(other.silhouettes and region.silhouettes)
            farthest = _FARTHEST_OBJECTS if both_seen else _FARTHEST
            close = [
                other is not region and _is_close_pair(*pair, shot, farthest=farthest)
                for pair in pairs
            ]
            run = _find_longest_true_run(close)
            paint = _draw_melt_frame if both_seen else _draw_squeeze_frame
            if run:
                yield TraceEffect(partial(paint, context, (region, other), run), region, run=run)


def _draw_melt_frame(
    context: TraceEffectContext, pair: tuple[TrackedRegion, TrackedRegion], run: range, index: int
) -> Rgb:
    """Return the frame with two objects moved into each other, the second object half transparent."""
    shot = context.shot
    much = compute_effect_strength(index - run.start, len(run), rise=max(3, len(run) // 3))
    first, second = (cut_out_region(shot, region, index) for region in pair)
    gap = np.subtract(second.window.centre, first.window.centre)
    step = np.rint(gap * much * (0.3 + 0.15 * context.strength)).astype(int)
    bare = erase_region(erase_region(shot.picture(index), first), second)
    picture = paste_cutout(bare, first, (int(step[0]), int(step[1])))
    return paste_cutout(picture, second, (-int(step[0]), -int(step[1])), 1 - 0.45 * much)


def _draw_squeeze_frame(
    context: TraceEffectContext, pair: tuple[TrackedRegion, TrackedRegion], run: range, index: int
) -> Rgb:
    """Return the frame with two regions pulled towards each other by a warp."""
    shot = context.shot
    first, second = (region.windows[index] for region in pair)
    window = merge_pixel_windows((first, second))
    margin = round(0.12 * max(window.width, window.height))
    window = pad_pixel_window(window, margin, frame=shot.size)
    much = compute_effect_strength(index - run.start, len(run), rise=max(3, len(run) // 3))
    pull = much * (0.7 + 0.5 * context.strength)
    axis = np.subtract(second.centre, first.centre) / (window.width / 2, window.height / 2)
    axis = axis / np.linalg.norm(axis)

    def pinch(columns: Floats, rows: Floats) -> tuple[Floats, Floats]:
        along = columns * axis[0] + rows * axis[1]
        return columns + pull * along * axis[0], rows + pull * along * axis[1]

    return warp_ellipse(shot.picture(index), window, pinch)


def _iter_split_effects(context: TraceEffectContext) -> Iterator[TraceEffect]:
    shot = context.shot
    for region in context.objects():
        for offset in _iter_valid_offsets(
            context, region, parts=(0.4 + 0.3 * context.strength,), signs=(1, -1)
        ):

            def paint(index: int, region: TrackedRegion = region, offset: Offset = offset) -> Rgb:
                cut = cut_out_region(shot, region, index)
                part = (index + 1) / shot.n
                step = (round(offset[0] * part), round(offset[1] * part))
                picture = erase_region(shot.picture(index), cut)
                picture = paste_cutout(picture, cut, (-step[0], -step[1]))
                return paste_cutout(picture, cut, step)

            yield TraceEffect(paint, region, offset)
            break


def _iter_trajectory_effects(context: TraceEffectContext) -> Iterator[TraceEffect]:
    shot, rng = context.shot, context.rng
    part = 0.5 + 0.4 * context.strength
    for region in context.objects():
        both_ways = _iter_valid_offsets(context, region, parts=(part,), signs=(1, -1))
        one_way = _iter_valid_offsets(context, region, parts=(part,), signs=(1,))
        choices = chain(((o, -1.0) for o in both_ways), ((o, 0.4) for o in one_way))
        for offset, other_end in islice(choices, 1):
            path = _build_jump_path(shot.n, rng, other_end=other_end)

            def paint(
                index: int,
                region: TrackedRegion = region,
                offset: Offset = offset,
                path: Floats = path,
            ) -> Rgb:
                cut = cut_out_region(shot, region, index)
                step = (round(offset[0] * path[index]), round(offset[1] * path[index]))
                return paste_cutout(erase_region(shot.picture(index), cut), cut, step)

            yield TraceEffect(paint, region, offset)


def _iter_move_effects(context: TraceEffectContext) -> Iterator[TraceEffect]:
    shot = context.shot
    for region in context.places(fraction=0.3, away_from_motion=True):
        for offset in _iter_valid_offsets(
            context, region, parts=(0.35 + 0.3 * context.strength,), signs=(1,)
        ):

            def paint(index: int, region: TrackedRegion = region, offset: Offset = offset) -> Rgb:
                much = compute_effect_strength(index, shot.n, rise=3)
                cut = cut_out_region(shot, region, index)
                step = (round(offset[0] * much), round(offset[1] * much))
                return paste_cutout(erase_region(shot.picture(index), cut), cut, step)

            yield TraceEffect(paint, region, offset)
            break


EFFECTS: Mapping[Category, Callable[[TraceEffectContext], Iterator[TraceEffect]]] = {
    Category.SUDDEN_BLURRING: _iter_blur_effects,
    Category.OBJECT_DISTORTION: _iter_distortion_effects,
    Category.OBJECT_DISAPPEARANCE: _iter_disappearance_effects,
    Category.REDUNDANT_OBJECT: _iter_duplicate_effects,
    Category.OBJECT_MERGING: _iter_merge_effects,
    Category.OBJECT_SPLITTING: _iter_split_effects,
    Category.OBJECT_TRAJECTORY: _iter_trajectory_effects,
    Category.BACKGROUND_DISTORTION: _iter_background_distortions,
    Category.UNEXPECTED_MOVE: _iter_move_effects,
}


def _pad_region_windows(
    region: TrackedRegion, part: float, shot: AnalysedShot
) -> tuple[PixelWindow, ...]:
    return tuple(
        pad_pixel_window(window, round(part * max(window.width, window.height)), frame=shot.size)
        for window in region.windows
    )


def _iter_valid_offsets(
    context: TraceEffectContext,
    region: TrackedRegion,
    *,
    parts: Sequence[float],
    signs: Sequence[int],
) -> Iterator[Offset]:
    """Yield offsets of `parts` region sizes that, times each of `signs`, keep the region mostly in the picture."""
    windows, size = region.windows, context.shot.size

    def is_mostly_inside(window: PixelWindow, across: int, down: int) -> bool:
        left, top = window.left + across, window.top + down
        width = min(size[0], left + window.width) - max(0, left)
        height = min(size[1], top + window.height) - max(0, top)
        return min(width, height) > 0 and width * height >= _MIN_INSIDE * window.area

    width = max(window.width for window in windows)
    height = max(window.height for window in windows)
    start = context.rng.uniform(0, 2 * np.pi)
    for part in parts:
        for turn in np.linspace(start, start + 2 * np.pi, _DIRECTIONS, endpoint=False):
            offset = (round(part * width * np.cos(turn)), round(part * height * np.sin(turn)))
            if all(
                is_mostly_inside(w, s * offset[0], s * offset[1]) for w in windows for s in signs
            ):
                yield offset


def _is_close_pair(
    first_window: PixelWindow, second_window: PixelWindow, shot: AnalysedShot, *, farthest: float
) -> bool:
    """Return whether two windows are close, do not overlap much and cover a small part of the picture."""
    distance = float(np.hypot(*np.subtract(first_window.centre, second_window.centre)))
    pair = (first_window, second_window)
    size = sum(max(window.width, window.height) for window in pair) / 2
    fraction = merge_pixel_windows(pair).area / (shot.size[0] * shot.size[1])
    return _NEAREST * size < distance < farthest * size and fraction < _LARGEST_PAIR


def _find_longest_true_run(holds: Sequence[bool]) -> range:
    best = range(0)
    start = 0
    for index, is_true in enumerate(holds):
        if not is_true:
            start = index + 1
        elif index + 1 - start > len(best):
            best = range(start, index + 1)
    return best


def _build_jump_path(n: int, rng: np.random.Generator, *, other_end: float) -> Floats:
    """Return `n` positions that alternate every few frames between about 1 and about `other_end`."""
    path = np.empty(n, np.float32)
    index, at_far_end = 0, bool(rng.integers(2))
    while index < n:
        stay = int(rng.integers(3, 7))
        path[index : index + stay] = (1.0 if at_far_end else other_end) * rng.uniform(0.8, 1.0)
        index, at_far_end = index + stay, not at_far_end
    return path
