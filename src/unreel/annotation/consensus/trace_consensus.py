"""Consensus on traces by DeepTraceReward's rule: traces of several annotators become one trace."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from unreel.annotation.campaign import AnnotationTask, AnnotatorClipCopy
from unreel.annotation.consensus.answer_consensus import choose_consensus_text_author
from unreel.annotation.consensus.outcome import ConsensusRule
from unreel.annotation.consensus.trace_matching import (
    AnnotatorTrace,
    Cluster,
    build_trace_tube,
    cluster_annotator_traces,
    get_trace_sort_key,
    measure_tube_overlap,
)
from unreel.core.box import Box
from unreel.core.span import TimeSpan
from unreel.core.trace import BoxAt, Category, Trace
from unreel.protocols.locate.segment_overlap import interpolate_trace_boxes


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
    """Return, by annotator, the rounded negative sum of overlaps with the other traces of the cluster."""
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


def _select_track_instants(closest: Trace, span: TimeSpan, copy: AnnotatorClipCopy) -> list[int]:
    """Return the key-frame times of `closest` inside `span`, with ends of `span` if boxes lie outside it."""
    marked = [mark.at_us for mark in closest.track]
    inside = {at for at in marked if span.start_us <= at < span.end_us}
    last = max(span.start_us, copy.at_us(copy.frame_at(span.end_us - 1)))
    if marked[0] < span.start_us or not inside:
        inside.add(span.start_us)
    if marked[-1] >= span.end_us:
        inside.add(last)
    return sorted(inside)


def _compute_median_track(traces: Sequence[Trace], instants_us: Sequence[int]) -> tuple[BoxAt, ...]:
    """Return the median box at each instant from the traces whose span contains it, or from all."""
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
