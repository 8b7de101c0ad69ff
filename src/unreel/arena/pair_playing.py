"""From the runs of a preference season to who took which clip for real: nobody is asked."""

from array import array
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from unreel.arena.play import NOBODY, SILENT
from unreel.arena.playing import open_entered
from unreel.arena.preference import TOOK_FIRST, TOOK_SECOND, PairPlay
from unreel.arena.working_folder import EnteredReviewer, SeasonFolder
from unreel.benchmarks.planning import Planned
from unreel.core.clip import Origin, creator_of, setting_of
from unreel.core.errors import UnknownNameError
from unreel.core.failure import Failure, FailureReason
from unreel.core.settings import Settings, read_settings
from unreel.core.verdict import Position, PreferenceVerdict, Verdict
from unreel.evaluate.stored_answers import planned_with_answers, read_answer

_TOOK = {Position.FIRST: TOOK_FIRST, Position.SECOND: TOOK_SECOND}
_NEVER_PUT = frozenset({FailureReason.BUDGET_SPENT.value, FailureReason.CLIP_CHANGED.value})


@dataclass(frozen=True, slots=True)
class _Answered:
    first: str
    second: str
    scene: str
    took: int


def read_pairs(folder: SeasonFolder, condition: str) -> PairPlay:
    """All answers of a preference season under one condition. Floors answer like others and are left out.

    Raises:
        UnreelError: Nothing was played there, or the condition is none of the season's.
    """
    entrants, settings = folder.require_played(), read_settings()
    if condition not in entrants.conditions:
        kind = "condition"
        raise UnknownNameError(kind, condition, list(entrants.conditions))
    shown = entrants.shown(entrants.reviewers)
    heard = [each for each in entrants.reviewers if not each.unfitted and not each.floor]
    names = tuple(sorted(shown[each.name] for each in heard))
    told = [
        (names.index(shown[each.name]), answered)
        for each in heard
        for answered in _answers(folder, each, condition, settings)
    ]
    creators = tuple(sorted({one for _, a in told for one in (a.first, a.second)} - {""}))
    scenes = tuple(sorted({answered.scene for _, answered in told}))
    maker = {name: place for place, name in enumerate(creators)} | {"": NOBODY}
    place = {name: number for number, name in enumerate(scenes)}
    columns = tuple(array("i") for _ in range(5))
    for reviewer, each in told:
        row = (reviewer, maker[each.first], maker[each.second], place[each.scene], each.took)
        for column, value in zip(columns, row, strict=True):
            column.append(value)
    reviewers, first, second, scene, took = (np.array(c, dtype=np.int32) for c in columns)
    return PairPlay(
        condition=condition,
        reviewers=names,
        creators=creators,
        scenes=scenes,
        reviewer=reviewers,
        first=first,
        second=second,
        scene=scene,
        took=took.astype(np.int8),
    )


def _answers(
    folder: SeasonFolder, reviewer: EnteredReviewer, condition: str, settings: Settings
) -> Iterator[_Answered]:
    run, wanted = open_entered(folder, reviewer, settings), reviewer.conditions.get(condition)
    if run is None or wanted is None:
        return
    for planned, row in planned_with_answers(run):
        if not isinstance(planned, Planned) or row is None:
            continue
        if row["condition"] != wanted or row["failure_reason"] in _NEVER_PUT:
            continue
        first, second = map(_maker, planned.origins)
        read = read_answer(planned, row, mode=run.recipe.reviewer.parser)
        if first != second:
            yield _Answered(first, second, planned.source or planned.name, _took(read))


def _maker(origin: Origin) -> str:
    creator, setting = creator_of(origin), setting_of(origin)
    return f"{creator}/{setting}" if setting else creator


def _took(read: Verdict | Failure) -> int:
    if isinstance(read, PreferenceVerdict) and isinstance(read.real, Position):
        return _TOOK[read.real]
    return SILENT
