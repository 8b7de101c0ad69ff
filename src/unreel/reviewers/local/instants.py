"""The instants of a video's frames as processors are told them: numbers of frames at a rate."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from unreel.reviewers.contract import ShownFrame


@dataclass(frozen=True, slots=True)
class Timing:
    """Frame `indices[i]` of a video of `fps` frames a second is the i-th that is shown."""

    fps: Fraction
    indices: tuple[int, ...]

    @property
    def seconds(self) -> tuple[Fraction, ...]:
        """When each is shown, as the processor will work it out."""
        return tuple(index / self.fps for index in self.indices)


def exact_timing(frames: Sequence[ShownFrame]) -> Timing:
    """The very instants of `frames`, however they lie: the rate is their common denominator."""
    rate = math.lcm(*(frame.at_s.denominator for frame in frames))
    return Timing(Fraction(rate), tuple(int(frame.at_s * rate) for frame in frames))


def even_timing(frames: Sequence[ShownFrame]) -> Timing:
    """One distance for all of `frames`, counted from the first: the mean of theirs."""
    length_s = frames[-1].at_s - frames[0].at_s
    rate = (len(frames) - 1) / length_s if length_s else Fraction(1)
    return Timing(rate, tuple(range(len(frames))))


def uneven(frames: Sequence[ShownFrame]) -> str:
    """Why one distance does not tell the instants of `frames`; "" where it does.

    A frame may lie half a distance off its place, as rounding to frames of the clip makes it, and the
    first may come so late as the middle of the first share, which the distance tells too.
    """
    timing = even_timing(frames)
    first, half_s = frames[0].at_s, 1 / timing.fps / 2
    off_s = max(abs(f.at_s - first - s) for f, s in zip(frames, timing.seconds, strict=True))
    if off_s > half_s:
        return (
            f"a frame lies {float(off_s):.2f} s off the even distance of {float(2 * half_s):.2f} s"
        )
    if len(frames) > 1 and first > 2 * half_s:
        return f"the first frame comes {float(first):.2f} s after the clip's start"
    return ""
