"""The measure itself, on differences drawn by hand."""

import numpy as np
import pytest

from curation.injection.fit import measure_fit
from unreel.core.box import Box
from unreel.core.errors import InvalidValueError
from unreel.core.span import TimeSpan
from unreel.core.trace import BoxAt, Trace

INSTANTS_US = [0, 10, 20]
TRACE = Trace(span=TimeSpan(10, 20), track=(BoxAt(10, Box(0, 0, 0.5, 0.5)),))


def frames(*marked: tuple[int, slice, slice]) -> list[np.ndarray]:
    drawn = [np.zeros((10, 10, 3), np.uint8) for _ in INSTANTS_US]
    for index, rows, columns in marked:
        drawn[index][rows, columns] = 200
    return drawn


def test_changed_pixels_are_counted_where_they_lie() -> None:
    changed = frames(
        (1, slice(0, 5), slice(0, 4)),  # 20 in the box
        (1, slice(9, 10), slice(0, 5)),  # 5 beside it
        (2, slice(0, 1), slice(0, 3)),  # 3 after the span
    )
    fit = measure_fit(frames(), changed, trace=TRACE, instants_us=INSTANTS_US)
    assert (fit.n_inside, fit.n_beside, fit.n_outside_span, fit.box_pixels) == (20, 5, 3, 25)
    assert fit.covered == 20 / 28
    assert fit.fill == 20 / 25


def test_equal_clips_are_covered_by_nothing() -> None:
    fit = measure_fit(frames(), frames(), trace=TRACE, instants_us=INSTANTS_US)
    assert (fit.covered, fit.fill) == (0, 0)


def test_both_clips_need_the_same_frames() -> None:
    with pytest.raises(InvalidValueError, match="3, 2 frames and 3 instants"):
        measure_fit(frames(), frames()[:2], trace=TRACE, instants_us=INSTANTS_US)
