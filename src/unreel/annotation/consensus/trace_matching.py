"""Overlap of traces in space and time, and matching of traces that mark the same fault."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from unreel.annotation.campaign import AnnotatorClipCopy
from unreel.core.span import MICROSECONDS, TimeSpan
from unreel.core.trace import Trace
from unreel.protocols.locate.segment_overlap import (
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
    marks: Sequence[AnnotatorTrace], copy: AnnotatorClipCopy
) -> _TraceSimilarities:
    area = np.zeros((len(marks), len(marks)))
    text = np.zeros_like(area)
    tubes = [build_trace_tube(mark.trace, copy) for mark in marks]
    for i, j in combinations(range(len(marks)), 2):
        a, b = marks[i], marks[j]
        if a.annotator != b.annotator:
            area[i, j] = area[j, i] = measure_tube_overlap(tubes[i], tubes[j])
            text[i, j] = text[j, i] = _compute_description_similarity(a.trace, b.trace)
    return _TraceSimilarities(area, area + text)


def _compute_description_similarity(a: Trace, b: Trace) -> float:
    either = a.categories | b.categories
    kinds = len(a.categories & b.categories) / len(either) if either else 1.0
    return _SAME_KINDS * kinds + _SAME_WORDS * (a.explanation == b.explanation)


def _match_trace_pairs(
    marks: Sequence[AnnotatorTrace], likes: _TraceSimilarities, same_fault: float
) -> list[tuple[int, int]]:
    """Match traces of each two annotators one to one by largest total similarity; return index pairs."""
    from scipy.optimize import linear_sum_assignment

    whose = np.array([mark.annotator for mark in marks])
    matches = []
    for a, b in combinations(sorted(set(whose.tolist())), 2):
        left, right = np.flatnonzero(whose == a), np.flatnonzero(whose == b)
        block = np.ix_(left, right)
        alike = np.where(likes.place[block] >= same_fault, likes.all[block], 0.0)
        for row, column in zip(*linear_sum_assignment(alike, maximize=True), strict=True):
            if alike[row, column] > 0:
                matches.append((-alike[row, column], int(left[row]), int(right[column])))
    return [(i, j) for _, i, j in sorted(matches)]
