"""Columns from which the `trace` scorecard is computed, without an object per annotation row."""

from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from unreel.core.errors import InvalidValueError
from unreel.core.failure import Failure
from unreel.core.judgement import Label
from unreel.core.verdict import TraceVerdict, Unparsed
from unreel.protocols.metric_estimates import CALLS, LabelPredictions, Said
from unreel.protocols.protocol import ScoredQuestion
from unreel.protocols.trace.ground_truth import TraceTruth
from unreel.protocols.trace.metrics import WHOLE_FRAME
from unreel.stats.clusters import ClusterIdBuilder, LabelNumbering
from unreel.stats.row_sample import Array, BoolArray, ClusterIds, IntArray

TraceRow = ScoredQuestion[TraceTruth, TraceVerdict]
FIGURES = ("accuracy", "explanation", "box-iou", "box-distance", "time-distance")
"""Names of the metrics with a value for each unit."""
_ABSENT, _UNSCORED = -2.0, -1.0
"""Values for units to which the metric does not apply, and for units that no judge has scored."""


@dataclass(frozen=True, slots=True, eq=False)
class MetricValueColumn:
    """Values of one metric, one for each scored unit (an annotation row or a clip)."""

    values: Array
    """Values from 0 to 1, or one of the two negative numbers that mean no value."""
    read: BoolArray
    """Mask of the units whose answer contained the part."""

    @property
    def asked(self) -> BoolArray:
        """Return a mask of the units to which the metric applies."""
        applies: BoolArray = self.values != _ABSENT
        return applies

    @property
    def scored(self) -> BoolArray:
        """Return a mask of the units for which the metric has a value."""
        scored: BoolArray = self.values >= 0
        return scored

    @property
    def unscored(self) -> BoolArray:
        """Return a mask of the units with an explanation that no judge has scored."""
        unscored: BoolArray = (self.values == _UNSCORED) & self.read
        return unscored

    @property
    def lacks_judge(self) -> bool:
        """Return whether explanations were read, but a judge scored none of them."""
        read = self.asked & self.read
        return bool(read.any()) and not (read & self.scored).any()

    def at(self, units: npt.NDArray[Any]) -> "MetricValueColumn":
        """Return the metric's values for the units with these indices, or in this mask."""
        return MetricValueColumn(self.values[units], self.read[units])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScoredUnitColumns:
    """Columns of scored units (annotation rows or clips): clusters, labels and metric values."""

    clip: IntArray
    """Clip number of each unit."""
    ties: ClusterIds
    generated: BoolArray
    said: Said
    """Answered labels as codes of `CALLS`."""
    points: Mapping[str, MetricValueColumn]

    def __len__(self) -> int:
        return len(self.clip)

    def at(self, units: npt.NDArray[Any]) -> "ScoredUnitColumns":
        """Return the columns of the units with these indices, or in this mask."""
        return replace(
            self,
            clip=self.clip[units],
            ties=self.ties.only(units),
            generated=self.generated[units],
            said=self.said[units],
            points={name: point.at(units) for name, point in self.points.items()},
        )

    @property
    def calls(self) -> LabelPredictions:
        """Return the true label and the answered label of each unit."""
        return LabelPredictions(self.ties, self.generated, self.said)

    def by_clip(self) -> "ScoredUnitColumns":
        """Return columns with one unit per clip: the means of its units, in the order of first occurrence."""
        first, number = _index_clips_in_order(self.clip)
        points = {
            name: _compute_clip_means(point, number, len(first))
            for name, point in self.points.items()
        }
        return replace(self.at(first), points=points)

    def best(self) -> "ScoredUnitColumns":
        """Return one unit per clip: the annotation row of highest box IoU, then smallest time distance."""
        first, number = _index_clips_in_order(self.clip)
        iou, late = (self.points[name] for name in ("box-iou", "time-distance"))
        overlap = np.where(iou.scored, iou.values, -1.0)
        early = np.where(late.scored, -late.values, -1.0)
        order = np.lexsort((np.arange(len(self)), -early, -overlap, number))
        starts = np.searchsorted(number[order], np.arange(len(first)))
        return self.at(order[starts])


