"""From answered annotation rows to the scorecard of `trace`."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from unreel.core.box import Box
from unreel.core.cluster import Cluster
from unreel.core.errors import InvalidValueError
from unreel.core.estimate import Coverage, Estimate, Measured, Metric, Scorecard, Unmeasured
from unreel.core.failure import Failure
from unreel.core.judgement import Label
from unreel.core.verdict import TraceVerdict, Unparsed
from unreel.protocols.groups import told_by_part
from unreel.protocols.measure import (
    Part,
    count_failures,
    count_unparsed,
    mean_percent,
    sum_percent,
)
from unreel.protocols.protocol import Row
from unreel.protocols.telling import Calls, count_calls, measure_f1
from unreel.protocols.trace.figures import FIGURES, INSTRUMENT, WHOLE_FRAME
from unreel.protocols.trace.truth import TraceTruth

TraceRow = Row[TraceTruth, TraceVerdict]
_PLACED: Final = ("explanation", "box-iou", "box-distance", "time-distance")


@dataclass(frozen=True, slots=True)
class _Point:
    """What one figure gets from one row: a value of 0 to 1, and whether the answer held the part."""

    value: float | None
    """`None`: an explanation that no judge has scored."""
    read: bool


_UNSCORED: Final = _Point(None, read=True)


@dataclass(frozen=True, slots=True)
class _Unit:
    """What is counted once: an annotation row, or a clip."""

    clip: str
    cluster: Cluster
    label: Label
    points: Mapping[str, _Point]
    """By figure; a figure that does not concern the unit is absent."""

    @property
    def said(self) -> Label | None:
        """What it was called; `None` when nothing readable was said."""
        point = self.points["accuracy"]
        other = Label.REAL if self.label is Label.GENERATED else Label.GENERATED
        return (self.label if point.value else other) if point.read else None


@told_by_part(FIGURES)
def score(rows: Sequence[TraceRow], *, seed: int) -> Scorecard:
    """All figures of `trace`, in percent: per annotation row, per video, and against the best trace.

    - A row counts when its question was answered. A failure enters no figure, only `failures`.
    - A label that could not be read is wrong; for `f1` it is no call `generated`. Real rows carry labels
      only. `confusion` counts clips.
    - On a generated row the box, the time and the explanation are those of the answer, unless it says
      REAL. One that is missing or unreadable has IoU 0, distance 100, explanation 0. Distances are
      capped at 100. Each is asked only of rows whose truth holds it.
    - An explanation that no judge scored is left out, and counted by row as `explanation: unscored`;
      when none was scored, explanation and overall are unmeasured.
    - The bare names weigh annotation rows alike. `-per-video` takes the mean of a clip's rows first.
      `-best-of` compares an answer with the one trace of its clip that it meets best: by IoU,
      then by time.
    - `answered-real` and `whole-frame-boxes` count clips, among readable labels and readable boxes.

    The rows of one clip share one answer; they, and clips of one source, are drawn together for every
    interval.
    """
    answers = _answers(rows)
    units = [unit for row in rows for unit in _units(row)]
    by_clip: dict[str, list[_Unit]] = {}
    for unit in units:
        by_clip.setdefault(unit.clip, []).append(unit)
    videos = [_mean(group) for group in by_clip.values()]
    best = [max(group, key=_closeness) for group in by_clip.values()]
    read = [row.outcome for row in answers if not isinstance(row.outcome, Failure)]
    unscored = sum(unit.points.get("explanation") == _UNSCORED for unit in units)
    return Scorecard(
        instrument=INSTRUMENT,
        n_questions=len(answers),
        n_answered=len(read),
        metrics=(
            *_label_metrics(units, "", seed=seed),
            *_trace_metrics(units, "", seed=seed),
            *_label_metrics(videos, "-per-video", seed=seed),
            *_trace_metrics(videos, "-per-video", seed=seed),
            *_trace_metrics(best, "-best-of", seed=seed),
            *_habits(answers, seed=seed),
        ),
        failures=count_failures(answers),
        unparsed={
            **count_unparsed(part for verdict in read for part in _asked_parts(verdict)),
            **({"explanation: unscored": unscored} if unscored else {}),
        },
        confusion=count_calls(_calls(videos)),
    )


def _answers(rows: Sequence[TraceRow]) -> list[TraceRow]:
    """One row per clip: the question was put once, however many traces the clip has."""
    first: dict[str, TraceRow] = {}
    for row in rows:
        known = first.setdefault(str(row.subject), row)
        if (known.outcome, known.truth.label) != (row.outcome, row.truth.label):
            msg = (
                f"clip {row.subject} has rows with different answers or labels. "
                "Score one answer per clip, and join its annotation rows to it"
            )
            raise InvalidValueError(msg)
    return list(first.values())


def _units(row: TraceRow) -> Iterator[_Unit]:
    verdict, truth = row.outcome, row.truth
    if isinstance(verdict, Failure):
        return
    known = not isinstance(verdict.label, Unparsed)
    points = {"accuracy": _Point(float(verdict.label == truth.label), read=known)}
    # An unreadable label is wrong, but only REAL takes back what else the answer says.
    claims = verdict if verdict.label is not Label.REAL else None
    if truth.box is not None:
        box = claims.box if claims and isinstance(claims.box, Box) else None
        iou = truth.box.iou(box) if box else 0.0
        distance = truth.box.centre_distance(box) if box else 1.0
        points["box-iou"] = _Point(iou, read=box is not None)
        points["box-distance"] = _Point(distance, read=box is not None)
    if truth.start_us is not None:
        start = claims.start_us if claims and isinstance(claims.start_us, int) else None
        late = 1.0 if start is None else abs(start - truth.start_us) / truth.duration_us
        points["time-distance"] = _Point(min(1.0, late), read=start is not None)
    if truth.explanation:
        given = claims is not None and isinstance(claims.explanation, str)
        points["explanation"] = _Point(_judged(row) if given else 0.0, read=given)
    yield _Unit(str(row.subject), row.cluster, truth.label, points)


def _judged(row: TraceRow) -> float | None:
    if row.text_score is not None and not 0 <= row.text_score <= 1:
        msg = (
            f"a judge's score lies between 0 and 1, got {row.text_score}. Parse it with parse_judge"
        )
        raise InvalidValueError(msg)
    return row.text_score


def _mean(group: Sequence[_Unit]) -> _Unit:
    names = dict.fromkeys(name for unit in group for name in unit.points)
    points = {}
    for name in names:
        given = [unit.points[name] for unit in group if name in unit.points]
        values = [point.value for point in given if point.value is not None]
        value = sum(values) / len(values) if values else None
        points[name] = _Point(value, read=given[0].read)
    return _Unit(group[0].clip, group[0].cluster, group[0].label, points)


def _closeness(unit: _Unit) -> tuple[float, float]:
    iou, late = unit.points.get("box-iou"), unit.points.get("time-distance")
    return (
        iou.value if iou and iou.value is not None else -1.0,
        -late.value if late and late.value is not None else -1.0,
    )


def _calls(units: Sequence[_Unit]) -> Calls:
    said = [unit.said for unit in units]
    return Calls.of([unit.cluster for unit in units], [unit.label for unit in units], said)


def _label_metrics(units: Sequence[_Unit], suffix: str, *, seed: int) -> Iterator[Metric]:
    generated = [unit for unit in units if unit.label is Label.GENERATED]
    real = [unit for unit in units if unit.label is Label.REAL]
    for name, asked in (("accuracy", units), ("fake-accuracy", generated), ("real-accuracy", real)):
        yield _metric(name + suffix, "accuracy", asked, seed=seed)
    coverage = Coverage(
        parsed=sum(unit.points["accuracy"].read for unit in units), asked=len(units)
    )
    value = measure_f1(_calls(units), seed=seed)
    yield Metric(name="f1" + suffix, value=value, coverage=coverage)


def _trace_metrics(units: Sequence[_Unit], suffix: str, *, seed: int) -> Iterator[Metric]:
    for figure in _PLACED:
        yield _metric(figure + suffix, figure, units, seed=seed)
    yield _overall("overall" + suffix, units, seed=seed)


def _metric(name: str, figure: str, units: Sequence[_Unit], *, seed: int) -> Metric:
    asked = [unit for unit in units if figure in unit.points]
    coverage = Coverage(parsed=sum(unit.points[figure].read for unit in asked), asked=len(asked))
    return Metric(name=name, value=_value(figure, asked, seed=seed), coverage=coverage)


def _value(figure: str, asked: Sequence[_Unit], *, seed: int) -> Measured:
    if not asked:
        return Unmeasured("no answered row asks for it")
    if _lacks_judge(unit.points[figure] for unit in asked):
        return Unmeasured("no judge has scored the explanations")
    scored = [
        (unit.cluster, value) for unit in asked if (value := unit.points[figure].value) is not None
    ]
    clips, values = zip(*scored, strict=True)
    return mean_percent(values, clips=clips, seed=seed)


def _lacks_judge(points: Iterable[_Point]) -> bool:
    given = [point.value for point in points if point.read]
    return bool(given) and all(value is None for value in given)


def _overall(name: str, units: Sequence[_Unit], *, seed: int) -> Metric:
    figures = ("accuracy", "explanation", "box-iou", "time-distance")
    whole = [unit for unit in units if all(point.read for point in unit.points.values())]
    coverage = Coverage(parsed=len(whole), asked=len(units))
    for figure in figures:
        value = _value(figure, [unit for unit in units if figure in unit.points], seed=seed)
        if not isinstance(value, Estimate):
            return Metric(name=name, value=Unmeasured(f"{figure}: {value.why}"), coverage=coverage)
    parts = [Part.of(figure, 1 / 4, [_gain(unit, figure) for unit in units]) for figure in figures]
    clips = [unit.cluster for unit in units]
    return Metric(name=name, value=sum_percent(parts, clips=clips, seed=seed), coverage=coverage)


def _gain(unit: _Unit, figure: str) -> float | None:
    point = unit.points.get(figure)
    if point is None or point.value is None:
        return None
    return 1 - point.value if figure == "time-distance" else point.value


def _habits(answers: Sequence[TraceRow], *, seed: int) -> Iterator[Metric]:
    read = [(row.cluster, row.outcome) for row in answers if not isinstance(row.outcome, Failure)]
    labels = [(c, v.label) for c, v in read if not isinstance(v.label, Unparsed)]
    boxes = [(c, v.box) for c, v in read if isinstance(v.box, Box)]
    for name, hits in (
        ("answered-real", [(c, float(label is Label.REAL)) for c, label in labels]),
        ("whole-frame-boxes", [(c, float(box.area >= WHOLE_FRAME)) for c, box in boxes]),
    ):
        clusters, values = [c for c, _ in hits], [value for _, value in hits]
        value = mean_percent(values, clips=clusters, seed=seed)
        yield Metric(name=name, value=value, coverage=Coverage(parsed=len(hits), asked=len(read)))


def _asked_parts(verdict: TraceVerdict) -> Iterator[tuple[str, object]]:
    """An answer of REAL owes no box, time or explanation."""
    yield "label", verdict.label
    if verdict.label is not Label.REAL:
        yield "box", verdict.box
        yield "start", verdict.start_us
        yield "explanation", verdict.explanation
