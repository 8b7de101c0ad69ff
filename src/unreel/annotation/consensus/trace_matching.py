"""Match the traces of different people that mean the same fault."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from unreel.annotation.campaign import ClipCopy
from unreel.annotation.trace_overlap import measure_overlap, sweep
from unreel.core.trace import Trace

# Faults at one place and time are told apart by what is said of them. Place and time come first.
_SAME_KINDS = 0.05
_SAME_WORDS = 0.001


@dataclass(frozen=True, slots=True)
class AnnotatorTrace:
    """One person's trace."""

    annotator: str
    trace: Trace


Cluster = tuple[AnnotatorTrace, ...]
"""Marks of different people that mean one fault."""


@dataclass(frozen=True, slots=True)
class _TraceSimilarities:
    """Similarity of each two traces: in position and time, and in all answers."""

    place: np.ndarray
    all: np.ndarray


def cluster_marks(
    traces: Mapping[str, Sequence[Trace]], copy: ClipCopy, *, same_fault: float
) -> list[Cluster]:
    """Cluster the marks of all people into faults, in order of time.

    A cluster contains at most one mark of each person. For each two people, marks are matched one
    to one so that the total similarity is largest. Matched pairs are then merged into clusters,
    most similar first, while the mean similarity between the two sides is at least `same_fault`.
    The order of people and marks does not change the result.
    """
    marks = [
        AnnotatorTrace(who, trace)
        for who in sorted(traces)
        for trace in sorted(traces[who], key=order)
    ]
    likes = _compute_trace_similarities(marks, copy)
    group = list(range(len(marks)))
    members = {number: [number] for number in group}
    for one, other in _match_trace_pairs(marks, likes, same_fault):
        ours, theirs = members[group[one]], members[group[other]]
        people = [marks[place].annotator for place in (*ours, *theirs)]
        if len(set(people)) < len(people) or likes.place[np.ix_(ours, theirs)].mean() < same_fault:
            continue
        for place in members.pop(group[other]):
            ours.append(place)
            group[place] = group[one]
    found = [tuple(marks[place] for place in sorted(places)) for places in members.values()]
    return sorted(found, key=lambda cluster: order(cluster[0].trace))


def order(trace: Trace) -> tuple[object, ...]:
    """Return a sort key for traces: time first, then boxes, categories and explanation."""
    track = tuple((m.at_us, m.box.x0, m.box.y0, m.box.x1, m.box.y1) for m in trace.track)
    return trace.span, track, sorted(trace.categories), trace.explanation


def _compute_trace_similarities(
    marks: Sequence[AnnotatorTrace], copy: ClipCopy
) -> _TraceSimilarities:
    place = np.zeros((len(marks), len(marks)))
    said = np.zeros_like(place)
    tubes = [sweep(mark.trace, copy) for mark in marks]
    for i, j in combinations(range(len(marks)), 2):
        one, other = marks[i], marks[j]
        if one.annotator != other.annotator:
            place[i, j] = place[j, i] = measure_overlap(tubes[i], tubes[j])
            said[i, j] = said[j, i] = _compute_description_similarity(one.trace, other.trace)
    return _TraceSimilarities(place, place + said)


def _compute_description_similarity(one: Trace, other: Trace) -> float:
    either = one.categories | other.categories
    kinds = len(one.categories & other.categories) / len(either) if either else 1.0
    return _SAME_KINDS * kinds + _SAME_WORDS * (one.explanation == other.explanation)


def _match_trace_pairs(
    marks: Sequence[AnnotatorTrace], likes: _TraceSimilarities, same_fault: float
) -> list[tuple[int, int]]:
    """Return index pairs of matched marks, most similar first.

    For each two people, marks are matched one to one so that the total similarity is largest.
    """
    from scipy.optimize import linear_sum_assignment

    whose = np.array([mark.annotator for mark in marks])
    found = []
    for one, other in combinations(sorted(set(whose.tolist())), 2):
        ours, theirs = np.flatnonzero(whose == one), np.flatnonzero(whose == other)
        block = np.ix_(ours, theirs)
        alike = np.where(likes.place[block] >= same_fault, likes.all[block], 0.0)
        for row, column in zip(*linear_sum_assignment(alike, maximize=True), strict=True):
            if alike[row, column] > 0:
                found.append((-alike[row, column], int(ours[row]), int(theirs[column])))
    return [(i, j) for _, i, j in sorted(found)]
