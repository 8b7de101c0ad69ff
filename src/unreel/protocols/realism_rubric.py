"""VideoRealBench's level of 1 to 5, computed from the picture area and time that traces cover.

The rubric that annotators saw: 1 (bad) errors over 40 % of the picture or over 80 % of the
time; 2 (poor) 20 % or 40 %; 3 (normal) 10 % or 20 %; 4 (good) one or two minor errors, under
10 % and a few frames; 5 (excellent) none. The rubric leaves some points open; they are decided
as follows:

- The picture area is the union of all boxes of all traces at all times. The time is the union
  of the traces' spans within the clip. A trace without a box covers no picture area, but it
  covers time and is counted.
- "Over" is strict for 1 and 2: exactly 40 % of the picture is level 2, exactly 20 % is level 3.
- "Under 10 %" is strict for 4, and "a few frames" means under 20 % of the time, where level 3
  begins.
- Level 3 is every other case: three small errors are not "one or two".
"""

from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass
from fractions import Fraction
from itertools import pairwise

from unreel.core.box import Box
from unreel.core.errors import InvalidValueError
from unreel.core.span import TimeSpan
from unreel.core.trace import Trace

BAD, POOR, NORMAL, GOOD, EXCELLENT = 1, 2, 3, 4, 5
MAX_MINOR_ERRORS = 2

# Corners are rounded to a billionth of the frame, so that 0.4 is exactly 40 %, areas are exact
# integers, and sums do not depend on their order.
_GRID = 10**9

Interval = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceCoverage:
    """Fractions of a clip's picture and time that its traces cover, for VideoRealBench's rubric."""

    n_traces: int
    picture: Fraction
    """Fraction of the frame that at least one box covers at any time."""
    time: Fraction
    """Fraction of the clip's length within at least one span."""

    @property
    def level(self) -> int:
        """Return the realism level of VideoRealBench's rubric, from 1 (bad) to 5 (excellent)."""
        if self.n_traces == 0:
            return EXCELLENT
        if self.picture > Fraction(40, 100) or self.time > Fraction(80, 100):
            return BAD
        if self.picture > Fraction(20, 100) or self.time > Fraction(40, 100):
            return POOR
        minor = self.picture < Fraction(10, 100) and self.time < Fraction(20, 100)
        return GOOD if minor and self.n_traces <= MAX_MINOR_ERRORS else NORMAL


def measure_trace_coverage(traces: Sequence[Trace], *, duration_us: int) -> TraceCoverage:
    """Return the fractions of the picture and of the time that `traces` cover; parts after the clip's end are cut."""
    if duration_us <= 0:
        raise InvalidValueError(
            f"a clip lasts longer than {duration_us} us. Read its duration from the file"
        )
    spans = [trace.span for trace in traces]
    return TraceCoverage(
        n_traces=len(traces),
        picture=measure_box_union_area(mark.box for trace in traces for mark in trace.track),
        time=Fraction(measure_span_union_us(spans, duration_us=duration_us), duration_us),
    )


def measure_box_union_area(boxes: Iterable[Box]) -> Fraction:
    """Compute the fraction of the frame under `boxes`; corners are rounded to a billionth of a side."""
    corners = {tuple(round(part * _GRID) for part in astuple(box)) for box in boxes}
    rectangles = sorted(corners, key=lambda corner: (corner[1], corner[3]))
    edges = sorted({x for x0, _, x1, _ in rectangles for x in (x0, x1)})
    area = 0
    for left, right in pairwise(edges):
        column = ((y0, y1) for x0, y0, x1, y1 in rectangles if x0 <= left and right <= x1)
        area += (right - left) * _measure_covered_length(column)
    return Fraction(area, _GRID**2)


def measure_span_union_us(spans: Iterable[TimeSpan], *, duration_us: int) -> int:
    """Compute the time in microseconds that the union of `spans` covers within a clip."""
    inside = ((span.start_us, min(span.end_us, duration_us)) for span in spans)
    return _measure_covered_length(sorted(part for part in inside if part[0] < part[1]))


def _measure_covered_length(intervals: Iterable[Interval]) -> int:
    """Compute the length of the union of `intervals`, which are sorted by start."""
    total, reached = 0, 0
    for start, end in intervals:
        total += max(0, end - max(start, reached))
        reached = max(reached, end)
    return total
