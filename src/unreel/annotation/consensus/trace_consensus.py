"""Consensus on traces by DeepTraceReward's rule: traces of several annotators become one trace."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from unreel.annotation.campaign import AnnotationTask, AnnotatorClipCopy
from unreel.annotation.consensus.outcome import ConsensusRule, choose_consensus_text_author
from unreel.core.box import Box
from unreel.core.span import MICROSECONDS, TimeSpan
from unreel.core.trace import BoxAt, Category, Trace
from unreel.protocols.locate.segment_comparison import (
    Corners,
    compute_box_ious,
    interpolate_trace_boxes,
)


@dataclass(frozen=True, slots=True, eq=False)
class TraceTube:
    """Boxes of a trace on every frame of its span."""

    span: TimeSpan
    first: int
    """Number of the first frame."""
    end: int
    """Number of the frame after the last one."""
    corners: Corners | None
    """Corners of the box on each frame; `None` for a trace without boxes."""


def build_trace_tube(trace: Trace, copy: AnnotatorClipCopy) -> TraceTube:
    """Compute the boxes of a trace on every frame of its span in the clip copy `copy`."""
    first, end = copy.frame_at(trace.span.start_us), copy.frame_at(trace.span.end_us - 1) + 1
    if not trace.track:
        return TraceTube(trace.span, first, end, None)
    instants_us = np.rint(np.arange(first, end) * (MICROSECONDS / float(copy.rate)))
    return TraceTube(
        trace.span, first, end, interpolate_trace_boxes(trace, instants_us.astype(np.int64))
    )


def temporal_iou(a: TimeSpan, b: TimeSpan) -> float:
    """Compute the IoU of two time spans: shared time divided by the time of their union."""
    return a.iou(b)


def mean_box_iou_on_shared_frames(a: TraceTube, b: TraceTube) -> float | None:
    """Compute the mean box IoU over frames of both tubes; `None` without such frames or boxes."""
    overlaps = _compute_frame_overlaps(a, b)
    return None if overlaps is None or not len(overlaps) else float(overlaps.mean())


def tube_iou(a: TraceTube, b: TraceTube) -> float | None:
    """Compute the mean box IoU over the frames of either tube (0 if only one has it); `None` without boxes."""
    overlaps = _compute_frame_overlaps(a, b)
    if overlaps is None:
        return None
    either = (a.end - a.first) + (b.end - b.first) - len(overlaps)
    return float(overlaps.sum()) / either


def measure_trace_similarity(a: Trace, b: Trace, copy: AnnotatorClipCopy) -> float:
    """Compute the tube IoU of two traces in the copy of a clip; the temporal IoU if one has no boxes."""
    return measure_tube_overlap(build_trace_tube(a, copy), build_trace_tube(b, copy))


def measure_tube_overlap(a: TraceTube, b: TraceTube) -> float:
    """Compute the IoU of two tubes; the temporal IoU of their spans if one has no boxes."""
    iou = tube_iou(a, b)
    return temporal_iou(a.span, b.span) if iou is None else iou


def _compute_frame_overlaps(a: TraceTube, b: TraceTube) -> Corners | None:
    """Compute the IoU of the boxes of two tubes on each shared frame; `None` if a tube has no boxes."""
    if a.corners is None or b.corners is None:
        return None
    first, end = max(a.first, b.first), min(a.end, b.end)
    if first >= end:
        return np.zeros(0)
    left = a.corners[first - a.first : end - a.first]
    right = b.corners[first - b.first : end - b.first]
    return compute_box_ious(left, right)


# Weights of categories and text, which only separate faults at the same place and time.
_SAME_KINDS = 0.05
_SAME_WORDS = 0.001


@dataclass(frozen=True, slots=True)
class AnnotatorTrace:
    """Trace together with the name of its annotator."""

    annotator: str
    trace: Trace


Cluster = tuple[AnnotatorTrace, ...]
"""Traces by different annotators that mark the same fault."""


@dataclass(frozen=True, slots=True)
class _TraceSimilarities:
    """Similarity matrices of the traces of a task: by box and time, and also by category and text."""

    place: np.ndarray
    all: np.ndarray


def cluster_annotator_traces(
    traces: Mapping[str, Sequence[Trace]], copy: AnnotatorClipCopy, *, same_fault: float
) -> list[Cluster]:
    """Cluster the traces of all annotators by fault; return the clusters in order of time.

    A cluster contains at most one trace of each annotator. For each two annotators, traces are
    matched one to one so that the total similarity is largest. Clusters of matched traces are then
    merged, most similar pair first, if the mean overlap between the two clusters is at least
    `same_fault`. The order of annotators and traces does not change the result.
    """
    marks = [
        AnnotatorTrace(who, trace)
        for who in sorted(traces)
        for trace in sorted(traces[who], key=get_trace_sort_key)
    ]
    likes = _compute_trace_similarities(marks, copy)
    group = list(range(len(marks)))
    members = {number: [number] for number in group}
    for i, j in _match_trace_pairs(marks, likes, same_fault):
        left, right = members[group[i]], members[group[j]]
        people = [marks[k].annotator for k in (*left, *right)]
        if len(set(people)) < len(people) or likes.place[np.ix_(left, right)].mean() < same_fault:
            continue
        for k in members.pop(group[j]):
            left.append(k)
            group[k] = group[i]
    clusters = [tuple(marks[k] for k in sorted(ids)) for ids in members.values()]
    return sorted(clusters, key=lambda cluster: get_trace_sort_key(cluster[0].trace))


def get_trace_sort_key(trace: Trace) -> tuple[object, ...]:
    """Return a sort key for traces: time first, then boxes, categories and explanation."""
    track = tuple((m.at_us, m.box.x0, m.box.y0, m.box.x1, m.box.y1) for m in trace.track)
    return trace.span, track, sorted(trace.categories), trace.explanation


def _compute_trace_similarities(
    traces: Sequence[AnnotatorTrace], copy: AnnotatorClipCopy
) -> _TraceSimilarities:
    area = np.zeros((len(traces), len(traces)))
    text = np.zeros_like(area)
    tubes = [build_trace_tube(mark.trace, copy) for mark in traces]
    for i, j in combinations(range(len(traces)), 2):
        a, b = traces[i], traces[j]
        if a.annotator != b.annotator:
            area[i, j] = area[j, i] = measure_tube_overlap(tubes[i], tubes[j])
            text[i, j] = text[j, i] = _compute_description_similarity(a.trace, b.trace)
    return _TraceSimilarities(area, area + text)


def _compute_description_similarity(a: Trace, b: Trace) -> float:
    either = a.categories | b.categories
    kinds = len(a.categories & b.categories) / len(either) if either else 1.0
    return _SAME_KINDS * kinds + _SAME_WORDS * (a.explanation == b.explanation)


def _match_trace_pairs(
    traces: Sequence[AnnotatorTrace], similarities: _TraceSimilarities, same_fault: float
) -> list[tuple[int, int]]:
    """Match traces of each two annotators one to one by largest total similarity; return index pairs."""
    from scipy.optimize import linear_sum_assignment

    whose = np.array([mark.annotator for mark in traces])
    matches = []
    for a, b in combinations(sorted(set(whose.tolist())), 2):
        left, right = np.flatnonzero(whose == a), np.flatnonzero(whose == b)
        block = np.ix_(left, right)
        alike = np.where(similarities.place[block] >= same_fault, similarities.all[block], 0.0)
        for row, column in zip(*linear_sum_assignment(alike, maximize=True), strict=True):
            if alike[row, column] > 0:
                matches.append((-alike[row, column], int(left[row]), int(right[column])))
    return [(i, j) for _, i, j in sorted(matches)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsensusTrace:
    """Merged trace of one fault that a quorum of annotators marked."""

    trace: Trace
    marked_by: tuple[str, ...]
    words_of: str


@dataclass(frozen=True, slots=True)
class TraceConsensus:
    """Merged traces of one task in order of time, and the traces that too few annotators marked."""

    standing: tuple[ConsensusTrace, ...]
    lone: tuple[AnnotatorTrace, ...]


def merge_annotator_traces(
    task: AnnotationTask, traces: Mapping[str, Sequence[Trace]], rule: ConsensusRule
) -> TraceConsensus:
    """Merge each fault that `rule.quorum` annotators marked into one trace; also list the other traces."""
    copy = task.copies[0]
    clusters = cluster_annotator_traces(traces, copy, same_fault=rule.same_fault)
    standing = [
        _merge_trace_cluster(task, cluster, rule.quorum)
        for cluster in clusters
        if len(cluster) >= rule.quorum
    ]
    unshared = (mark for cluster in clusters if len(cluster) < rule.quorum for mark in cluster)
    return TraceConsensus(
        tuple(sorted(standing, key=lambda fault: get_trace_sort_key(fault.trace))),
        tuple(sorted(unshared, key=lambda mark: (mark.annotator, get_trace_sort_key(mark.trace)))),
    )


def _merge_trace_cluster(task: AnnotationTask, cluster: Cluster, quorum: int) -> ConsensusTrace:
    """Merge traces of different annotators that mark the same fault into one trace.

    Span and boxes are medians; a category needs more than half of the annotators. The boxes are
    merged at the key-frame times of the trace most similar to all others, if at least `quorum`
    traces have boxes. The explanation is the one by the annotator whose trace is most similar to
    all others.
    """
    copy = task.copies[0]
    far = _compute_trace_distances(cluster, copy)
    span = _compute_median_span([mark.trace.span for mark in cluster], copy)
    placed = [mark for mark in cluster if mark.trace.track]
    closest = min(placed, key=lambda mark: far[mark.annotator], default=None)
    track: tuple[BoxAt, ...] = ()
    if closest and len(placed) >= quorum:
        instants = _select_track_instants(closest.trace, span, copy)
        track = _compute_median_track([mark.trace for mark in placed], instants)
    texts = {mark.annotator: mark.trace.explanation for mark in cluster}
    words_of = choose_consensus_text_author(task.id, list(texts.items()), distance=far.__getitem__)
    merged = Trace(
        span=span,
        track=track,
        categories=_select_majority_categories(cluster),
        explanation=texts.get(words_of, ""),
    )
    return ConsensusTrace(trace=merged, marked_by=tuple(sorted(texts)), words_of=words_of)


def _compute_trace_distances(cluster: Cluster, copy: AnnotatorClipCopy) -> dict[str, float]:
    tubes = {mark.annotator: build_trace_tube(mark.trace, copy) for mark in cluster}
    return {
        who: round(
            -sum(
                measure_tube_overlap(tube, other) for other in tubes.values() if other is not tube
            ),
            9,
        )
        for who, tube in tubes.items()
    }


def _select_majority_categories(cluster: Cluster) -> frozenset[Category]:
    named = Counter(kind for mark in cluster for kind in mark.trace.categories)
    return frozenset(kind for kind, count in named.items() if 2 * count > len(cluster))


def _compute_median_span(spans: Sequence[TimeSpan], copy: AnnotatorClipCopy) -> TimeSpan:
    """Return the span of median start to median end, moved to the start of the frame visible then."""
    start = _compute_median_instant([span.start_us for span in spans])
    end = _compute_median_instant([span.end_us for span in spans])
    on_frames = [
        at if at in known else copy.at_us(copy.frame_at(at))
        for at, known in (
            (start, {span.start_us for span in spans}),
            (end, {span.end_us for span in spans}),
        )
    ]
    if on_frames[0] < on_frames[1]:
        return TimeSpan(*on_frames)
    return TimeSpan(start, end)


def _compute_median_instant(instants: Sequence[int]) -> int:
    ordered = sorted(instants)
    half = len(ordered) // 2
    return (ordered[half] + ordered[-1 - half]) // 2


def _select_track_instants(
    closest_trace: Trace, span: TimeSpan, copy: AnnotatorClipCopy
) -> list[int]:
    marked = [mark.at_us for mark in closest_trace.track]
    inside = {at for at in marked if span.start_us <= at < span.end_us}
    last = max(span.start_us, copy.at_us(copy.frame_at(span.end_us - 1)))
    if marked[0] < span.start_us or not inside:
        inside.add(span.start_us)
    if marked[-1] >= span.end_us:
        inside.add(last)
    return sorted(inside)


def _compute_median_track(traces: Sequence[Trace], instants_us: Sequence[int]) -> tuple[BoxAt, ...]:
    corners = np.stack([interpolate_trace_boxes(trace, instants_us) for trace in traces])
    visible = np.array(
        [[t.span.start_us <= at < t.span.end_us for at in instants_us] for t in traces]
    )
    visible[:, ~visible.any(axis=0)] = True
    boxes = []
    for i, at_us in enumerate(instants_us):
        x0, y0, x1, y1 = np.median(corners[visible[:, i], i], axis=0).tolist()
        boxes.append(BoxAt(at_us, Box(x0, y0, x1, y1)))
    return tuple(boxes)
