"""Comparison of the answered segments of each clip with its annotated segments, for all metrics."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from unreel.core.estimate import RowCluster
from unreel.core.failure import Failure
from unreel.core.judgement import Label
from unreel.core.span import MICROSECONDS
from unreel.core.trace import Trace
from unreel.core.verdict import LocatedSegment, LocateVerdict, Unparsed
from unreel.protocols.locate.ground_truth import LocateTruth
from unreel.protocols.locate.metrics import AVERAGED
from unreel.protocols.protocol import ScoredQuestion
from unreel.stats.row_sample import Array, BoolArray, IntArray

Corners = npt.NDArray[np.float64]
"""Box corners x0, y0, x1, y1 at each of several instants."""
INSTANTS = 100
"""Number of equally spaced instants of the shared time at which the boxes of two tubes are compared."""


def interpolate_trace_boxes(trace: Trace, instants_us: npt.ArrayLike) -> Corners:
    """Interpolate the boxes of a trace at each of `instants_us`, also outside of its time span."""
    at = np.array([mark.at_us for mark in trace.track], dtype=np.float64)
    boxes = [mark.box for mark in trace.track]
    corners = np.array([(box.x0, box.y0, box.x1, box.y1) for box in boxes])
    instants = np.asarray(instants_us, dtype=np.float64)
    return np.stack([np.interp(instants, at, corners[:, edge]) for edge in range(4)], axis=1)


def compute_box_ious(a: Corners, b: Corners) -> Array:
    """Compute the IoU of two moving boxes at each instant."""
    overlap = np.minimum(a[:, 2:], b[:, 2:]) - np.maximum(a[:, :2], b[:, :2])
    shared = np.clip(overlap, 0, None).prod(axis=1)
    areas = (a[:, 2:] - a[:, :2]).prod(axis=1) + (b[:, 2:] - b[:, :2]).prod(axis=1)
    overlaps: Array = np.minimum(1.0, shared / (areas - shared))
    return overlaps


def compute_temporal_ious(answered_trace: Sequence[Trace], marked_trace: Sequence[Trace]) -> Array:
    """Compute the temporal IoU of each answered segment (rows) with each annotated segment (columns)."""
    starts, ends = _get_start_and_end_times(answered_trace)
    true_starts, true_ends = _get_start_and_end_times(marked_trace)
    shared = np.minimum.outer(ends, true_ends) - np.maximum.outer(starts, true_starts)
    shared = np.clip(shared, 0, None)
    union = np.add.outer(ends - starts, true_ends - true_starts) - shared
    tious: Array = shared / union
    return tious


def _get_start_and_end_times(
    traces: Sequence[Trace],
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    ends = np.array([(t.span.start_us, t.span.end_us) for t in traces], np.int64).reshape(-1, 2)
    return ends[:, 0], ends[:, 1]


def compute_tube_iou(answered_trace: Trace, marked_trace: Trace) -> float:
    """Compute mean box IoU over the shared time, times temporal IoU; 0 if a trace has no boxes."""
    start, shared = _get_shared_time(answered_trace, marked_trace)
    if not shared or not answered_trace.track or not marked_trace.track:
        return 0.0
    instants = start + (np.arange(INSTANTS) + 0.5) * (shared / INSTANTS)
    overlaps = compute_box_ious(
        interpolate_trace_boxes(answered_trace, instants),
        interpolate_trace_boxes(marked_trace, instants),
    )
    return float(overlaps.mean()) * answered_trace.span.iou(marked_trace.span)


def is_pointing_hit(answered_trace: Trace, marked_trace: Trace) -> bool:
    """Return whether the centre of the answered box is inside the marked box, in the middle of the shared time."""
    start, shared = _get_shared_time(answered_trace, marked_trace)
    if not shared or not answered_trace.track or not marked_trace.track:
        return False
    middle = [start + shared / 2]
    (box,), (marked_box,) = (
        interpolate_trace_boxes(answered_trace, middle),
        interpolate_trace_boxes(marked_trace, middle),
    )
    centre = (box[:2] + box[2:]) / 2
    return bool((marked_box[:2] <= centre).all() and (centre <= marked_box[2:]).all())


def _get_shared_time(first: Trace, second: Trace) -> tuple[int, int]:
    return max(first.span.start_us, second.span.start_us), first.span.overlap_us(second.span)


_MAX_PER_CLIP = 100
"""Number of segments per clip, on average, that ActivityNet's recall considers."""


