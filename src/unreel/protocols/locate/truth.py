"""Ground truth of `locate`: all traces of one clip."""

from collections.abc import Sequence
from dataclasses import dataclass

from unreel.core.errors import InvalidValueError
from unreel.core.judgement import Label
from unreel.core.trace import Trace
from unreel.protocols.protocol import ClipGroundTruth


@dataclass(frozen=True, slots=True, kw_only=True)
class LocateTruth:
    """Generated segments of a clip; empty for a clean clip."""

    traces: tuple[Trace, ...] = ()
    duration_us: int | None = None
    """Length of the clip; `None` if unknown: the clip then does not count towards clean hours."""

    @property
    def label(self) -> Label:
        """Return the label of the clip."""
        return Label.GENERATED if self.traces else Label.REAL


def locate_truths(
    shown: Sequence[ClipGroundTruth], *, duration_us: int | None
) -> tuple[LocateTruth, ...]:
    """Return the one truth of the clip.

    Raises:
        InvalidValueError: The clip is generated and no segment is marked.
    """
    (clip,) = shown
    if clip.label is Label.GENERATED and not clip.traces:
        msg = "no segment of this generated clip is marked. Add a traces column"
        raise InvalidValueError(msg)
    return (LocateTruth(traces=clip.traces, duration_us=duration_us),)
