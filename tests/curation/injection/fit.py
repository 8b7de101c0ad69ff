"""Fit of a trace to the visible difference between two clips."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unreel.core.errors import InvalidValueError
from unreel.core.trace import Trace
from unreel.curation.inject.clip_injection import PLAIN, find_changed_pixels
from unreel.media.decode import Rgb


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceFit:
    """Changed pixels inside and outside of the boxes and of the span, over a whole clip."""

    n_inside: int
    """In a box, in the span."""
    n_beside: int
    """Out of the box, in the span."""
    n_outside_span: int
    box_pixels: int
    """Of all boxes together."""

    @property
    def covered(self) -> float:
        """Fraction of all changed pixels inside a box."""
        n_changed = self.n_inside + self.n_beside + self.n_outside_span
        return self.n_inside / n_changed if n_changed else 0.0

    @property
    def fill(self) -> float:
        """Part of the boxes that changed."""
        return self.n_inside / self.box_pixels if self.box_pixels else 0.0


def measure_fit(
    clean: Sequence[Rgb],
    injected: Sequence[Rgb],
    *,
    trace: Trace,
    instants_us: Sequence[int],
    levels: int = PLAIN,
) -> TraceFit:
    """Return the fit of `trace` to the difference between two clips that were encoded in the same way."""
    if not len(clean) == len(injected) == len(instants_us):
        msg = f"{len(clean)}, {len(injected)} frames and {len(instants_us)} instants. Give one each"
        raise InvalidValueError(msg)
    boxes = {mark.at_us: mark.box for mark in trace.track}
    n_inside = n_beside = n_outside_span = box_pixels = 0
    for at_us, before, after in zip(instants_us, clean, injected, strict=True):
        changed = find_changed_pixels(before, after, levels=levels)
        if not trace.span.start_us <= at_us < trace.span.end_us:
            n_outside_span += int(changed.sum())
            continue
        box, (height, width) = boxes[at_us], changed.shape
        rows = slice(round(box.y0 * height), round(box.y1 * height))
        columns = slice(round(box.x0 * width), round(box.x1 * width))
        within = changed[rows, columns]
        n_inside += int(np.count_nonzero(within))
        n_beside += int(np.count_nonzero(changed)) - int(np.count_nonzero(within))
        box_pixels += within.size
    return TraceFit(
        n_inside=n_inside, n_beside=n_beside, n_outside_span=n_outside_span, box_pixels=box_pixels
    )
