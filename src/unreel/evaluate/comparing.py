"""Every two reviewers on the clips that both judged: what their figures differ by, and whether that is chance."""

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from unreel.core.comparison import Comparison, Comparisons, Difference
from unreel.core.errors import InvalidSettingError, UnknownNameError
from unreel.core.estimate import Estimate, Measured, Unmeasured
from unreel.core.failure import Failure
from unreel.core.judgement import clips_of
from unreel.core.question import Condition, differing
from unreel.core.verdict import Unparsed
from unreel.evaluate.job import Run
from unreel.evaluate.kept_rows import KeptRows
from unreel.evaluate.scoring import read_rows
from unreel.evaluate.texts import ExplanationJudges, recall_judge
from unreel.protocols.protocol import Mode, Protocol, Row
from unreel.stats.leaving_out import Groups, leaving_out
from unreel.stats.many import holm
from unreel.stats.paired import paired_difference

Rows = Sequence[Row[Any, Any]]
Key = tuple[str, int]
"""What was shown, and which of its truths a row holds."""
_SEED: Final = 0
_RUNS: Final = "runs"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Side:
    """One reviewer under one condition, with all that it was asked and answered."""

    reviewer: str
    condition: Condition
    instrument: Protocol[Any, Any]
    """At the version that was asked."""
    names: Sequence[str]
    """Of the entries, one for each row."""
    rows: Rows


def compare_runs(
    runs: Sequence[Run],
    *,
    metrics: Sequence[str] = (),
    parser: Mode | None = None,
    judge: str | None = None,
) -> Comparisons:
    """Every two conditions of `runs`, from the answers that are there. Nobody is asked.

    Args:
        runs: of `unreel eval`, over the same clips with the same instrument.
        metrics: figures of the scorecard; those that the instrument declares where none is named.
        parser: how answers are read; as each run's recipe says where none is named.
        judge: model whose kept rulings score explanations: see `unreel score --judge`.

    Raises:
        InvalidSettingError: They cannot be compared.
        UnknownNameError: No figure has that name.
    """
    places = [run.place.uri for run in runs]
    if len({*places}) < len(places):
        twice = next(place for place in places if places.count(place) > 1)
        raise InvalidSettingError(_RUNS, f"{twice} is named twice", "Name each run once")
    sides = [side for run in runs for side in read_sides(run, parser=parser, judge=judge)]
    return compare_sides(sides, metrics=metrics)


def read_sides(run: Run, *, parser: Mode | None = None, judge: str | None = None) -> list[Side]:
    """A side for each condition of `run`."""
    names: dict[Condition, list[str]] = {c: [] for c in run.scope.conditions}
    rows = {condition: KeptRows() for condition in run.scope.conditions}
    for name, condition, row in read_rows(run, mode=parser or run.recipe.reviewer.parser):
        if row is not None:
            names[condition].append(name)
            rows[condition].append(row)
    judged: Any = tuple
    if judge is not None and "explanation" in run.recipe.instrument.figures:
        judged = ExplanationJudges([recall_judge(judge, run)], run.recipe.seed)
    return [
        Side(
            reviewer=run.reviewer_name(),
            condition=condition,
            instrument=replace(run.recipe.instrument, instrument=run.scope.instrument),
            names=names[condition],
            rows=judged(rows[condition]),
        )
        for condition in run.scope.conditions
    ]


def compare_sides(sides: Sequence[Side], *, metrics: Sequence[str] = ()) -> Comparisons:
    """Every two of `sides`, with Holm's correction over all differences: see `compare_runs`."""
    if len(sides) < 2:  # noqa: PLR2004  it takes two
        problem = "there is nothing to compare with"
        remedy = "Name two runs, or one that was asked under several conditions"
        raise InvalidSettingError(_RUNS, problem, remedy)
    names = tell_apart([(side.reviewer, side.condition) for side in sides])
    first = sides[0].instrument
    for side, name in zip(sides, names, strict=True):
        if side.instrument.instrument != first.instrument:
            problem = (
                f"{names[0]} was asked {first.instrument}, {name} {side.instrument.instrument}"
            )
            remedy = "Compare runs of one instrument at one version; ask the older one again"
            raise InvalidSettingError(_RUNS, problem, remedy)
    found = [
        _compare(one, other, metrics=metrics)
        for one, other in itertools.combinations(zip(sides, names, strict=True), 2)
    ]
    told = [d.p for comparison in found for d in comparison.differences if d.p is not None]
    corrected = iter(holm(told))
    return Comparisons(
        instrument=first.instrument,
        comparisons=tuple(_corrected(comparison, corrected) for comparison in found),
        n_tests=len(told),
    )


def tell_apart(sides: Sequence[tuple[str, Condition]]) -> list[str]:
    """The reviewers' names, with their conditions where these differ, and numbers where that is not enough."""
    telling = differing([condition for _, condition in sides])
    names = [" · ".join([reviewer, *condition.words(telling)]) for reviewer, condition in sides]
    taken = {name for name in names if names.count(name) == 1}
    told = []
    for name in names:
        numbered = (f"{name} ({number})" for number in itertools.count(1))
        alone = names.count(name) == 1
        told.append(name if alone else next(each for each in numbered if each not in taken))
        taken.add(told[-1])
    return told


