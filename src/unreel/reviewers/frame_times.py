"""Timestamps of a video's frames in the form that processors need: frame numbers at a rate."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from unreel.protocols.presentation import shows_times
from unreel.reviewers.contract import ReviewRequest, ShownFrame

WRITES_TIMES: Final = frozenset({"qwen3-vl", "videollama3"})
"""Families whose processor writes the instants of a video into the prompt."""
TELLS_TIMES: Final = WRITES_TIMES | {"qwen2.5-vl"}
"""Families whose processor accepts timestamps of a video."""
_PATCH: Final = 2
"""Frames that share a temporal patch of Qwen's."""


@dataclass(frozen=True, slots=True)
class FrameTiming:
    """Frame times of a video: the i-th shown frame is frame `indices[i]` at `fps` frames per second."""

    fps: Fraction
    indices: tuple[int, ...]

    @property
    def seconds(self) -> tuple[Fraction, ...]:
        """Return the time of each frame in seconds, as the processor computes it."""
        return tuple(index / self.fps for index in self.indices)


def compute_exact_timing(frames: Sequence[ShownFrame]) -> FrameTiming:
    """Compute the exact times of `frames`; the frame rate is the common denominator of the times."""
    rate = math.lcm(*(frame.at_s.denominator for frame in frames))
    return FrameTiming(Fraction(rate), tuple(int(frame.at_s * rate) for frame in frames))


def compute_even_timing(frames: Sequence[ShownFrame]) -> FrameTiming:
    """Compute evenly spaced times that start at the first frame, with the mean distance of `frames`."""
    length_s = frames[-1].at_s - frames[0].at_s
    rate = (len(frames) - 1) / length_s if length_s else Fraction(1)
    return FrameTiming(rate, tuple(range(len(frames))))


def explain_uneven_timing(frames: Sequence[ShownFrame]) -> str:
    """Return the reason why one interval does not describe the timestamps of `frames`; "" if it does.

    A frame may be half an interval off, due to rounding to frames of the clip, and the first may be
    as late as the middle of the first part, which the interval implies too.
    """
    timing = compute_even_timing(frames)
    first, half_s = frames[0].at_s, 1 / timing.fps / 2
    off_s = max(abs(f.at_s - first - s) for f, s in zip(frames, timing.seconds, strict=True))
    if off_s > half_s:
        return f"a frame is {float(off_s):.2f} s off the even distance of {float(2 * half_s):.2f} s"
    if len(frames) > 1 and first > 2 * half_s:
        return f"the first frame comes {float(first):.2f} s after the clip's start"
    return ""


def get_timing(family: str, frames: Sequence[ShownFrame]) -> FrameTiming:
    """Return the timestamps of a video's frames for the processor of that family."""
    return (compute_exact_timing if family in WRITES_TIMES else compute_even_timing)(frames)


def explain_missing_video(family: str, sheet: ReviewRequest) -> str:
    """Return the reason why the clips of `sheet` cannot be shown as videos with exact timestamps; "" if they can."""
    marks = sheet.condition.marks
    shown = [exhibit.frames for exhibit in sheet.exhibits if exhibit.frames]
    if family in WRITES_TIMES and marks == "off":
        return "the processor writes the instants of a video, so marks cannot be off"
    if family == "qwen3-vl" and any(len(frames) < _PATCH for frames in shown):
        return "its video needs two frames at least. Sample more, or train it on frames"
    if family == "qwen2.5-vl" and shows_times(sheet.instrument.protocol, marks):
        for why in filter(None, map(explain_uneven_timing, shown)):
            remedy = "Sample at a rate such as fps-2, or train it on frames"
            return f"its video has one distance for all frames, and {why}. {remedy}"
    return ""
