"""Closeness of the evidence of a `trace` answer to the ground truth: 0 to 1, `None` if there is nothing to compare."""

from unreel.core.box import Box
from unreel.core.span import TimeSpan
from unreel.core.verdict import TraceVerdict, Unparsed, UnparsedReason
from unreel.protocols.trace.truth import TraceTruth


def box_closeness(said: Box | Unparsed, truth: TraceTruth) -> float | None:
    """Return the IoU with the true box at the start of the trace.

    `None` if the box of the answer is unparsed or the truth has no box.
    """
    if isinstance(said, Unparsed) or truth.box is None:
        return None
    return truth.box.iou(said)


def onset_closeness(said_us: int | Unparsed, truth: TraceTruth, *, within: float) -> float | None:
    """Return 1 at the true onset, decreasing linearly to 0 at a distance of `within` clip lengths.

    `None` if the onset of the answer is unparsed or the truth has no onset.
    """
    if isinstance(said_us, Unparsed) or truth.start_us is None:
        return None
    return max(0.0, 1 - abs(said_us - truth.start_us) / (within * truth.duration_us))


def span_closeness(said_us: int | Unparsed, truth: TraceTruth) -> float | None:
    """Return the IoU in time of the true span and the range from the named onset to its end.

    Answers name no end, so the true one is used.
    """
    if isinstance(said_us, Unparsed) or truth.trace is None:
        return None
    span = truth.trace.span
    if said_us >= span.end_us:
        return 0.0
    said = TimeSpan(said_us, span.end_us)
    return said.overlap_us(span) / max(said.length_us, span.length_us)


def is_malformed(verdict: TraceVerdict) -> bool:
    """Return whether a position or time was given in an unreadable format; absent parts are not malformed."""
    return any(is_unreadable(part) for part in (verdict.box, verdict.start_us))


def is_unreadable(part: object) -> bool:
    """Return whether that part of a verdict was given in an unreadable format."""
    return isinstance(part, Unparsed) and part.reason is not UnparsedReason.MISSING
