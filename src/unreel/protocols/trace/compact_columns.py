"""Compact columns of `trace` ground truths and verdicts: about 120 bytes per row, no texts."""

from array import array
from collections.abc import Iterator
from typing import Any

from unreel.core.box import Box
from unreel.core.failure import Failure
from unreel.core.judgement import Label
from unreel.core.span import TimeSpan
from unreel.core.trace import BoxAt, Trace
from unreel.core.verdict import TraceVerdict, Unparsed
from unreel.protocols.trace.ground_truth import TraceTruth

_WORDS = "..."
"""Placeholder for the text of an explanation, which is not stored."""
_CORNERS = 4


def create_compact_trace_columns() -> "tuple[TraceTruthColumn, TraceVerdictColumn]":
    """Create two empty compact columns: for ground truths, and for verdicts of the protocol `trace`."""
    return TraceTruthColumn(), TraceVerdictColumn()


class _BoxColumn:
    """Compact column of boxes by index. The value of a row without a box is undefined."""

    def __init__(self) -> None:
        self._corners = array("d")

    def append(self, box: Any) -> None:
        """Append a box to the column; zeros if `box` is not a `Box`."""
        is_box = isinstance(box, Box)
        self._corners.extend((box.x0, box.y0, box.x1, box.y1) if is_box else (0.0,) * _CORNERS)

    def __getitem__(self, index: int) -> Box:
        return Box(*self._corners[_CORNERS * index : _CORNERS * (index + 1)])


class TraceVerdictColumn:
    """Compact trace verdicts and failures: unreadable parts as reasons, explanations as present."""

    def __init__(self) -> None:
        self.codes = array("i")
        self._kinds: dict[Any, int] = {}
        self._known: list[Any] = []
        self._boxes, self._starts = _BoxColumn(), array("q")

    def append(self, outcome: TraceVerdict | Failure) -> None:
        """Append the verdict or failure of the next row to the column."""
        kind: Any = outcome
        box = start = None
        if isinstance(outcome, TraceVerdict):
            box, start = outcome.box, outcome.start_us
            reason = outcome.explanation
            kind = (
                _remove_unparsed_text(outcome.label),
                _remove_unparsed_text(box) if isinstance(box, Unparsed) else None,
                _remove_unparsed_text(start) if isinstance(start, Unparsed) else None,
                _remove_unparsed_text(reason) if isinstance(reason, Unparsed) else _WORDS,
            )
        code = self._kinds.setdefault(kind, len(self._kinds))
        if code == len(self._known):
            self._known.append(kind)
        self.codes.append(code)
        self._boxes.append(box)
        self._starts.append(start if isinstance(start, int) else 0)

    def __getitem__(self, index: int) -> TraceVerdict | Failure:
        kind = self._known[self.codes[index]]
        if isinstance(kind, Failure):
            return kind
        label, box, start, reason = kind
        return TraceVerdict(
            label=label,
            box=self._boxes[index] if box is None else box,
            start_us=self._starts[index] if start is None else start,
            explanation=reason,
        )

    def __iter__(self) -> Iterator[TraceVerdict | Failure]:
        return map(self.__getitem__, range(len(self.codes)))


class TraceTruthColumn:
    """Compact column of ground truths of `trace`.

    Of a trace it stores the start, the first box, and whether there is an explanation.
    """

    def __init__(self) -> None:
        self.codes = bytearray()
        self._hashes, self._durations, self._starts = array("q"), array("q"), array("q")
        self._boxes = _BoxColumn()

    def append(self, truth: TraceTruth) -> None:
        """Append the ground truth of the next row to the column."""
        box, start = truth.box, truth.start_us
        fake, explained = truth.label is Label.GENERATED, bool(truth.explanation)
        self.codes.append(fake | (start is not None) << 1 | (box is not None) << 2 | explained << 3)
        self._hashes.append(hash(truth))
        self._durations.append(truth.duration_us)
        self._starts.append(start or 0)
        self._boxes.append(box)

    def __getitem__(self, index: int) -> TraceTruth:
        code = self.codes[index]
        trace = None
        if code & 2:
            start = self._starts[index]
            track = (BoxAt(start, self._boxes[index]),) if code & 4 else ()
            span = TimeSpan(start, start + 1)
            trace = Trace(span=span, track=track, explanation=_WORDS if code & 8 else "")
        label = Label.GENERATED if code & 1 else Label.REAL
        return TraceTruth(label=label, duration_us=self._durations[index], trace=trace)

    def __iter__(self) -> Iterator[TraceTruth]:
        return map(self.__getitem__, range(len(self.codes)))

    def mark(self, index: int) -> int:
        """Return the hash of the complete ground truth of a row, including its texts."""
        return self._hashes[index]


def _remove_unparsed_text(part: Any) -> Any:
    return Unparsed(part.reason) if isinstance(part, Unparsed) else part