@dataclass(frozen=True, slots=True, eq=False)
class ClipSegmentOverlaps:
    """Confidences of one clip's answered segments, and their temporal IoU with annotated ones."""

    confidences: Array
    tious: Array
    """Temporal IoU of each answered segment (rows) with each annotated segment (columns)."""


def rank_segments_by_confidence(
    clip: ClipSegmentOverlaps, starts: Sequence[int], ends: Sequence[int]
) -> ClipSegmentOverlaps:
    """Return the overlaps of answered segments sorted by falling confidence, then by start and end."""
    order = np.lexsort((np.asarray(ends), np.asarray(starts), -clip.confidences))
    return ClipSegmentOverlaps(clip.confidences[order], clip.tious[order])


def match_segments_activitynet(tious: Array, threshold: float) -> BoolArray:
    """Return a mask of the right segments, given segments sorted by falling confidence.

    Each segment in turn takes the annotated segment of highest tIoU that no earlier one took, if the
    tIoU reaches the threshold.
    """
    right = np.zeros(len(tious), np.bool_)
    is_free = np.ones(tious.shape[1], np.bool_)
    for i, line in enumerate(tious):
        open_tious = np.where(is_free, line, -1.0)
        best = int(open_tious.argmax()) if len(line) else -1
        if best >= 0 and open_tious[best] >= threshold:
            right[i], is_free[best] = True, False
    return right


def match_segments_avdeepfake1m(tious: Array, threshold: float) -> BoolArray:
    """Return a mask of the right segments, given segments in the order of the file.

    Each annotated segment in turn takes the first segment of the file, of any confidence, whose tIoU
    exceeds the threshold and that no earlier one took.
    """
    right = np.zeros(len(tious), np.bool_)
    for column in tious.T:
        free = np.flatnonzero((column > threshold) & ~right)
        right[free[:1]] = True
    return right


def count_ranked_segments_activitynet(n_segments: Sequence[int], n_mean: int) -> IntArray:
    """Return the number of segments of each clip that count if `n_mean` per clip count on average.

    Each clip keeps the same fraction of its segments, the most confident ones. `n_segments` are the
    numbers of clips with an annotated segment.
    """
    counts = np.asarray(n_segments, np.int64)
    budget = float(_MAX_PER_CLIP * len(counts))
    if not counts.sum():
        return counts
    ratio = budget / counts.sum()
    counted: IntArray = np.minimum((counts * ratio).astype(np.int64), counts)
    if counted.sum():
        fraction = n_mean / 100.0 * (budget / counted.sum())
        counted = np.minimum((counted * fraction).astype(np.int64), counted)
    return counted


def compute_recall_activitynet(tious: Array, n_counted: int) -> Array:
    """Compute, for each annotated segment, the fraction of tIoU thresholds at which it is found.

    It is found if the tIoU of one of the first `n_counted` answered segments reaches the threshold.
    Answered segments are sorted by falling confidence.
    """
    return _compute_threshold_hit_rates(tious[:n_counted], strict=False)


def compute_recall_avdeepfake1m(tious: Array, n_counted: int) -> Array:
    """Compute, for each annotated segment, the fraction of tIoU thresholds at which it is found.

    It is found if the tIoU of one of the first `n_counted` answered segments exceeds the threshold.
    Answered segments are in the order of the file.
    """
    return _compute_threshold_hit_rates(tious[:n_counted], strict=True)


def _compute_threshold_hit_rates(tious: Array, *, strict: bool) -> Array:
    best = tious.max(axis=0, initial=0.0)[:, np.newaxis]
    thresholds = np.array(AVERAGED)
    hits: Array = (best > thresholds if strict else best >= thresholds).mean(axis=1)
    return hits


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