def _corrected(comparison: Comparison, corrected: Iterator[float]) -> Comparison:
    differences = tuple(
        found if found.p is None else replace(found, p_corrected=next(corrected))
        for found in comparison.differences
    )
    return replace(comparison, differences=differences)


def _compare(
    one: tuple[Side, str], other: tuple[Side, str], *, metrics: Sequence[str]
) -> Comparison:
    (first, first_name), (second, second_name) = one, other
    by_name = first.condition.watermark != second.condition.watermark
    ours, theirs = _keyed(first, by_name=by_name), _keyed(second, by_name=by_name)
    shared = [key for key in ours if key in theirs]
    if not shared:
        problem = f"{first_name} and {second_name} were asked about other clips"
        remedy = "Compare runs over one benchmark: `unreel eval` asks about it what is missing"
        raise InvalidSettingError(_RUNS, problem, remedy)
    if not by_name:
        _require_one_truth(ours, theirs, shared)
    valid = tuple(key for key in shared if _is_valid(first, ours[key], theirs[key]))
    n_shared, n_valid = _n_questions(shared), _n_questions(valid)
    groups = Groups()
    our = _figures(first, [ours[key] for key in valid], groups)
    # A clip without its watermark has other bytes, and is the same clip here.
    their = _figures(second, [_at(theirs[key], ours[key]) for key in valid], groups)
    known = [name for name in our if name in their]
    differences = [
        _difference(name, our[name], their[name], groups=groups, reach=_reach(first, name))
        for name in _chosen(first, known, metrics)
    ]
    return Comparison(
        first=first_name,
        second=second_name,
        n_common=n_valid,
        n_sources=len(groups.scenes),
        n_invalid=n_shared - n_valid,
        n_unshared=_n_questions(ours.keys() ^ theirs.keys()),
        differences=tuple(differences),
    )


def _keyed(side: Side, *, by_name: bool) -> dict[Key, Row[Any, Any]]:
    """The rows by what was shown: its bytes, or its name where one saw it without its watermark."""
    nth: Counter[str] = Counter()
    keyed = {}
    for name, row in zip(side.names, side.rows, strict=True):
        shown = name if by_name else "+".join(clips_of(row.subject))
        keyed[shown, nth[shown]] = row
        nth[shown] += 1
    return keyed


def _at(row: Row[Any, Any], place: Row[Any, Any]) -> Row[Any, Any]:
    return replace(row, subject=place.subject, source=place.source, creator=place.creator)


def _require_one_truth(
    ours: Mapping[Key, Row[Any, Any]], theirs: Mapping[Key, Row[Any, Any]], shared: Sequence[Key]
) -> None:
    for key in shared:
        if ours[key].truth != theirs[key].truth:
            problem = f"they hold different truths about the clip {key[0]}"
            remedy = "Compare runs over one version of a benchmark"
            raise InvalidSettingError(_RUNS, problem, remedy)


def _is_valid(side: Side, *rows: Row[Any, Any]) -> bool:
    decision = side.instrument.wording.decision
    return not any(
        isinstance(row.outcome, Failure) or isinstance(decision(row.outcome), Unparsed)
        for row in rows
    )


def _n_questions(keys: Any) -> int:
    return len({shown for shown, _ in keys})


def _chosen(side: Side, known: Sequence[str], metrics: Sequence[str]) -> list[str]:
    if not metrics:
        return [figure.metric for figure in side.instrument.figures if figure.metric in known]
    chosen: dict[str, None] = {}
    for name in metrics:
        found = [name] if name in known else [k for k in known if k.startswith(f"{name}: ")]
        if not found:
            kind = "metric"
            raise UnknownNameError(kind, name, known)
        chosen.update(dict.fromkeys(found))
    return [*chosen]


def _reach(side: Side, metric: str) -> float:
    """The most that two values of a figure can differ by; variants of a figure have its range."""
    plain = metric.partition(": ")[0]
    for figure in side.instrument.figures:
        if plain == figure.metric or plain.startswith(f"{figure.metric}-"):
            return figure.range[1] - figure.range[0]
    return math.inf


def _difference(
    metric: str, ours: Measured, theirs: Measured, *, groups: Groups, reach: float
) -> Difference:
    first, second = (
        found.value if isinstance(found, Estimate) else None for found in (ours, theirs)
    )
    tested = paired_difference(ours, theirs, groups=groups, reach=reach)
    if isinstance(tested, Unmeasured):
        return Difference(metric=metric, first=first, second=second, difference=tested)
    return Difference(
        metric=metric, first=first, second=second, difference=tested.estimate, p=tested.p
    )


def _figures(side: Side, rows: Rows, groups: Groups) -> dict[str, Measured]:
    with leaving_out(groups):
        card = side.instrument.score(rows, seed=_SEED)
    return {metric.name: metric.value for metric in card.metrics}
