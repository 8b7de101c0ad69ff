"""Traces of generated video: visible faults with position and time."""

from dataclasses import dataclass
from enum import StrEnum

from unreel.core.box import Box
from unreel.core.errors import InvalidValueError
from unreel.core.span import TimeSpan


class Category(StrEnum):
    """The nine kinds of trace that DeepTraceReward names, and `other`."""

    OBJECT_DISTORTION = "object-distortion"
    SUDDEN_BLURRING = "sudden-blurring"
    OBJECT_TRAJECTORY = "object-trajectory"
    REDUNDANT_OBJECT = "redundant-object"
    OBJECT_MERGING = "object-merging"
    OBJECT_SPLITTING = "object-splitting"
    BACKGROUND_DISTORTION = "background-distortion"
    OBJECT_DISAPPEARANCE = "object-disappearance"
    UNEXPECTED_MOVE = "unexpected-move"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class BoxAt:
    """Box of a trace at one timestamp."""

    at_us: int
    box: Box


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """One visible fault of a clip: boxes over time, span, kinds and a plain reason.

    An empty `track` means that no box was marked, an empty `explanation` that none was written.
    """

    span: TimeSpan
    track: tuple[BoxAt, ...] = ()
    categories: frozenset[Category] = frozenset()
    explanation: str = ""

    def __post_init__(self) -> None:
        instants = [mark.at_us for mark in self.track]
        if instants != sorted(set(instants)):
            raise InvalidValueError(
                "the boxes of a track must be in time order, one for an instant. Sort them by at_us"
            )
        if instants and not self.span.start_us <= instants[0] <= instants[-1] < self.span.end_us:
            raise InvalidValueError(
                f"a track must lie inside its span {self.span}. Widen the span or drop boxes"
            )
