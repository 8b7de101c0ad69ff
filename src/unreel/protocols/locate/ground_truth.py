"""Ground truth of the protocol `locate`: all annotated traces of one clip."""

from collections.abc import Sequence
from dataclasses import dataclass

from unreel.core.errors import InvalidValueError
from unreel.core.judgement import Label
from unreel.core.trace import Trace
from unreel.protocols.protocol import ClipGroundTruth


@dataclass(frozen=True, slots=True, kw_only=True)
class LocateTruth:
    """Annotated generated segments of one clip, and its length; no segments for a real clip."""

    traces: tuple[Trace, ...] = ()
    duration_us: int | None = None
    """Length of the clip; `None` if unknown: the clip then does not count towards clean hours."""

    @property
    def label(self) -> Label:
        """Return the label of the clip: generated if a segment is annotated, else real."""
        return Label.GENERATED if self.traces else Label.REAL


def build_locate_truths(
    ground_truth: Sequence[ClipGroundTruth], *, duration_us: int | None
) -> tuple[LocateTruth, ...]:
    """Return the ground truth of the clip of a question, as a tuple of one.

    Raise `InvalidValueError` if the clip is generated, but no segment is annotated.
    """
    (clip,) = ground_truth
    if clip.label is Label.GENERATED and not clip.traces:
        raise InvalidValueError("no segment of this generated clip is marked. Add a traces column")
    return (LocateTruth(traces=clip.traces, duration_us=duration_us),)