def _index_clips_in_order(clip: IntArray) -> tuple[IntArray, IntArray]:
    """Return each clip's first unit and each unit's clip number, in order of first units."""
    _, first, number = np.unique(clip, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return first[order], rank[number]


def _compute_clip_means(column: MetricValueColumn, number: IntArray, n: int) -> MetricValueColumn:
    applies, scored = column.asked, column.scored
    counts = np.bincount(number[scored], minlength=n)
    sums = np.bincount(number[scored], weights=column.values[scored], minlength=n)
    values = np.full(n, _ABSENT)
    values[number[applies]] = _UNSCORED
    values[counts > 0] = sums[counts > 0] / counts[counts > 0]
    read = np.zeros(n, np.bool_)
    units = np.flatnonzero(applies)[::-1]
    read[number[units]] = column.read[units]  # the first unit of a clip is decisive
    return MetricValueColumn(values, read)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TraceScorecardData:
    """Data of a `trace` scorecard: answered rows as columns, and counts of failures."""

    units: ScoredUnitColumns
    """Columns of the answered annotation rows."""
    n_questions: int
    """Number of clips."""
    failures: Counter[str]
    """Number of clips without an answer, by reason."""
    unparsed: Counter[str]
    """Number of unreadable parts of answers, by `part: reason`."""
    answered: BoolArray
    """Mask of the units that are the first of their clip."""
    whole_frame: npt.NDArray[np.int8]
    """Whether each unit's answered box is the whole frame (1 or 0); -1 without a box."""


def build_trace_columns(rows: Sequence[TraceRow]) -> TraceScorecardData:
    """Build the columns of a `trace` scorecard from `rows` in one pass, and count failures.

    Parts of answers that could not be read are counted too.

    Raises:
        InvalidValueError: Rows of one clip have different answers or labels.
    """
    clips, tying = LabelNumbering(), ClusterIdBuilder()
    hashes, kinds = array("q"), array("i")
    known: dict[str | tuple[str, ...], int] = {}
    columns = _ScoredUnitColumnsBuilder()
    for row in rows:
        outcome, truth = row.outcome, row.truth
        clips.add(str(row.subject))
        hashes.append(hash((outcome, truth.label)))
        if isinstance(outcome, Failure):
            kinds.append(known.setdefault(outcome.reason.value, len(known)))
            continue
        kinds.append(known.setdefault(tuple(_iter_unparsed_parts(outcome)), len(known)))
        tying.add(*row.cluster)
        columns.add(row, outcome)
    clip = clips.numbers().astype(np.int64)
    first, number = _index_clips_in_order(clip) if len(clip) else (clip, clip)
    clip_hash = np.frombuffer(hashes, np.int64)
    if (differs := np.flatnonzero(clip_hash != clip_hash[first][number])).size:
        raise InvalidValueError(
            f"clip {rows[int(differs[0])].subject} has rows with different answers or labels. "
            "Score one answer per clip, and join its annotation rows to it"
        )
    kind = np.frombuffer(kinds, np.int32)
    counts = np.bincount(kind[first], minlength=len(known)).tolist()
    failures, unparsed = Counter[str](), Counter[str]()
    for name, n in zip(known, counts, strict=True):
        if isinstance(name, str):
            failures[name] += n
        else:
            unparsed.update(dict.fromkeys(name, n))
    failed = np.array([isinstance(name, str) for name in known], np.bool_)
    is_first = np.zeros(len(clip), np.bool_)
    is_first[first] = True
    answered = ~failed[kind] if len(kind) else np.zeros(0, np.bool_)
    return TraceScorecardData(
        units=columns.units(clip[answered], tying.ties()),
        n_questions=len(first),
        failures=+failures,
        unparsed=+unparsed,
        answered=is_first[answered],
        whole_frame=np.frombuffer(columns.whole_frame, np.int8),
    )


def _iter_unparsed_parts(verdict: TraceVerdict) -> Iterator[str]:
    """Yield `part: reason` for each unreadable part of a verdict; an answer REAL needs only a label."""
    parts: list[tuple[str, object]] = [("label", verdict.label)]
    if verdict.label is not Label.REAL:
        parts += [("box", verdict.box), ("start", verdict.start_us)]
        parts += [("explanation", verdict.explanation)]
    for name, part in parts:
        if isinstance(part, Unparsed):
            yield f"{name}: {part.reason.value}"


class _ScoredUnitColumnsBuilder:
    """Builder that collects answered annotation rows into `ScoredUnitColumns`."""

    def __init__(self) -> None:
        self.whole_frame = array("b")
        self._generated, self._said = bytearray(), array("b")
        self._values = {name: array("d") for name in FIGURES}
        self._read = {name: bytearray() for name in FIGURES}

    def add(self, row: TraceRow, verdict: TraceVerdict) -> None:
        """Append the values of all metrics for an answered row."""
        truth = row.truth
        label = None if isinstance(verdict.label, Unparsed) else verdict.label
        box = None if isinstance(verdict.box, Unparsed) else verdict.box
        start_us = None if isinstance(verdict.start_us, Unparsed) else verdict.start_us
        explained = isinstance(verdict.explanation, str)
        self.whole_frame.append(-1 if box is None else box.area >= WHOLE_FRAME)
        self._generated.append(truth.label is Label.GENERATED)
        self._said.append(CALLS[label])
        self._point("accuracy", float(label is truth.label), read=label is not None)
        if label is Label.REAL:  # REAL discards the other parts; an unreadable label does not
            box, start_us, explained = None, None, False
        true_box, true_us = truth.box, truth.start_us
        iou = distance = late = _ABSENT
        if true_box is not None:
            iou = 0.0 if box is None else true_box.iou(box)
            distance = 1.0 if box is None else true_box.centre_distance(box)
        if true_us is not None:
            late = 1.0 if start_us is None else abs(start_us - true_us) / truth.duration_us
            late = min(1.0, late)
        self._point("box-iou", iou, read=box is not None and true_box is not None)
        self._point("box-distance", distance, read=box is not None and true_box is not None)
        self._point("time-distance", late, read=start_us is not None and true_us is not None)
        score = _ABSENT
        if truth.explanation:
            score = _get_judge_score(row) if explained else 0.0
        self._point("explanation", score, read=explained and score != _ABSENT)

    def _point(self, metric: str, value: float, *, read: bool) -> None:
        self._values[metric].append(value)
        self._read[metric].append(read)

    def units(self, clip: IntArray, cluster_ids: ClusterIds) -> ScoredUnitColumns:
        """Return the columns of all added rows."""
        return ScoredUnitColumns(
            clip=clip,
            ties=cluster_ids,
            generated=np.frombuffer(self._generated, np.bool_),
            said=np.frombuffer(self._said, np.int8),
            points={
                name: MetricValueColumn(
                    np.frombuffer(self._values[name], np.float64),
                    np.frombuffer(self._read[name], np.bool_),
                )
                for name in FIGURES
            },
        )


def _get_judge_score(row: TraceRow) -> float:
    if row.text_score is None:
        return _UNSCORED
    if not 0 <= row.text_score <= 1:
        raise InvalidValueError(
            f"a judge's score must be between 0 and 1, got {row.text_score}. Parse it with parse_judge_score"
        )
    return row.text_score
