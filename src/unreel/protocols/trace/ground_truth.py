"""Ground truth of the protocol `trace`: human annotations, one per row."""

from collections.abc import Sequence
from dataclasses import dataclass

from unreel.core.box import Box
from unreel.core.errors import InvalidValueError
from unreel.core.judgement import Label
from unreel.core.trace import Trace
from unreel.protocols.protocol import ClipGroundTruth


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceTruth:
    """One annotation row of a clip: label, duration, and at most one trace.

    A generated clip has a row for each of its traces, and a real clip has one row. A generated clip
    without a trace has one row, which counts for labels only.
    """

    label: Label
    duration_us: int
    trace: Trace | None = None

    def __post_init__(self) -> None:
        if self.duration_us <= 0:
            raise InvalidValueError(
                f"a clip lasts longer than {self.duration_us} us. Read its duration from the file"
            )
        if self.label is Label.REAL and self.trace is not None:
            raise InvalidValueError(
                "a real clip has no trace of generation. Drop the trace or correct the label"
            )

    @property
    def box(self) -> Box | None:
        """Return the first box of the trace, which answers are compared with; `None` if there is none."""
        return self.trace.track[0].box if self.trace and self.trace.track else None

    @property
    def start_us(self) -> int | None:
        """Return the time at which the trace begins, in microseconds; `None` without a trace."""
        return self.trace.span.start_us if self.trace else None

    @property
    def explanation(self) -> str:
        """Return the explanation of the trace; "" if there is none."""
        return self.trace.explanation if self.trace else ""


def build_trace_truths(
    ground_truth: Sequence[ClipGroundTruth], *, duration_us: int | None
) -> tuple[TraceTruth, ...]:
    """Build the ground truths of a clip for `trace`: one per annotation row.

    A clip without annotation rows has one ground truth, without a trace. Raise `InvalidValueError`
    if the duration of the clip is unknown.
    """
    (clip,) = ground_truth
    if duration_us is None:
        raise InvalidValueError(
            "no duration declared. Add a duration_s column, or read it from the file"
        )
    return tuple(
        TraceTruth(label=clip.label, duration_us=duration_us, trace=trace)
        for trace in clip.traces or (None,)
    )
