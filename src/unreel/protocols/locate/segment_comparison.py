"""Comparison of the answered segments of each clip with its annotated segments, for all metrics."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from unreel.core.estimate import RowCluster
from unreel.core.failure import Failure
from unreel.core.judgement import Label
from unreel.core.span import MICROSECONDS
from unreel.core.trace import Trace
from unreel.core.verdict import LocatedSegment, LocateVerdict, Unparsed
from unreel.protocols.locate.ground_truth import LocateTruth
from unreel.protocols.locate.matching_conventions import (
    ClipSegmentOverlaps,
    rank_segments_by_confidence,
)
from unreel.protocols.locate.segment_overlap import (
    compute_temporal_ious,
    compute_tube_iou,
    is_pointing_hit,
)
from unreel.protocols.protocol import ScoredQuestion
from unreel.stats.row_sample import Array

LocateRow = ScoredQuestion[LocateTruth, LocateVerdict]
PAIRED = 0.5
"""Minimum tIoU of a pair of an answered and an annotated segment, for F1 scores."""


@dataclass(frozen=True, slots=True, eq=False)
class ClipSegmentComparison:
    """Answered segments of a clip (none if unreadable), compared with its annotated segments."""

    cluster: RowCluster
    truth: LocateTruth
    answered: tuple[LocatedSegment, ...]
    is_readable: bool
    overlaps: ClipSegmentOverlaps
    """Overlaps of the answered segments in the order of the answer; a missing confidence is NaN."""
    ranked: ClipSegmentOverlaps
    """Overlaps by falling confidence; in the order of the answer if any confidence is missing."""

    @classmethod
    def of(cls, row: LocateRow) -> "ClipSegmentComparison | None":
        """Compare the answered segments of a row with the annotated ones; `None` if the question failed."""
        if isinstance(row.outcome, Failure):
            return None
        segments = row.outcome.segments
        answered = () if isinstance(segments, Unparsed) else segments
        confidences = [np.nan if s.confidence is None else s.confidence for s in answered]
        tious = compute_temporal_ious([segment.trace for segment in answered], row.truth.traces)
        overlaps = ranked = ClipSegmentOverlaps(np.array(confidences, np.float64), tious)
        if not np.isnan(overlaps.confidences).any():
            spans = [segment.trace.span for segment in answered]
            starts, ends = [span.start_us for span in spans], [span.end_us for span in spans]
            ranked = rank_segments_by_confidence(overlaps, starts, ends)
        is_readable = not isinstance(segments, Unparsed)
        return cls(row.cluster, row.truth, answered, is_readable, overlaps, ranked)

    def pairs(self) -> Iterator[tuple[Trace, Trace]]:
        """Yield one-to-one pairs of an answered and a marked trace, by falling tIoU from `PAIRED` on."""
        tious = self.overlaps.tious.copy()
        while tious.size and tious.max() >= PAIRED:
            i, j = np.unravel_index(int(tious.argmax()), tious.shape)
            yield self.answered[i].trace, self.truth.traces[j]
            tious[i, :] = tious[:, j] = -1.0

    def best_vious(self) -> Array:
        """Return, for each annotated trace with boxes, the highest tube IoU with an answered trace."""
        return np.array(
            [
                max(
                    (compute_tube_iou(segment.trace, marked) for segment in self.answered),
                    default=0.0,
                )
                for marked in self.truth.traces
                if marked.track
            ]
        )

    def nearest(self) -> list[Trace | None]:
        """Return for each marked trace the answered one of highest tIoU; `None` if none overlaps."""
        columns = self.overlaps.tious.T
        best = [int(column.argmax()) if column.any() else None for column in columns]
        return [None if i is None else self.answered[i].trace for i in best]

    def pointing_hits(self) -> Array:
        """Return, for each annotated trace with boxes, 1 if the nearest answered box points at it, else 0."""
        pairs = zip(self.nearest(), self.truth.traces, strict=True)
        return np.array(
            [near is not None and is_pointing_hit(near, m) for near, m in pairs if m.track],
            np.float64,
        )

    def onset_errors_s(self) -> Array:
        """Return overlapped annotated traces' seconds from the start of the nearest answered one."""
        pairs = zip(self.nearest(), self.truth.traces, strict=True)
        return np.array(
            [
                abs(n.span.start_us - m.span.start_us) / MICROSECONDS
                for n, m in pairs
                if n is not None
            ]
        )


@dataclass(frozen=True, slots=True, eq=False)
class AllSegmentComparisons:
    """Segment comparisons of all answered clips, and counts of failed and unreadable questions."""

    clips: tuple[ClipSegmentComparison, ...]
    n_questions: int
    failures: Mapping[str, int]
    unparsed: Mapping[str, int]

    @property
    def located(self) -> tuple[ClipSegmentComparison, ...]:
        """Return the comparisons of clips with an annotated segment."""
        return tuple(clip for clip in self.clips if clip.truth.label is Label.GENERATED)

    @property
    def clean(self) -> tuple[ClipSegmentComparison, ...]:
        """Return the comparisons of clips without an annotated segment."""
        return tuple(clip for clip in self.clips if clip.truth.label is Label.REAL)


def compare_all_clip_segments(rows: Sequence[LocateRow]) -> AllSegmentComparisons:
    """Compare the answered segments of each clip with its annotated segments, and count failures."""
    failures: Counter[str] = Counter()
    unparsed: Counter[str] = Counter()
    clips: list[ClipSegmentComparison] = []
    for row in rows:
        clip = ClipSegmentComparison.of(row)
        if clip is not None:
            clips.append(clip)
        if isinstance(row.outcome, Failure):
            failures[row.outcome.reason.value] += 1
        elif isinstance(row.outcome.segments, Unparsed):
            unparsed[f"segments: {row.outcome.segments.reason.value}"] += 1
    return AllSegmentComparisons(
        tuple(clips), len(rows), dict(sorted(failures.items())), dict(sorted(unparsed.items()))
    )
